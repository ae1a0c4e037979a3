"""A saved model and a data file: what the commands that ask a model share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sublearn.kinds.base import Asked, Form, Kind, Wish
from sublearn.typing import JsonObject

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["Opened", "open_model"]


@dataclass(frozen=True)
class Opened:
    """A loaded model with its kind."""

    path: Path
    model: BaseEstimator
    kind: Kind

    def check(self, form: Form, wish: Wish | None = None) -> None:
        """Refuse options that mean nothing for this model."""
        if wish is not None:
            self.kind.check_wish(self.model, wish)
        self.kind.check_form(self.model, form)

    def read(self, data: Path, form: Form, *, needs_truth: bool) -> Asked:
        """Items of a data file; a warning counts those that are empty."""
        from sublearn.cli.console import say_warning

        asked = self.kind.read(self.model, data, form, needs_truth=needs_truth)
        n_empty, what = int(asked.is_empty.sum()), self.kind.empty_means
        if n_empty:
            say_warning(f"{data.name}: {n_empty:,} of {len(asked):,} {what}")
        return asked

    def answers(self, asked: Asked, wish: Wish) -> Iterator[JsonObject]:
        """What the model says; a warning counts items of which it knows nothing."""
        from sublearn.cli.console import say_warning

        n_mute = -int(asked.is_empty.sum())
        for answer in self.kind.predict(self.model, asked, wish):
            n_mute += bool(answer.get("empty"))
            yield answer
        if n_mute > 0:
            say_warning(
                f"{n_mute:,} of {len(asked):,} rows have nothing that the model knows, and so "
                "their answers are empty"
            )


def open_model(path: Path) -> Opened:
    """Load a model and find its kind."""
    import sublearn
    from sublearn.kinds import kind_of

    model = sublearn.load(path)
    return Opened(path, model, kind_of(model))
