#!/usr/bin/env python3
"""Checks that a tag, the package, the changelog and the citation speak of the same version.

    python3 tools/release.py v0.1.0

Exits with 1 and a line for each contradiction. The release workflow runs this before it builds.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TAG = re.compile(r"v(\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?)")


def contradictions(tag: str, root: Path = ROOT) -> list[str]:
    """What keeps this tree from being released under `tag`, as sentences."""
    named = TAG.fullmatch(tag)
    if named is None:
        return [f"the tag must be v and a version such as v1.2.3 or v1.2.3rc1, got {tag}"]
    version, found = named[1], []
    package = _find(r'^version\s*=\s*"([^"]+)"', root / "pyproject.toml")
    if package != version:
        found.append(f"pyproject.toml has version {package}, the tag {version}")
    cited = _find(r"^version:\s*(\S+)", root / "CITATION.cff")
    if cited != version:
        found.append(f"CITATION.cff has version {cited}, the tag {version}")
    section = _find(
        rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$([\s\S]*?)(?=^## |\Z)",
        root / "CHANGELOG.md",
    )
    if section is None:
        found.append(f"CHANGELOG.md has no section `## [{version}] - YYYY-MM-DD`")
    elif not re.search(r"^- ", section, re.MULTILINE):
        found.append(f"the section {version} of CHANGELOG.md lists no change")
    return found


def _find(pattern: str, file: Path) -> str | None:
    match = re.search(pattern, file.read_text(encoding="utf-8"), re.MULTILINE)
    return match[1] if match else None


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: release.py TAG", file=sys.stderr)
        return 2
    found = contradictions(arguments[0])
    for sentence in found:
        print(f"release.py: {sentence}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
