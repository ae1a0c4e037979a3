"""Parts of a fitted model that a file holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, TypeVar

from sublearn.io.fields import Fields, check_fields
from sublearn.typing import State

__all__ = ["StoredPart"]

_Part = TypeVar("_Part", bound="StoredPart")


class StoredPart:
    """Base of frozen dataclasses; `FIELDS` says what their fields must be when they come back."""

    FIELDS: ClassVar[Fields]

    def state(self) -> State:
        """What a saved model keeps."""
        return dict(vars(self))

    @classmethod
    def restored(cls: type[_Part], state: State, sizes: Mapping[str, int]) -> _Part:
        """Inverse of `state`, where `sizes` are known."""
        check_fields(state, cls.FIELDS, sizes)
        return cls(**state)
