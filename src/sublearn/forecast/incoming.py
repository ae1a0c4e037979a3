"""What `predict` and `update` are given, made a history that a forecast can start from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sublearn.forecast.fitted import Fitted, History
from sublearn.forecast.series import (
    Clock,
    LoadSeries,
    LoadsLike,
    check_exogenous,
    check_series,
    column_names,
    exogenous_grid,
    refuse_other_times,
    warn_of_gaps,
)
from sublearn.validation import Interval, check_argument

__all__ = ["asked", "extended"]


def asked(
    fitted: Fitted, horizon: int | None, X: LoadsLike | None, y: LoadsLike | None
) -> tuple[History, int]:
    """The history to forecast from, with the exogenous columns ahead, and the number of steps."""
    ahead = fitted.horizon if horizon is None else horizon
    check_argument("horizon", ahead, Interval(int, 1, fitted.horizon))
    _refuse_other_columns(fitted, X, "X")
    if y is not None:
        return _other_history(fitted, y, X, ahead), ahead
    history = fitted.history
    if X is None or history.X is None:
        return history, ahead
    future = check_exogenous(X, ahead, fitted.n_columns, "X")
    warn_of_gaps(future, "X", "the values of a day or a week before stand in for them")
    refuse_other_times(X, history.clock, np.arange(history.end, history.end + ahead), "X")
    return replace(history, X=np.vstack([history.X, future])), ahead


def extended(fitted: Fitted, y_new: LoadsLike, X_new: LoadsLike | None) -> tuple[History, int]:
    """The history followed by new loads, and how many there are."""
    history = fitted.history
    if len(np.atleast_1d(np.asarray(y_new))) == 0:
        return history, 0
    series = check_series(y_new, history.clock.steps_per_day, "y_new", history.clock)
    _refuse_other_series(fitted, series, "y_new")
    skipped = 0
    if series.clock.has_dates and history.clock.has_dates:
        skipped = _position(history.clock, series, "y_new") - history.end
        if skipped < 0:
            raise ValueError(f"y_new must follow the known series, got {-skipped} known steps")
    _refuse_other_columns(fitted, X_new, "X_new")
    X = None
    if X_new is not None:
        X = exogenous_grid(X_new, series, "X_new", n_columns=fitted.n_columns)
    return history.followed_by(series.values, X, skipped), len(series.values)


def _other_history(fitted: Fitted, y: LoadsLike, X: LoadsLike | None, ahead: int) -> History:
    clock = fitted.history.clock
    series = check_series(y, clock.steps_per_day, "y", clock)
    _refuse_other_series(fitted, series, "y")
    if series.clock.has_dates != clock.has_dates:
        has, got = ("a DatetimeIndex", "none") if clock.has_dates else ("no times", "some")
        raise ValueError(f"y must have {has} as the fitted series, got {got}")
    grid = None
    if X is not None:
        grid = exogenous_grid(X, series, "X", ahead=ahead, n_columns=fitted.n_columns)
    # Without times, positions count from a Monday's midnight, as in fit.
    first = _position(clock, series, "y") if clock.has_dates else 0
    return History(series.values, grid, clock, first + len(series.values))


def _position(clock: Clock, series: LoadSeries, what: str) -> int:
    """Where a series begins on the clock of another."""
    if (series.clock.zone is None) != (clock.zone is None):
        has = "without a time zone" if clock.zone is None else f"with a time zone ({clock.zone})"
        raise ValueError(
            f"{what} must have times {has} as the fitted series, got {series.clock.zone}"
        )
    if (series.clock.start - clock.start) % clock.step:
        moment = clock.show(60 * series.clock.start)
        raise ValueError(f"{what} must be on the steps of the known series, got {moment}")
    return clock.position(series.clock.start)


def _refuse_other_series(fitted: Fitted, series: LoadSeries, what: str) -> None:
    n_series = series.values.shape[1]
    if n_series != fitted.n_series:
        raise ValueError(f"{what} must have {fitted.n_series} series as fitted, got {n_series}")


def _refuse_other_columns(fitted: Fitted, X: LoadsLike | None, what: str) -> None:
    n_columns = fitted.n_columns
    if (X is None) != (n_columns == 0):
        had, got = ("none", "one") if X is not None else (f"one of shape (n, {n_columns})", "none")
        raise ValueError(f"{what} must be as in fit, which had {had}, got {got}")
    known, given = fitted.X_names, column_names(X)
    if known is not None and given is not None and given != known:
        raise ValueError(
            f"{what} must have the columns of fit in their order, {', '.join(known)}, got "
            f"{', '.join(given)}"
        )
