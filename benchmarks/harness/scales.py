"""Axes of a chart: where a value lies, and which values are written beside the axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Scale", "scale_over", "told"]

_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
#: First digits of the values on a log axis, from many to few.
_DIGITS = ((1, 2, 3, 4, 5, 6, 7, 8, 9), (1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,))
_ROOM = 0.03  # share of an axis that stays free beyond the outermost values


@dataclass(frozen=True)
class Scale:
    """A map from `low` ... `high` to 0 ... 1, with the values that are written."""

    low: float
    high: float
    ticks: tuple[float, ...]
    is_log: bool = False

    def __call__(self, value: float) -> float:
        """The share of the axis at which a value lies."""
        low, high, at = self.low, self.high, value
        if self.is_log:
            low, high, at = math.log10(low), math.log10(high), math.log10(at)
        return (at - low) / (high - low)

    def has(self, value: float | None) -> bool:
        """Whether a value can be drawn at all."""
        return value is not None and math.isfinite(value) and (value > 0 or not self.is_log)


def scale_over(
    values: Sequence[float], n_ticks: int, *, is_log: bool = False, base: float | None = None
) -> Scale:
    """An axis over all values that can be drawn; `base` is a value that it has to contain."""
    drawn = [v for v in values if math.isfinite(v) and (v > 0 or not is_log)]
    drawn += [] if base is None else [base]
    low, high = (min(drawn), max(drawn)) if drawn else (1.0, 10.0) if is_log else (0.0, 1.0)
    return _log_scale(low, high, n_ticks) if is_log else _linear_scale(low, high, n_ticks, base)


def _linear_scale(low: float, high: float, n_ticks: int, base: float | None) -> Scale:
    if low == high:
        low, high = low - (abs(low) or 1.0) / 2, high + (abs(high) or 1.0) / 2
    room = _ROOM * (high - low)
    low, high = low if low == base else low - room, high if high == base else high + room
    return Scale(low, high, _round_values(low, high, n_ticks))


def _round_values(low: float, high: float, n_ticks: int) -> tuple[float, ...]:
    """Multiples of 1, 2, 2.5 or 5 times a power of ten."""
    wanted = (high - low) / n_ticks
    power = 10.0 ** math.floor(math.log10(wanted))
    step = next(s * power for s in _STEPS if s * power >= wanted * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple(_rounded(n * step) for n in range(first, last + 1))


def _rounded(value: float) -> float:
    return float(f"{value:.12g}")


def _log_scale(low: float, high: float, n_ticks: int) -> Scale:
    """Powers of ten, with values between them where there are few."""
    if low == high:
        low, high = low / 2, high * 2
    room = (high / low) ** _ROOM
    low, high = low / room, high * room
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in _DIGITS:
        ticks = [_rounded(d * 10.0**p) for p in powers for d in digits]
        ticks = [t for t in ticks if low <= t <= high]
        if len(ticks) <= n_ticks:
            break
    ticks = ticks[:: max(1, -(-len(ticks) // n_ticks))]
    return Scale(low, high, tuple(ticks) if len(ticks) > 1 else _round_values(low, high, 3), True)


def told(value: float) -> str:
    """A value as it is written beside an axis, in at most four digits.

    >>> [told(v) for v in (0.25, 1200.0, 1e6, 2e-5)]
    ['0.25', '1,200', '10⁶', '2·10⁻⁵']
    """
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
        return text.replace("-", "−")
    mantissa, _, power = f"{value:.3g}".partition("e")
    if not power:
        mantissa, _, power = f"{value:.2e}".partition("e")
    shown = f"10{str(int(power)).translate(_SUPERSCRIPTS)}"
    mantissa = f"{float(mantissa):g}"
    return shown if mantissa == "1" else f"{mantissa}·{shown}".replace("-", "−")
