#!/usr/bin/env python3
"""The gallery of the site: what each example draws, and its files to download.

    python3 tools/gallery.py pictures [NAME ...]   run examples (all) and keep their pictures
    python3 tools/gallery.py page                  write docs/gallery/index.md from what is kept
    python3 tools/gallery.py files                 write what is downloaded (`tasks.py docs` does)

Pictures need the package with its extra `plot`, some examples more: their first lines say what.
Those on data that does not come with the package read it from SUBLEARN_DATA, else ../shared/data.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import tutorials

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES, GALLERY = ROOT / "examples", ROOT / "docs" / "gallery"
KEPT, FILES, PAGE = GALLERY / "gallery.json", GALLERY / "files", GALLERY / "index.md"
WIDTH = 900  # pixels of a kept picture
LIMIT = 300  # seconds of an example

#: The page: headings, and the examples below each, in the order in which a reader may like them.
SECTIONS = {
    "Texts and very many labels": (
        "extreme_text", "yso_tagger", "active_sets", "coefficient_paths", "dense_tagger",
        "label_network", "many_machines",
    ),
    "Factor graphs and sequences": (
        "map_segmentation", "learned_segmentation", "map_matching", "map_alignment",
        "map_proteins", "map_multilabel", "ocr_words", "pos_tagging", "word_alignment",
    ),
    "Sparse models and networks of variables": (
        "grouped_features", "gene_network", "stock_network", "lhac_strategies",
    ),
    "Hidden structure": ("latent_pictures", "unmixed_stocks", "tone_perception"),
    "Labels in a taxonomy": (
        "news_groups", "news_topics", "image_codes", "gene_functions", "weight_curves",
    ),
    "Vectors and networks": ("word_vectors", "digit_metric", "proxies", "trim_network"),
    "Loads": ("load_zones",),
}  # fmt: skip


#: Arguments before the picture.
ARGUMENTS = {"latent_pictures": ["tabletop"]}


@dataclass(frozen=True)
class Example:
    """A script, and what its docstring says."""

    name: str
    title: str
    needs: str
    text: str

    @classmethod
    def of(cls, name: str) -> Example:
        """Read a script."""
        source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
        title, _, rest = (ast.get_docstring(ast.parse(source)) or "").partition("\n")
        needs = re.search(r"^ *pip install (.+)$", rest, re.M)
        paragraphs = [part for part in rest.split("\n\n") if part.strip()]
        told = [p for p in paragraphs if not p.startswith(" ") and "pip install" not in p]
        text = " ".join(told[0].split()) if told else ""
        return cls(name, title, needs[1] if needs else "", text)


def helpers() -> list[str]:
    """Modules that examples share, by name."""
    files = (file for file in EXAMPLES.glob("*.py") if "__main__" not in file.read_text())
    return sorted(file.stem for file in files)


def examples() -> list[str]:
    """Scripts that draw a picture, by name."""
    found = (file for file in EXAMPLES.glob("*.py") if "picture" in file.read_text())
    return sorted(file.stem for file in found if file.stem not in helpers())


# --- pictures ----------------------------------------------------------------------------------


def keep_picture(name: str) -> dict[str, object] | None:
    """Run an example and keep what it draws; None if it draws nothing here."""
    data = os.environ.get("SUBLEARN_DATA", str(ROOT.parent / "shared" / "data"))
    surroundings = {**os.environ, "SUBLEARN_DATA": data, "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder) / "picture.png"
        for options in ([], ["--small"]):
            began = time.perf_counter()
            script = [str(EXAMPLES / f"{name}.py"), *ARGUMENTS.get(name, ())]
            command = [sys.executable, *script, str(picture), *options]
            try:
                done = subprocess.run(
                    command, env=surroundings, capture_output=True, text=True, timeout=LIMIT,
                    cwd=folder,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                continue
            if done.returncode == 0 and picture.exists():
                shrink(picture, GALLERY / f"{name}.png")
                seconds = time.perf_counter() - began
                return {"seconds": round(seconds, 1), "options": " ".join(options)}
            print(name, options, done.stdout[-300:], done.stderr[-600:], file=sys.stderr)
    return None


def shrink(source: Path, target: Path) -> None:
    """A picture of the page's width, with few colours: a tenth of the bytes."""
    from PIL import Image

    target.parent.mkdir(parents=True, exist_ok=True)
    with Image.open(source) as image:
        flat = Image.new("RGB", image.size, "white")
        flat.paste(image, mask=image.getchannel("A") if image.mode == "RGBA" else None)
        height = round(flat.height * WIDTH / flat.width)
        small = flat.resize((WIDTH, height), Image.Resampling.LANCZOS)
        small.quantize(128).save(target, optimize=True)


