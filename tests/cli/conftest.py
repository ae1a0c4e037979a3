"""Tiny data files and a way to run the real command line."""

import contextlib
import io
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest

from sublearn.cli import app
from sublearn.io import save_npz, save_svmlight, save_xmc

sys.path.insert(0, str(Path(__file__).parent))  # importlib mode hides the modules beside tests

from tiny_data import N_FEATURES, N_LABELS, as_arff, command_line, environment, make_data


@dataclass
class Outcome:
    """Exit code and both streams of a finished command."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def sublearn():
    """Runs a command line in this process: a new one spends a second on imports."""

    def run(*arguments):
        out, err = io.StringIO(), io.StringIO()
        with (
            pytest.MonkeyPatch.context() as patch,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            warnings.catch_warnings(),
        ):
            for name, value in environment().items():
                patch.setenv(name, value)
            code = app.run([str(argument) for argument in arguments])
        return Outcome(code, out.getvalue(), err.getvalue())

    return run


@pytest.fixture(scope="session")
def process():
    """Runs `python -m sublearn` in a process of its own."""

    def run(*arguments):
        done = subprocess.run(
            command_line(*arguments),
            capture_output=True,
            text=True,
            encoding="utf-8",
            env=environment(),
            timeout=120,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """The same small data in every format, by ending."""
    folder = tmp_path_factory.mktemp("data")
    X, Y = make_data()
    paths = {ending: folder / f"train.{ending}" for ending in ("txt", "svm", "npz", "arff")}
    save_xmc(paths["txt"], X, Y)
    save_svmlight(paths["svm"], X, Y)
    save_npz(
        paths["npz"],
        X,
        Y,
        feature_names=[f"word{j}" for j in range(N_FEATURES)],
        label_names=[f"topic {k}" for k in range(N_LABELS)],
    )
    paths["arff"].write_text(as_arff(X.toarray(), Y.toarray()))
    return paths


@pytest.fixture(scope="session")
def model(sublearn, files, tmp_path_factory):
    """A model fitted to the .txt file."""
    path = tmp_path_factory.mktemp("model") / "tiny.model"
    done = sublearn("fit", files["txt"], "--model", path, "--quiet")
    assert done.code == 0, done
    return path
