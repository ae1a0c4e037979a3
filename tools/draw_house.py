"""Draws the house: which part imports which, and the way of a fit through it, from the real code.

    python3 tools/draw_house.py docs/house.svg

Boxes are folders, their figure the number of lines; grey lines are imports between neighbouring
floors. The numbers are the order in which `TextTagger.fit` first enters a part, as a profiler sees
it on the records of `sublearn quickstart`; so the library must be installed.
"""

from __future__ import annotations

import ast
import sys
import threading
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[1]
SOURCE, HEADERS = ROOT / "src/sublearn", ROOT / "cpp/include/sublearn"
#: Floors from the top; every part imports only from floors below it, or from its own.
FLOORS = [
    ("for people", ["cli", "serve", "distributed", "plugins", "datasets"]),
    ("questions", ["kinds"]),
    (
        "tasks",
        [
            "extreme",
            "linear",
            "graph",
            "structured",
            "embed",
            "trim",
            "latent",
            "hierarchy",
            "forecast",
        ],
    ),
    ("shared", ["optim", "fitting", "display", "io", "validation", "metrics"]),
    ("ground", ["trace", "execution", "interruption", "errors", "typing"]),
    ("C++", ["bindings"]),
    ("", ["solvers", "active", "search", "objectives"]),
    ("", ["losses", "prox", "io (C++)", "core"]),
]
WIDTH, LEFT, FLOOR, BOX, GAP = 1000, 90, 86, 44, 10
INK, PALE, LINE, WALK = "#1f2933", "#eef2f5", "#b8c4ce", "#00796b"


def lines_of(part: str) -> int:
    if part in ("bindings", "solvers", "active", "search", "objectives", "losses", "prox", "core"):
        folder = ROOT / "cpp/bindings" if part == "bindings" else HEADERS / part
        files = list(folder.rglob("*.[ch]pp"))
    elif part == "io (C++)":
        files = list((HEADERS / "io").rglob("*.hpp"))
    else:
        files = list((SOURCE / part).rglob("*.py")) or [SOURCE / f"{part}.py"]
    return sum(len(file.read_text("utf-8").splitlines()) for file in files)


def imports() -> set[tuple[str, str]]:
    """Pairs of parts, the first of which imports the second."""
    found = set()
    for file in SOURCE.rglob("*.py"):
        inside = file.relative_to(SOURCE).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            for name in names_in(node):
                found.add((inside, name))
    for file in [*HEADERS.rglob("*.hpp"), *(ROOT / "cpp/bindings").glob("*.[ch]pp")]:
        inside = "bindings" if HEADERS not in file.parents else part_of(file)
        for line in file.read_text("utf-8").splitlines():
            if line.startswith('#include "sublearn/'):
                found.add((inside, cpp_part(line.split("/")[1])))
    return {(a, b) for a, b in found if a != b}


def names_in(node: ast.AST) -> list[str]:
    if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("sublearn"):
        return []
    parts = (node.module or "").split(".")
    names = [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]
    return ["bindings" if name == "_core" else name for name in names]


def part_of(file: Path) -> str:
    return cpp_part(file.relative_to(HEADERS).parts[0])


def cpp_part(folder: str) -> str:
    return "io (C++)" if folder == "io" else folder


def walk() -> dict[str, int]:
    """Parts in the order in which a fit first enters them."""
    from sublearn.extreme import TextTagger
    from sublearn.io import load_quickstart

    data, order = load_quickstart(), dict[str, int]()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "c_call" and "_core" in (getattr(argument, "__module__", None) or ""):
            order.setdefault("bindings", len(order) + 1)
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(str(SOURCE)):
            part = Path(file).relative_to(SOURCE).parts[0].removesuffix(".py")
            if part != "__init__":
                order.setdefault(part, len(order) + 1)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        TextTagger().fit(data.train_texts, data.train_labels)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return order


def places() -> dict[str, tuple[float, float, float]]:
    """Left, top and width of each box."""
    found = {}
    for floor, (_, parts) in enumerate(FLOORS):
        width = (WIDTH - LEFT - GAP * len(parts)) / len(parts)
        for i, part in enumerate(parts):
            found[part] = (LEFT + i * (width + GAP), 20 + floor * FLOOR, width)
    return found


def draw(order: dict[str, int]) -> str:
    where = places()
    floor_of = {part: i for i, (_, parts) in enumerate(FLOORS) for part in parts}
    height = 20 + len(FLOORS) * FLOOR
    found = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" role="img" aria-label="The parts of sublearn, which imports '
        'which, and the way of a fit">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
    ]
    for above, below in sorted(imports()):
        if above in where and below in where and floor_of[below] == floor_of[above] + 1:
            found.append(line(where[above], where[below]))
    for floor, (name, _) in enumerate(FLOORS):
        middle = 20 + floor * FLOOR + BOX / 2 + 5
        found.append(f'<text x="8" y="{middle}" font-size="13" fill="{INK}">{name}</text>')
    found += [box(part, place, order.get(part)) for part, place in where.items()]
    return "\n".join([*found, "</svg>", ""])


def line(above: tuple[float, float, float], below: tuple[float, float, float]) -> str:
    x1, y1, x2, y2 = above[0] + above[2] / 2, above[1] + BOX, below[0] + below[2] / 2, below[1]
    return (
        f'<path d="M{x1:.0f} {y1:.0f} C{x1:.0f} {y1 + 20:.0f} {x2:.0f} {y2 - 20:.0f} '
        f'{x2:.0f} {y2:.0f}" fill="none" stroke="{LINE}"/>'
    )


def box(part: str, place: tuple[float, float, float], step: int | None) -> str:
    x, y, width = place
    edge = WALK if step else LINE
    shown = (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{BOX}" rx="6" fill="{PALE}" '
        f'stroke="{edge}" stroke-width="{2 if step else 1}"/>'
        f'<text x="{x + width / 2:.0f}" y="{y + 19:.0f}" font-size="14" text-anchor="middle" '
        f'fill="{INK}">{part}</text>'
        f'<text x="{x + width / 2:.0f}" y="{y + 36:.0f}" font-size="11" text-anchor="middle" '
        f'fill="#52606d">{lines_of(part):,} lines</text>'
    )
    if step:
        shown += (
            f'<circle cx="{x + 4:.0f}" cy="{y + 2:.0f}" r="10" fill="{WALK}"/>'
            f'<text x="{x + 4:.0f}" y="{y + 6:.0f}" font-size="11" text-anchor="middle" '
            f'fill="white">{step}</text>'
        )
    return shown


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    Path(sys.argv[1]).write_text(draw(walk()), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
