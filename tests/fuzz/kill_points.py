"""Kill processes while they write models, and look at what they leave.

    python3 tests/fuzz/kill_points.py --kills 200

A child process fits with `model_path`, goes on with such a fit, solves one of three parts of it,
joins them, or saves; it dies in one of three ways: by kill -9 at a random moment, by kill -9 at its
n-th operation on files, or after n bytes of a file. Whatever the moment, the file at the path must
be the whole old model or the whole new one, and the next fit or save must end with the right model
and with nothing beside it. Prints the counts as JSON; the exit code is 1 if anything went wrong.
Needs fork, so not for Windows.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import sublearn
from sublearn.embed import MIPSIndex
from sublearn.extreme import PPDSparseClassifier, ppd_solve
from sublearn.parts import join_parts, solve_part

ppd_solve._JOURNAL_BLOCKS = 1  # 25 parts for 200 labels


# --- ways to die -------------------------------------------------------------------------------

FILE_EVENTS = {
    "open", "os.chmod", "os.listdir", "os.mkdir", "os.remove", "os.rename", "os.rmdir",
    "fcntl.flock", "mmap.__new__", "shutil.rmtree",
}  # fmt: skip


@dataclass
class AtMoment:
    """kill -9 so many seconds after the start."""

    seconds: float

    def arm(self, folder: Path) -> None:
        pass

    def strike(self, pid: int) -> None:
        ends = time.perf_counter() + self.seconds
        while time.perf_counter() < ends and not _has_ended(pid):
            time.sleep(0.0005)
        os.kill(pid, signal.SIGKILL)  # it is not reaped yet, so the number is still its own


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


@dataclass
class AtStep:
    """kill -9 before the n-th operation on files, as Python's audit events count them."""

    step: int
    n_seen: int = 0

    def arm(self, folder: Path) -> None:
        sys.addaudithook(lambda event, found: self._look(event, found, str(folder)))

    def _look(self, event: str, found: tuple[object, ...], folder: str) -> None:
        if event not in FILE_EVENTS or (event == "open" and not str(found[0]).startswith(folder)):
            return
        self.n_seen += 1
        if self.n_seen == self.step:
            os.kill(os.getpid(), signal.SIGKILL)

    def strike(self, pid: int) -> None:
        pass


@dataclass
class AfterBytes:
    """Death by SIGXFSZ, which nothing catches, when a file grows beyond so many bytes."""

    n_bytes: int

    def arm(self, folder: Path) -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.n_bytes, resource.RLIM_INFINITY))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)

    def strike(self, pid: int) -> None:
        pass


Death = AtMoment | AtStep | AfterBytes
NEVER = AfterBytes(2**40)


