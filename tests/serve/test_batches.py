"""Questions that are answered together get what each would get by itself, to the last bit."""

import asyncio
import json
import threading
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="serve needs FastAPI")

import sublearn
from sublearn.extreme import PDSparseClassifier, PPDSparseClassifier, TextTagger
from sublearn.serve.asking import answer
from sublearn.serve.batches import Batches, is_itemwise
from sublearn.serve.limits import Limits, Refusal
from sublearn.serve.metrics import Metrics
from sublearn.serve.services import service_of

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 5)).astype(np.float32)
Y = (X[:, :4] + 0.3 * rng.normal(size=(60, 4)) > 0).astype(int)
WORDS = [f"word{i}" for i in range(30)]
LIMITS = Limits()
GOLDEN = Path(__file__).resolve().parents[1] / "golden"


def tagger():
    texts = [" ".join(rng.choice(WORDS, 6)) for _ in range(80)]
    return TextTagger(min_df=1).fit(texts, [text.split()[:2] for text in texts])


def calibrated(model):
    return model.fit(X, Y).calibrate(X, Y)


def row(i):
    full = rng.normal(size=5).tolist()
    some = {"indices": [0, 3], "values": rng.normal(size=2).tolist()}
    return full if i % 3 else some


MODELS = {
    "texts": tagger,
    "ppd": lambda: calibrated(PPDSparseClassifier(random_state=0)),
    "pd": lambda: calibrated(PDSparseClassifier(random_state=0)),
    "8 bits": lambda: calibrated(PPDSparseClassifier(random_state=0)).compress(8),
    "two classes": lambda: PPDSparseClassifier(random_state=0).fit(X, Y[:, 0]),
}


@pytest.fixture(scope="module", params=list(MODELS))
def service(request):
    found = service_of(MODELS[request.param]())
    assert is_itemwise(found)
    return found


def questions(service, n):
    """Of several sizes and settings."""
    is_text = "texts" in service.question.model_fields
    for i in range(n):
        items = [
            " ".join(rng.choice(WORDS, rng.integers(0, 9))) if is_text else row(i + j)
            for j in range(rng.integers(1, 6))
        ]
        settings = {"k": int(rng.integers(1, 4)), "threshold": [None, 0.2][i % 2]}
        settings["probabilities"] = i % 4 == 0 and hasattr(service.model, "predict_proba_top_k")
        yield json.dumps({"texts" if is_text else "rows": items} | settings).encode()


def asked_together(service, bodies, limits=LIMITS):
    """Outcomes, and how many questions each batch had."""
    metrics, sizes = Metrics(()), []
    metrics.batch = sizes.append

    async def ask():
        batches = Batches(limits, metrics)
        return await asyncio.gather(*(batches.add(service, body) for body in bodies))

    return asyncio.run(ask()), sizes


def test_answers_are_those_of_each_question_alone(service):
    bodies = list(questions(service, 60))
    outcomes, sizes = asked_together(service, bodies)
    assert outcomes == [answer(service, LIMITS, body, lambda: None) for body in bodies]
    assert max(sizes) > 10


def test_a_batch_has_no_more_questions_than_are_granted(service):
    _, sizes = asked_together(service, list(questions(service, 30)), Limits(max_batch=4))
    assert sum(sizes) == 30
    assert max(sizes) == 4


@pytest.mark.parametrize("bad", [b"{", b'{"texts": [1]}', b'{"texts": ["a"], "k": 0}'])
def test_what_is_wrong_with_one_question_is_told_to_it_alone(bad):
    service = service_of(tagger())
    good = b'{"texts": ["word1"], "k": 1}'
    outcomes, _ = asked_together(service, [good, bad, good])
    assert outcomes[0] == outcomes[2] == answer(service, LIMITS, good, lambda: None)
    assert isinstance(outcomes[1], Refusal)
    with pytest.raises(Refusal) as alone:
        answer(service, LIMITS, bad, lambda: None)
    assert str(outcomes[1]) == str(alone.value)


def test_rows_that_do_not_fit_are_named_as_their_question_has_them():
    service = service_of(MODELS["ppd"]())
    good, bad = b'{"rows": [[0,0,0,0,1]]}', b'{"rows": [[0,0,0,0,1], [1]]}'
    outcomes, _ = asked_together(service, [good, good, bad, good])
    assert outcomes[0] == outcomes[1] == outcomes[3]
    assert "rows[1] must have 5 values" in str(outcomes[2])


def test_large_questions_are_left_to_threads_of_their_own():
    service = service_of(tagger())
    many = json.dumps({"texts": ["word1"] * 9, "k": 1}).encode()
    deep = json.dumps({"texts": ["word1"] * 8, "k": 33}).encode()
    assert asked_together(service, [many, deep])[0] == [None, None]


def test_questions_that_nobody_waits_for_are_left_out():
    service, metrics, sizes = service_of(tagger()), Metrics(()), []
    metrics.batch = sizes.append

    async def ask():
        batches = Batches(LIMITS, metrics)
        body = b'{"texts": ["word1"]}'
        waiting = [batches.add(service, body) for _ in range(5)]
        for one in waiting[1:4]:
            one.cancel()
        await asyncio.gather(waiting[0], waiting[4])

    asyncio.run(ask())
    assert sizes == [1, 1]


def test_models_whose_sums_depend_on_the_batch_are_asked_one_by_one():
    for name in ("SparseLogisticRegression", "DenseExtremeClassifier", "HierarchicalClassifier"):
        model = sublearn.load(GOLDEN / f"{name}_0.1.0.sublearn")
        assert not is_itemwise(service_of(model))


def test_one_call_answers_several(monkeypatch):
    """The point of it: a model is called once for many questions."""
    service, calls, gate = service_of(tagger()), [], threading.Event()
    ask_model = type(service).answer

    def counted(self, question, check):
        gate.wait(30)  # until all questions are there
        calls.append(len(question.texts))
        return ask_model(self, question, check)

    monkeypatch.setattr(type(service), "answer", counted)

    async def ask():
        batches = Batches(LIMITS, Metrics(()))
        waiting = [batches.add(service, b'{"texts": ["word1"]}') for _ in range(20)]
        gate.set()
        await asyncio.gather(*waiting)

    asyncio.run(ask())
    assert calls == [1, 19]
