"""Pieces of an SVG file: shapes, text that stays text, and colours for light and dark pages.

Colours change with the scheme of the page that shows the file. Against its page each has a contrast
of at least 3:1 and text one of at least 7:1; series differ by marker and dash as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

__all__ = ["COLOURS", "DASHES", "STYLE", "Sheet", "colour", "dash", "marker", "width_of"]

#: Of series in turn: blue, orange, green, pink, ochre, violet, sky, grey.
COLOURS = {
    "light": (
        "#0072b2", "#c04f00", "#00815e", "#b45791", "#8a6d00", "#7a5af0", "#2a93d0", "#606060",
    ),
    "dark": (
        "#56b4e9", "#e8702a", "#1fb58a", "#d98ab8", "#d4b13a", "#a38bff", "#3d9be0", "#a9a9a9",
    ),
}  # fmt: skip
DASHES = ("", "7 3", "2 2.5", "9 3 2 3", "4 2", "12 4", "1 3", "6 2 1 2 1 2")
_INK = {"light": ("#1c1c1c", "#4a4a4a", "#c9c9c9"), "dark": ("#f0f0f0", "#c4c4c4", "#55585f")}
_FONT = 'system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,"DejaVu Sans",sans-serif'
_NARROW, _WIDE = "iljtfrI.,:;'|!()[] ", "mwMW%@"


def _colours(scheme: str) -> str:
    ink, soft, rule = _INK[scheme]
    series = "".join(
        f".f{n}{{fill:{value}}}.l{n}{{stroke:{value}}}" for n, value in enumerate(COLOURS[scheme])
    )
    words = f"text{{fill:{ink}}}.soft{{fill:{soft}}}"
    return f"{words}.rule{{stroke:{rule}}}.axis{{stroke:{soft}}}{series}"


STYLE = (
    f"text{{font-family:{_FONT};font-size:13px}}"
    + ".title{font-size:15px;font-weight:600}.small{font-size:12px}"
    + ".line{fill:none;stroke-width:2;stroke-linejoin:round}.band{opacity:.18;stroke:none}"
    + ".whisker{stroke-width:1.5;fill:none}"
    + _colours("light")
    + f"@media (prefers-color-scheme:dark){{{_colours('dark')}}}"
)


def colour(n: int) -> int:
    """Which colour series n has."""
    return n % len(COLOURS["light"])


def dash(n: int) -> str:
    """The dashes of series n; those who share a colour differ."""
    return DASHES[(n + n // len(COLOURS["light"])) % len(DASHES)]


def width_of(text: str, size: float = 13.0) -> float:
    """About how wide a text is, in the fonts that are asked for."""
    units = sum(0.3 if c in _NARROW else 0.9 if c in _WIDE else 0.62 for c in text)
    return units * size


def _number(value: float) -> str:
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


class Sheet:
    """What is drawn so far, later things above earlier ones."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    def text(self, x: float, y: float, text: str, look: str = "", anchor: str = "start") -> None:
        """Text with its baseline at y."""
        kind = f' class="{look}"' if look else ""
        at = "" if anchor == "start" else f' text-anchor="{anchor}"'
        self._add(f'<text x="{_number(x)}" y="{_number(y)}"{kind}{at}>{escape(text)}</text>')

    def line(self, start: tuple[float, float], end: tuple[float, float], look: str) -> None:
        """A straight line."""
        self.path([start, end], look)

    def path(self, points: Sequence[tuple[float, float]], look: str, dashes: str = "") -> None:
        """Straight pieces from point to point."""
        drawn = "L".join(f"{_number(x)} {_number(y)}" for x, y in points)
        more = f' stroke-dasharray="{dashes}"' if dashes else ""
        self._add(f'<path class="{look}" d="M{drawn}"{more}/>')

    def area(self, points: Sequence[tuple[float, float]], look: str) -> None:
        """What lies within a polygon."""
        drawn = "L".join(f"{_number(x)} {_number(y)}" for x, y in points)
        self._add(f'<path class="{look}" d="M{drawn}Z"/>')

    def box(self, x: float, y: float, width: float, height: float, look: str) -> None:
        """A filled rectangle."""
        self.area([(x, y), (x + width, y), (x + width, y + height), (x, y + height)], look)

    def marker(self, x: float, y: float, n: int) -> None:
        """The marker of series n."""
        self._add(f'<path class="f{colour(n)}" d="{marker(n, x, y)}"/>')

    def told(self, width: float, height: float, title: str, description: str) -> str:
        """The file."""
        w, h = _number(width), _number(height)
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" '
            f'viewBox="0 0 {w} {h}" role="img">'
        )
        named = f"<title>{escape(title)}</title><desc>{escape(description)}</desc>"
        return "\n".join([head, named, f"<style>{STYLE}</style>", *self._parts, "</svg>\n"])

    def _add(self, part: str) -> None:
        self._parts.append(part)


#: Outlines of markers around (0, 0): circle, square, triangle, diamond, triangle down, bar, cross,
#: plus.
_MARKERS: tuple[tuple[tuple[float, float], ...], ...] = (
    (),
    ((-4, -4), (4, -4), (4, 4), (-4, 4)),
    ((0, -5), (5, 4), (-5, 4)),
    ((0, -5.5), (5.5, 0), (0, 5.5), (-5.5, 0)),
    ((0, 5), (5, -4), (-5, -4)),
    ((-6, -2.5), (6, -2.5), (6, 2.5), (-6, 2.5)),
    ((-5, -3), (-3, -5), (0, -2), (3, -5), (5, -3), (2, 0), (5, 3), (3, 5), (0, 2), (-3, 5),
     (-5, 3), (-2, 0)),
    ((-1.5, -5.5), (1.5, -5.5), (1.5, -1.5), (5.5, -1.5), (5.5, 1.5), (1.5, 1.5), (1.5, 5.5),
     (-1.5, 5.5), (-1.5, 1.5), (-5.5, 1.5), (-5.5, -1.5), (-1.5, -1.5)),
)  # fmt: skip


def marker(n: int, x: float, y: float) -> str:
    """The outline of the marker of series n at a place, as a path."""
    outline = _MARKERS[(n + n // len(_MARKERS)) % len(_MARKERS)]
    if not outline:
        return f"M{_number(x - 4)} {_number(y)}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z"
    return "M" + "L".join(f"{_number(x + dx)} {_number(y + dy)}" for dx, dy in outline) + "Z"
