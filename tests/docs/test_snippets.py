"""The Python blocks of README.md and of the site run as they stand.

The blocks of one page share a namespace, in order. A block after a line `<!-- fragment: why -->` is
not run. Pages find two small data files, `train.txt` and `test.txt`, in the folder they run in.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from sublearn.io import save_xmc

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"(?P<fragment>^<!-- fragment: .+ -->\n)?^```python\n(?P<code>.*?)^```$", re.M | re.S
)


@dataclass(frozen=True)
class Snippet:
    """A block of code and the line of the page on which it begins."""

    code: str
    line: int


def snippets(text):
    return [
        Snippet(match["code"], text[: match.start("code")].count("\n") + 1)
        for match in BLOCK.finditer(text)
        if not match["fragment"]
    ]


def run_page(path):
    """Run a page's blocks; a traceback names the page and the line on it."""
    namespace = {"__name__": "snippets"}
    for snippet in snippets(path.read_text(encoding="utf-8")):
        source = "\n" * (snippet.line - 1) + snippet.code
        exec(compile(source, str(path), "exec"), namespace)
    return namespace


@pytest.fixture
def folder_with_data(tmp_path, monkeypatch):
    """A folder of its own with data in which label k speaks through feature k."""
    rng = np.random.default_rng(0)
    for name, n_rows in (("train.txt", 80), ("test.txt", 20)):
        labels = rng.random((n_rows, 8)) < 0.2
        words = rng.random((n_rows, 22)) * (rng.random((n_rows, 22)) < 0.2)
        save_xmc(tmp_path / name, np.hstack([labels, words]), labels)
    monkeypatch.chdir(tmp_path)
    return tmp_path


RUNNABLE = [page for page in PAGES if snippets(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_page_runs(page, folder_with_data):
    run_page(page)


def test_the_pages_that_newcomers_read_are_among_them():
    names = {page.relative_to(ROOT).as_posix() for page in RUNNABLE}
    assert {"README.md", "docs/index.md", "docs/getting_started.md"} <= names


def test_the_first_example_learns_and_certifies(folder_with_data):
    found = run_page(ROOT / "README.md")
    assert found["labels"].shape == (20, 5)
    assert found["model"].certificate_ <= found["model"].tol
    assert found["precision_at_k"](found["Y_test"], found["labels"], k=1) > 0.5
    assert (folder_with_data / "model.safetensors").is_file()


def test_getting_started_gives_the_headings_it_promises(folder_with_data):
    found = run_page(ROOT / "docs" / "getting_started.md")
    assert found["pipeline"].predict(found["texts"]) == [sorted(h) for h in found["headings"]]


def test_blocks_share_a_namespace_and_errors_name_the_line(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n```python\na = 1\n```\n\n```python\nb = a + 1\n\n1 / (b - 2)\n```\n")
    with pytest.raises(ZeroDivisionError) as stopped:
        run_page(page)
    last = stopped.traceback[-1]
    assert (Path(last.path), last.lineno + 1) == (page, 10)


def test_a_fragment_with_a_reason_is_not_run():
    block = "```python\nnonsense\n```\n"
    assert snippets(f"<!-- fragment: an excerpt -->\n{block}") == []
    assert snippets(f"<!-- fragment: -->\n{block}") == [Snippet("nonsense\n", 3)]
    assert snippets("```bash\nls\n```\n") == []
