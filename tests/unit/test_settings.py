"""Parameters that belong together: checked when made, stored as JSON, read from older files."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

from sublearn.io.models import SavedModel, _storable
from sublearn.validation import OneOf, Positive, Settings, SettingsOf, check_params


@dataclass(frozen=True)
class Search(Settings):
    n_probe: int = 4
    kind: str = "lists"

    _rules: ClassVar = {"n_probe": Positive(int), "kind": OneOf("lists", "all")}


class Model(SavedModel):
    _rules: ClassVar = {"search": SettingsOf(Search), "solver": OneOf("interior_point", "descent")}
    _FORMER_PARAMS: ClassVar = {
        "n_probe": "search.n_probe",
        "search_kind": "search.kind",
        "method": "solver",
        "gone": None,
    }
    _FORMER_VALUES: ClassVar = {
        "solver": {"interior-point": "interior_point"},
        "search.kind": {"everything": "all"},
    }

    def __init__(self, search=None, solver="descent"):
        self.search, self.solver = search, solver


def test_refuses_a_field_when_the_settings_are_made():
    with pytest.raises(ValueError, match=r"^Search\.n_probe must be a positive integer, got 0$"):
        Search(n_probe=0)


def test_refuses_what_is_no_settings_object():
    with pytest.raises(
        ValueError, match=r"^Model\.search must be an instance of Search or None, got"
    ):
        check_params(Model(search={"n_probe": 3}))


def test_none_means_the_defaults():
    assert Search.of(None) == Search()
    assert Search.of(Search(7)) == Search(7)


def test_a_file_of_this_version_gives_the_settings_back():
    stored = {"search": _storable(Search(7)), "solver": "descent"}
    assert stored["search"] == {"n_probe": 7, "kind": "lists"}
    assert Model._current_params(stored) == {"search": Search(7), "solver": "descent"}


def test_a_file_of_an_earlier_version_is_translated():
    stored = {"n_probe": 9, "search_kind": "everything", "method": "interior-point", "gone": [1]}
    expected = {"search": Search(9, "all"), "solver": "interior_point"}
    assert Model._current_params(stored) == expected


@pytest.mark.parametrize("search", [{"n_probe": -1}, {"unknown": 1}])
def test_a_file_cannot_bring_settings_that_break_their_rules(search):
    with pytest.raises((ValueError, TypeError)):
        Model._current_params({"search": search})
