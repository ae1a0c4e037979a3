"""Charts of measured figures as SVG files: the same figures give the same bytes.

Lines and points with numbers on both axes have a plane; bars, and points of which `x` holds names,
have a row for each name, values to the right. Series differ by colour, marker and dash.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.scales import Scale, scale_over, told
from harness.svg import Sheet, colour, dash, width_of
from harness.table import Chart, Series

__all__ = ["chart_of", "drawn", "write"]

_WIDTH, _PLANE = 660.0, 300.0  # of a picture; height of a plane
_EDGE, _GAP = 8.0, 6.0
_BAR, _MOST_ROWS = 13.0, 60
_LONGEST, _LONGEST_IN_LEGEND = 40, 70  # letters of a name
Point = tuple[float, float]


def chart_of(kept: Mapping[str, Any] | Chart) -> Chart:
    """A chart as a record holds it."""
    if isinstance(kept, Chart):
        return kept
    series = [Series(**part) for part in kept["series"]]
    return Chart(**{**kept, "series": series})


def write(folder: Path, page: str, charts: Sequence[Chart]) -> None:
    """The pictures of a page, PAGE-NAME.svg, and none that it had before."""
    folder.mkdir(parents=True, exist_ok=True)
    names = {f"{page}-{chart.name}.svg": chart for chart in charts}
    (name, count), *_ = Counter(chart.name for chart in charts).most_common(1) or [("", 0)]
    if count > 1:
        raise ValueError(f"page {page}: two charts have the name {name}")
    for old in folder.glob(f"{page}-*.svg"):
        if old.name not in names:
            old.unlink()
    for name, chart in names.items():
        (folder / name).write_text(drawn(chart), encoding="utf-8")


def drawn(chart: Chart) -> str:
    """The SVG file of a chart."""
    if any(len(s.x) != len(s.y) or not _are_bounds_whole(s) for s in chart.series):
        raise ValueError(f"chart {chart.name}: x, y, low and high of a series must be equally long")
    has_rows = chart.kind == "bars" or (chart.kind == "points" and _names(chart))
    sheet = Sheet()
    top = _head(sheet, chart)
    height = (_draw_rows if has_rows else _draw_plane)(sheet, chart, top)
    return sheet.told(
        _WIDTH, height, chart.title, chart.caption or f"{chart.y or chart.title} by {chart.x}"
    )


def _are_bounds_whole(series: Series) -> bool:
    return all(len(bound) in (0, len(series.y)) for bound in (series.low, series.high))


# --- what all charts have -------------------------------------------------------------------------


def _head(sheet: Sheet, chart: Chart) -> float:
    """Title and legend; where the rest begins."""
    y = 20.0
    for line in _broken(chart.title, _WIDTH - 2 * _EDGE, 18.0):
        sheet.text(_EDGE, y, line, "title")
        y += 20
    if len(chart.series) == 1 and chart.series[0].name in ("", chart.y):
        return y
    x, y = _EDGE, y + 2
    for n, series in enumerate(chart.series):
        name = _shortened(series.name, _LONGEST_IN_LEGEND)
        needed = 34 + width_of(name) + 14
        if x > _EDGE and x + needed > _WIDTH - _EDGE:
            x, y = _EDGE, y + 19
        if chart.kind == "line":
            sheet.path([(x, y - 4), (x + 26, y - 4)], f"line l{colour(n)}", dash(n))
        if chart.kind == "bars":
            sheet.box(x + 8, y - 9, 16, 10, f"f{colour(n)}")
        else:
            sheet.marker(x + 13, y - 4, n)
        sheet.text(x + 32, y, name)
        x += needed
    return y + 8


def _broken(text: str, width: float, size: float) -> list[str]:
    """A text in lines that are no wider than asked for."""
    lines: list[str] = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and width_of(longer, size) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _names(chart: Chart) -> list[str]:
    """The names on the axis of x, in their first order; none if it holds numbers."""
    found = [x for series in chart.series for x in series.x if isinstance(x, str)]
    if not found:
        return []
    return list(dict.fromkeys(str(x) for series in chart.series for x in series.x))


def _values(chart: Chart) -> list[float]:
    """All values that the axis of y has to hold."""
    parts = (part for s in chart.series for part in (s.y, s.low, s.high))
    return [v for part in parts for v in part if v is not None and math.isfinite(v)]


def _bounds(series: Series, n: int) -> tuple[float, float] | None:
    """The band around a value."""
    if not series.low or not series.high:
        return None
    low, high = series.low[n], series.high[n]
    if low is None or high is None or not math.isfinite(low + high):
        return None
    return low, high


def _shortened(name: str, most: int = _LONGEST) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


# --- numbers on both axes -------------------------------------------------------------------------


@dataclass(frozen=True)
class _Plane:
    """Where values lie on the sheet."""

    x: Scale
    y: Scale
    left: float
    top: float
    right: float
    bottom: float

    def __call__(self, x: float, y: float) -> Point:
        wide, high = self.right - self.left, self.bottom - self.top
        return self.left + wide * self.x(x), self.bottom - high * self.y(y)

    def has(self, x: float, y: float | None) -> bool:
        return self.x.has(x) and self.y.has(y)

    def held(self, y: float) -> float:
        """A value, or the edge of the axis beyond which it lies."""
        return min(max(y, self.y.low), self.y.high) if self.y.has(y) else self.y.low


def _draw_plane(sheet: Sheet, chart: Chart, top: float) -> float:
    names = _names(chart)
    places = {name: float(n) for n, name in enumerate(names)}
    data = [(series, [places[str(x)] if names else float(x) for x in series.x])
            for series in chart.series]  # fmt: skip
    y = scale_over(_values(chart), 6, is_log=chart.log_y)
    x = scale_over([v for _, xs in data for v in xs], 8, is_log=chart.log_x and not names)
    if names:
        x = Scale(x.low, x.high, tuple(places.values()))
    labels = [told(tick) for tick in y.ticks]
    left = _EDGE + max((width_of(text, 13) for text in labels), default=0) + _GAP
    top += 20
    right = _WIDTH - max(_EDGE, width_of(names[-1]) / 2 if names else 14)
    plane = _Plane(x, y, left, top, right, top + _PLANE)
    if chart.y:
        sheet.text(_EDGE, top - 8, chart.y, "soft")
    for tick, text in zip(y.ticks, labels, strict=True):
        height = plane(x.low, tick)[1]
        sheet.line((left, height), (plane.right, height), "rule")
        sheet.text(left - _GAP, height + 4.5, text, "soft", "end")
    sheet.line((left, plane.bottom), (plane.right, plane.bottom), "axis")
    _mark_x(sheet, plane, names)
    sheet.text((left + plane.right) / 2, plane.bottom + 39, chart.x, "soft", "middle")
    for n, (series, xs) in enumerate(data):
        _draw_series(sheet, plane, series, xs, n, has_line=chart.kind == "line")
    return plane.bottom + 48


def _mark_x(sheet: Sheet, plane: _Plane, names: Sequence[str]) -> None:
    """The values below a plane; a text that another one leaves no room for is left out."""
    taken = -1e9
    for n, tick in enumerate(plane.x.ticks):
        x, text = plane(tick, plane.y.low)[0], names[n] if names else told(tick)
        sheet.line((x, plane.bottom), (x, plane.bottom + 4), "axis")
        half = width_of(text) / 2
        if x - half > taken:
            sheet.text(x, plane.bottom + 18, text, "soft", "middle")
            taken = x + half + 4


def _draw_series(
    sheet: Sheet, plane: _Plane, series: Series, xs: Sequence[float], n: int, *, has_line: bool
) -> None:
    """A line in its band with a marker at each value, or markers with whiskers."""
    for piece in _pieces(plane, series, xs):
        bounded = [(xs[k], b) for k in piece if (b := _bounds(series, k)) is not None]
        if has_line and len(bounded) > 1:
            above = [plane(x, plane.held(high)) for x, (_, high) in bounded]
            below = [plane(x, plane.held(low)) for x, (low, _) in reversed(bounded)]
            sheet.area([*above, *below], f"band f{colour(n)}")
        points = [plane(xs[k], float(series.y[k] or 0)) for k in piece]
        if has_line and len(points) > 1:
            sheet.path(points, f"line l{colour(n)}", dash(n))
        if not has_line:
            for x, (low, high) in bounded:
                _draw_whisker(sheet, plane(x, plane.held(low)), plane(x, plane.held(high)), n)
        for x, y in points if len(points) <= 40 else points[:: len(points) // 12]:
            sheet.marker(x, y, n)


def _pieces(plane: _Plane, series: Series, xs: Sequence[float]) -> Iterator[list[int]]:
    """The places of values that follow each other without a gap."""
    piece: list[int] = []
    for k, (x, y) in enumerate(zip(xs, series.y, strict=True)):
        if plane.has(x, y):
            piece.append(k)
        elif piece:
            yield piece
            piece = []
    if piece:
        yield piece


def _draw_whisker(sheet: Sheet, start: Point, end: Point, n: int) -> None:
    """An error bar with its two ends."""
    look = f"whisker l{colour(n)}"
    sheet.line(start, end, look)
    dx, dy = (0, 3.5) if start[1] == end[1] else (3.5, 0)
    for x, y in (start, end):
        sheet.line((x - dx, y - dy), (x + dx, y + dy), look)


# --- a row for each name --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Rows:
    """Where a value lies in the row of its name; bars begin at `base`."""

    scale: Scale
    base: float
    left: float
    right: float
    series_height: float

    def __call__(self, value: float) -> float:
        at = min(max(self.scale(value), 0.0), 1.0)
        return self.left + (self.right - self.left) * at


def _draw_rows(sheet: Sheet, chart: Chart, top: float) -> float:
    """Bars, or points, of all series below each other in the row of their name."""
    names = _names(chart) or [str(x) for x in dict.fromkeys(x for s in chart.series for x in s.x)]
    if len(names) > _MOST_ROWS:
        raise ValueError(f"chart {chart.name}: at most {_MOST_ROWS} names, got {len(names)}")
    is_bars = chart.kind == "bars"
    scale, base = _row_scale(chart)
    left = _EDGE + max((width_of(_shortened(name)) for name in names), default=0) + _GAP
    right = _WIDTH - _EDGE - (56 if is_bars else 14)
    rows = _Rows(scale, base, left, right, _BAR if is_bars else 0.0)
    step = (_BAR * len(chart.series) + 9) if is_bars else 22.0
    bottom = top + 6 + step * len(names)
    _draw_row_axis(sheet, rows, chart.y, top + 2, bottom)
    middles = {name: top + 6 + step * (n + 0.5) for n, name in enumerate(names)}
    for name, y in middles.items():
        sheet.text(left - _GAP, y + 4.5, _shortened(name), "", "end")
        if not is_bars:
            sheet.line((left, y), (right, y), "rule")
    for n, series in enumerate(chart.series):
        for k, name in enumerate(series.x):
            shift = (n - (len(chart.series) - 1) / 2) * rows.series_height
            (_draw_bar if is_bars else _draw_point)(
                sheet, rows, series, k, middles[str(name)] + shift, n
            )
    return bottom + 46


def _row_scale(chart: Chart) -> tuple[Scale, float]:
    """The axis of values, and where bars begin: at 0; on a log axis ratios at 1, others below."""
    values = [v for v in _values(chart) if v > 0 or not chart.log_y]
    if not chart.log_y:
        base = 0.0 if chart.kind == "bars" else None
        scale = scale_over(values, 6, base=base)
        return scale, base if base is not None else scale.low
    low, high = min(values, default=1.0), max(values, default=1.0)
    base = 1.0 if "ratio" in chart.y.lower() and low <= 30 and high >= 1 / 30 else low / 2
    return scale_over(values, 7, is_log=True, base=base if chart.kind == "bars" else None), base


def _draw_row_axis(sheet: Sheet, rows: _Rows, title: str, top: float, bottom: float) -> None:
    taken = -1e9
    for tick in rows.scale.ticks:
        x, text = rows(tick), told(tick)
        sheet.line((x, top), (x, bottom), "rule")
        half = width_of(text) / 2
        if x - half > taken:
            sheet.text(x, bottom + 17, text, "soft", "middle")
            taken = x + half + 4
    sheet.line((rows.left, bottom), (rows.right, bottom), "axis")
    if rows.scale.low <= rows.base <= rows.scale.high:
        sheet.line((rows(rows.base), top), (rows(rows.base), bottom), "axis")
    sheet.text((rows.left + rows.right) / 2, bottom + 37, title, "soft", "middle")


def _draw_bar(sheet: Sheet, rows: _Rows, series: Series, k: int, y: float, n: int) -> None:
    """A bar with its value at the end, and its error bar."""
    value = series.y[k]
    if value is None or not rows.scale.has(value):
        sheet.text(rows(rows.base) + 4, y + 4, "–", "soft small")
        return
    start, end = sorted((rows(rows.base), rows(value)))
    height = rows.series_height - 2
    sheet.box(start, y - height / 2, max(end - start, 1.0), height, f"f{colour(n)}")
    bounds = _bounds(series, k)
    if bounds is not None:
        low, high = (rows(b) if rows.scale.has(b) else rows.left for b in bounds)
        sheet.line((low, y), (high, y), "axis")
        for x in (low, high):
            sheet.line((x, y - 3.5), (x, y + 3.5), "axis")
        end = max(end, high)
    sheet.text(end + 5, y + 4, told(_short(value)), "small")


def _short(value: float) -> float:
    return float(f"{value:.3g}")


def _draw_point(sheet: Sheet, rows: _Rows, series: Series, k: int, y: float, n: int) -> None:
    value = series.y[k]
    if value is None or not rows.scale.has(value):
        return
    bounds = _bounds(series, k)
    if bounds is not None:
        low, high = (rows(b) if rows.scale.has(b) else rows.left for b in bounds)
        _draw_whisker(sheet, (low, y), (high, y), n)
    sheet.marker(rows(value), y, n)
