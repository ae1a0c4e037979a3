"""Holds the prose to a list of words: spelling, and words that readers outside do not know.

    python3 tools/words.py            a line for each finding; exit code 1 if there is one

Read are README, the pages of docs/ without their code, and the docstrings of the package. What is
between backticks, in italics, in a formula or in a link's address is left alone.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: A pattern, and what to write in its place.
WORDS = {
    r"(?:any|some|no)body": "anyone, someone, no one, or who it is",
    r"utili[sz]e\w*": "use",
    r"leverag\w+": "use",
    r"in order to": "to",
    r"obviously|simply|basically|of course": "nothing: leave it out",
    r"i\.e\.": "that is",
    r"e\.g\.": "such as, or for example",
    r"etc\.": "the rest of the list, or such as",
    r"datas|informations": "data, information",
    r"behavior\w*": "behaviour",
    r"neighbor\w*": "neighbour",
    r"colou?rize\w*": "colour",
    r"(?:minim|maxim|penal|normal|initial)iz(?:e|es|ed|ing|ation|er)": "an s: -ise",
    r"recieve\w*|seperat\w+|occured|adress\w*|teh|wich|lenght|existant|dependant": "its spelling",
    r"succesful\w*|neccessary|accomodate\w*|definately|independant\w*|paralel\w*": "its spelling",
    r"(the|and|for|with|from|are|not|of|to|in|is) \1": "the word once",
}
_FOUND = {re.compile(rf"\b(?:{pattern})(?!\w)", re.I): told for pattern, told in WORDS.items()}
_CODE = re.compile(
    r"```.*?```|^\s*>>>.*?$|`[^`\n]*`|\]\([^)]*\)|<[^>\n]*>|\\\[.*?\\\]|\\\(.*?\\\)|https?://\S+|"
    r"^--8<--.*?$|(?<!\*)\*[^*\n]+\*(?!\*)",  # titles stand in italics
    re.S | re.M,
)


def prose(text: str) -> str:
    """A text with spaces in place of everything that is not prose, lines as they were."""
    return _CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def findings(text: str) -> Iterator[tuple[int, str]]:
    """Lines and what is wrong on them."""
    plain = prose(text)
    for pattern, told in _FOUND.items():
        for match in pattern.finditer(plain):
            yield plain.count("\n", 0, match.start()) + 1, f"{match[0]!r}: write {told}"


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Docstrings of a file, with the lines on which they begin."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=False)
            if text:
                yield node.body[0].lineno, text


def pages() -> list[Path]:
    """Pages that people write; the charts and tables of measured figures are written by scripts."""
    found = sorted((ROOT / "docs").rglob("*.md"))
    return [ROOT / "README.md", *(p for p in found if "measured" not in p.parts)]


def all_findings() -> Iterator[str]:
    """Of all pages and docstrings, with file and line."""
    for path in pages():
        for line, told in sorted(findings(path.read_text(encoding="utf-8"))):
            yield f"{path.relative_to(ROOT)}:{line}: {told}"
    for path in sorted((ROOT / "src").rglob("*.py")):
        for first, text in docstrings(path.read_text(encoding="utf-8")):
            for line, told in sorted(findings(text)):
                yield f"{path.relative_to(ROOT)}:{first + line - 1}: {told}"


def main() -> int:
    found = list(all_findings())
    print("\n".join(found) if found else f"{len(pages())} pages: no finding")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
