"""How likely it is that a true label was noticed by whoever labelled the data."""

from __future__ import annotations

from collections.abc import Sized
from typing import TYPE_CHECKING, cast

import numpy as np
import scipy.sparse as sp

from sublearn.metrics.names import find_positions
from sublearn.typing import LabelsLike
from sublearn.validation import encode_labels
from sublearn.validation.values import is_finite_number, show

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["propensities"]


def propensities(
    y: LabelsLike, *, A: float = 0.55, B: float = 1.5, classes: ArrayLike | None = None
) -> np.ndarray:
    r"""Propensity of each label in the model of Jain, Prabhu and Varma (KDD 2016).

    .. math::
        p_l = \frac{1}{1 + C e^{-A \log(N_l + B)}}, \qquad C = (\log N - 1) (B + 1)^A

    with :math:`N` training samples of which :math:`N_l` carry label :math:`l`.

    Parameters
    ----------
    y : array-like, sparse matrix or list of label lists
        Labels of the training data, in any form that `fit` takes. At least 3 samples (below,
        :math:`C` is negative).
    A, B : float
        The usual choices are 0.5 and 0.4 for data from Wikipedia, 0.6 and 2.6 for data from
        Amazon, and 0.55 and 1.5 for all other.
    classes : array-like, optional
        Names of the labels in the order wanted; labels not in `y` count 0 samples. By default the
        columns of an indicator matrix, or the sorted names: `classes_` of an estimator fitted to
        `y`.

    Returns
    -------
    ndarray of shape (n_labels,)
        In (0, 1).

    Examples
    --------
    >>> propensities(np.array([[1, 0], [1, 0], [1, 1]])).round(3)
    array([0.933, 0.91 ])
    """
    _refuse_other_constants(A, B)
    n_samples = cast("sp.spmatrix", y).shape[0] if sp.issparse(y) else len(cast("Sized", y))
    if n_samples < 3:
        raise ValueError(f"y must have at least 3 samples, got {n_samples}")
    labels = encode_labels(y, n_samples, for_fit=False)
    counts = labels.counts()
    if classes is not None:
        position = find_positions(labels.classes, np.asarray(classes), argument="classes")
        counts = np.append(counts, 0)[position]
    C = (np.log(n_samples) - 1) * (B + 1) ** A
    return 1 / (1 + C * (counts + B) ** -A)


def _refuse_other_constants(A: float, B: float) -> None:
    for name, value in (("A", A), ("B", B)):
        if not (is_finite_number(value) and value > 0):
            raise ValueError(f"{name} must be a positive number, got {show(value)}")
