"""Every class that can be saved, as a small problem: how it is made, what it learns from.

One row of `CASES` puts a class into the behaviour suite (`test_behaviour.py`) and into the test of
determinism. Problems are small, but not so small that threads have nothing to share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from taxonomy_rows import TAXONOMY, label_rows, single_rows

from sublearn.embed import (
    DenseExtremeClassifier,
    EmbeddingExtremeClassifier,
    LabelSearch,
    MIPSIndex,
    SkipGram,
)
from sublearn.extreme import PDSparseClassifier, PPDSparseClassifier, TextTagger
from sublearn.forecast import LoadFeatures, LoadForecaster, LocalKernels
from sublearn.hierarchy import HierarchicalClassifier, HierarchicalMultilabelClassifier
from sublearn.io import load_quickstart
from sublearn.latent import LatentFeatureLasso, MixLassoRegressor, MixtureSearch
from sublearn.linear import (
    SparseInverseCovariance,
    SparseLinearRegression,
    SparseLogisticRegression,
)
from sublearn.structured import ChainSVM, PairwiseMultilabelSVM, Sample, StructuralSVM

#: Asked of a fitted model with the rows it learned from; those that it has are.
METHODS = (
    "predict",
    "decision_function",
    "predict_top_k",
    "predict_proba",
    "predict_proba_top_k",
    "predict_paths",
    "label_scores",
    "predict_components",
    "transform",
    "score_samples",
    "search",
)


@dataclass(frozen=True)
class Case:
    """How an estimator is made, with parameters over those that keep it small; what it gets."""

    make: Callable[..., Any]
    data: Callable[[], tuple[Any, ...]]
    has_columns: bool = True  # X is a table, so that names and numbers of features mean something

    def fit(self, **params: Any) -> Any:
        return self.make(**params).fit(*self.data())


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def answers(model: Any, X: Any) -> list[Any]:
    """What a model answers to all that it can be asked."""
    if isinstance(model, LoadForecaster):
        return [model.predict(), *model.predict_interval()]
    if isinstance(model, SkipGram):
        return [model.transform(model.words_[:5]), model.most_similar(model.words_[0])[1]]
    asked = [name for name in METHODS if callable(getattr(model, name, None))]
    assert asked or isinstance(model, SparseInverseCovariance)
    found = [getattr(model, name)(X) for name in asked]
    return found or [model.precision_, model.score(X)]


# --- what they learn from -------------------------------------------------------------------------


def labelled(n_rows: int = 150, n_features: int = 20, n_labels: int = 40) -> Any:
    X = rng().normal(size=(n_rows, n_features)) * (rng().random((n_rows, n_features)) < 0.4)
    return X, rng().random((n_rows, n_labels)) < 0.1


def classes() -> Any:
    return labelled()[0], rng().integers(4, size=150)


def many_labels() -> Any:
    X, Y = labelled(n_labels=300)
    return X.astype(np.float32), Y


def numbers() -> Any:
    X = rng().normal(size=(80, 30))
    return X, np.sign(X[:, 0] - X[:, 1] + rng().normal(size=80))


def lines() -> Any:
    return rng().normal(size=(60, 3)), rng().normal(size=60)


def tagged(n: int = 12) -> Any:
    X = [rng().normal(size=(2 + i % 4, 5)) for i in range(n)]
    return X, [rng().integers(3, size=len(rows)) for rows in X]


def chains() -> Any:
    X, y = tagged()
    return [Sample.chain(rows) for rows in X], y


def loads() -> Any:
    t = np.arange(7 * 8 * 8)
    return (100 + 20 * np.sin(2 * np.pi * t / 8) + rng().normal(0, 0.5, len(t)),)


def sentences() -> Any:
    words = np.array([f"w{i}" for i in range(30)])
    return ([words[row].tolist() for row in rng().integers(30, size=(200, 7))],)


def texts() -> Any:
    records = load_quickstart(300)
    return records.train_texts, records.train_labels


def rows(n_rows: int, n_features: int) -> Callable[[], Any]:
    return lambda: (rng().normal(size=(n_rows, n_features)),)


# --- how they are made ----------------------------------------------------------------------------


def small(kind: type, *given: Any, **defaults: Any) -> Callable[..., Any]:
    """Makes estimators of a class; what a caller passes goes before the defaults."""
    return lambda **params: kind(*given, **{**defaults, **params})


def tagger(**params: Any) -> Any:
    return TextTagger(PPDSparseClassifier(**{"random_state": 0, **params}))


def forecaster(**params: Any) -> Any:
    features = LoadFeatures(lead_blocks=[4, 8], profile_weeks=0, anchored=False, steps_per_day=8)
    kernels = LocalKernels(n_components=20, relevance_rows=40)
    small = {"horizon": 8, "features": features, "kernels": kernels, "random_state": 0}
    return LoadForecaster(**{**small, **params})


SEED = {"random_state": 0}
LAYER = {"max_iter": 2, "search": LabelSearch(n_candidates=20), **SEED}
CASES = {
    "ChainSVM": Case(small(ChainSVM, max_iter=20, **SEED), tagged, has_columns=False),
    "DenseExtremeClassifier": Case(small(DenseExtremeClassifier, **LAYER), many_labels),
    "EmbeddingExtremeClassifier": Case(
        small(EmbeddingExtremeClassifier, n_components=16, **LAYER), many_labels
    ),
    "HierarchicalClassifier": Case(small(HierarchicalClassifier, TAXONOMY), single_rows),
    "HierarchicalMultilabelClassifier": Case(
        small(HierarchicalMultilabelClassifier, TAXONOMY, **SEED), lambda: label_rows(120)
    ),
    "LatentFeatureLasso": Case(small(LatentFeatureLasso, 2, max_iter=10, **SEED), rows(30, 6)),
    "LoadForecaster": Case(forecaster, loads, has_columns=False),
    "MIPSIndex": Case(small(MIPSIndex, **SEED), rows(500, 20)),
    "MixLassoRegressor": Case(
        small(MixLassoRegressor, 2, search=MixtureSearch(n_starts=2), max_iter=5, **SEED), lines
    ),
    "PDSparseClassifier": Case(
        small(PDSparseClassifier, early_stopping=True, **SEED), labelled
    ),
    "PPDSparseClassifier": Case(
        small(PPDSparseClassifier, search="sparsified", prune=0.01, **SEED), labelled
    ),
    "PairwiseMultilabelSVM": Case(
        small(PairwiseMultilabelSVM, max_iter=20, **SEED), lambda: labelled(60, 20, 8)
    ),
    "SkipGram": Case(
        small(SkipGram, n_components=8, min_count=1, max_iter=3, **SEED), sentences,
        has_columns=False,
    ),
    "SparseInverseCovariance": Case(small(SparseInverseCovariance, "cv"), rows(40, 12)),
    "SparseLinearRegression": Case(small(SparseLinearRegression, "cv"), numbers),
    "SparseLogisticRegression": Case(small(SparseLogisticRegression, 0.01), classes),
    "StructuralSVM": Case(small(StructuralSVM, max_iter=20, **SEED), chains, has_columns=False),
    "TextTagger": Case(tagger, texts, has_columns=False),
}  # fmt: skip
