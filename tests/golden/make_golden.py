"""Golden files: one small saved model for every class, with questions and the answers it gave.

    python tests/golden/make_golden.py

writes what is missing and never replaces a file: a model that version 0.1.0 wrote must load and
answer the same for as long as its format is read. A new class gets a line in `GOLDEN`. The files
are also what `tests/fuzz` mutates.
"""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import sublearn
from sublearn.extreme.fit_journal import FitJournal
from sublearn.io.bundle import save_bundle
from sublearn.io.state import pack_state

FOLDER = Path(__file__).parent
VERSION = "0.1.0"  # wrote the files; new ones say so by their own names

Arrays = dict[str, np.ndarray]


def rounded(*shape: int, seed: int = 0, zeros: float = 0.0) -> np.ndarray:
    """Numbers of two digits, the same wherever they are made."""
    rng = np.random.default_rng(seed)
    values = np.round(rng.normal(size=shape), 2)
    return values * (rng.random(shape) >= zeros)


ROWS = rounded(60, 6, zeros=0.4)
LABELS = np.array(["north", "east", "south", "west"])[np.argmax(ROWS[:, :4], axis=1)]
LABEL_SETS = [[f"label {k}" for k in np.flatnonzero(row > 0.4)] or ["none"] for row in ROWS]
TEXTS = [
    "sailing on the Baltic sea",
    "the Baltic coast in autumn",
    "survey statistics of the coast",
    "survey data and statistics",
] * 3
TAGS = [["sea"], ["sea", "land"], ["numbers", "land"], ["numbers"]] * 3
TREE = ["rec.autos", "rec.sport", "sci.med", "sci.space"]
SENTENCES = [["the", "dog", "runs"], ["a", "run"], ["dogs", "run"], ["the", "cat", "sleeps"]]
WORD_KINDS = [["DET", "NOUN", "VERB"], ["DET", "NOUN"], ["NOUN", "VERB"], ["DET", "NOUN", "VERB"]]
STAR = np.array([[0, 1], [0, 2]])
SHIFTS = np.arange(2 * 7 * 6)  # twelve hours each, six weeks
LOADS = 100 + 20 * (SHIFTS % 2) + 5 * (SHIFTS // 2 % 7 < 5) + rounded(len(SHIFTS), seed=6)


# --- how each model is made ----------------------------------------------------------------------


def chain_svm() -> Any:
    from sublearn.structured import ChainSVM

    sentences = [[[word] for word in sentence] for sentence in SENTENCES]
    return ChainSVM(random_state=0).fit(sentences, WORD_KINDS)


def dense_extreme() -> Any:
    from sublearn.embed import DenseExtremeClassifier

    return DenseExtremeClassifier(max_iter=3, random_state=0).fit(ROWS, LABELS)


def embedding_extreme() -> Any:
    from sublearn.embed import EmbeddingExtremeClassifier

    model = EmbeddingExtremeClassifier(4, max_iter=3, random_state=0)
    return model.fit(sp.csr_matrix(ROWS), LABELS)


def hierarchical() -> Any:
    from sublearn.hierarchy import HierarchicalClassifier, Taxonomy

    y = [TREE[k] for k in np.argmax(ROWS[:, :4], axis=1)]
    return HierarchicalClassifier(Taxonomy.from_paths(TREE), C=10.0).fit(ROWS, y)


def hierarchical_multilabel() -> Any:
    from sublearn.hierarchy import HierarchicalMultilabelClassifier, Taxonomy

    Y = [[TREE[k] for k in np.flatnonzero(row[:4] > 0.4)] or TREE[:1] for row in ROWS]
    taxonomy = Taxonomy.from_paths(TREE)
    return HierarchicalMultilabelClassifier(taxonomy, random_state=0).fit(ROWS, Y)


def latent_features() -> Any:
    from sublearn.latent import LatentFeatureLasso

    Z = np.random.default_rng(0).integers(0, 2, size=(40, 3))
    W = np.array([[3.0, 0, 0, 1], [0, 2, 0, 1], [0, 0, 4, 1]])
    return LatentFeatureLasso(random_state=0).fit(Z @ W)


def forecaster() -> Any:
    from sublearn.forecast import LoadFeatures, LoadForecaster, LocalKernels

    features = LoadFeatures(lead_blocks=[1], lags=[1, 2], profile_weeks=1, steps_per_day=2)
    kernels = LocalKernels(n_clusters=2, n_components=10, relevance_rows=40)
    model = LoadForecaster(1, features=features, kernels=kernels, random_state=0)
    return model.fit(LOADS)


def index(storage: str = "float32") -> Any:
    from sublearn.embed import MIPSIndex

    return MIPSIndex(4, storage=storage, random_state=0).fit(ROWS)


def mixture(**options: Any) -> Any:
    from sublearn.latent import Kernel, MixLassoRegressor

    x = np.linspace(-1, 1, 60)[:, None]
    y = np.where(np.arange(60) % 3, 2 * x[:, 0], 1 - x[:, 0])
    kernel = Kernel(**options.pop("kernel", {}))
    return MixLassoRegressor(kernel=kernel, random_state=0, **options).fit(x, y)


def pd_sparse() -> Any:
    from sublearn.extreme import PDSparseClassifier

    return PDSparseClassifier(l1=0.01, random_state=0).fit(ROWS, LABELS)


def ppd_sparse() -> Any:
    from test_ppd_sparse_golden import fit, problem

    X, Y = problem()
    return fit(X, [[f"label {k:02}" for k in np.flatnonzero(row)] for row in Y])


def pairwise() -> Any:
    from sublearn.structured import PairwiseMultilabelSVM

    return PairwiseMultilabelSVM(C=10.0, random_state=0).fit(ROWS, LABEL_SETS)


def skip_gram() -> Any:
    from sublearn.embed import SkipGram

    return SkipGram(4, subsample=None, min_count=2, max_iter=2, n_jobs=1, random_state=0).fit(TEXTS)


def inverse_covariance() -> Any:
    from sublearn.linear import SparseInverseCovariance

    return SparseInverseCovariance(l1=0.05).fit(ROWS)


def linear() -> Any:
    from sublearn.linear import SparseLinearRegression

    return SparseLinearRegression(l1=0.05).fit(ROWS, 2 * ROWS[:, 3] - ROWS[:, 1])


def linear_groups() -> Any:
    from sublearn.linear import GroupLinearRegression

    ids = ["odd", "even"] * (ROWS.shape[1] // 2)
    return GroupLinearRegression(l1=0.05, feature_groups=ids).fit(ROWS, 2 * ROWS[:, 3] - ROWS[:, 1])


def logistic_groups() -> Any:
    from sublearn.linear import GroupLogisticRegression

    groups = [[*range(3)], [*range(3, ROWS.shape[1])]]
    model = GroupLogisticRegression(l1=0.01, feature_groups=groups, within_share=0.5)
    return model.fit(ROWS, LABELS)


def logistic(**options: Any) -> Any:
    from sublearn.linear import SparseLogisticRegression

    return SparseLogisticRegression(l1=0.02, **options).fit(ROWS, LABELS)


def network() -> Any:
    import torch
    from torch import nn

    from sublearn.trim import to_sparse

    torch.manual_seed(0)
    return thinned(to_sparse, nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)))


