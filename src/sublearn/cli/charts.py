"""Small pictures as SVG text: lines, bars and dots on labelled axes, no library needed.

Colours are those of CSS variables with a fallback, so that a page may have a dark form and a file
on its own is drawn as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from sublearn.display.style import COLOURS

__all__ = ["Axis", "bars", "dots", "lines"]

_WIDTH, _HEIGHT = 560, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 68, 16, 18, 46
_INK, _SOFT = "var(--ink, #1a2733)", "var(--soft, #8695a4)"
_GRID = "var(--grid, #dfe5ea)"
_COLOURS = tuple(
    f"var(--{name}, {shade})" for name, shade in zip(("one", "two", "three"), COLOURS, strict=False)
)


@dataclass(frozen=True)
class Axis:
    """A name and a range of values, on a plain or a logarithmic scale."""

    name: str
    low: float
    high: float
    is_log: bool = False

    @classmethod
    def of(cls, name: str, values: Sequence[float], *, is_log: bool = False) -> Axis:
        """The axis that holds some values, with a little room."""
        finite = [v for v in values if math.isfinite(v) and (v > 0 or not is_log)]
        low, high = (min(finite), max(finite)) if finite else (1.0, 2.0)
        if is_log:
            return cls(name, low / 1.15, max(high, low * 1.01) * 1.15, is_log=True)
        room = 0.05 * (high - low) or 0.5 * abs(high) or 1.0
        return cls(name, low - room, high + room)

    def place(self, value: float) -> float:
        """Where a value stands, from 0 to 1."""
        if self.is_log:
            floor = max(value, self.low)
            return math.log(floor / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """A few round values."""
        return _decades(self.low, self.high) if self.is_log else _round(self.low, self.high)


def _decades(low: float, high: float) -> list[float]:
    """Powers of ten; with twos and fives between them where those are few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    step = max(1, (last - first) // 5)
    found = [10.0**e for e in range(first, last + 1, step) if low <= 10.0**e <= high]
    if len(found) < 3:
        steps = [m * 10.0**e for e in range(first, last + 1) for m in (1, 2, 3, 4, 5, 6, 8)]
        found = [value for value in steps if low <= value <= high]
    return found if len(found) > 1 else [low * (high / low) ** (i / 4) for i in (1, 2, 3)]


def _round(low: float, high: float) -> list[float]:
    raw = (high - low) / 5
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * m for m in (1, 2, 5, 10) if size * m >= raw)
    first = math.ceil(low / step)
    count = math.floor(high / step) - first + 1
    return [(first + i) * step for i in range(count)]


def _short(value: float) -> str:
    if value and not 1e-3 <= abs(value) < 1e7:
        return f"{value:.1e}".replace(".0e", "e").replace("e+0", "e").replace("e-0", "e-")
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.3g}"


@dataclass(frozen=True)
class _Frame:
    x: Axis
    y: Axis

    def at(self, x: float, y: float) -> tuple[float, float]:
        width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
        place = min(1.0, max(0.0, self.y.place(y)))
        return _LEFT + width * self.x.place(x), _TOP + height * (1 - place)

    def grid(self) -> list[str]:
        parts = []
        bottom = _HEIGHT - _BOTTOM
        for tick in self.y.ticks():
            _, y = self.at(self.x.low, tick)
            parts.append(_line(_LEFT, y, _WIDTH - _RIGHT, y, _GRID))
            parts.append(_text(_LEFT - 7, y + 4, _short(tick), "end"))
        for tick in self.x.ticks():
            x, _ = self.at(tick, self.y.low)
            parts.append(_line(x, bottom, x, bottom + 5, _SOFT))
            parts.append(_text(x, bottom + 19, _short(tick), "middle"))
        parts.append(_line(_LEFT, bottom, _WIDTH - _RIGHT, bottom, _SOFT))
        middle = _LEFT + (_WIDTH - _LEFT - _RIGHT) / 2
        parts.append(_text(middle, _HEIGHT - 8, self.x.name, "middle"))
        parts.append(_text(_LEFT, _TOP - 5, self.y.name, "start"))
        return parts


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'style="stroke:{colour};stroke-width:1"/>'
    )


