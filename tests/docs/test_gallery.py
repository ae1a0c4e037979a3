"""The gallery shows every example, and its files are sound."""

import ast
import sys
from pathlib import Path

import pytest

from sublearn.io.models import MODELS

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import draw_choosing  # noqa: E402
import draw_front  # noqa: E402
import gallery  # noqa: E402

NAMES = [name for names in gallery.SECTIONS.values() for name in names]


def test_every_example_that_draws_has_a_place_and_a_picture():
    assert sorted(NAMES) == gallery.examples()
    assert sorted(NAMES) == sorted(gallery.known())
    assert sorted(NAMES) == sorted(file.stem for file in gallery.GALLERY.glob("*.png"))


def test_the_page_is_that_of_the_scripts():
    assert gallery.PAGE.read_text(encoding="utf-8") == gallery.page(), (
        "run python3 tools/gallery.py page"
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_holds_the_code_of_its_script(name):
    cells = gallery.notebook(name)["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    defined = [node.name for node in ast.parse(code[0]).body if isinstance(node, ast.FunctionDef)]
    assert "main" in defined
    ast.parse(code[1])
    title = gallery.Example.of(name).title
    assert "".join(cells[0]["source"]).startswith(f"# {title}")


def test_the_picture_of_the_front_page_is_drawn_from_the_measured_table():
    text = draw_front.TABLES.read_text(encoding="utf-8")
    found = draw_front.figures(text)
    assert set(found) == set(draw_front.SHOWN)
    drawn = draw_front.drawn(found)
    assert drawn == (ROOT / "docs" / "pictures" / "front.svg").read_text(encoding="utf-8"), (
        "run python3 tools/draw_front.py docs/pictures/front.svg"
    )


def test_the_picture_that_chooses_a_method_is_drawn_anew_and_leads_to_pages():
    drawn = (ROOT / "docs" / "pictures" / "choosing.svg").read_text(encoding="utf-8")
    assert drawn == draw_choosing.drawn(), (
        "run python3 tools/draw_choosing.py docs/pictures/choosing.svg"
    )
    for answers in draw_choosing.QUESTIONS.values():
        for answer in answers:
            page = ROOT / "docs" / f"{answer.page}.md"
            assert answer.method in page.read_text(encoding="utf-8"), page


@pytest.mark.parametrize("name", sorted(set(MODELS) - {"SparseNetwork"}))  # what deep_trim returns
def test_the_page_that_chooses_a_method_names_every_class(name):
    assert name in (ROOT / "docs" / "choosing.md").read_text(encoding="utf-8")
