"""Where an extra is not installed, the error of an import says how to install it."""

import re
import subprocess
import sys

import numpy as np
import pytest

from sublearn.errors import needs_extra
from sublearn.graph import plot_map
from sublearn.hierarchy import Taxonomy
from sublearn.io import read_skos
from sublearn.trace import Trace

IMPORTS = {
    "sublearn.distributed": ("dask", "dask"),
    "sublearn.embed.torch_layer": ("torch", "torch"),
    "sublearn.plugins.hub": ("huggingface_hub", "hub"),
    "sublearn.plugins.mlflow": ("mlflow", "mlflow"),
    "sublearn.plugins.onnx": ("onnx", "onnx"),
    "sublearn.plugins.sktime": ("sktime", "sktime"),
    "sublearn.serve": ("fastapi", "serve"),
    "sublearn.trim": ("torch", "torch"),
}
WITHOUT = """
import importlib, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == sys.argv[1]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""
IMPORT = """
try:
    found = importlib.import_module(sys.argv[2])
    [getattr(found, name) for name in found.__all__]
except ImportError as error:
    print(error)
"""
SERVE = """
from sublearn.cli.app import run
sys.exit(run(["serve", sys.executable]))
"""


def run_without(package, code, *arguments):
    command = [sys.executable, "-c", WITHOUT + code, package, *arguments]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("module", IMPORTS)
def test_an_import_without_its_package_names_the_extra(module):
    package, extra = IMPORTS[module]
    run = run_without(package, IMPORT, module)
    assert (run.stderr, run.returncode) == ("", 0)
    assert run.stdout.strip() == f'{module} needs {package}: pip install "sublearn[{extra}]"'


@pytest.mark.parametrize(
    ("who", "package", "extra", "call"),
    [
        ("Taxonomy.plot", "matplotlib", "plot", lambda: Taxonomy([None, 0]).plot()),
        ("Trace.plot", "matplotlib", "plot", lambda: Trace({"objective": [1.0]}).plot()),
        ("plot_map", "matplotlib", "plot", lambda: plot_map((2, 2), np.zeros(4, int))),
        ("read_skos", "rdflib", "skos", lambda: read_skos("no.ttl")),
    ],
)
def test_a_call_without_its_package_names_the_extra(who, package, extra, call, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    said = re.escape(f'{who} needs {package}: pip install "sublearn[{extra}]"')
    with pytest.raises(ImportError, match=f"^{said}$"):
        call()


def test_the_command_line_says_it_as_any_other_error():
    run = run_without("fastapi", SERVE)
    assert 'sublearn.serve needs fastapi: pip install "sublearn[serve]"' in run.stderr
    assert "unexpected" not in run.stderr
    assert run.returncode == 1


def test_a_package_that_is_there_and_broken_speaks_for_itself():
    with pytest.raises(ImportError, match=r"^libthing\.so$"), needs_extra("someone", "torch"):
        raise ImportError("libthing.so")
