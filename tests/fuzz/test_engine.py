"""The campaign sees what it looks for: every way in which a case can end is counted as such."""

import ctypes
import os
import time

import engine
import pytest
from engine import Campaign, Failure, Target
from mutate import CANARY, mutate_bytes, mutate_json, mutate_text

from sublearn.errors import ParameterError

DAMAGE = {
    "ok": lambda: None,
    "refused": lambda: _raise(ParameterError("Class.C must be positive, got -1")),
    "foreign": lambda: _raise(IndexError("list index out of range")),
    "crash": lambda: ctypes.string_at(0),
    "hang": lambda: time.sleep(60),
    "oom": lambda: bytearray(64 * 2**30),
}


def _raise(error):
    raise error


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    """Failing cases are kept in a folder of the test."""
    monkeypatch.setattr(engine, "FOUND", tmp_path / "found")
    monkeypatch.setattr(engine, "SECONDS", 0.5)


def campaign(use, cases=10, kind="files"):
    target = Target("t", kind, lambda rng: rng.randbytes(4), use, cases)
    return Campaign([target], seed=1)


@pytest.mark.parametrize("outcome", DAMAGE)
def test_an_outcome_is_counted_as_what_it_is(outcome, capfd):
    run = campaign(lambda case, folder: DAMAGE[outcome](), cases=2)
    run.run(jobs=1, seconds=None)
    expected = dict.fromkeys(engine.OUTCOMES, 0) | {outcome: 2}
    assert run.tallies["t"].counts == expected
    assert run.failed == (2 if outcome in engine.FAILURES else 0)


def test_the_campaign_goes_on_behind_a_case_that_kills_its_worker(tmp_path):
    victims = [engine.case_random(1, campaign(None).targets["t"], i).randbytes(4) for i in (3, 7)]

    def use(case, folder):
        if case in victims:
            os.kill(os.getpid(), 11)

    run = campaign(use)
    run.run(jobs=2, seconds=None)
    assert run.tallies["t"].counts["ok"] == 8
    assert run.tallies["t"].failures == {"crash: SIGSEGV": [3, 7]}
    kept = sorted((tmp_path / "found").glob("*.bin"))
    assert sorted(path.read_bytes() for path in kept) == sorted(victims)


def test_a_death_that_an_earlier_case_caused_is_told_apart(tmp_path):
    def use(case, folder):
        trace = folder / "first"
        if trace.exists():
            os.kill(os.getpid(), 11)
        trace.touch()

    run = campaign(use, cases=2)
    run.run(jobs=1, seconds=None)
    (what,) = run.tallies["t"].failures
    assert what.startswith("crash: SIGSEGV, not alone")


def test_an_exception_of_numpy_about_a_file_is_foreign():
    def use(case, folder):
        import numpy as np

        np.zeros(3) + np.zeros(4)

    assert engine.attempt(campaign(use).targets["t"], b"", None)[0] == "foreign"
    arrays = campaign(use, kind="arrays").targets["t"]
    assert engine.attempt(arrays, b"", None)[0] == "refused"


def test_a_failure_is_foreign():
    def use(case, folder):
        raise Failure("a certificate of NaN")

    assert engine.attempt(campaign(use).targets["t"], b"", None)[0] == "foreign"


def test_a_campaign_goes_on_from_its_summary():
    first = campaign(lambda case, folder: None)
    first.run(jobs=1, seconds=None, share=0.4)
    assert first.tallies["t"].next_case == 4
    again = Campaign.from_json(list(first.targets.values()), first.to_json())
    again.run(jobs=1, seconds=None)
    assert again.tallies["t"].counts["ok"] == 10


def test_cases_are_made_from_their_number_alone():
    target = campaign(None).targets["t"]
    seeds = [b"1 2:3\n4 5:6\n", b"x"]
    for i in range(200):
        rngs = [engine.case_random(1, target, i) for _ in range(2)]
        assert len({mutate_text(rng, seeds) for rng in rngs}) == 1
        assert len({mutate_bytes(rng, seeds[0], seeds) for rng in rngs}) == 1
        values = [repr(mutate_json(rng, {"a": [1, {"b": "c"}]})) for rng in rngs]
        assert len(set(values)) == 1
    assert CANARY not in os.environ
