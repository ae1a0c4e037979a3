"""The same seed gives the same bits: any `n_jobs`, any PYTHONHASHSEED, another process.

Run as a script with a number of threads, this file fits everything below and prints a digest of
each result. The test runs it three times and compares.
"""

import hashlib
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from taxonomy_rows import TAXONOMY, label_rows, single_rows

from sublearn.embed import (
    DenseExtremeClassifier,
    EmbeddingExtremeClassifier,
    MIPSIndex,
    SkipGram,
)
from sublearn.extreme import PDSparseClassifier, PPDSparseClassifier, TextTagger
from sublearn.forecast import LoadFeatures, LoadForecaster, LocalKernels
from sublearn.graph import FactorGraph, potts, solve_map
from sublearn.hierarchy import (
    HierarchicalClassifier,
    HierarchicalMultilabelClassifier,
    project_hierarchy,
)
from sublearn.io import load_quickstart
from sublearn.io.models import MODELS
from sublearn.io.state import pack_state
from sublearn.latent import (
    LatentFeatureLasso,
    MixLassoRegressor,
    solve_boolean_quadratic,
    solve_max_cut,
)
from sublearn.linear import (
    SparseInverseCovariance,
    SparseLinearRegression,
    SparseLogisticRegression,
)
from sublearn.optim import lhac, linear_objective, minimise_linear
from sublearn.structured import ChainSVM, PairwiseMultilabelSVM, Sample, StructuralSVM

NO_PROMISE = {
    "SparseNetwork": "PyTorch adds up in an order that its threads choose",
}


def rng():
    return np.random.default_rng(0)


def labelled(n_rows=150, n_features=20, n_labels=40):
    X = rng().normal(size=(n_rows, n_features)) * (rng().random((n_rows, n_features)) < 0.4)
    return X, rng().random((n_rows, n_labels)) < 0.1


def tagged(n=12):
    X = [rng().normal(size=(2 + i % 4, 5)) for i in range(n)]
    return X, [rng().integers(3, size=len(rows)) for rows in X]


def load_series():
    t = np.arange(7 * 8 * 8)
    return 100 + 20 * np.sin(2 * np.pi * t / 8) + rng().normal(0, 0.5, len(t))


def sentences():
    words = np.array([f"w{i}" for i in range(30)])
    return [words[row].tolist() for row in rng().integers(30, size=(200, 7))]


def tagger(n_jobs):
    records = load_quickstart(300)
    classifier = PPDSparseClassifier(random_state=0, n_jobs=n_jobs)
    return TextTagger(classifier).fit(records.train_texts, records.train_labels)


def symmetric(n):
    C = rng().normal(size=(n, n))
    return C + C.T


def linear_rows():
    X = rng().normal(size=(80, 30))
    return X, np.sign(X[:, 0] - X[:, 1] + rng().normal(size=80))


def forecaster(n_jobs):
    features = LoadFeatures(lead_blocks=[4, 8], profile_weeks=0, anchored=False, steps_per_day=8)
    kernels = LocalKernels(n_components=20, relevance_rows=40)
    return LoadForecaster(
        horizon=8, features=features, kernels=kernels, random_state=0, n_jobs=n_jobs
    ).fit(load_series())


def layer(kind, n_jobs, **options):
    X, Y = labelled(n_labels=300)
    model = kind(random_state=0, max_iter=2, n_jobs=n_jobs, n_candidates=20, **options)
    return model.fit(X.astype(np.float32), Y)


