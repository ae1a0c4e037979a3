#!/usr/bin/env python3
"""Write the first page of the site from README.md, so that both say the same.

    python3 tools/front_page.py docs/index.md

Links to files that are pages of the site become links to pages; measured tables are part of the
page of their method. The last paragraph of README, with files of the repository, stays there.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_HEAD = "<!-- Written by tools/front_page.py from README.md; do not edit. -->"
_INCLUDE = re.compile(r'^--8<-- "(?:measured/)?([\w.]+)\.md"$', re.M)


def homes() -> dict[str, str]:
    """The page of the site that shows a table, by the name of its file."""
    found = {}
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for name in _INCLUDE.findall(page.read_text(encoding="utf-8")):
            found.setdefault(name, page.relative_to(ROOT / "docs").as_posix())
    return found


def front_page(readme: str) -> str:
    """README as a page of the site."""
    shown = homes()

    def link(match: re.Match[str]) -> str:
        path = match[1]
        if path.startswith("docs/measured/") or path == "docs/benchmarks_results.md":
            page = shown[Path(path).stem]
            return f"]({page}#measured)" if _has_measured(page) else f"]({page})"
        if path == "benchmarks/README.md":
            return "](benchmarks.md)"
        return f"]({path.removeprefix('docs/')})"

    body = readme[: readme.rindex("\n[Documentation]")].rstrip()
    return f"{_HEAD}\n\n" + re.sub(r"\]\(([\w./]+)\)", link, body) + "\n"


def _has_measured(page: str) -> bool:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.search(r"^## Measured$", text, re.M) is not None


if __name__ == "__main__":
    source = (ROOT / "README.md").read_text(encoding="utf-8")
    Path(sys.argv[1]).write_text(front_page(source), encoding="utf-8")
