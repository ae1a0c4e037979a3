"""How a fitted model shows itself in a notebook: scikit-learn's picture, and what the fit reached.

The figures stand below the picture: the certificate and whether it is what was asked for, the
objective, iterations, seconds, and sizes.
"""

from __future__ import annotations

import math
from html import escape
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["FitOnDisplay", "fit_in_words"]

_STYLE = (
    "font-family:monospace;font-size:smaller;border-collapse:collapse;margin:.3em 0 .6em 0;"
    "background:transparent"
)
_CELL = "padding:.1em .8em .1em 0;text-align:left;border:0"


def fit_in_words(model: Any) -> dict[str, str]:
    """What a fit reached and how large the model is, by name; empty if it is not fitted.

    >>> from sublearn.linear import SparseLinearRegression
    >>> fit_in_words(SparseLinearRegression())
    {}
    """
    found: dict[str, str] = {}
    if not hasattr(model, "certificate_"):
        return found
    found["certificate"] = _certificate(model)
    for name in ("objective_", "n_iter_"):
        if hasattr(model, name):
            value = getattr(model, name)
            shown = f"{value:,}" if isinstance(value, (int, np.integer)) else f"{value:.6g}"
            found[{"n_iter_": "iterations"}.get(name, name.rstrip("_"))] = shown
    trace = getattr(model, "trace_", None)
    if trace is not None and len(trace) and "seconds" in trace.columns:
        found["seconds"] = f"{float(trace['seconds'].max()):.3g}"
    if hasattr(model, "n_features_in_"):
        found["features"] = f"{model.n_features_in_:,}"
    classes = getattr(model, "classes_", None)
    if classes is not None:
        found["labels"] = f"{len(classes):,}"
    return found | _weights(model)


def _certificate(model: Any) -> str:
    reached, tol = float(model.certificate_), getattr(model, "tol", None)
    shown = f"{reached:.2e}" if math.isfinite(reached) else "none known"
    if not isinstance(tol, (int, float)) or isinstance(tol, bool):
        return shown
    return f"{shown}, {'within' if reached <= tol else 'above'} tol={tol:g}"


def _weights(model: Any) -> dict[str, str]:
    coef: Any = getattr(model, "coef_", None)
    if not (sp.issparse(coef) or isinstance(coef, np.ndarray)):
        return {}
    n_all = math.prod(coef.shape)
    n_left = int(coef.count_nonzero() if sp.issparse(coef) else np.count_nonzero(coef))
    return {"weights": f"{n_left:,} of {n_all:,} are not 0 ({n_left / max(n_all, 1):.2%})"}


class FitOnDisplay:
    """Extends scikit-learn's picture of an estimator in notebooks; stands before `BaseEstimator`.

    An estimator without a certificate of its own shows that of its `classifier_`.
    """

    def _repr_html_inner(self) -> str:
        shown: Any = super()
        return str(shown._repr_html_inner()) + self._fit_as_html()

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        shown: Any = super()
        bundle: dict[str, Any] = shown._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] += self._fit_as_html()
        return bundle

    def _fit_as_html(self) -> str:
        facts = fit_in_words(self) or fit_in_words(getattr(self, "classifier_", None))
        if not facts:
            return ""
        rows = "".join(
            f'<tr style="background:transparent"><th style="{_CELL}">{escape(name)}</th>'
            f'<td style="{_CELL}">{escape(value)}</td></tr>'
            for name, value in facts.items()
        )
        return f'<table class="sublearn-fit" style="{_STYLE}">{rows}</table>'
