"""Runs cases of targets in forked workers, and says what became of each.

A target makes case number i from a seed alone, and tries it. A worker is a fork of this process,
which has imported everything already; it tries many cases, one after the other, and writes the
number of each into memory that the parent shares before it begins. So the parent knows which case
a worker died of, and goes on behind it.

A case ends in one of these ways:

    ok        the input was taken
    refused   an exception of our family, raised where somebody checked
    foreign   any other exception, or a result that must not be (a certificate of NaN)
    crash     the process died by a signal
    hang      no end within `SECONDS`, twice
    oom       more memory than `MEMORY` above what the imports take
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import json
import linecache
import logging
import mmap
import os
import random
import resource
import shutil
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OUTCOMES = ("ok", "refused", "foreign", "crash", "hang", "oom")
FAILURES = OUTCOMES[2:]
SECONDS = 10.0  # that a case may take
MEMORY = 2 * 2**30  # bytes that a case may take
KEPT = 5  # failing cases of one kind that are kept as files

FOUND = Path(__file__).parent / "found"


class Failure(Exception):
    """A case went wrong without an exception of its own: the message says how."""


@dataclass(frozen=True)
class Target:
    """Something to attack.

    Parameters
    ----------
    name : str
        As in ``--only``.
    kind : str
        What the total counts it under: ``files``, ``arrays``, ``calls`` or ``requests``.
    make : function of a random generator
        Gives a case: bytes (kept as a file if it fails), or anything else, which is made again from
        its number.
    use : function of a case and a folder for files
        Tries it; returns, or raises.
    cases : int
        How many the whole campaign tries.
    prepare : function
        Called in the parent before workers start, for what must be there, such as a server.
    """

    name: str
    kind: str
    make: Callable[[random.Random], Any]
    use: Callable[[Any, Path], None]
    cases: int
    prepare: Callable[[], None] = lambda: None


@dataclass
class Tally:
    """What became of the cases of one target."""

    next_case: int = 0
    seconds: float = 0.0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))
    failures: dict[str, list[int]] = field(default_factory=dict)  # what it was: which cases

    @property
    def failed(self) -> int:
        return sum(self.counts[outcome] for outcome in FAILURES)


def case_random(seed: int, target: Target, number: int) -> random.Random:
    return random.Random(f"{seed}/{target.name}/{number}")


# --- one case ------------------------------------------------------------------------------------


def attempt(target: Target, case: Any, folder: Path) -> tuple[str, str]:
    """Outcome of a case and, for a failure, what it was in one line."""
    try:
        target.use(case, folder)
    except MemoryError as error:
        # Of a function, whoever calls it may ask for more than there is: `n_bins=2**40`.
        return ("refused", "") if target.kind == "calls" else ("oom", _where(error))
    except Exception as error:
        is_expected = is_refusal(error) if target.kind == "files" else is_usual(error)
        return ("refused", "") if is_expected else ("foreign", _where(error))
    return "ok", ""


def is_usual(error: BaseException) -> bool:
    """Whether an exception is of a type that callers are told to expect."""
    home = type(error).__module__
    is_ours = home == "sublearn.errors" or isinstance(error, FileNotFoundError)
    return is_ours or home == "sklearn.exceptions" or type(error) in (ValueError, TypeError)


def is_refusal(error: BaseException) -> bool:
    """Whether it was also raised by code that checked: a statement in Python, or the core.

    NumPy's complaint about shapes that a damaged file gave it is none.
    """
    if not is_usual(error) or type(error).__module__ == "sublearn.errors":
        return is_usual(error)
    if any(
        word in str(error)
        for word in (" must ", " needed", " needs ", " expected ", " is outside ")
    ):
        return True
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return linecache.getline(frame.filename, frame.lineno or 0).lstrip().startswith("raise")


def _where(error: BaseException) -> str:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "sublearn" in f.filename]
    place = f"{Path(frames[-1].filename).name}:{frames[-1].name}" if frames else "?"
    if isinstance(error, Failure):
        return f"{error} in {place}"
    return f"{type(error).__name__} in {place}: {str(error)[:160]}"


# --- workers -------------------------------------------------------------------------------------

_BROKEN = 70  # exit code of a worker that fails outside its case
_SLOTS = ("case", "began_ms", *OUTCOMES)


class _Record:
    """Numbers that a worker writes and its parent reads."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 8 * len(_SLOTS))
        self._numbers = (ctypes.c_int64 * len(_SLOTS)).from_buffer(self._memory)

    def __getitem__(self, slot: str) -> int:
        return self._numbers[_SLOTS.index(slot)]

    def __setitem__(self, slot: str, value: int) -> None:
        self._numbers[_SLOTS.index(slot)] = value


