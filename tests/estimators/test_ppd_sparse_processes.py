"""PPDSparseClassifier and the process around it: Ctrl-C and fork, each in a process of its own."""

import os
import signal
import subprocess
import sys
import time

import pytest

PROBLEM = """
import multiprocessing, sys, warnings
import numpy as np
from sublearn.extreme import PPDSparseClassifier
rng = np.random.default_rng(0)
X, y = rng.normal(size=(400, 20)), rng.integers(0, 60, 400)
"""

ENDLESS_FIT = """
model = PPDSparseClassifier(loss="hinge", tol=1e-300, max_iter=10**9, n_jobs={n_jobs})
try:
    print("ready", flush=True)
    model.fit(X, y)
except KeyboardInterrupt:
    print("interrupted", model.__sklearn_is_fitted__(), flush=True)
    model.set_params(tol=0.5, n_jobs=2).fit(X, y)
    print("fitted", model.certificate_ <= 0.5)
"""

FORK = """
warnings.simplefilter("ignore")  # newer Pythons warn of fork beside threads: that is the point
model = PPDSparseClassifier(n_jobs=2, random_state=0).fit(X, y)
expected = model.decision_function(X)  # leaves threads of OpenMP behind the main thread

def child():
    again = PPDSparseClassifier(n_jobs=2, random_state=0).fit(X, y)
    same = np.array_equal(again.decision_function(X), expected)
    sys.exit(0 if same and np.array_equal(model.decision_function(X), expected) else 1)

process = multiprocessing.get_context("fork").Process(target=child)
process.start()
process.join(40)
print("child", process.exitcode)
process.kill()
"""

LONG = 60  # seconds: what ends at all ends long before


@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise on Windows")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_control_c_ends_a_fit_and_leaves_nothing_half_built(n_jobs):
    script = PROBLEM + ENDLESS_FIT.format(n_jobs=n_jobs)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as fit:
        assert fit.stdout.readline() == "ready\n"
        time.sleep(0.5)  # well into the fit; an earlier signal would be caught all the same
        fit.send_signal(signal.SIGINT)
        try:
            rest, _ = fit.communicate(timeout=LONG)
        finally:
            fit.kill()
    assert rest.splitlines() == ["interrupted False", "fitted True"]
    assert fit.returncode == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_process_fits_and_predicts_on_several_threads():
    command = [sys.executable, "-c", PROBLEM + FORK]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=2 * LONG, check=True)
    assert done.stdout == "child 0\n"
