r"""What stage two of HML is given of stage one: scores between 0 and 1 that can be compared.

Two maps, both chosen on held-out rows. Margins of an estimator without probabilities become such
by Platt's line (`margins.py`), one for all labels. And the score of an inner label may take in
what its leaves say, since their models were learned apart from its own:

.. math:: u_t' = \sqrt{u_t \Bigl(1 - \prod_{l \in \mathrm{leaves}(t)} (1 - u_l)\Bigr)}
"""

from __future__ import annotations

import numpy as np

from sublearn.hierarchy.margins import Line, Margins, learn_lines
from sublearn.hierarchy.taxonomy import Taxonomy

__all__ = ["line_of_margins", "with_leaves"]

_MOST_PAIRS = 2**20  # of a held-out row and a label
_MOST_SURE = 1.0 - 1e-6


def line_of_margins(margins: np.ndarray, truth: np.ndarray) -> Line:
    """Platt's line of margins of held-out rows; every k-th row if there are very many."""
    step = 1 + margins.size // _MOST_PAIRS
    values = margins[::step].ravel().astype(np.float64)
    return learn_lines({0: Margins(values, truth[::step].ravel())})[0]


def with_leaves(scores: np.ndarray, taxonomy: Taxonomy) -> np.ndarray:
    """Scores in which those of inner labels are geometric means with what their leaves say."""
    inner = np.unique(taxonomy.indices)
    above = taxonomy.ancestor_matrix[taxonomy.leaves][:, inner].astype(scores.dtype)
    none = np.log1p(-np.minimum(scores[:, taxonomy.leaves], _MOST_SURE)) @ above
    mixed = scores.copy()
    mixed[:, inner] = np.sqrt(np.maximum(mixed[:, inner] * -np.expm1(none), 0.0))
    return mixed
