"""A small fitted model of every kind that can be saved, and questions for a loaded one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["SMALL_MODELS", "ask", "questions"]

_rng = np.random.default_rng(0)
_X = sp.random(24, 9, density=0.5, format="csr", random_state=1)
_DENSE = _rng.normal(size=(24, 5))
_Y = (_rng.random((24, 4)) < 0.4).astype(int)
_Y[:4] = np.eye(4, dtype=int)
_LISTS = [[f"label{j}" for j in np.flatnonzero(row)] or ["label0"] for row in _Y]
_CLASSES = np.array(["a", "b", "c"])[np.arange(24) % 3]
_TEXTS = [f"{'sea' if i % 2 else 'sky'} number {i % 5} of the coast" for i in range(24)]
_WORDS = [[["bias", f"w={(i + j) % 4}"] for j in range(3)] for i in range(6)]
_TAGS = [[("N", "V")[(i + j) % 2] for j in range(3)] for i in range(6)]
_GRAPHS_X = [_rng.normal(size=(3, 4)) for _ in range(5)]


def _ppd(**options: Any) -> Any:
    from sublearn.extreme import PPDSparseClassifier

    return PPDSparseClassifier(random_state=0, **options)


def _calibrated(method: str) -> Any:
    return _ppd().fit(_X, _LISTS).calibrate(_X, _LISTS, method, min_positives=2)


def _pd() -> Any:
    from sublearn.extreme import PDSparseClassifier

    return PDSparseClassifier(random_state=0).fit(_X, _CLASSES)


def _tagger(**options: Any) -> Any:
    from sublearn.extreme import TextTagger

    return TextTagger(**options).fit(_TEXTS, _LISTS)


def _chain(named: bool) -> Any:
    from sublearn.structured import ChainSVM

    X = _WORDS if named else [_DENSE[3 * i : 3 * i + 3] for i in range(6)]
    return ChainSVM(random_state=0).fit(X, _TAGS)


def _structural() -> Any:
    from sublearn.structured import Sample, StructuralSVM

    samples = [Sample(X, {"near": [[0, 1], [1, 2]]}) for X in _GRAPHS_X]
    return StructuralSVM(random_state=0).fit(samples, [["a", "b", "a"]] * 5)


def _pairwise() -> Any:
    from sublearn.structured import PairwiseMultilabelSVM

    return PairwiseMultilabelSVM(random_state=0).fit(_X, _Y)


def _dense() -> Any:
    from sublearn.embed import DenseExtremeClassifier

    return DenseExtremeClassifier(random_state=0, max_iter=3).fit(_DENSE, _CLASSES)


def _embedding() -> Any:
    from sublearn.embed import EmbeddingExtremeClassifier

    return EmbeddingExtremeClassifier(random_state=0, max_iter=3).fit(_X, _LISTS)


def _index() -> Any:
    from sublearn.embed import MIPSIndex

    index = MIPSIndex(random_state=0).fit(_DENSE)
    index.remove([3])
    return index


def _skip_gram() -> Any:
    from sublearn.embed import SkipGram

    return SkipGram(n_components=4, min_count=1, max_iter=2, subsample=None, random_state=0).fit(
        _TEXTS
    )


def _taxonomy() -> Any:
    from sublearn.hierarchy import Taxonomy

    return Taxonomy.from_paths(["x/a", "x/b", "y/c"], "/")


def _hiclass(**options: Any) -> Any:
    from sublearn.hierarchy import HierarchicalClassifier

    names = np.array(["x/a", "x/b", "y/c"])[np.arange(24) % 3]
    return HierarchicalClassifier(_taxonomy(), **options).fit(_X, names)


def _hml(**options: Any) -> Any:
    from sublearn.hierarchy import HierarchicalMultilabelClassifier

    names = [[("x/a", "x/b", "y/c")[j]] for j in np.arange(24) % 3]
    return HierarchicalMultilabelClassifier(_taxonomy(), random_state=0, **options).fit(_X, names)


def _latent() -> Any:
    from sublearn.latent import LatentFeatureLasso

    return LatentFeatureLasso(n_components=2, random_state=0).fit(_DENSE)


def _mix(kernel: str = "linear", gate: str = "neighbours") -> Any:
    from sublearn.latent import Gate, Kernel, MixLassoRegressor

    y = _DENSE[:, 0] * np.where(np.arange(24) % 2, 2.0, -3.0)
    model = MixLassoRegressor(2, kernel=Kernel(kernel), gate=Gate(gate), random_state=0)
    return model.fit(_DENSE, y)


def _forecast() -> Any:
    from sublearn.forecast import LoadFeatures, LoadForecaster, LocalKernels

    steps = np.arange(4 * 42)
    y = 100 + 10 * np.sin(steps * 2 * np.pi / 4) + np.random.default_rng(3).normal(size=len(steps))
    features = LoadFeatures(lead_blocks=[1, 3], steps_per_day=4)
    kernels = LocalKernels(n_clusters=1, n_components=10)
    small = {"features": features, "kernels": kernels, "max_iter": 3}
    return LoadForecaster(horizon=3, random_state=0, **small).fit(y)


def _covariance() -> Any:
    from sublearn.linear import SparseInverseCovariance

    return SparseInverseCovariance(l1=0.1).fit(_DENSE)


def _linear() -> Any:
    from sublearn.linear import SparseLinearRegression

    return SparseLinearRegression(l1=0.01).fit(_X, _DENSE[:, 0])


def _logistic(**options: Any) -> Any:
    from sublearn.linear import SparseLogisticRegression

    return SparseLogisticRegression(l1=0.01, **options).fit(_X, _CLASSES)


#: Methods that a loaded model is asked with the rows of its kind, in this order.
_METHODS = (
    "predict",
    "decision_function",
    "predict_top_k",
    "predict_proba",
    "predict_proba_top_k",
    "predict_paths",
    "path_proba",
    "label_scores",
    "predict_components",
    "transform",
    "mahalanobis",
    "search",
)


def questions(case: str, n_features: int) -> list[Any]:
    """What a model of a case is asked: its own kind of rows, of the width that it has now."""
    if case == "forecast":
        return []
    if case.startswith(("tagger", "skip_gram")):
        return [_TEXTS[:3]]
    if case == "chain_named":
        return [_WORDS[:2]]
    width = min(n_features, 10_000)
    rows = np.random.default_rng(7).normal(size=(3, width))
    if case.startswith("chain"):
        return [[rows]]
    if case == "structural":
        from sublearn.structured import Sample

        return [[Sample(rows, {"near": [[0, 1], [1, 2]]})]]
    dense = case.startswith(("dense", "index", "latent", "mix", "covariance"))
    return [rows if dense else sp.csr_matrix(rows)]


def ask(case: str, model: Any) -> list[Any]:
    """Answers of a model to all that it can be asked; errors are raised."""
    if case == "forecast":
        return [model.predict(), *model.predict_interval()]
    (X,) = questions(case, int(getattr(model, "n_features_in_", 0)))
    found = []
    for name in _METHODS:
        method = getattr(model, name, None)
        if callable(method):  # a parameter may have the name of a method
            found.append(method(X, k=1) if name in ("predict_top_k", "search") else method(X))
    if case == "skip_gram":
        found.append(model.most_similar(model.words_[0], k=1))
    return found


#: Name of a case to what makes its model.
SMALL_MODELS: dict[str, Callable[[], Any]] = {
    "ppd": lambda: _ppd().fit(_X, _Y),
    "ppd_compressed": lambda: _ppd().fit(_X, _LISTS).compress(8),
    "ppd_binary": lambda: _ppd().fit(_X, _Y[:, 0]),
    "ppd_sigmoid": lambda: _calibrated("sigmoid"),
    "ppd_isotonic": lambda: _calibrated("isotonic"),
    "pd": _pd,
    "tagger": _tagger,
    "tagger_hashing": lambda: _tagger(vectorizer="hashing", n_hashes=64),
    "chain": lambda: _chain(named=False),
    "chain_named": lambda: _chain(named=True),
    "structural": _structural,
    "pairwise": _pairwise,
    "dense": _dense,
    "embedding": _embedding,
    "index": _index,
    "skip_gram": _skip_gram,
    "hiclass": _hiclass,
    "hiclass_global": lambda: _hiclass(strategy="global"),
    "hiclass_estimator": lambda: _hiclass(estimator=_ppd()),
    "hml": _hml,
    "hml_estimator": lambda: _hml(estimator=_ppd()),
    "latent": _latent,
    "mix": _mix,
    "mix_kernel": lambda: _mix(kernel="rbf"),
    "mix_classifier": lambda: _mix(gate="classifier"),
    "forecast": _forecast,
    "covariance": _covariance,
    "linear": _linear,
    "logistic": _logistic,
}
