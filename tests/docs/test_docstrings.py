"""The examples in the docstrings of the package give what they show."""

import doctest
import importlib
import pkgutil

import pytest

import sublearn

NOT_READ = {
    "sublearn._core",
    "sublearn.__main__",
    "sublearn.plugins.annif",
    "sublearn.plugins.sktime",
}  # they need Annif and sktime
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(sublearn.__path__, "sublearn.", onerror=lambda _: None)
    if module.name not in NOT_READ
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name):
    if name.startswith(("sublearn.trim", "sublearn.embed.torch_layer")):
        pytest.importorskip("torch", reason=f"{name} needs PyTorch")
    if name.startswith("sublearn.distributed"):
        pytest.importorskip("distributed", reason="sublearn.distributed needs Dask")
    if name.startswith("sublearn.serve"):
        pytest.importorskip("uvicorn", reason="sublearn.serve needs FastAPI and uvicorn")
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_examples_are_found():
    module = importlib.import_module("sublearn.extreme.ppd_sparse")
    assert doctest.testmod(module).attempted > 0
