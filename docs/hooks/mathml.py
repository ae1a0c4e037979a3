"""Markdown extension: TeX formulas become MathML while the site is built.

Browsers draw MathML themselves, so a page needs no script and no network to show its formulas.
"""

import html
import re

from latex2mathml.converter import convert
from markdown import Extension, Markdown
from markdown.postprocessors import Postprocessor

_FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<tex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)


def with_mathml(page: str) -> str:
    """Replace what pymdownx.arithmatex marked."""
    return _FORMULA.sub(_mathml, page)


def _mathml(match: re.Match[str]) -> str:
    tex = html.unescape(match["tex"]).strip()
    display = "block" if match["tag"] == "div" else "inline"
    try:
        drawn = convert(tex, display=display)
    except Exception as error:
        raise ValueError(f"MathML cannot draw the formula {tex} ({error!r})") from error
    unknown = re.search(r">(\\[a-zA-Z]+)<", drawn)  # the converter lets such words through
    if unknown:
        raise ValueError(f"MathML cannot draw {unknown[1]} in the formula {tex}")
    return f'<{match["tag"]} class="formula">{drawn}</{match["tag"]}>'


class _Formulas(Postprocessor):
    def run(self, text: str) -> str:
        return with_mathml(text)


class MathMLExtension(Extension):
    """Draws the formulas of a page, after everything else has been made."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Called by Markdown."""
        md.postprocessors.register(_Formulas(md), "mathml", -10)


def makeExtension(**settings: object) -> MathMLExtension:
    """Called by Markdown, which finds extensions by the name of their module."""
    return MathMLExtension(**settings)