def run(act: Callable[[], None], death: Death, folder: Path) -> bool:
    """Let a child act, and die; whether it died by the signal. Its own errors are ours."""
    pid = os.fork()
    if pid == 0:
        try:
            death.arm(folder)
            act()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    death.strike(pid)
    _, status = os.waitpid(pid, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
        raise RuntimeError("the child ended by an error of its own, see above")
    return os.WIFSIGNALED(status)


def count_steps(act: Callable[[], None], folder: Path, note: Path) -> int:
    """Operations on files from beginning to end."""
    steps = AtStep(-1)
    run(lambda: (act(), note.write_text(str(steps.n_seen))), steps, folder)  # type: ignore[arg-type,return-value]
    return int(note.read_text())


# --- what is killed ----------------------------------------------------------------------------


def fit(path: Path | None, C: float = 1.0) -> PPDSparseClassifier:
    """Some tenths of a second, 25 parts."""
    rng = np.random.default_rng(0)
    X = sp.random(300, 60, 0.2, "csr", random_state=rng, data_rvs=rng.standard_normal)
    scores = X @ rng.normal(size=(60, 200))
    Y = sp.csr_matrix(scores > np.quantile(scores, 0.93))
    return PPDSparseClassifier(C=C, tol=1e-3, random_state=0, model_path=path).fit(X, Y)


def digest(path: Path) -> str:
    """What a fit determines: everything but the clock."""
    model = sublearn.load(path)
    weights = model.model_.weights
    parts = (weights.data, weights.indices, weights.indptr, model.intercept_)
    numbers = (model.objective_, model.certificate_, model.n_iter_, model.C)
    content = b"".join(np.ascontiguousarray(part).tobytes() for part in parts)
    return hashlib.blake2b(content + repr(numbers).encode()).hexdigest()


def digest_of_bytes(path: Path) -> str:
    """All of a file, which must load as well."""
    sublearn.load(path)
    return hashlib.blake2b(path.read_bytes()).hexdigest()


@dataclass
class Scenario:
    """Something that writes `folder / "model"`, where another model is already.

    `begin` fills the folder, `act` is killed, `finish` is what the user does next.
    """

    name: str
    folder: Path
    begin: Callable[[], None]
    act: Callable[[], None]
    finish: Callable[[], None]
    digest: Callable[[Path], str]
    old: str
    new: str
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    @property
    def path(self) -> Path:
        return self.folder / "model"

    def reset(self) -> None:
        """As before the child."""
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        self.begin()

    def try_death(self, death: Death) -> bool:
        """One child; whether it was killed and not done before."""
        self.reset()
        was_killed = run(self.act, death, self.folder)
        self.counts["kills" if was_killed else "ended before"] += 1
        self.counts["left a part"] += any(self.folder.rglob(".*.part"))
        self.counts["left a journal"] += (self.folder / "model.parts").exists()
        try:
            found = self.digest(self.path)
            self._expect(found in (self.old, self.new), death, "the file is neither model")
            self.counts["new model"] += found == self.new
            run(self.finish, NEVER, self.folder)
            self._expect(self.digest(self.path) == self.new, death, "the model is another one")
            self._expect(os.listdir(self.folder) == ["model"], death, "something is left")
        except Exception as error:
            self._expect(False, death, f"{type(error).__name__}: {error}")
        return was_killed

    def _expect(self, holds: bool, death: Death, complaint: str) -> None:
        if not holds:
            self.failures.append(f"{death}: {complaint}; {sorted(os.listdir(self.folder))}")


def make_scenarios(room: Path) -> list[Scenario]:
    """All of them, with their models."""
    folder, kept = room / "here", room / "kept"
    for made in (folder, kept):
        made.mkdir()
    path, half = folder / "model", kept / "half"

    def index(seed: int) -> MIPSIndex:
        return MIPSIndex(n_clusters=4, max_iter=2, n_jobs=1, random_state=0).fit(
            np.random.default_rng(seed).normal(size=(20_000, 32)).astype(np.float32)
        )

    def prepare() -> None:
        fit(None, C=2.0).save(kept / "old")
        fit(None).save(kept / "new")
        index(0).save(kept / "old index")
        index(1).save(kept / "new index")

    run(prepare, NEVER, folder)
    steps = count_steps(lambda: fit(path) and None, folder, kept / "steps")
    shutil.rmtree(folder)
    folder.mkdir()
    run(lambda: fit(path) and None, AtStep(steps // 2), folder)
    shutil.copytree(folder, half)

    def copy_old() -> None:
        shutil.copy(kept / "old", path)

    def copy_half() -> None:
        shutil.copytree(half, folder, dirs_exist_ok=True)
        copy_old()

    def fit_here() -> None:
        fit(path)

    def solve(number: int) -> None:
        with solve_part(number, 3):
            fit(path)

    def join() -> None:
        try:
            with join_parts():
                fit(path)
        except ValueError:  # an earlier one died while it removed the parts
            fit(path)

    for name, numbers in (("two parts", (1, 3)), ("three parts", (1, 2, 3))):
        shutil.rmtree(folder)
        folder.mkdir()
        for number in numbers:
            run(lambda number=number: solve(number), NEVER, folder)  # type: ignore[misc]
        shutil.copytree(folder, kept / name)

    def copy_parts(name: str) -> None:
        shutil.copytree(kept / name, folder, dirs_exist_ok=True)
        copy_old()

    def solve_and_join() -> None:
        solve(2)
        join()

    def save_once() -> None:
        sublearn.load(kept / "new index").save(path)

    models = {"digest": digest, "old": digest(kept / "old"), "new": digest(kept / "new")}
    indices = {"digest": digest_of_bytes, "old": digest_of_bytes(kept / "old index"),
               "new": digest_of_bytes(kept / "new index")}  # fmt: skip
    return [
        Scenario("fit", folder, copy_old, fit_here, fit_here, **models),  # type: ignore[arg-type]
        Scenario("resume", folder, copy_half, fit_here, fit_here, **models),  # type: ignore[arg-type]
        Scenario("part", folder, lambda: copy_parts("two parts"), lambda: solve(2), solve_and_join,
                 **models),  # type: ignore[arg-type]
        Scenario("join", folder, lambda: copy_parts("three parts"), join, join, **models),  # type: ignore[arg-type]
        Scenario("save", folder, lambda: shutil.copy(kept / "old index", path) and None, save_once,
                 save_once, **indices),  # type: ignore[arg-type]
    ]  # fmt: skip


# --- campaigns ---------------------------------------------------------------------------------


def at_random_moments(scenario: Scenario, n_kills: int, rng: np.random.Generator) -> None:
    """Until so many children have died before their end."""
    while scenario.counts["kills"] < n_kills:
        if scenario.counts["kills"] % 20 == 0:  # other work on the machine comes and goes
            scenario.reset()
            began = time.perf_counter()
            run(scenario.act, NEVER, scenario.folder)
            whole = time.perf_counter() - began
        scenario.try_death(AtMoment(float(rng.uniform(0, whole))))


def at_steps(scenario: Scenario, n_kills: int, room: Path) -> None:
    """Evenly over all operations on files, the first and the last among them."""
    scenario.reset()
    n_steps = count_steps(scenario.act, scenario.folder, room / "steps")
    for step in np.unique(np.linspace(1, n_steps, n_kills).astype(int)):
        if not scenario.try_death(AtStep(int(step))):
            scenario.failures.append(f"step {step} of {n_steps} was not reached")


def after_bytes(scenario: Scenario, sizes: list[int]) -> None:
    """In the middle of a file."""
    for size in sizes:
        if not scenario.try_death(AfterBytes(size)):
            scenario.failures.append(f"no file has more than {size} bytes")


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200, help="random moments, of each scenario")
    parser.add_argument("--steps", type=int, default=50, help="operations on files, of each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--scenario", choices=["fit", "resume", "part", "join", "save"], action="append"
    )
    options = parser.parse_args(arguments)
    result = {}
    with tempfile.TemporaryDirectory(prefix="sublearn-kills-") as room:
        for scenario in make_scenarios(Path(room)):
            if options.scenario and scenario.name not in options.scenario:
                continue
            if options.kills:
                at_random_moments(scenario, options.kills, np.random.default_rng(options.seed))
            if options.steps:
                at_steps(scenario, options.steps, Path(room))
            after_bytes(scenario, [0, 1000, 4096])
            result[scenario.name] = {**scenario.counts, "failures": scenario.failures}
            print(scenario.name, result[scenario.name], file=sys.stderr, flush=True)
    print(json.dumps(result, indent=1))
    return int(any(each["failures"] for each in result.values()))


if __name__ == "__main__":
    sys.exit(main())
