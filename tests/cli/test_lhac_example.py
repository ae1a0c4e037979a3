"""The example on LHAC's strategies draws its picture, with data of its own making."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "lhac_strategies.py"


def test_the_strategies_are_drawn_without_any_data(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", SCRIPT, tmp_path / "sets.png", "--small"],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"SUBLEARN_DATA": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "sets.png").read_bytes().startswith(b"\x89PNG")
    assert "made-up data" in done.stdout
