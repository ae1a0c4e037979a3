"""The tool that measures compiling, on compilers that are scripts."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("times", ROOT / "tools/compile_times.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_command_is_run_and_its_seconds_are_kept(tool, tmp_path, monkeypatch):
    monkeypatch.setenv(tool.LOG, str(tmp_path / "log"))
    made = tmp_path / "a.o"
    work = f"open({str(made)!r}, 'w').close(); sum(range(10**6)); raise SystemExit(3)"
    assert tool.measured([sys.executable, "-c", work]) == 3
    name, seconds, megabytes = json.loads((tmp_path / "log").read_text())
    assert made.exists()
    assert seconds > 0
    assert megabytes > 0
    assert isinstance(name, str)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["g++", "-c", str(ROOT / "cpp/src/dense.cpp"), "-o", "dense.o"], "cpp/src/dense.cpp"),
        (["g++", "-c", "/usr/lib/nanobind/nb_func.cpp"], "nanobind/nb_func.cpp"),
        (["g++", "-shared", "-o", "build/_core.so", "a.o"], "link _core.so"),
    ],
)
def test_a_unit_is_named_by_its_source_or_by_what_is_linked(tool, command, name):
    assert tool.unit_of(command) == name


def test_figures_of_before_stand_beside_those_of_now(tool):
    lines = tool.table({"a.cpp": [2.0, 100]}, {"a.cpp": [4.0, 100], "gone.cpp": [1.0, 50]})
    assert [line.split() for line in lines[1:]] == [
        ["4.0", "2.0", "100", "a.cpp"],
        ["1.0", "0.0", "0", "gone.cpp"],
        ["5.0", "2.0", "100", "all"],
    ]
