"""The end of every fit: a solution that is kept, warned of and written to files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from sublearn.fitting.html import FitOnDisplay
from sublearn.fitting.progress import Progress
from sublearn.io.fields import FEATURES, FIGURES, Fields
from sublearn.io.models import SavedModel
from sublearn.trace import Callback, Solution, Trace, watch
from sublearn.typing import State

__all__ = ["FittedModel"]

_FORMER_COLUMNS = {"n_free": "n_active", "n_working": "n_active"}  # of traces in earlier files
_Result = TypeVar("_Result")


class FittedModel(FitOnDisplay, SavedModel):
    """Runs a job under the eyes of the user, and keeps the `Solution` it came to.

    A subclass has the parameters `callback` and `verbose`, and `tol` if it warns. `_STORED` lists
    the attributes that a file holds as they are, beside figures and features; what a model lacks is
    left out.
    """

    callback: Callback | None
    verbose: int
    tol: Any

    objective_: float
    certificate_: float
    n_iter_: int
    n_features_in_: int
    trace_: Trace

    _STORED: ClassVar[tuple[str, ...]] = ()

    def _watch(
        self,
        job: Callable[[], _Result],
        progress: Progress,
        *,
        title: str = "",
        may_be_left: bool = False,
    ) -> _Result:
        return watch(
            job,
            progress,
            n_total=progress.n_total,
            callback=self.callback,
            verbose=self.verbose,
            title=title or type(self).__name__,
            may_be_left=may_be_left,
        )

    def _keep_solution(self, solution: Solution, *, warns: bool = True) -> None:
        """Set what every fit leaves beside its model."""
        if warns:
            solution.warn_unless_converged(self, float(self.tol))
        self.objective_ = solution.objective
        self.certificate_ = solution.certificate
        self.n_iter_ = solution.n_iter
        self.trace_ = solution.trace

    def _to_bundle(self) -> State:
        names = [*self._STORED, *FEATURES, *FIGURES]
        state = {name: getattr(self, name) for name in names if hasattr(self, name)}
        return state | {"trace_": self.trace_.to_lists()}

    def _fields(self) -> Fields:
        return {**FEATURES, **FIGURES}

    def _restore(self, state: State) -> None:
        columns = state.pop("trace_", {})
        self.trace_ = Trace({_FORMER_COLUMNS.get(name, name): columns[name] for name in columns})
        super()._restore(state)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "trace_")
