"""PPDSparseClassifier in a process that forks; Ctrl-C is in `test_interrupt.py`."""

import os
import subprocess
import sys

import pytest

PROBLEM = """
import multiprocessing, sys, warnings
import numpy as np
from sublearn.extreme import PPDSparseClassifier
rng = np.random.default_rng(0)
X, y = rng.normal(size=(400, 20)), rng.integers(0, 60, 400)
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_process_fits_and_predicts_on_several_threads():
    command = [sys.executable, "-c", PROBLEM + FORK]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=2 * LONG, check=True)
    assert done.stdout == "child 0\n"
