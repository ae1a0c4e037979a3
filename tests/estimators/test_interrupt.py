"""Ctrl-C returns control within a second, in every estimator and long function.

Each row of `long_calls.py` runs in a process of its own, which gets a real SIGINT when it is well
inside of the call. Afterwards the model must be what it was before, no work may go on for long in
the background, and the same process must answer as before. By hand, over all numbers of threads and
three moments, with the limit of one second::

    python tests/estimators/test_interrupt.py --strict [names of rows]
"""

import argparse
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from long_calls import ROWS

from sublearn.io.models import MODELS

SCRIPT = Path(__file__).with_name("long_calls.py")
LIMIT, STRICT_LIMIT = 3.0, 1.0  # seconds on a quiet machine
BACKGROUND_LIMIT = 10.0  # seconds of processor time that abandoned work may go on
MOMENT, STRICT_MOMENTS = 1.0, (0.3, 1.0, 3.0)  # seconds after the call began
AT_ONCE = 2
LONGEST = 180.0  # seconds for a row, with all that it prepares
#: Rows of every run of the tests; all of them take minutes.
QUICK = (
    "ppd_sparse",
    "ppd_sparse_with_a_model_path",
    "ppd_sparse_path",
    "pd_sparse",
    "ppd_sparse_prediction",
    "ppd_sparse_calibration",
    "text_tagger",
    "linear_regression_path",
)

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are sent as POSIX has them")


@dataclass(frozen=True)
class Outcome:
    """Seconds from the signal to the exception, and what the process said of itself."""

    seconds: float | None
    background: float  # seconds of processor time after the exception, until all threads ended
    stretch: float  # how many times longer work takes than on a quiet machine
    is_clean: bool
    is_usable: bool


def interrupt(name, n_jobs, moments):
    """Outcomes of one process that is interrupted at all of these moments, one call each."""
    line = [sys.executable, str(SCRIPT), name, str(n_jobs), str(len(moments))]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            line, stdout=subprocess.PIPE, text=True, env=os.environ | {"TMPDIR": folder}
        ) as child,
    ):
        watchdog = threading.Timer(LONGEST, child.kill)  # a row that hangs fails, and ends
        watchdog.start()
        try:
            return [press(child, moment) for moment in moments]
        finally:
            watchdog.cancel()
            child.kill()


def press(child, moment):
    assert child.stdout.readline() == "ready\n"
    time.sleep(moment)
    stretch = measured_stretch()
    sent = time.monotonic()
    child.send_signal(signal.SIGINT)
    report = json.loads(child.stdout.readline())
    at = report["at"]
    return Outcome(
        seconds=None if at is None else at - sent,
        background=report["background"],
        stretch=stretch,
        is_clean=report["is_clean"],
        is_usable=report["is_usable"],
    )


def measured_stretch():
    """Wall time of a little work, divided by the time that it had a processor."""
    wall, cpu = time.perf_counter(), time.process_time()
    while time.process_time() - cpu < 0.05:
        pass
    return max(1.0, (time.perf_counter() - wall) / (time.process_time() - cpu))


def is_runnable(name):
    return all(importlib.util.find_spec(module) for module in ROWS[name].needs)


def is_asked_for(name):
    return name in QUICK or bool(os.environ.get("SUBLEARN_ALL_INTERRUPTS"))


@pytest.fixture(scope="module")
def outcomes(request):
    """Of all rows that were asked for, two processes at a time."""
    names = [
        item.callspec.params["name"]
        for item in request.session.items
        if item.path == Path(__file__) and hasattr(item, "callspec")
    ]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        # One thread, two threads: in turn, since either must do and both take twice the time.
        yield {
            name: pool.submit(interrupt, name, ROWS[name].jobs[i % len(ROWS[name].jobs)], [MOMENT])
            for i, name in enumerate(names)
            if is_runnable(name) and is_asked_for(name)
        }
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("name", ROWS)
def test_ctrl_c_returns_control_and_leaves_nothing_half_done(name, outcomes):
    if not is_asked_for(name):
        pytest.skip("takes minutes with all others: SUBLEARN_ALL_INTERRUPTS=1 runs it")
    if name not in outcomes:
        pytest.skip(f"needs {', '.join(ROWS[name].needs)}")
    (found,) = outcomes[name].result()
    assert found.seconds is not None, "the call ended before the signal: make it longer"
    print(
        f"{name}: {found.seconds:.2f} s, {found.background:.2f} s more in the background, "
        f"work takes {found.stretch:.1f} times as long as alone"
    )
    assert found.seconds <= LIMIT * found.stretch
    assert found.background <= BACKGROUND_LIMIT
    assert found.is_clean, "the model, or its file, is not what it was before"
    assert found.is_usable, "the same call has another answer afterwards"


@pytest.mark.parametrize("name", ["logistic_regression", "map_inference"])
@pytest.mark.skipif(
    not os.environ.get("SUBLEARN_ALL_INTERRUPTS"), reason="SUBLEARN_ALL_INTERRUPTS=1 runs it"
)
def test_a_process_may_end_while_work_goes_on_in_the_background(name):
    with subprocess.Popen(
        [sys.executable, str(SCRIPT), name, "1", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        try:
            assert child.stdout.readline() == "ready\n"
            time.sleep(MOMENT)
            child.send_signal(signal.SIGINT)
            _, said = child.communicate(timeout=60)
        finally:
            child.kill()
    assert child.returncode == -signal.SIGINT, said
    assert said.rstrip().endswith("KeyboardInterrupt")


def test_every_saved_model_has_a_row():
    assert {row.covers for row in ROWS.values()} - {None} == set(MODELS)


def in_short(found):
    """Seconds to the exception, more in the background, and what went wrong."""
    if found.seconds is None:
        return "ended"
    marks = "" if found.is_clean else " changed"
    marks += "" if found.is_usable else " unusable"
    return f"{found.seconds:.2f}+{found.background:.2f}{marks}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strict", action="store_true", help="one second, at three moments")
    parser.add_argument("names", nargs="*", default=list(ROWS))
    asked = parser.parse_args()
    moments = STRICT_MOMENTS if asked.strict else (MOMENT,)
    limit = STRICT_LIMIT if asked.strict else LIMIT
    n_bad = 0
    print(f"{'row':40} n_jobs  " + "".join(f"{f'at {m} s':>15}" for m in moments))
    for name in filter(is_runnable, asked.names):
        for n_jobs in ROWS[name].jobs:
            found = interrupt(name, n_jobs, moments)
            is_bad = any(
                f.seconds is None
                or f.seconds > limit
                or f.background > BACKGROUND_LIMIT
                or not (f.is_clean and f.is_usable)
                for f in found
            )
            n_bad += is_bad
            print(
                f"{name:40} {n_jobs:6}  "
                + "".join(f"{in_short(f):>15}" for f in found)
                + ("  <-" if is_bad else ""),
                flush=True,
            )
    return 1 if n_bad else 0


if __name__ == "__main__":
    sys.exit(main())
