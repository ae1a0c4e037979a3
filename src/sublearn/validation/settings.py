"""Parameters that belong together as one argument of an estimator or function.

>>> from sublearn.validation import Positive
>>> @dataclass(frozen=True)
... class Search(Settings):
...     n_probe: int = 4
...     _rules = {"n_probe": Positive(int)}
>>> Search(n_probe=0)
Traceback (most recent call last):
sublearn.errors.ParameterError: Search.n_probe must be a positive integer, got 0
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import ClassVar, TypeVar

from sublearn.validation.params import Rule, check_params

__all__ = ["Settings"]

_Settings = TypeVar("_Settings", bound="Settings")


@dataclass(frozen=True)
class Settings:
    """Base of frozen dataclasses whose fields obey `_rules`, checked when one is made."""

    _rules: ClassVar[Mapping[str, Rule]] = {}

    def __post_init__(self) -> None:
        check_params(self)

    @classmethod
    def of(cls: type[_Settings], given: _Settings | None) -> _Settings:
        """What was given; the defaults for None."""
        return cls() if given is None else given

    def to_dict(self) -> dict[str, object]:
        """The fields as JSON values, for a file."""
        return asdict(self)