SEED = {"random_state": 0}
FITS = {
    "ChainSVM": lambda n: ChainSVM(max_iter=20, n_jobs=n, **SEED).fit(*tagged()),
    "DenseExtremeClassifier": lambda n: layer(DenseExtremeClassifier, n),
    "EmbeddingExtremeClassifier": lambda n: layer(EmbeddingExtremeClassifier, n, n_components=16),
    "HierarchicalClassifier": lambda n: HierarchicalClassifier(TAXONOMY, n_jobs=n).fit(
        *single_rows()
    ),
    "HierarchicalMultilabelClassifier": lambda n: HierarchicalMultilabelClassifier(
        TAXONOMY, n_jobs=n, **SEED
    ).fit(*label_rows(120)),
    "LatentFeatureLasso": lambda n: LatentFeatureLasso(2, max_iter=10, n_jobs=n, **SEED).fit(
        rng().normal(size=(30, 6))
    ),
    "LoadForecaster": forecaster,
    "MIPSIndex": lambda n: MIPSIndex(n_jobs=n, **SEED).fit(rng().normal(size=(500, 20))),
    "MixLassoRegressor": lambda n: MixLassoRegressor(
        2, n_starts=2, max_iter=5, n_jobs=n, **SEED
    ).fit(rng().normal(size=(60, 3)), rng().normal(size=60)),
    "PDSparseClassifier": lambda n: PDSparseClassifier(early_stopping=True, n_jobs=n, **SEED).fit(
        *labelled()
    ),
    "PPDSparseClassifier": lambda n: PPDSparseClassifier(
        search="sparsified", prune=0.01, n_jobs=n, **SEED
    ).fit(*labelled()),
    "PairwiseMultilabelSVM": lambda n: PairwiseMultilabelSVM(max_iter=20, n_jobs=n, **SEED).fit(
        *labelled(60, 20, 8)
    ),
    "SkipGram": lambda n: SkipGram(n_components=8, min_count=1, max_iter=3, n_jobs=n, **SEED).fit(
        sentences()
    ),
    "SparseInverseCovariance": lambda n: SparseInverseCovariance("cv", n_jobs=n).fit(
        rng().normal(size=(40, 12))
    ),
    "SparseLinearRegression": lambda n: SparseLinearRegression("cv", n_jobs=n, **SEED).fit(
        *linear_rows()
    ),
    "SparseLogisticRegression": lambda n: SparseLogisticRegression(0.01, n_jobs=n).fit(
        labelled()[0], rng().integers(4, size=150)
    ),
    "StructuralSVM": lambda n: StructuralSVM(max_iter=20, n_jobs=n, **SEED).fit(
        [Sample.chain(rows) for rows in tagged()[0]], tagged()[1]
    ),
    "TextTagger": tagger,
    "lhac": lambda n: (
        lhac(
            linear_objective(*linear_rows(), n_threads=n), np.zeros(30), 0.01, shuffle=True, **SEED
        ).x
    ),
    "minimise_linear": lambda n: (
        minimise_linear(*linear_rows(), l1=0.01, solver="cd1", n_jobs=n, **SEED).x
    ),
    "project_hierarchy": lambda n: project_hierarchy(
        rng().normal(size=(200, len(TAXONOMY))), TAXONOMY, 0.3, n_jobs=n
    ),
    "solve_boolean_quadratic": lambda n: (
        solve_boolean_quadratic(symmetric(30), n_jobs=n, max_iter=50, **SEED).vectors
    ),
    "solve_map": lambda n: (
        solve_map(
            FactorGraph.grid(rng().normal(size=(8, 8, 3)), potts(3), 1.0),
            n_jobs=n,
            max_iter=30,
            **SEED,
        ).assignment
    ),
    "solve_max_cut": lambda n: solve_max_cut(symmetric(30), n_jobs=n, max_iter=50, **SEED).side,
}


def digest(result):
    """Of everything that is saved but the clock's share: traces, and parameters of parts."""
    state = {"array": result} if isinstance(result, np.ndarray) else result._to_bundle()
    state = {k: v for k, v in state.items() if "trace" not in k and not k.endswith("params")}
    arrays, attributes = pack_state(state)
    total = hashlib.sha256(json.dumps(attributes, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(f"{name} {array.dtype.str} {array.shape}".encode() + array.tobytes())
    return total.hexdigest()


@pytest.fixture(scope="module")
def digests():
    """Those of three processes at once."""
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    runs = [
        subprocess.Popen(
            [sys.executable, __file__, str(n_jobs)], stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": path},
        )
        for n_jobs, seed in ((1, "0"), (2, "1"), (3, "4294967295"))
    ]  # fmt: skip
    return [json.loads(run.communicate()[0]) for run in runs]


@pytest.mark.parametrize("name", FITS)
def test_threads_hashes_and_processes_do_not_change_a_bit(name, digests):
    first, *others = (found[name] for found in digests)
    assert others == [first, first]


def test_every_saved_class_is_here_or_has_a_reason():
    assert set(MODELS) <= set(FITS) | set(NO_PROMISE)
    assert not set(NO_PROMISE) & set(FITS)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    n_jobs = int(sys.argv[1])
    print(json.dumps({name: digest(fit(n_jobs)) for name, fit in FITS.items()}))
