"""Griffe extension: the few reStructuredText marks that docstrings use, turned into Markdown.

Docstrings are written for `help()` and for scikit-learn's readers (roles, `.. math::`, bare
doctests); the site is Markdown.
"""

import re
import textwrap
from typing import Any

import griffe

_MATH_ROLE = re.compile(r":math:`([^`]+)`")
_OTHER_ROLE = re.compile(r":(?:py:)?[a-z]+:`~?([^`]+)`")
_CITATION = re.compile(r"\[(\d+)\]_(?!\w)")
_REFERENCE = re.compile(r"^( *)\.\. \[(\d+)\] ", re.MULTILINE)
_MATH_BLOCK = re.compile(r"^( *)\.\. math::\n((?:\n|\1 +.*(?:\n|$))+)", re.MULTILINE)
_DOCTEST = re.compile(r"^( *)>>> .*(?:\n\1\S.*)*", re.MULTILINE)


def to_markdown(docstring: str) -> str:
    """The docstring with formulas, references and examples as Markdown."""
    docstring = _MATH_BLOCK.sub(_formula, docstring)
    docstring = _MATH_ROLE.sub(r"\\(\1\\)", docstring)
    docstring = _REFERENCE.sub(r"\1\\[\2\\] ", _CITATION.sub(r"\\[\1\\]", docstring))
    docstring = _OTHER_ROLE.sub(r"`\1`", docstring)
    return _DOCTEST.sub(r"\1```pycon\n\g<0>\n\1```", docstring)


def _formula(match: re.Match[str]) -> str:
    body = textwrap.indent(textwrap.dedent(match[2]).strip(), match[1])
    return f"\n{match[1]}\\[\n{body}\n{match[1]}\\]\n\n"


class MarkdownDocstrings(griffe.Extension):
    """Applies `to_markdown` to every docstring that is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called by griffe once an object's data is complete."""
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(obj.docstring.value)
