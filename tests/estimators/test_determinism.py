"""The same seed gives the same bits: any `n_jobs`, any PYTHONHASHSEED, another process.

Another seed gives others, where a seed is taken.

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
from estimator_cases import ALL, CASES, numbers, rng
from taxonomy_rows import TAXONOMY

from sublearn.graph import FactorGraph, potts, solve_map
from sublearn.hierarchy import project_hierarchy
from sublearn.io.models import MODELS
from sublearn.io.state import pack_state
from sublearn.latent import solve_boolean_quadratic, solve_max_cut
from sublearn.optim import CoordinateDescent, LhacSettings, lhac, linear_objective, minimise_linear

NO_PROMISE = {
    "SparseNetwork": "PyTorch adds up in an order that its threads choose",
}


def symmetric(n):
    C = rng().normal(size=(n, n))
    return C + C.T


SEED = {"random_state": 0}
FUNCTIONS = {
    "lhac": lambda n: (
        lhac(
            linear_objective(*numbers(), n_jobs=n),
            np.zeros(30),
            0.01,
            settings=LhacSettings(shuffle=True, **SEED),
        ).x
    ),
    "minimise_linear": lambda n: (
        minimise_linear(*numbers(), l1=0.01, solver=CoordinateDescent(**SEED), n_jobs=n).x
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


FITS = {name: lambda n, case=case: case.fit(n_jobs=n) for name, case in ALL.items()} | FUNCTIONS


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


def takes_a_seed(model):
    return any(key.rpartition("__")[2] == "random_state" for key in model.get_params())


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


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", [n for n, case in CASES.items() if takes_a_seed(case.make())])
def test_another_seed_gives_another_model(name):
    first, second = (CASES[name].fit(random_state=seed) for seed in (0, 1))
    assert digest(first) != digest(second)


def test_every_saved_class_is_here_or_has_a_reason():
    assert set(MODELS) <= set(FITS) | set(NO_PROMISE)
    assert not set(NO_PROMISE) & set(FITS)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    n_jobs = int(sys.argv[1])
    print(json.dumps({name: digest(fit(n_jobs)) for name, fit in FITS.items()}))
