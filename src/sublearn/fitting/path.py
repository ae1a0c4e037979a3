"""What every `fit_path` returns: a step for each l1, in one form."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar, overload

import numpy as np

__all__ = ["FittedPath", "ModelPath"]

_Step = TypeVar("_Step")


class FittedPath(Sequence[_Step], Generic[_Step]):
    """Steps along values of l1: a sequence of them, with `l1s` and `certificates` beside it."""

    l1s: np.ndarray
    certificates: np.ndarray

    @abc.abstractmethod
    def _step(self, position: int) -> _Step:
        """What was found for one l1."""

    def __len__(self) -> int:
        return len(self.l1s)

    def __iter__(self) -> Iterator[_Step]:
        return (self._step(k) for k in range(len(self)))

    @overload
    def __getitem__(self, position: int) -> _Step: ...
    @overload
    def __getitem__(self, position: slice) -> list[_Step]: ...
    def __getitem__(self, position: int | slice) -> _Step | list[_Step]:
        places = range(len(self))[position]
        return self._step(places) if isinstance(places, int) else [self._step(k) for k in places]

    def best(self, score: Callable[[_Step], float]) -> _Step:
        """The step with the largest score, the first of them if several have it.

        Parameters
        ----------
        score : callable
            Gets a step and returns a number: for models ``lambda model: model.score(X, y)`` on
            rows that were held out.
        """
        return max(self, key=score)


class ModelPath(FittedPath[_Step]):
    """Fitted models, one for each l1.

    Parameters
    ----------
    l1s : sequence of float
        The values.
    models : list
        What was fitted for each.
    certificates : sequence of float
        Theirs.
    """

    def __init__(self, l1s: Sequence[float], models: list[_Step], certificates: Sequence[float]):
        self.l1s, self.models = np.array(l1s, dtype=np.float64), models
        self.certificates = np.array(certificates, dtype=np.float64)

    def _step(self, position: int) -> _Step:
        return self.models[position]
