"""The frame around the commands: help, version, exit codes, one sentence for a mistake."""

import subprocess
import sys
from pathlib import Path

import pytest

import sublearn as package

COMMANDS = ("convert", "evaluate", "fit", "inspect", "map", "predict", "quickstart")


def test_help_lists_every_command(sublearn):
    done = sublearn("--help")
    assert done.code == 0
    assert all(f" {name} " in done.out for name in COMMANDS), done


def test_without_arguments_the_help_is_shown(sublearn):
    assert sublearn().out == sublearn("--help").out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(sublearn, name):
    done = sublearn(name, "--help")
    assert done.code == 0
    assert f"Example: sublearn {name}" in done.out


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from sublearn.cli.app import run; run(['fit', '--help']); "
        "sys.exit(any(name in sys.modules for name in ('numpy', 'scipy', 'sklearn')))"
    )
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL).returncode == 0


@pytest.mark.parametrize("argument", ["--version", "--debug --version"])
def test_version(sublearn, argument):
    done = sublearn(*argument.split())
    assert (done.code, done.out) == (0, f"sublearn {package.__version__}\n")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--version"], 0), (["inspect", __file__], 1), (["fit", "nowhere.txt"], 2)],
)
def test_the_process_exits_with_the_code_of_the_command(process, arguments, code):
    done = process(*arguments)
    assert done.code == code
    assert "Traceback" not in done.err


def test_the_installed_script_is_the_same_program(process):
    script = Path(sys.executable).with_name("sublearn")
    if not script.exists():
        pytest.skip(f"no script {script}: the package is not installed here")
    done = subprocess.run([script, "--version"], capture_output=True, text=True)
    assert done.stdout == process("--version").out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nonsense"], "nonsense"),
        (["fit"], "DATA"),
        (["fit", "--nonsense"], "nonsense"),
        (["fit", "nowhere.txt", "--model", "m"], "nowhere.txt"),
    ],
)
def test_a_wrong_call_exits_2_with_one_sentence(sublearn, arguments, sentence):
    done = sublearn(*arguments)
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert sentence in done.err
    assert done.out == ""


def test_a_bad_parameter_exits_2_and_names_it(sublearn, files, tmp_path):
    done = sublearn("fit", files["txt"], "--model", tmp_path / "m", "--l1", "-1")
    assert done.code == 2
    assert "PPDSparseClassifier.l1 must be" in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_failing_run_exits_1_with_file_and_line(sublearn, tmp_path):
    bad = tmp_path / "bad.txt"
    bad.write_text("2 3 2\n0 0:1.0\n1 7:1.0\n")
    done = sublearn("fit", "ppd-sparse", bad, "--model", tmp_path / "m")
    assert done.code == 1
    assert done.err.startswith(f"error: {bad}, line 3: ")
    assert done.err.count("\n") == 1
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("place", ["before", "after"])
def test_debug_shows_the_traceback(sublearn, tmp_path, place):
    bad = tmp_path / "bad.txt"
    bad.write_text("2 3 2\n0 0:1.0\n1 7:1.0\n")
    call = ["inspect", bad]
    done = sublearn(*(["--debug", *call] if place == "before" else [*call, "--debug"]))
    assert done.code == 1
    assert "Traceback" in done.err


def test_infinity_is_null_in_json(capsys):
    from sublearn.cli.console import print_json

    print_json({"certificate": float("inf"), "spread": [float("nan"), 1.5]})
    assert capsys.readouterr().out == '{"certificate": null, "spread": [null, 1.5]}\n'


@pytest.fixture
def add_command(monkeypatch, tmp_path):
    """Adds a command as a developer does: by putting a file among the others."""
    from sublearn.cli import commands

    monkeypatch.setattr(commands, "__path__", [*commands.__path__, str(tmp_path)])

    def add(name, body):
        (tmp_path / f"{name}.py").write_text(f'def command():\n    """Be there."""\n    {body}\n')
        monkeypatch.delitem(sys.modules, f"{commands.__name__}.{name}", raising=False)

    return add


def test_a_new_file_is_a_new_command(sublearn, add_command):
    add_command("say_hello", "print('hello')")
    assert sublearn("say-hello").out == "hello\n"
    assert "Be there." in sublearn("--help").out


def test_an_unexpected_error_is_said_to_be_one(sublearn, add_command):
    add_command("break_down", "1 / 0")
    done = sublearn("break-down")
    assert done.code == 1
    assert "unexpected ZeroDivisionError: division by zero" in done.err
    assert done.err.count("\n") == 1


def test_an_interrupted_command_exits_130(sublearn, add_command):
    add_command("stop_here", "raise KeyboardInterrupt")
    done = sublearn("stop-here")
    assert (done.code, done.err.strip()) == (130, "error: interrupted")


def test_a_disk_that_refuses_is_named(sublearn, add_command):
    add_command("open_nothing", "open('/nowhere/file')")
    done = sublearn("open-nothing")
    assert (done.code, done.err) == (1, "error: /nowhere/file: No such file or directory\n")
