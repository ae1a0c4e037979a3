"""The code that helps to build the site: docstrings to Markdown, formulas to MathML."""

import importlib.util
from pathlib import Path

import pytest

HOOKS = Path(__file__).resolve().parents[2] / "docs" / "hooks"


def _load(name: str, needs: str):
    pytest.importorskip(needs, reason="needs the extra `docs`")
    spec = importlib.util.spec_from_file_location(f"sublearn_hook_{name}", HOOKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def to_markdown():
    return _load("docstrings", "griffe").to_markdown


@pytest.fixture
def mathml():
    return _load("mathml", "latex2mathml")


def test_a_role_becomes_code_and_a_formula_stays_one(to_markdown):
    text = "See :func:`watch` and :class:`~sublearn.Trace`; weight :math:`\\lambda`."
    assert to_markdown(text) == "See `watch` and `sublearn.Trace`; weight \\(\\lambda\\)."


def test_a_math_block_becomes_a_displayed_formula(to_markdown):
    text = "Minimises\n\n.. math::\n    a +\n    b\n\nover a.\n"
    assert to_markdown(text) == "Minimises\n\n\n\\[\na +\nb\n\\]\n\nover a.\n"


def test_a_bare_doctest_becomes_a_code_block(to_markdown):
    text = "One row.\n\n>>> 1 + 1\n2\n>>> 3\n3\n\nEnd."
    assert to_markdown(text) == "One row.\n\n```pycon\n>>> 1 + 1\n2\n>>> 3\n3\n```\n\nEnd."


def test_a_citation_and_its_reference_lose_their_marks(to_markdown):
    text = "As in [1]_, and x[0]_y.\n\n.. [1] A thesis,\n   2018."
    assert to_markdown(text) == "As in \\[1\\], and x[0]_y.\n\n\\[1\\] A thesis,\n   2018."


def test_formulas_become_mathml_and_other_text_stays(mathml):
    inline = '<p>a <span class="arithmatex">\\(x &lt; 1\\)</span> b</p>'
    drawn = mathml.with_mathml(inline)
    assert drawn.startswith('<p>a <span class="formula"><math')
    assert "<mi>x</mi>" in drawn
    assert drawn.endswith("</math></span> b</p>")
    assert 'display="block"' in mathml.with_mathml('<div class="arithmatex">\\[y\\]</div>')
    assert mathml.with_mathml("<code>\\(x\\)</code>") == "<code>\\(x\\)</code>"


@pytest.mark.parametrize("tex", ["\\left( a", "x_", "\\nosuchword x"])
def test_names_a_formula_that_cannot_be_drawn(mathml, tex):
    with pytest.raises(ValueError, match="MathML cannot draw"):
        mathml.with_mathml(f'<span class="arithmatex">\\({tex}\\)</span>')
