"""A fit in parts, by processes that have nothing in common but a folder.

Each process of a job array solves its share of the labels and writes it beside the model's file;
one more puts the model together. There is no scheduler, no server and no order: a part that died
is run again alone, and a part that is run twice counts once::

    model = PPDSparseClassifier(model_path="tags.model", random_state=0)
    with solve_part(3, 100):  # on one of a hundred machines
        model.fit(X, y)
    with join_parts():  # once, when all are done
        model.fit(X, y)

The model is that of a single process to the last bit.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

import numpy as np

from sublearn.errors import ParameterError
from sublearn.execution import asked_for, asking_for
from sublearn.validation.values import is_int64, show

__all__ = [
    "MOST_PARTS",
    "Join",
    "Part",
    "PartDone",
    "join_parts",
    "parse_part",
    "parts_of",
    "share_of_fit",
    "solve_part",
]

MOST_PARTS = 10**6
_NO_FIT = "a fit with a model_path must be inside of the with statement, got none"


@dataclass
class Part:
    """Which share of a fit a process solves, and what it came to.

    Parameters
    ----------
    number : int
        From 1 to `n_parts`.
    n_parts : int
        Of how many.

    Attributes
    ----------
    n_labels : int
        Labels of this part.
    n_solved : int
        Those that this process solved; the others were in the folder already.
    is_done : bool
        Whether all of them are in the folder now.
    """

    number: int
    n_parts: int
    n_labels: int = 0
    n_solved: int = 0
    is_done: bool = False
    refusal: str = ""  # why a fit could not be its fit; whoever called that fit may go on without

    def __post_init__(self) -> None:
        """Refuse what is no part."""
        for name in ("number", "n_parts"):
            value = getattr(self, name)
            if not is_int64(value) or value < 1:
                raise ParameterError(
                    f"solve_part.{name} must be an integer from 1 on, got {show(value)}"
                )
        if self.n_parts > MOST_PARTS:
            raise ParameterError(
                f"solve_part.n_parts must be at most {MOST_PARTS:,}, got {self.n_parts}"
            )
        if self.number > self.n_parts:
            raise ParameterError(
                f"solve_part.number must be at most n_parts = {self.n_parts}, got {self.number}"
            )

    def blocks(self, costs: np.ndarray) -> range:
        """Its blocks, of nearly the same total cost as those of any other part."""
        return range(*_cut(costs, self.n_parts)[self.number - 1 : self.number + 1])


class Join:
    """A fit that solves nothing: what other processes wrote is put together."""

    def __init__(self) -> None:
        self._remove: list[Callable[[], None]] = []

    def then(self, remove: Callable[[], None]) -> None:
        """Call `remove` at the end of the ``with`` statement, if it ends well."""
        self._remove.append(remove)

    def end(self) -> None:
        """Remove what was put together."""
        if not self._remove:
            raise ValueError(f"join_parts: {_NO_FIT}")
        for remove in self._remove:
            remove()


class PartDone(Exception):
    """A part of a fit is written; `solve_part` takes this for its end."""


def _cut(costs: np.ndarray, n_parts: int) -> list[int]:
    """Where each part begins, and the end of the last."""
    before = np.concatenate([[0.0], np.cumsum(costs)])
    goals = before[-1] * np.arange(1, n_parts) / n_parts
    inner = np.searchsorted(before, goals * (1 - 1e-12))
    return [0, *map(int, inner), len(costs)]


def parts_of(blocks: Sequence[int], costs: np.ndarray, n_parts: int) -> list[int]:
    """The numbers of the parts that some blocks belong to."""
    ends = _cut(costs, n_parts)[1:]
    return sorted({int(np.searchsorted(ends, block, side="right")) + 1 for block in blocks})


def share_of_fit() -> object:
    """Which share of its work the fit that asks is to do: a `Part`, a `Join`, or None for all.

    Folds of a cross-validation are other problems with the same `model_path`: their parts would
    never be joined, so they are refused.
    """
    asked = asked_for()
    if asked is not None and _is_fold():
        who = "solve_part" if isinstance(asked, Part) else "join_parts"
        words = (
            f"{who}: the fit inside of the with statement must be that of one model on all rows, "
            "got one of a cross-validation or search; run that outside of the statement, with "
            "model_path=None"
        )
        if isinstance(asked, Part):
            asked.refusal = words
        raise ValueError(words)
    return asked


def _is_fold() -> bool:
    """Whether scikit-learn's searches or cross-validations are among the callers."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith("sklearn.model_selection"):
            return True
        frame = frame.f_back
    return False


@contextmanager
def solve_part(number: int, n_parts: int) -> Iterator[Part]:
    """Let the fit inside a ``with`` statement solve one part and write it, and end there.

    The estimator must have a `model_path` in a folder that all processes see and an integer
    `random_state`; it stays unfitted. Fits without `model_path` inside the statement are whole.

    Parameters
    ----------
    number : int
        Which part, from 1 to `n_parts`.
    n_parts : int
        Into how many parts the labels are cut, by their estimated cost.

    Yields
    ------
    Part
        Says afterwards how many labels were solved, and whether the part is complete.
    """
    part = Part(number, n_parts)
    with contextlib.suppress(PartDone), asking_for(part):
        try:
            yield part
        except Exception as error:
            if part.refusal and str(error) != part.refusal:
                raise ValueError(part.refusal) from error
            raise
        raise ValueError(part.refusal or f"solve_part: {_NO_FIT}")


@contextmanager
def join_parts() -> Iterator[None]:
    """Let the fit inside a ``with`` statement put together what the parts wrote, and solve nothing.

    Where parts are missing it is refused, with their numbers. A fit outside of the statement solves
    what is missing itself. The folder of the parts is removed at the end of the statement.
    """
    join = Join()
    with asking_for(join):
        yield
    join.end()


def parse_part(text: str) -> tuple[int, int] | None:
    """The two numbers of a text such as "3/100"; None if it is of another form."""
    number, slash, n_parts = text.partition("/")
    if not slash or not (number.isdecimal() and n_parts.isdecimal()):
        return None
    return int(number), int(n_parts)
