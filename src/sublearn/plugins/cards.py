"""Model cards in Markdown, written from the fitted model: what it is, how it was fitted, its sizes.

from sublearn.plugins.cards import model_card

text = model_card(model, title="Subjects of library records", licence="cc0-1.0")
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import sublearn
from sublearn.errors import ParameterError
from sublearn.fitting.html import fit_in_words
from sublearn.io.models import SavedModel, storable_params
from sublearn.kinds.base import kind_of
from sublearn.validation import InstanceOf, OrNone, check_arguments

__all__ = ["model_card"]

_MOST_SHOWN = 200  # characters of a value
_MOST_ROWS = 8  # of the trace
_LICENCE = re.compile(r"[a-z0-9][a-z0-9.+-]*")
_TO_FILL = "_To be filled in: {}_"
_TEXT = OrNone(InstanceOf(str))
_RULES = {"title": _TEXT, "licence": _TEXT, "data": _TEXT, "figures": OrNone(InstanceOf(Mapping))}


def model_card(
    model: BaseEstimator,
    *,
    title: str | None = None,
    licence: str | None = None,
    data: str | None = None,
    figures: Mapping[str, float] | None = None,
    file: str = "model.sublearn",
) -> str:
    """A model card: what a model gives, its certificate, sizes and parameters, how to use it.

    Parameters
    ----------
    model : estimator
        A fitted one that can be saved.
    title : str, optional
        Its heading; by default the name of the class.
    licence : str, optional
        Identifier of a licence, such as ``cc0-1.0`` or ``mit``. Without one, the card has a place
        for it.
    data : str, optional
        What it was trained on, in Markdown. Without it, the card has a place for it.
    figures : mapping of str to float, optional
        How good it is on held-out data, by the name of each measure.
    file : str, default="model.sublearn"
        The saved model that the card lies beside.

    Returns
    -------
    str
        Markdown with a head in YAML, as the Hugging Face Hub reads it.

    Examples
    --------
    >>> from sublearn.linear import SparseLinearRegression
    >>> card = model_card(SparseLinearRegression(l1=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 2]))
    >>> "## Certificate" in card, "license: unknown" in card
    (True, True)
    """
    check_arguments("model_card", locals(), _RULES)
    if not isinstance(model, SavedModel):
        raise ParameterError(
            f"model_card.model must be a model of this library, got a {type(model).__name__}"
        )
    if licence is not None and not _LICENCE.fullmatch(licence):
        raise ParameterError(
            "model_card.licence must be an identifier of small letters, digits, dots and hyphens, "
            f"such as cc-by-4.0, got {licence!r}"
        )
    check_is_fitted(model)
    kind = kind_of(model)
    parts = [
        _head(kind.name, licence),
        f"# {_plain(title or type(model).__name__)}",
        f"A {type(model).__name__} of sublearn {sublearn.__version__}. It gives {kind.gives}.",
        "## Data",
        data or _TO_FILL.format("what it was trained on, and under which licence."),
        "## Figures",
        _table(("measure", "value"), {k: f"{v:.6g}" for k, v in (figures or {}).items()})
        or _TO_FILL.format("how good it is on held-out data."),
        "## Certificate",
        _certificate(model),
        "## Sizes",
        _table(("what", "value"), _sizes(kind.describe(model))),
        "## Parameters",
        _table(("parameter", "value"), {k: _short(v) for k, v in storable_params(model).items()}),
        "## Use",
        f"```python\nimport sublearn\n\nmodel = sublearn.load({json.dumps(file)})\n```",
        "## Licence",
        licence or _TO_FILL.format("the licence of the model."),
    ]
    return "\n\n".join(parts) + "\n"


def _head(kind: str, licence: str | None) -> str:
    tags = "\n".join(f"- {tag}" for tag in ("sublearn", kind.replace("_", "-")))
    return f"---\nlibrary_name: sublearn\nlicense: {licence or 'unknown'}\ntags:\n{tags}\n---"


def _certificate(model: BaseEstimator) -> str:
    own = model if hasattr(model, "certificate_") else getattr(model, "classifier_", model)
    facts = _table(("of the fit", "value"), fit_in_words(own))
    if not facts:
        return "A model of this class has no certificate."
    said = (
        "The certificate bounds how far the objective is from its optimum, relative to the "
        "objective."
    )
    trace = getattr(own, "trace_", None)
    if trace is None or not len(trace):
        return f"{said}\n\n{facts}"
    rows = trace.rows()
    step = max(1, -(-(len(rows) - 1) // (_MOST_ROWS - 1)))
    shown = [*rows[:-1:step], rows[-1]]
    lines = [f"| {' | '.join(trace.columns)} |", f"|{'---|' * len(trace.columns)}"]
    lines += [f"| {' | '.join(f'{value:.6g}' for value in row.values())} |" for row in shown]
    return f"{said}\n\n{facts}\n\nHow it went ({len(shown)} of {len(rows)} rows):\n\n" + "\n".join(
        lines
    )


def _sizes(found: Mapping[str, object]) -> dict[str, str]:
    left = ("certificate", "top_weights", "trace")
    return {key.replace("_", " "): _short(one) for key, one in found.items() if key not in left}


def _short(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_short(one)}" for key, one in value.items())[:_MOST_SHOWN]
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 3]}..."


def _table(head: tuple[str, str], rows: Mapping[str, str]) -> str:
    if not rows:
        return ""
    lines = [f"| {head[0]} | {head[1]} |", "|---|---|"]
    return "\n".join(lines + [f"| {_plain(key)} | {_plain(one)} |" for key, one in rows.items()])


def _plain(text: str) -> str:
    """Text on one line that breaks no table and holds no HTML."""
    text = " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|")
    return text.replace("<", "&lt;").replace("`", "'")
