"""The list of words finds what it should, and leaves code alone."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import words  # noqa: E402


@pytest.mark.parametrize(
    "text",
    [
        "nobody waits",
        "In order to fit",
        "its behavior",
        "minimized over",
        "of the the fit",
        "etc. are",
    ],
)
def test_a_word_of_the_list_is_found_on_its_line(text):
    ((line, told),) = words.findings(f"First.\n{text}\n")
    assert line == 2
    assert ": write " in told


@pytest.mark.parametrize(
    "text",
    [
        "`color`, `normalize=` and `optimize()`",
        "```python\nnobody = optimize()\n```",
        "[link](https://behavior.org/nobody)",
        "who it is, minimised over the last of them",
    ],
)
def test_code_addresses_and_good_words_pass(text):
    assert list(words.findings(text)) == []


def test_docstrings_are_read_and_comments_are_not():
    source = '"""Nobody."""\n# nobody\ndef f():\n    """Somebody\n    else."""\n'
    assert [line for line, _ in words.docstrings(source)] == [1, 4]
