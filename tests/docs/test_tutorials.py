"""Pages of tutorials are those of their scripts, and each has what a tutorial promises.

That their code runs is the matter of test_snippets.py.
"""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import tutorials  # noqa: E402

NAMES = tutorials.names()


def page(name):
    return (tutorials.PAGES / f"{name}.md").read_text(encoding="utf-8")


def test_every_tutorial_has_a_page_and_the_first_one_names_it():
    assert sorted([*NAMES, "index"]) == sorted(file.stem for file in tutorials.PAGES.glob("*.md"))
    linked = re.findall(r"\((\w+)\.md\)", page("index"))
    assert sorted(linked) == NAMES
    assert all(f"tutorials/{name}.md" in (ROOT / "mkdocs.yml").read_text() for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_the_cells_of_its_script(name):
    rest = page(name)
    for cell in tutorials.cells(name):
        shown = f"```python\n{cell.text}\n```" if cell.is_code else cell.text
        assert shown in rest, f"run python3 tools/tutorials.py pages {name}"
        rest = rest.split(shown, 1)[1]


@pytest.mark.parametrize("name", NAMES)
def test_a_tutorial_shows_pictures_and_ends_with_what_to_try(name):
    text = page(name)
    pictures = re.findall(rf"!\[[^\]]+\]\(({name}-\d+\.png)\)", text)
    assert pictures
    assert pictures == sorted(file.name for file in tutorials.PAGES.glob(f"{name}-*.png"))
    last = tutorials.cells(name)[-1]
    assert not last.is_code
    assert last.text.startswith("## What to try on your data\n")
    assert tutorials.title(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_has_all_of_a_script(name):
    found = tutorials.notebook(name)["cells"]
    assert ["".join(cell["source"]) for cell in found] == [c.text for c in tutorials.cells(name)]
    for cell in found:
        if cell["cell_type"] == "code":
            compile("".join(cell["source"]), name, "exec")
