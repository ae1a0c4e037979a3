"""The example that kills a worker ends in a picture."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "many_machines.py"


@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise on Windows")
def test_the_example_draws_who_did_what(tmp_path):
    command = [sys.executable, EXAMPLE, tmp_path / "parts.png", "--small"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "the same model to the last bit: yes" in done.stdout
    assert (tmp_path / "parts.png").read_bytes().startswith(b"\x89PNG")
