"""Every class that can be saved, as a small problem: how it is made, what it learns from.

A row of `CASES` puts a class into the behaviour suite (`test_behaviour.py`), into the test of
determinism, among the files that are damaged (`tests/io`) and into the attacks on arrays
(`tests/fuzz`). `SETTINGS` has further rows for what other parameters and other forms of data make
of files, copies and threads. Problems are small, but not so small that threads have nothing to
share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from taxonomy_rows import PATHS, TAXONOMY, label_rows, single_rows

from sublearn.embed import (
    ContextSearch,
    DenseExtremeClassifier,
    EmbeddingExtremeClassifier,
    LabelSearch,
    MIPSIndex,
    SkipGram,
)
from sublearn.extreme import LabelReranker, PDSparseClassifier, PPDSparseClassifier, TextTagger
from sublearn.forecast import LoadFeatures, LoadForecaster, LocalKernels
from sublearn.hierarchy import (
    GroupWeights,
    HierarchicalClassifier,
    HierarchicalMultilabelClassifier,
)
from sublearn.io import load_quickstart
from sublearn.latent import Gate, Kernel, LatentFeatureLasso, MixLassoRegressor, MixtureSearch
from sublearn.linear import (
    FallingWeights,
    GroupLinearRegression,
    GroupLogisticRegression,
    Huber,
    SparseInverseCovariance,
    SparseLinearRegression,
    SparseLogisticRegression,
)
from sublearn.structured import ChainSVM, PairwiseMultilabelSVM, Passes, Sample, StructuralSVM

#: Asked of a fitted model with the rows it learned from; those that it has are.
METHODS = (
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
    "score_samples",
    "search",
)


@dataclass(frozen=True)
class Case:
    """How an estimator is made, with parameters over those that keep it small; what it gets."""

    make: Callable[..., Any]
    data: Callable[[], tuple[Any, ...]]
    has_columns: bool = True  # X is a table, so that names and numbers of features mean something
    endless: dict[str, Any] = field(default_factory=dict)  # parameters of a fit of many minutes

    def fit(self, **params: Any) -> Any:
        return self.make(**params).fit(*self.data())


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def answers(model: Any, X: Any) -> list[Any]:
    """What a model answers to all that it can be asked."""
    if isinstance(model, LoadForecaster):
        return [model.predict(), *(model.predict_interval() if model.intervals else ())]
    if isinstance(model, SkipGram):
        return [model.transform(X), model.most_similar(model.words_[0], k=1)[1]]
    asked = [name for name in METHODS if callable(getattr(model, name, None))]
    assert asked or isinstance(model, SparseInverseCovariance)
    found = [getattr(model, name)(X) for name in asked]
    if isinstance(model, MixLassoRegressor):
        found.append(model.predict_codes(X, np.zeros(np.shape(X)[0])))
    return found or [model.precision_, model.score(X)]


# --- what they learn from -------------------------------------------------------------------------


def labelled(n_rows: int = 150, n_features: int = 20, n_labels: int = 40) -> Any:
    X = rng().normal(size=(n_rows, n_features)) * (rng().random((n_rows, n_features)) < 0.4)
    return X, rng().random((n_rows, n_labels)) < 0.1


def listed() -> Any:
    """Sparse rows of float32, with lists of names."""
    X, Y = labelled()
    names = [[f"λ{k}" for k in np.flatnonzero(row)] for row in Y]
    return sp.csr_matrix(X, dtype=np.float32), names


def classes(n_classes: int = 4) -> Any:
    return labelled()[0], rng().integers(n_classes, size=150)


def two_classes() -> Any:
    X, y = classes(2)
    return X, np.where(y, "yes", "no")


def many_labels() -> Any:
    X, Y = labelled(n_labels=300)
    return X.astype(np.float32), Y


def numbers() -> Any:
    X = rng().normal(size=(80, 30))
    return X, np.sign(X[:, 0] - X[:, 1] + rng().normal(size=80))


def counts() -> Any:
    X = rng().normal(size=(80, 10))
    return X, rng().poisson(np.exp(0.5 * X[:, 0])).astype(float)


def lines() -> Any:
    return rng().normal(size=(60, 3)), rng().normal(size=60)


def tagged(n: int = 12) -> Any:
    X = [rng().normal(size=(2 + i % 4, 5)) for i in range(n)]
    return X, [rng().integers(3, size=len(rows)) for rows in X]


def words() -> Any:
    X, y = tagged()
    named = [[["bias", f"w={np.argmax(row)}"] for row in rows] for rows in X]
    return named, [["DNV"[tag] for tag in tags] for tags in y]


def chains() -> Any:
    X, y = tagged()
    return [Sample.chain(rows) for rows in X], y


def stars() -> Any:
    """A middle and three leaves, connected by one factor."""
    X = [Sample(rng().normal(size=(4, 3)), {"vote": [[0, 1, 2, 3]]}) for _ in range(8)]
    return X, rng().integers(2, size=(8, 4))


def loads(n_weeks: int = 8) -> Any:
    t = np.arange(7 * 8 * n_weeks)
    return (100 + 20 * np.sin(2 * np.pi * t / 8) + rng().normal(0, 0.5, len(t)),)


def sentences() -> Any:
    words = np.array([f"w{i}" for i in range(30)])
    return ([words[row].tolist() for row in rng().integers(30, size=(200, 7))],)


def texts() -> Any:
    records = load_quickstart(300)
    return records.train_texts, records.train_labels


def rows(n_rows: int, n_features: int) -> Callable[[], Any]:
    return lambda: (rng().normal(size=(n_rows, n_features)),)


def inner_labels() -> Any:
    return single_rows(labels=[*PATHS, "a.x"])


# --- how they are made ----------------------------------------------------------------------------


def small(kind: type, *given: Any, **defaults: Any) -> Callable[..., Any]:
    """Makes estimators of a class; what a caller passes goes before the defaults."""
    return lambda **params: kind(*given, **{**defaults, **params})


def tagger(**own: Any) -> Callable[..., Any]:
    return lambda **params: TextTagger(PPDSparseClassifier(**{"random_state": 0, **params}), **own)


def plain_tagger() -> TextTagger:
    learner = PPDSparseClassifier(random_state=0)
    return TextTagger(learner, analyzer="word", decision="above_zero")


def forecaster(features: Any = None, kernels: Any = None, **own: Any) -> Callable[..., Any]:
    plain = {"lead_blocks": [4, 8], "profile_weeks": 0, "anchored": False, "steps_per_day": 8}
    given = {
        "features": LoadFeatures(**plain | (features or {})),
        "kernels": LocalKernels(**{"n_components": 20, "relevance_rows": 40} | (kernels or {})),
    }
    return small(LoadForecaster, **{"horizon": 8, "random_state": 0, **given, **own})


SEED = {"random_state": 0}
LAYER = {"max_iter": 2, "search": LabelSearch(n_candidates=20), **SEED}
MIXTURE = {"search": MixtureSearch(n_starts=2), "max_iter": 5, **SEED}
WORDS = {"n_components": 8, "min_count": 1, "max_iter": 3, **SEED}
FOR_EVER = {"max_iter": 10**6}
EXACT = {"tol": 1e-300, **FOR_EVER}

CASES = {
    "ChainSVM": Case(small(ChainSVM, max_iter=20, **SEED), tagged, False, EXACT),
    "DenseExtremeClassifier": Case(
        small(DenseExtremeClassifier, **LAYER), many_labels, endless=FOR_EVER
    ),
    "EmbeddingExtremeClassifier": Case(
        small(EmbeddingExtremeClassifier, n_components=16, **LAYER), many_labels, endless=FOR_EVER
    ),
    "GroupLinearRegression": Case(
        small(GroupLinearRegression, l1="cv", feature_groups=[*range(10)] * 3), numbers
    ),
    "GroupLogisticRegression": Case(small(GroupLogisticRegression, l1=0.01), classes),
    "HierarchicalClassifier": Case(
        small(HierarchicalClassifier, taxonomy=TAXONOMY), single_rows,
        endless=EXACT | {"solver": "cd1"},
    ),
    "HierarchicalMultilabelClassifier": Case(
        small(HierarchicalMultilabelClassifier, taxonomy=TAXONOMY, **SEED), lambda: label_rows(120),
        endless=EXACT | {"l1": 1e-9},
    ),
    "LabelReranker": Case(small(LabelReranker, plain_tagger(), **SEED), texts, False),
    "LatentFeatureLasso": Case(small(LatentFeatureLasso, 2, max_iter=10, **SEED), rows(30, 6)),
    "LoadForecaster": Case(forecaster(), loads, False),
    "MIPSIndex": Case(small(MIPSIndex, **SEED), rows(500, 20)),
    "MixLassoRegressor": Case(small(MixLassoRegressor, 2, **MIXTURE), lines),
    "PDSparseClassifier": Case(
        small(PDSparseClassifier, early_stopping=True, **SEED), labelled,
        endless=EXACT | {"early_stopping": 10**9},
    ),
    "PPDSparseClassifier": Case(
        small(PPDSparseClassifier, search="sparsified", prune=0.01, **SEED), labelled,
        endless=EXACT | {"loss": "hinge"},
    ),
    "PairwiseMultilabelSVM": Case(
        small(PairwiseMultilabelSVM, max_iter=20, **SEED), lambda: labelled(60, 20, 8),
        endless=EXACT,
    ),
    "SkipGram": Case(small(SkipGram, **WORDS), sentences, False, FOR_EVER),
    "SparseInverseCovariance": Case(small(SparseInverseCovariance, l1="cv"), rows(40, 12)),
    "SparseLinearRegression": Case(small(SparseLinearRegression, l1="cv"), numbers),
    "SparseLogisticRegression": Case(small(SparseLogisticRegression, l1=0.01), classes),
    "StructuralSVM": Case(small(StructuralSVM, max_iter=20, **SEED), chains, False, EXACT),
    "TextTagger": Case(tagger(), texts, False),
}  # fmt: skip

#: Further settings, by the name of the class and what is special.
SETTINGS = {
    "ChainSVM of words": Case(
        small(ChainSVM, early_stopping=2, passes=Passes(rho=1.0), max_iter=20, **SEED), words, False
    ),
    **{
        f"DenseExtremeClassifier {gradient}": Case(
            small(DenseExtremeClassifier, gradient=gradient, early_stopping=True, **LAYER), classes
        )
        for gradient in ("exact", "sampled", "mips")
    },
    "DenseExtremeClassifier metric_triplet": Case(
        small(DenseExtremeClassifier, "metric_triplet", **LAYER), classes
    ),
    "DenseExtremeClassifier messages": Case(
        small(DenseExtremeClassifier, max_iter=2, **SEED, search=LabelSearch(
            n_candidates=20, n_messages=2, widens=True, rest="mean", refresh=0.0)), many_labels,
    ),
    "EmbeddingExtremeClassifier nca": Case(
        small(EmbeddingExtremeClassifier, 8, loss="nca", **LAYER), many_labels
    ),
    "EmbeddingExtremeClassifier of lists": Case(
        small(EmbeddingExtremeClassifier, 8, **LAYER), listed
    ),
    "HierarchicalClassifier flat": Case(
        small(HierarchicalClassifier, taxonomy=TAXONOMY, strategy="flat", leaf="optional"),
        inner_labels,
    ),
    "HierarchicalClassifier global": Case(
        small(HierarchicalClassifier, taxonomy=TAXONOMY, strategy="global", leaf="optional"),
        inner_labels,
    ),
    "HierarchicalClassifier optional": Case(
        small(HierarchicalClassifier, taxonomy=TAXONOMY, leaf="optional", threshold={"a.x": 0.6},
              solver=["lhac", "auto"]), inner_labels,
    ),
    "GroupLinearRegression sparse": Case(
        small(GroupLinearRegression, 0.05, feature_groups=[[0, 2], [1, 3, 4], [5, 6, 7, 8, 9]],
              loss="poisson", within_share=0.5, group_weights=[1.0, 2.0, 1.5]), counts,
    ),
    "GroupLogisticRegression of names": Case(
        small(GroupLogisticRegression, "cv", l1s=8, feature_groups=[*"abcd"] * 5), two_classes
    ),
    "HierarchicalClassifier of estimators": Case(
        small(HierarchicalClassifier, taxonomy=TAXONOMY, estimator=SparseLogisticRegression(0.01)),
        single_rows,
    ),
    "HierarchicalMultilabelClassifier of estimators": Case(
        small(HierarchicalMultilabelClassifier, taxonomy=TAXONOMY,
              group_weights=GroupWeights("sweep", init=np.full(9, 0.4)),
              estimator=PPDSparseClassifier(l1=0.01, random_state=0), **SEED),
        lambda: label_rows(100),
    ),
    "LatentFeatureLasso gap": Case(small(LatentFeatureLasso, "gap", **SEED), rows(60, 6)),
    "LoadForecaster kmeans": Case(
        forecaster(kernels={"clustering": "kmeans", "n_clusters": 3}), lambda: loads(12), False
    ),
    "LoadForecaster two baselines": Case(  # one block: threads go to trials and clusters
        forecaster({"lead_blocks": [8], "profile_weeks": "auto", "anchored": "auto"},
                   {"n_clusters": 3}), lambda: loads(12), False,
    ),
    "LoadForecaster online": Case(forecaster(solver="online", intervals=False), loads, False),
    "LoadForecaster online_kernel": Case(
        forecaster(kernels={"batch": 4, "line": False}, solver="online_kernel"), loads, False
    ),
    "HierarchicalMultilabelClassifier trust_region": Case(
        small(HierarchicalMultilabelClassifier, taxonomy=TAXONOMY, loss="hinge", tol=1e-2,
              group_weights=GroupWeights("trust_region", max_iter=5), **SEED),
        lambda: label_rows(120),
    ),
    "MIPSIndex int8": Case(small(MIPSIndex, storage="int8", **SEED), rows(500, 20)),
    "MixLassoRegressor auto": Case(
        small(MixLassoRegressor, max_components=2, gate=Gate("classifier"), **MIXTURE), lines
    ),
    "MixLassoRegressor generalised": Case(
        small(MixLassoRegressor, 2, mixture="generalised", gate=Gate("shares"), **MIXTURE), lines
    ),
    "MixLassoRegressor rbf": Case(
        small(MixLassoRegressor, 2, kernel=Kernel("rbf"), l2=1e-3, **MIXTURE), lines
    ),
    **{
        f"PDSparseClassifier {search}": Case(
            small(PDSparseClassifier, search=search, early_stopping=True, refit=True, **SEED),
            listed,
        )
        for search in ("exact", "partition", "sampled")
    },
    "PDSparseClassifier of two": Case(small(PDSparseClassifier, **SEED), two_classes),
    "PPDSparseClassifier of lists": Case(small(PPDSparseClassifier, **SEED), listed),
    "PPDSparseClassifier of weights": Case(
        small(PPDSparseClassifier, class_weight={0: 2.0, 1: 0.5}, **SEED), classes
    ),
    "PPDSparseClassifier of two": Case(
        small(PPDSparseClassifier, loss="hinge", fit_intercept="fixed", **SEED), two_classes
    ),
    "PairwiseMultilabelSVM of lists": Case(
        small(PairwiseMultilabelSVM, C=0.5, max_iter=5, **SEED), listed
    ),
    **{
        f"SkipGram {partition}": Case(
            small(SkipGram, search=ContextSearch(partition, n_sampled=16), **WORDS),
            sentences, False,
        )
        for partition in ("exact", "search", "decomposed")
    },
    "SparseInverseCovariance of weights": Case(
        small(SparseInverseCovariance, [[0.9] * 12] * 12), rows(40, 12)
    ),
    "SparseLinearRegression huber": Case(
        small(SparseLinearRegression, 0.05, loss=Huber(1.0), penalty_weights=[1.0] * 30), numbers
    ),
    "SparseLinearRegression mcp": Case(
        small(SparseLinearRegression, 0.1, penalty_weights=FallingWeights("mcp", 2.5)), numbers
    ),
    "SparseLinearRegression poisson": Case(
        small(SparseLinearRegression, "cv", loss="poisson", l1s=[0.2, 0.05]), counts
    ),
    "SparseLogisticRegression of two": Case(
        small(SparseLogisticRegression, "cv", l1s=8), two_classes
    ),
    "SparseLogisticRegression multinomial": Case(
        small(SparseLogisticRegression, 0.01, multinomial=True), classes
    ),
    "StructuralSVM of stars": Case(small(StructuralSVM, max_iter=20, **SEED), stars, False),
    "TextTagger of letters": Case(
        tagger(analyzer="char_wb", ngram_range=(2, 3), min_df=2, max_df=0.5, max_features=500),
        texts, False,
    ),
    "TextTagger hashing": Case(tagger(vectorizer="hashing", n_hashes=2**10), texts, False),
    "TextTagger hashing letters": Case(
        tagger(vectorizer="hashing", analyzer="char", ngram_range=(2, 3), n_hashes=2**10),
        texts, False,
    ),
    "TextTagger without stop words": Case(tagger(stop_words="english"), texts, False),
}  # fmt: skip
ALL = CASES | SETTINGS
