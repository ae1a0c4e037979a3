"""The example on features in groups draws its picture."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "grouped_features.py"
DATA = Path(os.environ.get("SUBLEARN_DATA", "data"))


@pytest.mark.skipif(not (DATA / "a9a" / "a9a.xz").exists(), reason="needs a9a in SUBLEARN_DATA")
def test_the_example_on_groups_draws_its_picture(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", SCRIPT, tmp_path / "groups.png", "--small"],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "groups.png").read_bytes().startswith(b"\x89PNG")


def test_the_example_on_groups_says_what_it_needs(tmp_path):
    done = subprocess.run(
        [sys.executable, SCRIPT], capture_output=True, text=True, timeout=300,
        env=os.environ | {"SUBLEARN_DATA": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0
    assert "SUBLEARN_DATA names the folder" in done.stdout
