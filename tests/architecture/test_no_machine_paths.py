"""No file of the repository names a place that exists on one machine only."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

MACHINE_PATH = re.compile(
    r"""(?<![\w.~-])(
        /(?:home|Users)/\w+     # somebody's home
      | /(?:root|work)/         # a container's
      | [A-Za-z]:[\\/]+Users\b  # somebody's home on Windows
    )""",
    re.VERBOSE,
)


def _files() -> list[Path]:
    """Tracked files and new ones that are not ignored."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    return [ROOT / name for name in names.split("\0") if name and (ROOT / name).is_file()]


def machine_paths(path: Path, root: Path) -> list[str]:
    """`file:line path` for each machine path; nothing for a file that is not text."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return []
    name = path.relative_to(root).as_posix()
    found = [(i, match) for i, line in enumerate(lines, 1) for match in MACHINE_PATH.finditer(line)]
    return [f"{name}:{i} {match[1]}" for i, match in found]


def test_no_file_names_a_path_of_one_machine():
    files = _files()
    assert ROOT / "pyproject.toml" in files
    found = [sentence for path in files for sentence in machine_paths(path, ROOT)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "parts",
    [("/home", "/me/data"), ("/ro", "ot/.cache"), ("=/wo", "rk/x"), ("C:", "\\Users\\me")],
)
def test_catches_a_planted_path(tmp_path, parts):
    file = tmp_path / "notes.md"
    file.write_text(f"first line\nsee {''.join(parts)}\n", encoding="utf-8")
    (sentence,) = machine_paths(file, tmp_path)
    assert sentence.startswith("notes.md:2 ")


@pytest.mark.parametrize("text", ["https://example.org/home/x", "~/work/", "framework/x", "/usr/"])
def test_lets_other_paths_pass(tmp_path, text):
    file = tmp_path / "notes.md"
    file.write_text(text, encoding="utf-8")
    assert machine_paths(file, tmp_path) == []