@dataclass
class _Worker:
    target: Target
    pid: int
    record: _Record
    folder: Path
    first: int
    end: int
    began: float


def start(target: Target, seed: int, first: int, end: int, deadline: float) -> _Worker:
    """Fork a worker that tries cases `first` to `end - 1`, or until `deadline`."""
    target.prepare()
    record = _Record()
    record["case"], record["began_ms"] = first, _now_ms()
    folder = Path(tempfile.mkdtemp(prefix="sublearn-fuzz-", dir=_memory_folder()))
    pid = os.fork()
    if pid == 0:
        code = _BROKEN
        try:
            _work(target, seed, first, end, deadline, record, folder)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return _Worker(target, pid, record, folder, first, end, time.monotonic())


def _work(
    target: Target, seed: int, first: int, end: int, deadline: float, record: _Record, folder: Path
) -> None:
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most = _address_space() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    warnings.simplefilter("ignore")
    logging.disable()
    faulthandler.disable()
    for number in range(first, end):
        record["case"], record["began_ms"] = number, _now_ms()
        case = target.make(case_random(seed, target, number))
        record["began_ms"] = _now_ms()  # making it is not the library's time
        outcome, what = attempt(target, case, folder)
        record[outcome] += 1
        if outcome in FAILURES:
            with open(folder / "failures.jsonl", "a") as log:
                log.write(json.dumps([outcome, number, what]) + "\n")
        if time.monotonic() > deadline:
            record["case"] = number + 1
            return
    record["case"] = end


def finish(worker: _Worker, tally: Tally, seed: int, *, is_second: bool = False) -> bool:
    """Look at a worker; True when it is done, its counts in `tally`."""
    pid, status, _ = os.wait4(worker.pid, os.WNOHANG)
    is_late = _now_ms() - worker.record["began_ms"] > 1000 * SECONDS
    if pid == 0 and not is_late:
        return False
    if pid == 0:
        os.kill(worker.pid, signal.SIGKILL)
        os.waitpid(worker.pid, 0)
    record = worker.record
    for outcome in OUTCOMES:
        tally.counts[outcome] += record[outcome]
    tally.seconds += time.monotonic() - worker.began
    tally.next_case = max(tally.next_case, record["case"])
    for outcome, number, what in _logged(worker.folder):
        _keep(worker.target, tally, seed, outcome, number, what)
    if pid == 0 or status != 0:
        tally.next_case = record["case"] + 1
        _judge_death(worker, tally, seed, status if pid else None, is_second)
    shutil.rmtree(worker.folder, ignore_errors=True)
    return True


def _judge_death(
    worker: _Worker, tally: Tally, seed: int, status: int | None, is_second: bool
) -> None:
    """A worker that was killed or died, and of which case.

    One that was late is tried again alone: the machine may have been busy. So is one that died:
    memory may have been damaged by a case before it.
    """
    number = worker.record["case"]
    if not is_second and (status is None or os.WIFSIGNALED(status)):
        before = tally.failed
        again = start(worker.target, seed, number, number + 1, float("inf"))
        while not finish(again, tally, seed, is_second=True):
            time.sleep(0.01)
        if status is not None and tally.failed == before:
            what = f"{signal.Signals(os.WTERMSIG(status)).name}, not alone: see the cases before"
            tally.counts["crash"] += 1
            _keep(worker.target, tally, seed, "crash", number, what)
        return
    if status is None:
        outcome, what = "hang", f"no end within {SECONDS:g} s"
    elif os.WIFSIGNALED(status):
        outcome, what = "crash", signal.Signals(os.WTERMSIG(status)).name
    elif os.WEXITSTATUS(status) == _BROKEN:
        raise RuntimeError(f"case {number} of {worker.target.name} could not be made")
    else:
        outcome, what = "crash", f"exit code {os.WEXITSTATUS(status)}"
    tally.counts[outcome] += 1
    _keep(worker.target, tally, seed, outcome, number, what)


