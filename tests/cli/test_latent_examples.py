"""The example of latent features draws its pictures."""

import os
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "latent_pictures.py"


def run(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-W", "error", EXAMPLE, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"SUBLEARN_DATA": str(folder)},
    )


def test_blocks_are_found_and_drawn(tmp_path):
    done = run(tmp_path, "blocks", tmp_path / "blocks.png")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "blocks.png").read_bytes().startswith(b"\x89PNG")
    assert "1000 pictures, 4 features" in done.stdout


def test_objects_on_a_table_are_drawn(shared_data, tmp_path):
    done = run(shared_data, "tabletop", tmp_path / "table.png")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "table.png").read_bytes().startswith(b"\x89PNG")


def test_says_that_its_data_is_missing(tmp_path):
    done = run(tmp_path, "faces", tmp_path / "faces.png")
    assert (done.returncode, done.stderr) == (0, "")
    assert "set SUBLEARN_DATA" in done.stdout
