"""Every class that a file may name says which question its models answer."""

import importlib

import pytest

from sublearn.io.models import MODELS
from sublearn.kinds import KINDS


@pytest.mark.parametrize("name", MODELS)
def test_a_saved_class_names_its_kind(name):
    assert getattr(importlib.import_module(MODELS[name]), name)._kind in KINDS


def test_every_kind_has_a_class():
    found = {getattr(importlib.import_module(room), name)._kind for name, room in MODELS.items()}
    assert found == set(KINDS)
