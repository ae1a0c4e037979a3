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


#: What a module's name begins with, and the package that it needs.
NEEDS = {
    "sublearn.trim": "torch",
    "sublearn.embed.torch_layer": "torch",
    "sublearn.distributed": "distributed",
    "sublearn.serve": "uvicorn",
    "sublearn.distributed.on_ray": "ray",
    "sublearn.plugins.hub": "huggingface_hub",
    "sublearn.plugins.mlflow": "mlflow",
    "sublearn.plugins.onnx": "onnx",
}


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name):
    for head, package in NEEDS.items():
        if name.startswith(head):
            pytest.importorskip(package, reason=f"{head} needs {package}")
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_examples_are_found():
    module = importlib.import_module("sublearn.extreme.ppd_sparse")
    assert doctest.testmod(module).attempted > 0