def _logged(folder: Path) -> Iterator[tuple[str, int, str]]:
    with contextlib.suppress(FileNotFoundError), open(folder / "failures.jsonl") as log:
        for line in log:
            yield tuple(json.loads(line))


def _keep(target: Target, tally: Tally, seed: int, outcome: str, number: int, what: str) -> None:
    """Count a failure by its type and place, and keep the first few of each as files."""
    numbers = tally.failures.setdefault(f"{outcome}: {what.split(': ')[0]}", [])
    numbers.append(number)
    if len(numbers) > KEPT:
        return
    FOUND.mkdir(exist_ok=True)
    stem = f"{target.name}-{outcome}-{seed}-{number}"
    case = target.make(case_random(seed, target, number))
    if isinstance(case, bytes):
        (FOUND / f"{stem}.bin").write_bytes(case)
    recipe = {"target": target.name, "seed": seed, "case": number, "what": what}
    (FOUND / f"{stem}.json").write_text(json.dumps(recipe) + "\n")


def _memory_folder() -> str | None:
    return "/dev/shm" if os.path.isdir("/dev/shm") else None


def _address_space() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE
    except OSError:  # not Linux: the limit is then of the whole process
        return 4 * 2**30


def _now_ms() -> int:
    return int(1000 * time.monotonic())


# --- a campaign ----------------------------------------------------------------------------------


class Campaign:
    """Targets, what became of them so far, and workers for those that are not done.

    Parameters
    ----------
    targets : list of Target
        In the order of the report.
    seed : int
        Of all cases.
    tallies : dict of str to Tally
        What an earlier run did; see `to_json`.
    """

    def __init__(
        self, targets: list[Target], seed: int, tallies: dict[str, Tally] | None = None
    ) -> None:
        self.targets = {target.name: target for target in targets}
        self.seed = seed
        self.tallies = {name: (tallies or {}).get(name, Tally()) for name in self.targets}

    def run(
        self,
        *,
        jobs: int,
        seconds: float | None,
        share: float = 1.0,
        slice_seconds: float = 3.0,
        watch: Callable[[Campaign], None] = lambda campaign: None,
    ) -> None:
        """Try cases until every target had `share` of its own, or the time is over.

        Targets take turns of a few seconds, those that are furthest behind first.
        """
        deadline = time.monotonic() + seconds if seconds is not None else float("inf")
        goals = {name: max(1, int(share * t.cases)) for name, t in self.targets.items()}
        running: dict[str, _Worker] = {}
        try:
            while True:
                for name in [n for n, w in running.items() if self._is_done(w)]:
                    del running[name]
                    watch(self)
                behind = [n for n in self.targets if n not in running and self._left(n, goals) > 0]
                behind.sort(key=lambda n: self.tallies[n].next_case / goals[n])
                if not running and (not behind or time.monotonic() > deadline):
                    return
                for name in behind[: jobs - len(running)] if time.monotonic() < deadline else ():
                    target, first = self.targets[name], self.tallies[name].next_case
                    target.prepare()  # may take longer than a turn
                    until = min(deadline, time.monotonic() + slice_seconds)
                    running[name] = start(target, self.seed, first, goals[name], until)
                time.sleep(0.005)
        finally:
            for worker in running.values():
                with contextlib.suppress(ProcessLookupError, ChildProcessError):
                    os.kill(worker.pid, signal.SIGKILL)
                    os.waitpid(worker.pid, 0)
                shutil.rmtree(worker.folder, ignore_errors=True)

    def _left(self, name: str, goals: dict[str, int]) -> int:
        return goals[name] - self.tallies[name].next_case

    def _is_done(self, worker: _Worker) -> bool:
        return finish(worker, self.tallies[worker.target.name], self.seed)

    @property
    def failed(self) -> int:
        return sum(tally.failed for tally in self.tallies.values())

    def to_json(self) -> dict[str, Any]:
        return {"seed": self.seed, "tallies": {n: vars(t) for n, t in self.tallies.items()}}

    @classmethod
    def from_json(cls, targets: list[Target], state: dict[str, Any]) -> Campaign:
        tallies = {name: Tally(**values) for name, values in state["tallies"].items()}
        return cls(targets, state["seed"], tallies)
