"""Whatever a question holds, it is answered or refused: no exception of another kind leaves."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("fastapi", reason="serve needs FastAPI")

from sublearn.extreme import PPDSparseClassifier, TextTagger
from sublearn.forecast import LoadForecaster, LocalKernels
from sublearn.linear import SparseLinearRegression
from sublearn.serve.asking import answer as _answer
from sublearn.serve.limits import Limits, Refusal
from sublearn.serve.services import service_of
from sublearn.structured import ChainSVM, PairwiseMultilabelSVM, word_features

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 4))
LIMITS = Limits()

NUMBERS = st.sampled_from(
    [0, 1, -1, 3, 4, 2**31, 2**63, -(2**63) - 1, 92233720368547758080, 10**400, 1e308, -1e308, 0.5]
)
VALUES = NUMBERS | st.sampled_from([None, True, "", "word1", "a", "\x00", "\U0001f600", "NaN"])
for _ in range(3):
    VALUES |= st.lists(VALUES, max_size=4)
    VALUES |= st.dictionaries(st.sampled_from(["indices", "values", "a"]), VALUES, max_size=2)
NAMES = ["texts", "rows", "sequences", "k", "probabilities", "horizon", "future", "coverage", "x"]


def sentences():
    model = ChainSVM(random_state=0).fit([word_features(["the", "dog"])], [["DET", "NOUN"]])
    model.notes_ = {"token_columns": [], "n_columns": 1}
    return model


MAKERS = {
    "texts": lambda: TextTagger(min_df=1).fit(["word1 a", "word2"], [["x"], ["y"]]),
    "rows": lambda: PPDSparseClassifier(random_state=0).fit(X, (X[:, :3] > 0).astype(int)),
    "sets": lambda: PairwiseMultilabelSVM(random_state=0).fit(
        X, [["a", "b"] if x > 0 else ["c"] for x in X[:, 0]]
    ),
    "numbers": lambda: SparseLinearRegression(l1=0.01).fit(X, X[:, 1]),
    "words": sentences,
    "features": lambda: ChainSVM(random_state=0).fit([X[:3]], [["a", "b", "a"]]),
    "forecasts": lambda: LoadForecaster(horizon=6, kernels=LocalKernels(1), random_state=0).fit(
        100 + 10 * np.sin(np.arange(24 * 14) * np.pi / 12)
    ),
}


@pytest.fixture(scope="module", params=sorted(MAKERS))
def service(request):
    return service_of(MAKERS[request.param]())


@given(st.data())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_a_question_is_answered_or_refused(service, data):
    known = [name for name in NAMES if name in service.question.model_fields]
    fields = st.dictionaries(st.sampled_from(known), VALUES, max_size=3)
    question = service.example() | data.draw(fields)
    try:
        pieces = _answer(service, LIMITS, json.dumps(question).encode(), lambda: None)
    except Refusal:
        return
    json.loads(b"".join(pieces))
