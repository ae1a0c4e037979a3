#!/usr/bin/env python3
"""Draw the picture of the front page from the measured tables: quality against time and size.

    python3 tools/draw_front.py docs/pictures/front.svg

One thread, 20,578 subject headings of library records (the table `yso_en` of
docs/benchmarks_results.md, which `benchmarks/run.py` writes). Where two runs have a method in
common, times are put together by their ratios to it.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from harness.scales import scale_over, told  # noqa: E402 (the folder is no package)
from harness.svg import Sheet, colour, width_of  # noqa: E402

TABLES = ROOT / "docs" / "benchmarks_results.md"
PROBLEM, FIRST = "yso_en", "sublearn"
#: Rows of the table and their names in the picture; below the circle or above it.
SHOWN = {
    "sublearn": ("sublearn, defaults", False),
    "sublearn-tuned": ("sublearn, tuned", True),
    "pecos-tree": ("PECOS XR-Linear", True),
    "omikuji": ("Parabel (omikuji)", True),
    "omikuji-bonsai": ("Bonsai (omikuji)", True),
    "napkinxc-plt": ("napkinXC PLT", True),
}

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 720.0, 400.0, 62.0, 58.0, 348.0, 700.0


def rows_of(text: str, problem: str) -> list[dict[str, dict[str, str]]]:
    """The tables of a problem: rows of one thread by name, cells by heading."""
    found = []
    for part in text.split(f"### {problem}\n")[1:]:
        lines = [line for line in part.split("\n### ")[0].splitlines() if line.startswith("|")]
        if len(lines) < 3:
            continue
        head = [cell.strip() for cell in lines[0].strip("|").split("|")]
        table = {}
        for line in lines[2:]:
            cells = [cell.strip(" `") for cell in line.strip("|").split("|")]
            if len(cells) != len(head):
                break
            row = dict(zip(reversed(head), reversed(cells), strict=True))  # the first ratio counts
            if row.get("threads", "1") == "1":
                table[row["entrant"]] = row
        found.append(table)
    return found


def figures(text: str) -> dict[str, tuple[float, float, float]]:
    """CPU seconds, P@1 and megabytes of each method."""
    found: dict[str, tuple[float, float, float]] = {}
    base = None
    for table in rows_of(text, PROBLEM):
        if FIRST not in table:
            continue
        own = float(table[FIRST]["fit CPU s"])
        base = base or own
        for name, row in table.items():
            if name in SHOWN and name not in found:
                seconds = base * float(row["fit CPU s"]) / own
                found[name] = (seconds, float(row["P@1"]), float(row["model MB"]))
    return found


def drawn(found: dict[str, tuple[float, float, float]]) -> str:
    """The SVG file."""
    sheet = Sheet()
    sheet.text(
        8, 22, "Tagging library records with 20,578 subjects: up and left is better", "title"
    )
    sheet.text(
        8, 42, "Share of first tags that are right; area of a circle: size of the model", "soft"
    )
    x = scale_over([f[0] for f in found.values()], 8, is_log=True)
    y = scale_over([f[1] for f in found.values()], 6)
    wide, high = RIGHT - LEFT, BOTTOM - TOP

    def at(seconds: float, precision: float) -> tuple[float, float]:
        return LEFT + 30 + (wide - 150) * x(seconds), BOTTOM - 30 - (high - 60) * y(precision)

    for tick in y.ticks:
        height = at(x.low, tick)[1]
        sheet.line((LEFT, height), (RIGHT, height), "rule")
        sheet.text(LEFT - 8, height + 4.5, f"{100 * tick:.3g} %", "soft", "end")
    sheet.line((LEFT, BOTTOM), (RIGHT, BOTTOM), "axis")
    for tick in x.ticks:
        place = at(tick, y.low)[0]
        sheet.line((place, BOTTOM), (place, BOTTOM + 4), "axis")
        sheet.text(place, BOTTOM + 19, told(tick), "soft", "middle")
    sheet.text(
        (LEFT + RIGHT) / 2, BOTTOM + 40, "CPU seconds to train, one thread", "soft", "middle"
    )
    for name, (seconds, precision, megabytes) in sorted(found.items(), key=lambda f: -f[1][2]):
        _draw(sheet, *at(seconds, precision), name, megabytes)
    return sheet.told(
        WIDTH, HEIGHT, "Quality against training time and size of the model",
        "sublearn and five other methods on 50,000 library records with 20,578 subjects",
    )  # fmt: skip


def _draw(sheet: Sheet, x: float, y: float, name: str, megabytes: float) -> None:
    label, is_above = SHOWN[name]
    radius, n = 2.2 * math.sqrt(megabytes), 0 if name.startswith(FIRST) else 1
    circle = [
        (x + radius * math.cos(k * math.pi / 24), y + radius * math.sin(k * math.pi / 24))
        for k in range(48)
    ]
    sheet.area(circle, f"band f{colour(n)}")
    sheet.path([*circle, circle[0]], f"line l{colour(n)}")
    text = f"{label}, {megabytes:.0f} MB"
    place = y - radius - 7 if is_above else y + radius + 17
    half = width_of(text) / 2
    sheet.text(min(max(x, LEFT + half + 4), RIGHT - half), place, text, "", "middle")


def main() -> int:
    found = figures(TABLES.read_text(encoding="utf-8"))
    Path(sys.argv[1]).write_text(drawn(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
