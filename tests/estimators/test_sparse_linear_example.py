"""The example on coefficient paths draws its picture."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "coefficient_paths.py"


def test_the_example_on_coefficient_paths_draws_its_picture(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", SCRIPT, tmp_path / "paths.png", "--small"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "paths.png").read_bytes().startswith(b"\x89PNG")
    assert "within a standard error" in done.stdout
