"""Makes pages and notebooks of the tutorials: scripts in percent form below examples/tutorials.

    python3 tools/tutorials.py pages [NAME ...]    run them; write pages and their pictures
    python3 tools/tutorials.py files               write what is downloaded, as `tools/gallery.py
                                                   files` does, too

A cell begins with a line `# %%`, one of words with `# %% [markdown]`. A page shows each cell of
code, what it prints, the value of its last line, and the figures that it drew. Tests of the
documentation run the code of the pages.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS, PAGES = ROOT / "examples" / "tutorials", ROOT / "docs" / "tutorials"
FILES = PAGES / "files"
WIDTH = 1000  # pixels of a kept picture
_MOST_LINES = 40  # of an output
_BREAK = re.compile(r"^# %%(?P<words> \[markdown\])?.*\n", re.M)


@dataclass(frozen=True)
class Cell:
    """Words, or code."""

    is_code: bool
    text: str


def names() -> list[str]:
    """Of the tutorials, in their order."""
    return sorted(file.stem for file in SCRIPTS.glob("*.py"))


def cells(name: str) -> list[Cell]:
    """The cells of a script."""
    source = (SCRIPTS / f"{name}.py").read_text(encoding="utf-8")
    breaks = list(_BREAK.finditer(source))
    ends = [match.start() for match in breaks[1:]] + [len(source)]
    found = []
    for match, end in zip(breaks, ends, strict=True):
        text = source[match.end() : end].strip("\n")
        if match["words"]:
            text = "\n".join(line.removeprefix("#").removeprefix(" ") for line in text.split("\n"))
        found.append(Cell(not match["words"], text))
    return found


def title(name: str) -> str:
    """What stands after the first `#` of its words."""
    return cells(name)[0].text.partition("\n")[0].removeprefix("# ")


# --- pages ----------------------------------------------------------------------------------------


def page(name: str) -> str:
    """A tutorial as Markdown; runs it, and writes its pictures."""
    import matplotlib

    matplotlib.use("Agg")
    for old in PAGES.glob(f"{name}-*.png"):
        old.unlink()
    parts, namespace = [_HEAD], {"__name__": "tutorial"}
    n_pictures = 0
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for cell in cells(name):
            parts.append(f"```python\n{cell.text}\n```" if cell.is_code else cell.text)
            if cell.is_code:
                parts += _told(cell.text, namespace)
                for figure in _figures():
                    n_pictures += 1
                    parts.append(_kept(figure, f"{name}-{n_pictures}.png", parts))
    words = f"[Script](files/{name}.py) · [Notebook](files/{name}.ipynb)"
    return "\n\n".join([*parts, words]) + "\n"


_HEAD = "<!-- Written by tools/tutorials.py from examples/tutorials; do not edit. -->"


def _told(code: str, namespace: dict[str, Any]) -> list[str]:
    """Run a cell; what it prints, and its value."""
    tree, value = ast.parse(code), None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), namespace)
    parts = []
    if text := printed.getvalue().rstrip():
        parts.append(_block(text))
    if hasattr(value, "_repr_html_") and type(value).__module__.startswith("sublearn.display"):
        parts.append(value._repr_html_())
    elif value is not None and not type(value).__module__.startswith(("sublearn.", "matplotlib")):
        parts.append(_block(repr(value)))
    return parts


def _block(text: str) -> str:
    lines = text.splitlines()
    shown = lines if len(lines) <= _MOST_LINES else [*lines[:_MOST_LINES], "..."]
    return "```text\n" + "\n".join(line.rstrip() for line in shown) + "\n```"


def _figures() -> Iterator[Any]:
    import matplotlib.pyplot as plt

    for number in plt.get_fignums():
        yield plt.figure(number)
    plt.close("all")


def _kept(figure: Any, name: str, parts: list[str]) -> str:
    """Write a picture with few colours; the line of the page that shows it."""
    from PIL import Image

    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=140, facecolor="white")
    with Image.open(drawn) as image:
        scale = min(1.0, WIDTH / image.width)
        size = round(image.width * scale), round(image.height * scale)
        small = image.convert("RGB").resize(size, Image.Resampling.LANCZOS)
        small.quantize(96).save(PAGES / name, optimize=True)
    heads = [ax.get_title(loc=where) for ax in figure.axes for where in ("left", "center")]
    heads += [ax.get_ylabel() for ax in figure.axes]
    shown = next((" ".join(head.split()) for head in heads if head), "What was drawn")
    return f"![{shown}]({name}){{ loading=lazy }}"


# --- files to download ----------------------------------------------------------------------------


def notebook(name: str) -> dict[str, Any]:
    """A tutorial as a notebook, without outputs."""
    found = []
    for n, cell in enumerate(cells(name)):
        kind = "code" if cell.is_code else "markdown"
        made: dict[str, Any] = {
            "cell_type": kind, "id": f"cell-{n}", "metadata": {},
            "source": cell.text.splitlines(True),
        }  # fmt: skip
        found.append(made | ({"execution_count": None, "outputs": []} if cell.is_code else {}))
    return {
        "cells": found,
        "metadata": {"language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def files() -> None:
    """Scripts and notebooks."""
    shutil.rmtree(FILES, ignore_errors=True)
    FILES.mkdir(parents=True)
    for name in names():
        shutil.copy(SCRIPTS / f"{name}.py", FILES)
        (FILES / f"{name}.ipynb").write_text(json.dumps(notebook(name), indent=1) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["pages", "files"])
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    if options.what == "files":
        files()
        return 0
    PAGES.mkdir(parents=True, exist_ok=True)
    for name in options.names or names():
        (PAGES / f"{name}.md").write_text(page(name), encoding="utf-8")
        print(f"wrote docs/tutorials/{name}.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
