"""How Ctrl-C, here raised by a callback, reaches work on other threads."""

import threading

import pytest

from sublearn import _core
from sublearn.execution import map_blocks
from sublearn.interruption import Abandoned, aside, check
from sublearn.trace import attend, watch

SECONDS = 60  # after which a test that would wait for ever fails


def press_ctrl_c(_event):
    raise KeyboardInterrupt


def run_until_abandoned(began, ended):
    """What a loop in Python does."""
    began.set()
    pause = threading.Event()
    try:
        for _ in range(SECONDS * 100):
            check()
            pause.wait(0.01)
    except Abandoned:
        ended.append("abandoned")
        raise


def test_check_is_silent_where_nobody_waits():
    check()


def test_ctrl_c_ends_a_loop_in_python():
    began, ended = threading.Event(), []
    with pytest.raises(KeyboardInterrupt):
        watch(lambda: run_until_abandoned(began, ended), _core.Monitor(), callback=press_ctrl_c)
    assert ended == ["abandoned"]


def test_ctrl_c_ends_blocks_that_run_and_begins_no_others():
    began, ended, n_begun = threading.Event(), [], []

    def block(k):
        n_begun.append(k)
        run_until_abandoned(began, ended)

    def press(_event):
        if began.is_set():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watch(lambda: map_blocks(block, range(100), 2), _core.Monitor(), callback=press)
    assert len(n_begun) == len(ended) <= 2


def test_ctrl_c_reaches_a_solver_inside_of_another_one():
    inner = _core.Monitor()
    pause = threading.Event()

    def solve():
        for _ in range(SECONDS * 100):
            if inner.stop_requested:
                return True
            pause.wait(0.01)
        return False

    found = []
    with pytest.raises(KeyboardInterrupt):
        watch(lambda: found.append(watch(solve, inner)), _core.Monitor(), callback=press_ctrl_c)
    assert found == [True]


def test_a_failing_block_ends_the_others():
    began, ended = threading.Event(), []

    def block(k):
        if k == 0:
            began.wait(SECONDS)
            raise ValueError("the first")
        run_until_abandoned(began, ended)

    with pytest.raises(ValueError, match="the first"):
        map_blocks(block, range(2), 2)
    assert ended == ["abandoned"]


def test_a_callback_that_stops_wants_the_result():
    monitor = _core.Monitor()
    pause = threading.Event()

    def job():
        while not monitor.stop_requested:
            pause.wait(0.01)
        check()
        return "as far as it came"

    assert watch(job, monitor, callback=lambda _: True) == "as far as it came"


@pytest.mark.parametrize(
    "work",
    [
        lambda call: call(),
        lambda call: aside(call, n_operations=1e12),
    ],
    ids=["a job", "one call of it"],
)
def test_a_long_call_of_a_library_is_left_behind(work):
    may_end, has_ended = threading.Event(), threading.Event()

    def library_call():
        may_end.wait(SECONDS)
        has_ended.set()

    with pytest.raises(KeyboardInterrupt):
        watch(lambda: work(library_call), _core.Monitor(), callback=press_ctrl_c, may_be_left=True)
    assert not has_ended.is_set()
    may_end.set()
    assert has_ended.wait(SECONDS)


def test_aside_returns_and_raises_what_the_call_does():
    assert aside(int, "7", n_operations=1e12) == aside(int, "7", n_operations=1) == 7
    for n_operations in (1, 1e12):
        with pytest.raises(ValueError, match="seven"):
            aside(int, "seven", n_operations=n_operations)


@pytest.mark.parametrize("run", [lambda f, n: aside(f, n_operations=n), lambda f, n: attend(
    lambda _: f(), n)], ids=["aside", "attend"])  # fmt: skip
def test_small_calls_stay_on_their_thread(run):
    here = threading.get_ident()
    assert run(threading.get_ident, 10) == here
    assert run(threading.get_ident, 1e12) != here
