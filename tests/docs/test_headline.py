"""The figures on the first screen are those of the measured pages, here and on the site."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\|.*\| (?P<ours>[\d.,]+) \| (?P<rival>[\d.,]+) [^|]+ \|$", re.M)


def rows(page):
    return [match.group() for match in ROW.finditer((ROOT / page).read_text(encoding="utf-8"))]


def cells(text):
    """All cells of its tables."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return {cell.strip() for line in lines for cell in line.strip("|").split("|")}


@pytest.mark.parametrize("row", rows("README.md"))
def test_each_figure_stands_on_the_page_behind_its_link(row):
    (page,) = re.findall(r"\]\((docs/(?:measured/\w+|benchmarks_results)\.md)\)", row)
    found = ROW.match(row)
    known = cells((ROOT / page).read_text(encoding="utf-8"))
    missing = {found["ours"], found["rival"]} - known
    assert not missing, f"README.md: {', '.join(missing)} is not on {page}; take the new figure"


def test_the_site_begins_with_readme():
    sys.path.insert(0, str(ROOT / "tools"))
    from front_page import front_page

    assert len(rows("README.md")) > 8
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    site = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert site == front_page(readme), "run python3 tools/front_page.py docs/index.md"