def known() -> dict[str, dict[str, object]]:
    """What is kept of each example."""
    return json.loads(KEPT.read_text()) if KEPT.exists() else {}


def pictures(names: list[str]) -> int:
    """Run examples one after another; 1 if one of them drew nothing."""
    kept, failed = known(), False
    for name in names or [name for names in SECTIONS.values() for name in names]:
        found = keep_picture(name)
        print(name, found, flush=True)
        failed |= found is None
        if found is not None:
            kept[name] = found
            KEPT.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n")
    return int(failed)


# --- the page ----------------------------------------------------------------------------------


def page() -> str:
    """The gallery as Markdown."""
    kept, parts = known(), [_HEAD]
    for section, names in SECTIONS.items():
        shown = [name for name in names if name in kept]
        if shown:
            parts += [f"## {section}", *(_entry(Example.of(name), kept[name]) for name in shown)]
    return "\n\n".join(parts) + "\n"


_HEAD = """<!-- Written by tools/gallery.py; do not edit. -->

# Gallery

Every picture is drawn by a script of about a page that you can run, read and change. Times are
those of one thread of a small machine. An example on data that does not come with the package
looks for a folder of its name in the folder that the variable SUBLEARN_DATA names; without it, it
says so and ends."""


def _entry(example: Example, kept: dict[str, object]) -> str:
    options = f" with `{kept['options']}`" if kept["options"] else ""
    needs = f" Needs `pip install {example.needs}`." if example.needs else ""
    links = (
        f"[Script](files/{example.name}.py) · [Notebook](files/{example.name}.ipynb) · "
        f"{_told(float(str(kept['seconds'])))}{options}.{needs}"
    )
    return (
        f"### {example.title}\n\n![{example.title}]({example.name}.png){{ loading=lazy }}\n\n"
        f"{example.text}\n\n{links}"
    )


def _told(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 100 else f"{seconds / 60:.0f} minutes"


# --- files to download -------------------------------------------------------------------------


def notebook(name: str) -> dict[str, object]:
    """A script as a notebook: its words, its code, a cell that runs it and shows the picture."""
    example, source = Example.of(name), (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    lines = source.splitlines(keepends=True)
    first = tree.body[1].lineno - 1
    last = next(node.lineno for node in tree.body if isinstance(node, ast.If)) - 1
    code = "".join(lines[first:last]).strip()
    needed = [h for h in helpers() if re.search(rf"^(?:from|import) {h}\b", source, re.M)]
    beside = f"\n\nPut {', '.join(f'`{h}.py`' for h in needed)} beside it." if needed else ""
    words = ", ".join(f'"{word}"' for word in (name, *ARGUMENTS.get(name, ()), f"{name}.png"))
    call = (
        f'import sys\n\nsys.argv = [{words}]  # add "--small" for a quick look\n'
        f'main()\n\nfrom IPython.display import Image\n\nImage("{name}.png")'
    )
    cells = [
        ("markdown", f"# {example.title}\n\n{example.text}{beside}"),
        ("code", code),
        ("code", call),
    ]
    return {
        "cells": [_cell(kind, text, n) for n, (kind, text) in enumerate(cells)],
        "metadata": {"language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _cell(kind: str, text: str, n: int) -> dict[str, object]:
    found: dict[str, object] = {
        "cell_type": kind, "id": f"cell-{n}", "metadata": {}, "source": text.splitlines(True)
    }  # fmt: skip
    return found | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def files() -> None:
    """Scripts, notebooks and shared modules of the gallery; those of the tutorials."""
    shutil.rmtree(FILES, ignore_errors=True)
    FILES.mkdir(parents=True)
    for name in [*known(), *helpers()]:
        shutil.copy(EXAMPLES / f"{name}.py", FILES)
    for name in known():
        (FILES / f"{name}.ipynb").write_text(json.dumps(notebook(name), indent=1) + "\n")
    tutorials.files()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["pictures", "page", "files"])
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    if options.what == "pictures":
        return pictures(options.names)
    if options.what == "page":
        PAGE.write_text(page(), encoding="utf-8")
    else:
        files()
    return 0


if __name__ == "__main__":
    sys.exit(main())
