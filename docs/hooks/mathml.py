"""MkDocs hook: TeX formulas become MathML while the site is built.

Browsers draw MathML themselves, so a page needs no script and no network to show its formulas.
"""

import html
import re

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

_FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<tex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)


def on_page_content(content: str, **_: object) -> str:
    """Replace what pymdownx.arithmatex marked."""
    return _FORMULA.sub(_mathml, content)


def _mathml(match: re.Match[str]) -> str:
    tex = html.unescape(match["tex"]).strip()
    display = "block" if match["tag"] == "div" else "inline"
    try:
        drawn = convert(tex, display=display)
    except Exception as error:
        raise PluginError(f"MathML cannot draw the formula {tex} ({error!r})") from error
    unknown = re.search(r">(\\[a-zA-Z]+)<", drawn)  # the converter lets such words through
    if unknown:
        raise PluginError(f"MathML cannot draw {unknown[1]} in the formula {tex}")
    return f'<{match["tag"]} class="formula">{drawn}</{match["tag"]}>'
