"""How the data of a saved model were prepared: new data must be made the same way.

A model that `sublearn fit` saved has notes on it; the command line and the server ask here.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

__all__ = ["are_empty", "feature_names", "is_text_model", "needs_unit_rows", "unit_rows"]


def is_text_model(model: object) -> bool:
    """Whether a model takes raw text."""
    return hasattr(model, "vectorizer_")


def are_empty(rows: np.ndarray | sparse.csr_matrix | list[str]) -> np.ndarray:
    """Which rows are texts without any character but white space: there is nothing to answer."""
    if isinstance(rows, list):
        return np.array([not text.strip() for text in rows], dtype=bool)
    return np.zeros(rows.shape[0], dtype=bool)


def feature_names(model: BaseEstimator) -> np.ndarray | None:
    """Names of the columns that the model was fitted to, if it knows them."""
    if is_text_model(model):
        return model.feature_names_
    names = getattr(model, "notes_", {}).get("feature_names")
    if names is None:
        names = getattr(model, "feature_names_", None)
    return getattr(model, "feature_names_in_", None) if names is None else names


def needs_unit_rows(model: object) -> bool:
    """Whether rows were scaled to length 1 before the model was fitted."""
    return bool(getattr(model, "notes_", {}).get("normalize", False))


def unit_rows(X: np.ndarray | sparse.csr_matrix) -> None:
    """Scale each row to Euclidean length 1, in place; rows of zeros stay."""
    from sklearn.preprocessing import normalize

    if X.shape[0]:  # scikit-learn refuses a matrix without rows
        normalize(X, copy=False)
