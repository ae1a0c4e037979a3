"""tasks.py explains itself: to an old Python, without a compiler, without a network."""

import ast
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tasks():
    spec = importlib.util.spec_from_file_location("sublearn_tasks", ROOT / "tasks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_parses_under_an_old_python_so_that_it_can_say_what_it_needs():
    ast.parse((ROOT / "tasks.py").read_text(encoding="utf-8"), feature_version=(3, 7))


def test_uses_the_standard_library_only():
    tree = ast.parse((ROOT / "tasks.py").read_text(encoding="utf-8"))
    names = {a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
    names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert "subprocess" in names
    assert {name.split(".")[0] for name in names} <= set(sys.stdlib_module_names)


@pytest.mark.parametrize(
    ("os_release", "family", "command"),
    [
        ('ID=debian\nVERSION_ID="12"\n', "debian", "apt install g++"),
        ("ID=ubuntu\nID_LIKE=debian\n", "debian", "apt install g++"),
        ('ID=linuxmint\nID_LIKE="ubuntu debian"\n', "debian", "apt install g++"),
        ("ID=fedora\n", "fedora", "dnf install gcc-c++"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "fedora", "dnf install gcc-c++"),
        ("ID=arch\n", "arch", "pacman"),
        ('ID="opensuse-leap"\nID_LIKE="suse opensuse"\n', "suse", "zypper"),
        ("ID=somethingelse\n", "other", "g++ 12"),
        ("", "other", "g++ 12"),
    ],
)
def test_knows_what_to_install_for_a_compiler(tasks, os_release, family, command):
    assert tasks.linux_family(os_release) == family
    assert command in tasks.how_to_install("compiler", family)


@pytest.mark.parametrize("need", ["compiler", "headers", "venv"])
@pytest.mark.parametrize("system", ["debian", "fedora", "macos", "windows", "other"])
def test_has_an_answer_for_every_need_on_every_system(tasks, need, system):
    answer = tasks.how_to_install(need, system)
    assert answer
    assert "{" not in answer


@pytest.mark.skipif(sys.platform == "win32", reason="compilers are found in another way there")
def test_says_in_one_sentence_that_a_compiler_is_missing(tasks, monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", str(tmp_path / "no-such-compiler"))
    with pytest.raises(
        tasks.TaskError, match=r"^sublearn needs a C\+\+20 compiler .*: please .*\.$"
    ):
        tasks.require_compiler()


@pytest.mark.skipif(sys.platform == "win32", reason="compilers are found in another way there")
def test_says_that_a_compiler_does_not_know_the_language(tasks, monkeypatch):
    monkeypatch.setenv("CXX", "false")
    with pytest.raises(tasks.TaskError, match=r"`false` does not compile C\+\+20: please "):
        tasks.require_compiler()


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ brings the sanitizers' libraries")
def test_finds_a_library_of_a_compiler_or_names_it(tasks):
    found = tasks.compiler_library(shutil.which("g++"), "libstdc++.so.6")
    assert Path(found).exists()
    with pytest.raises(tasks.TaskError, match=r"^this system lacks libnone.so of .*g\+\+\.$"):
        tasks.compiler_library(shutil.which("g++"), "libnone.so")


def test_tells_a_missing_network_from_another_failure_of_pip(tasks):
    offline = "WARNING: Retrying ... NewConnectionError('... Name or service not known')"
    assert "connect to the network" in tasks.pip_problem(offline)
    assert "lines above" in tasks.pip_problem("error: subprocess-exited-with-error")


def test_the_build_requirements_are_those_of_pyproject(tasks):
    requirements = tasks.build_requirements()
    assert any(r.startswith("nanobind") for r in requirements)
    assert any(r.startswith("scikit-build-core") for r in requirements)


def test_what_is_installed_beforehand_is_what_the_package_asks_for(tasks):
    tomllib = pytest.importorskip("tomllib")  # from Python 3.11
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert tasks.requirements([]) == project["dependencies"]
    for name in extras:
        assert tasks.requirements([name]) == project["dependencies"] + extras[name]


def test_refuses_an_extra_that_pyproject_does_not_have(tasks):
    with pytest.raises(tasks.TaskError, match=r"pyproject\.toml has no list tets"):
        tasks.requirements(["tets"])


def test_a_task_beside_another_is_shown_when_it_has_ended(tasks, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tasks, "log_of", lambda name: tmp_path / f"{name}.log")
    code = tasks.finish_beside("tset", tasks.start_beside("tset"))
    assert code == 2
    assert "no task 'tset'" in capsys.readouterr().out


def test_a_failed_step_does_not_stop_the_next_and_decides_the_exit_code(tasks, capsys):
    seen = []
    steps = {"first": lambda: seen.append(1) or 3, "second": lambda: seen.append(2) or 0}
    assert tasks.run_all(steps) == 1
    assert seen == [1, 2]
    said = capsys.readouterr().out
    assert "first 0.0 min (0.0 CPU) FAILED, second 0.0 min (0.0 CPU), all 0.0 min" in said


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--help"], 0, "python3 tasks.py quickstart"),
        ([], 2, "python3 tasks.py test"),
        (["tset"], 2, "no task 'tset'; the tasks are quickstart, test,"),
        (["docs", "--open"], 1, "`docs` does not take --open."),
        (["ci", "--fast"], 1, "`ci` does not take --fast."),
        (["test", "--sanitize=leak"], 1, "--sanitize must be one of address, thread, got leak."),
    ],
)
def test_answers_with_the_right_exit_code(arguments, code, words):
    command = [sys.executable, str(ROOT / "tasks.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == code
    assert words in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("programs", "user", "is_tried"),
    [
        ({"apt-get"}, 0, True),
        ({"apt-get", "chromium"}, 0, False),
        ({"apt-get"}, 1000, False),
        (set(), 0, False),
    ],
)
def test_a_browser_is_installed_where_that_is_possible(
    tasks, monkeypatch, programs, user, is_tried
):
    tried = []
    monkeypatch.setattr(tasks.shutil, "which", lambda name: name if name in programs else None)
    monkeypatch.setattr(tasks.os, "geteuid", lambda: user, raising=False)
    monkeypatch.setattr(tasks, "system_name", lambda: "debian")
    monkeypatch.setattr(tasks, "succeeds", lambda command: bool(tried.append(command)))
    tasks.install_browser()  # apt-get fails, and ci goes on
    assert bool(tried) == is_tried
