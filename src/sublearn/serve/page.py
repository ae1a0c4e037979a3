"""The page, and the policy by which a browser runs what is in it and nothing else."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files

__all__ = ["PAGE", "PAGE_HEADERS"]


def _joined() -> str:
    """The page with its style and script inside, as it is sent."""
    folder = files("sublearn.serve")
    page, style, script = (
        folder.joinpath(f"page.{ending}").read_text(encoding="utf-8")
        for ending in ("html", "css", "js")
    )
    return page.replace("/* page.css */", style).replace("/* page.js */", script)


def _policy_of(page: str) -> str:
    hashes = {
        tag: " ".join(
            f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
            for text in re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        )
        for tag in ("script", "style")
    }
    return (
        f"default-src 'none'; script-src {hashes['script']}; style-src {hashes['style']}; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )


PAGE = _joined()
PAGE_HEADERS = {"content-security-policy": _policy_of(PAGE)}