def convolutions(every: int = 2) -> Any:
    import torch
    from torch import nn

    from sublearn.trim import to_sparse

    torch.manual_seed(0)
    layers = (
        nn.Conv2d(1, 3, 3, stride=2, padding=1), nn.BatchNorm2d(3), nn.ReLU(),
        nn.Conv2d(3, 2, 3), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(2, 3),
    )  # fmt: skip
    return thinned(to_sparse, nn.Sequential(*layers), every)


def word_network(every: int = 2) -> Any:
    import torch
    from torch import nn

    from sublearn.trim import to_sparse

    class Words(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(12, 5)
            self.out = nn.Linear(5, 3)

        def forward(self, ids: Any) -> Any:
            found = self.words(ids)
            return self.out(torch.tanh(found.mean(dim=1) + 0.5 * found[:, 0]))

    torch.manual_seed(0)
    return thinned(to_sparse, Words(), every)


def thinned(to_sparse: Any, module: Any, every: int = 2) -> Any:
    """The module with sparse layers, after all but one of `every` weights are set to zero."""
    import torch

    with torch.no_grad():
        for tensor in module.parameters():
            tensor *= (torch.arange(tensor.numel()) % every == 0).reshape(tensor.shape)
    return to_sparse(module.eval())


def structural() -> Any:
    from sublearn.structured import StructuralSVM

    model = StructuralSVM(C=10.0, max_iter=100, random_state=0)
    labels = [["on", "on", "on"], ["off", "off", "off"]]
    return model.fit(stars([np.eye(3, 1), -np.eye(3, 1)]), labels)


def stars(features: Any) -> list[Any]:
    from sublearn.structured import Sample

    return [Sample(np.asarray(rows), {"child": STAR}) for rows in features]


def tagger(**options: Any) -> Any:
    from sublearn.extreme import TextTagger

    return TextTagger(**options).fit(TEXTS, TAGS)


def reranker() -> Any:
    from sublearn.extreme import LabelReranker

    names = {"sea": "Baltic sea", "land": "coast", "numbers": "statistics", "birds": "sea birds"}
    model = LabelReranker(validation_fraction=0.5, n_neighbors=2, random_state=0)
    return model.fit(TEXTS * 4, TAGS * 4, label_names=names)


# --- what each is asked --------------------------------------------------------------------------


def as_json(value: Any) -> np.ndarray:
    return np.array(json.dumps(value, default=lambda found: found.tolist()))


def ask_labels(model: Any, x: Arrays) -> Arrays:
    return {"labels": as_json(model.predict(x["X"]))}


def ask_top(model: Any, x: Arrays) -> Arrays:
    labels, scores = model.predict_top_k(x["X"], k=2)
    return ask_labels(model, x) | {"top": as_json(labels), "scores": np.asarray(scores)}


def ask_probabilities(model: Any, x: Arrays) -> Arrays:
    return ask_top(model, x) | {"probabilities": np.asarray(model.predict_proba(x["X"]))}


def ask_numbers(model: Any, x: Arrays) -> Arrays:
    return {"numbers": model.predict(x["X"])}


def ask_chain(model: Any, x: Arrays) -> Arrays:
    sentences = [[[word] for word in text.split()] for text in x["X"].tolist()]
    return {"labels": as_json(model.predict(sentences))}


def ask_stars(model: Any, x: Arrays) -> Arrays:
    samples = stars(x["X"])
    return {
        "labels": as_json(model.predict(samples)),
        "scores": np.stack(model.decision_function(samples)),
    }


def ask_texts(model: Any, x: Arrays) -> Arrays:
    return ask_top(model, {"X": x["X"].tolist()})


def ask_words(model: Any, x: Arrays) -> Arrays:
    words, cosines = model.most_similar(str(x["X"][0]), k=3)
    return {"words": as_json(words), "cosines": cosines, "vectors": model.transform(x["X"])}


def ask_network(model: Any, x: Arrays) -> Arrays:
    import torch

    with torch.no_grad():
        return {"outputs": model(torch.from_numpy(x["X"])).numpy()}


def ask_index(model: Any, x: Arrays) -> Arrays:
    ids, scores = model.search(x["X"], k=3)
    return {"ids": ids, "scores": scores}


def ask_forecast(model: Any, x: Arrays) -> Arrays:
    return {"loads": model.predict(), "after": model.predict(y=x["X"])}


def ask_covariance(model: Any, x: Arrays) -> Arrays:
    return {"precision": model.precision_, "score": np.array(model.score(x["X"]))}


def ask_features(model: Any, x: Arrays) -> Arrays:
    return {"features": model.transform(x["X"]), "components": model.components_}


@dataclass(frozen=True)
class Golden:
    """How a model is made, what it is asked, and the question."""

    make: Callable[[], Any]
    ask: Callable[[Any, Arrays], Arrays]
    X: np.ndarray


_X = rounded(8, 6, seed=1)
_TEXT = np.array(["a survey of the Baltic sea", "statistics", "", "nothing known"])

#: By the name of the class; what follows a hyphen is another variant of it.
GOLDEN = {
    "ChainSVM": Golden(chain_svm, ask_chain, np.array(["the run", "dog run", "never seen"])),
    "DenseExtremeClassifier": Golden(dense_extreme, ask_top, _X),
    "EmbeddingExtremeClassifier": Golden(embedding_extreme, ask_top, _X),
    "GroupLinearRegression": Golden(linear_groups, ask_numbers, _X),
    "GroupLogisticRegression": Golden(logistic_groups, ask_probabilities, _X),
    "HierarchicalClassifier": Golden(hierarchical, ask_probabilities, _X),
    "HierarchicalMultilabelClassifier": Golden(hierarchical_multilabel, ask_top, _X),
    "LabelReranker": Golden(reranker, ask_texts, _TEXT),
    "LatentFeatureLasso": Golden(latent_features, ask_features, rounded(5, 4, seed=2)),
    "LoadForecaster": Golden(forecaster, ask_forecast, LOADS + 1.0),
    "MIPSIndex": Golden(index, ask_index, _X),
    "MIPSIndex-int8": Golden(lambda: index("int8"), ask_index, _X),
    "MixLassoRegressor": Golden(mixture, ask_numbers, np.linspace(-1, 1, 7)[:, None]),
    "MixLassoRegressor-kernel": Golden(
        lambda: mixture(kernel={"kind": "rbf", "n_basis": 8}, n_components=2), ask_numbers,
        np.linspace(-1, 1, 7)[:, None],
    ),
    "PDSparseClassifier": Golden(pd_sparse, ask_top, _X),
    "PPDSparseClassifier": Golden(ppd_sparse, ask_top, rounded(8, 12, seed=1)),
    "PairwiseMultilabelSVM": Golden(pairwise, ask_labels, _X),
    "SkipGram": Golden(skip_gram, ask_words, np.array(["coast", "survey"])),
    "SparseInverseCovariance": Golden(inverse_covariance, ask_covariance, _X),
    "SparseLinearRegression": Golden(linear, ask_numbers, _X),
    "SparseLogisticRegression": Golden(logistic, ask_probabilities, _X),
    "SparseLogisticRegression-multinomial": Golden(
        lambda: logistic(multinomial=True), ask_probabilities, _X
    ),
    "SparseNetwork": Golden(network, ask_network, _X.astype(np.float32)),
    "SparseNetwork-conv": Golden(
        convolutions, ask_network, rounded(2, 1, 10, 10, seed=3).astype(np.float32)
    ),
    "SparseNetwork-words": Golden(word_network, ask_network, np.arange(12).reshape(3, 4)),
    "SparseNetwork-sparse-conv": Golden(
        lambda: convolutions(9), ask_network, rounded(2, 1, 10, 10, seed=3).astype(np.float32)
    ),
    "SparseNetwork-sparse-words": Golden(
        lambda: word_network(9), ask_network, np.arange(12).reshape(3, 4)
    ),
    "StructuralSVM": Golden(structural, ask_stars, rounded(2, 3, 1, seed=4)),
    "TextTagger": Golden(tagger, ask_texts, _TEXT),
    "TextTagger-hashing": Golden(
        lambda: tagger(vectorizer="hashing", n_hashes=64), ask_texts, _TEXT
    ),
}  # fmt: skip

BUNDLE = FOLDER / f"bundle_{VERSION}.sublearn"
JOURNAL = FOLDER / f"journal_{VERSION}.sublearn.parts"


def model_file(name: str) -> Path:
    return FOLDER / f"{name}_{VERSION}.sublearn"


def answers_file(name: str) -> Path:
    return FOLDER / f"{name}_{VERSION}.npz"


def journal_fit(path: Path) -> Any:
    """A fit with a journal beside `path`."""
    from sublearn.extreme import PPDSparseClassifier

    rng = np.random.default_rng(5)
    X, Y = rounded(50, 8, seed=5), rng.random((50, 40)) < 0.2
    return PPDSparseClassifier(model_path=path, random_state=0, n_jobs=1).fit(X, Y)


def save(model: Any, path: Path) -> None:
    if hasattr(model, "save"):
        model.save(path)
    else:  # a network before it was in a file
        from sublearn.trim import save_network

        save_network(model, path)


def everything() -> dict[str, Any]:
    """A value of every kind that a bundle holds."""
    numbers = [np.arange(3).astype(t) for t in "?bBhHiIqQefd"]
    matrix = rounded(4, 3, zeros=0.5)
    forms = (sp.csr_matrix, sp.csc_matrix, sp.csr_array, sp.csc_array)
    return {
        **{f"number {array.dtype.name}": array for array in numbers},
        **{f"sparse {form.__name__}": form(matrix) for form in forms},
        "no rows": np.empty((0, 3)),
        "strings": np.array([["a", "é"], ["", "longer"]]),
        "objects": np.array(["a", "b"], dtype=object),
        "json": {"float": 0.1, "inf": float("inf"), "list": [1, None, True, "ü"], "tuple": (1, 2)},
        "mapping": {1: "one", "two": 2},
    }


def store_bundle() -> None:
    if not BUNDLE.exists():
        arrays, attributes = pack_state(everything())
        params = {"C": 1.0, "ngram_range": (1, 2)}
        save_bundle(BUNDLE, class_name="Any", params=params, arrays=arrays, attributes=attributes)


def store(name: str) -> None:
    golden = GOLDEN[name]
    if not model_file(name).exists():
        save(golden.make(), model_file(name))
    if not answers_file(name).exists():
        answers = golden.ask(sublearn.load(model_file(name)), {"X": golden.X})
        np.savez_compressed(answers_file(name), X=golden.X, **answers)


def store_journal() -> None:
    """What a fit leaves that dies after its last chunk, before the model is saved."""
    if JOURNAL.exists():
        return
    kept: dict[str, bytes] = {}

    def remember(journal: FitJournal) -> None:
        files = [*journal.folder.glob("part-*"), journal.folder / "plan.json"]
        kept.update((file.name, file.read_bytes()) for file in files)
        original(journal)

    original, FitJournal.remove = FitJournal.remove, remember  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory() as folder:
        journal_fit(Path(folder) / "m")
    FitJournal.remove = original  # type: ignore[method-assign]
    JOURNAL.mkdir()
    for name, content in kept.items():
        (JOURNAL / name).write_bytes(content)


def main() -> None:
    warnings.simplefilter("ignore")
    for name in GOLDEN:
        store(name)
        print(f"{name:40} {os.path.getsize(model_file(name)):7} bytes")
    store_bundle()
    store_journal()


if __name__ == "__main__":
    main()
