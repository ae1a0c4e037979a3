"""A small part of the campaign, and every kept case of earlier ones, in forks of this process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the server is attacked too")
ROOT = Path(__file__).resolve().parents[2]
KEPT = sorted((ROOT / "tests" / "fuzz" / "corpus" / "kept").glob("*.json"))


def attack(*words, **options):
    """A process of its own: a worker is a fork, and must not inherit threads of other tests."""
    command = [sys.executable, str(ROOT / "tools" / "attack.py"), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | options)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    "parts",
    [("model-", "read-", "journal"), ("fit-", "predict-", "call-"), ("serve-TextTagger",)],
    ids=["files", "arrays", "requests"],
)
def test_a_small_part_of_the_campaign_holds(parts, tmp_path):
    chosen = [word for part in parts for word in ("--only", part)]
    code, output = attack(
        *chosen, "--jobs", 1, "--seconds", 4 + 4 * len(parts), "--state", tmp_path / "a.json"
    )
    assert code == 0, output


@pytest.mark.skipif(not KEPT, reason="no case was kept yet")
def test_no_kept_case_fails_again():
    code, output = attack("--replay", *KEPT)
    assert code == 0, output