def _text(x: float, y: float, text: str, anchor: str, colour: str = _INK) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" style="fill:{colour}">'
        f"{escape(text)}</text>"
    )


def _picture(parts: list[str], title: str, height: float = _HEIGHT) -> str:
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" role="img" '
        f'aria-label="{escape(title)}" style="font:12px system-ui,sans-serif">\n'
        f"<title>{escape(title)}</title>\n{body}\n</svg>"
    )


def lines(
    title: str, x: Axis, y: Axis, series: Sequence[tuple[str, Sequence[float], Sequence[float]]]
) -> str:
    """Lines by name, each with its values along both axes."""
    frame = _Frame(x, y)
    parts = frame.grid()
    for i, (name, xs, ys) in enumerate(series):
        colour = _COLOURS[i % len(_COLOURS)]
        points = [frame.at(a, b) for a, b in zip(xs, ys, strict=True) if math.isfinite(b)]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        parts.append(
            f'<polyline points="{path}" style="fill:none;stroke:{colour};stroke-width:2"/>'
        )
        if len(points) == 1:
            parts.append(_dot(*points[0], colour))
        if len(series) > 1:
            parts.append(_text(_WIDTH - _RIGHT, _TOP + 14 * (i + 1), name, "end", colour))
    return _picture(parts, title)


def _dot(x: float, y: float, colour: str, size: float = 4) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:g}" style="fill:{colour}"/>'


def dots(
    title: str,
    x: Axis,
    y: Axis,
    points: Sequence[tuple[float, float, str, int]],
    *,
    diagonal: bool = False,
    is_named: bool = False,
    path: Sequence[tuple[float, float]] = (),
) -> str:
    """Dots with a name that shows under the pointer and the number of a colour; a line or two.

    With `is_named` the names of dots in other colours than the first are written beside them.
    """
    frame = _Frame(x, y)
    parts = frame.grid()
    if diagonal:
        low, high = max(x.low, y.low), min(x.high, y.high)
        parts.append(_line(*frame.at(low, low), *frame.at(high, high), _SOFT))
    if path:
        places = " ".join("{:.1f},{:.1f}".format(*frame.at(*point)) for point in path)
        parts.append(
            f'<polyline points="{places}" style="fill:none;stroke:{_COLOURS[1]};stroke-width:1.5"/>'
        )
    for a, b, name, colour in points:
        dot = _dot(*frame.at(a, b), _COLOURS[colour % len(_COLOURS)], 4 if name else 2)
        parts.append(dot.replace("/>", f"><title>{escape(name)}</title></circle>") if name else dot)
        if is_named and colour:
            at_x, at_y = frame.at(a, b)
            anchor = "end" if at_x > 0.7 * _WIDTH else "start"
            parts.append(_text(at_x + (-8 if anchor == "end" else 8), at_y + 14, name, anchor))
    return _picture(parts, title)


def bars(title: str, entries: Sequence[tuple[str, float]], unit: str = "") -> str:
    """Bars from the middle line for positive and negative values, a name beside each."""
    row, left = 20, 190
    below = max([-value for _, value in entries] + [0.0])
    above = max([value for _, value in entries] + [0.0])
    scale = (_WIDTH - 70 - left) / max(below + above, 1e-12)
    zero = left + below * scale
    parts = []
    for i, (name, value) in enumerate(entries):
        y = 8 + row * i
        size = max(1.0, abs(value) * scale)
        x = zero if value >= 0 else zero - size
        colour = _COLOURS[0 if value >= 0 else 1]
        shown = name if len(name) < 28 else f"{name[:26]}…"
        parts.append(_text(left - 10, y + 12, shown, "end"))
        parts.append(
            f'<rect x="{x:.1f}" y="{y}" width="{size:.1f}" height="{row - 6}" rx="2" '
            f'style="fill:{colour}"><title>{escape(name)}</title></rect>'
        )
        parts.append(_text(max(zero, x + size) + 6, y + 12, f"{_short(value)}{unit}", "start"))
    return _picture(parts, title, 14 + row * len(entries))
