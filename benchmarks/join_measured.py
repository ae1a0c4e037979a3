"""Join measured pages that were put together from several runs.

    python benchmarks/join_measured.py docs/measured/*.md

Tables stay as they are; the sections on where and how become one, at the end.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.provenance import joined_page


def main() -> int:
    parser = argparse.ArgumentParser(description="Join measured pages made of several runs")
    parser.add_argument("pages", nargs="+", type=Path)
    for page in parser.parse_args().pages:
        text = page.read_text()
        joined = joined_page(text)
        if joined != text:
            page.write_text(joined)
            print(f"{page}: {len(text.splitlines())} lines, now {len(joined.splitlines())}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
