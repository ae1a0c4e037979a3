"""Whether a gradient belongs to its function, as far as differences of values can tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from sublearn.errors import ParameterError
from sublearn.interruption import check

__all__ = ["refuse_wrong_gradient"]

_SEEDS = (0, 1)  # of the directions
_FIRST_SHARE = 1e-3  # of the value, by which the first step is predicted to change it
_SHRINK, _MOST_STEPS = 8.0, 12
_WRONG = 1e-2  # share of the derivative: what is nearer passes, single precision for instance
_STEADY = 0.05  # by which the errors of three steps in a row may differ
_SMOOTH = 0.02  # of the error, by which it may differ between the two sides: a kink differs by more
_ROUNDING = 1e-9  # of the values, below which a difference of two says nothing

_Pair = tuple[float, np.ndarray]


def refuse_wrong_gradient(
    function: Callable[[np.ndarray], _Pair], x: np.ndarray, bounds: tuple[float, float]
) -> None:
    """Raise if central differences at `x` show that the gradient is another function's.

    Two random directions are tried, which takes five calls if the gradient is right. A gradient is
    refused only if it is off in the same way at three steps, each an eighth of the one before, and
    on both sides of `x`. Rounding grows as the step shrinks, curvature fades, and a kink looks
    different from its two sides: none of them is refused. Nor is a point where this cannot be told.
    Coordinates at one of their bounds stay there; a function may not be defined beyond.
    """
    with np.errstate(all="ignore"):
        value, gradient = function(x.copy())
        if not np.isfinite(value):
            return  # is refused elsewhere
        inside = (x > bounds[0]) & (x < bounds[1])
        room = np.minimum(x - bounds[0], bounds[1] - x)[inside].min(initial=np.inf)
        for seed in _SEEDS:
            direction = np.random.default_rng(seed).choice([-1.0, 1.0], size=len(x)) * inside
            if not direction.any():
                return
            _refuse_along(function, x, value, gradient, direction, float(room))


def _refuse_along(
    function: Callable[[np.ndarray], _Pair], x: np.ndarray, value: float, gradient: np.ndarray,
    direction: np.ndarray, room: float,
) -> None:  # fmt: skip
    errors: list[float] = []  # of the last steps in a row that show anything
    largest = float(np.abs(gradient).max()) or 1.0  # squares of huge numbers are infinite
    scale = largest * float(np.linalg.norm(gradient * direction / largest))
    scale = max(scale, abs(float(gradient @ direction)))
    for step in _steps(x, value, scale, room):
        check()
        ahead, behind = x + step * direction, x - step * direction
        above, below = _value_at(function, ahead), _value_at(function, behind)
        actual, predicted = above - below, float(gradient @ (ahead - behind))
        error = (actual - predicted) / (2 * step)
        if abs(error) <= _WRONG * max(scale, abs(actual) / (2 * step)):
            return
        kink = (above - value - gradient @ (ahead - x)) - (value - below - gradient @ (x - behind))
        noise = _ROUNDING * max(abs(value), abs(above), abs(below))
        is_smooth = abs(kink) / step <= _SMOOTH * abs(error)
        is_seen = min(abs(actual), abs(actual - predicted)) > noise
        errors = [*errors, error] if is_smooth and is_seen else []  # NaN shows nothing
        if len(errors) >= 3 and max(errors[-3:]) - min(errors[-3:]) <= _STEADY * abs(error):
            raise ParameterError(
                "lhac.objective: actual and predicted change disagree along a direction from init, "
                f"{actual:.6g} of the value and {predicted:.6g} by the gradient; "
                "LhacSettings(check_gradient=False) leaves this unchecked"
            )


def _steps(x: np.ndarray, value: float, slope: float, room: float) -> Iterator[float]:
    """From one that changes the value a little, whatever the units are, down by eighths."""
    first = _FIRST_SHARE * abs(value) / slope if value and slope else np.inf
    if not np.isfinite(first):
        first = _FIRST_SHARE * (np.abs(x).max() or 1.0)
    first = min(first, 0.5 * room)
    steps = (first / _SHRINK**k for k in range(_MOST_STEPS))
    return (step for step in steps if step > 0)


def _value_at(function: Callable[[np.ndarray], _Pair], x: np.ndarray) -> float:
    """NaN for a point that the function refuses: the solver might never ask for it."""
    try:
        return float(function(x)[0])
    except Exception:
        return np.nan
