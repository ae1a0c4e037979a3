"""How good predictions are: rankings cut at k, with and without propensities, and label sets."""

from sublearn.metrics.at_k import (
    ndcg_at_k,
    precision_at_k,
    psndcg_at_k,
    psp_at_k,
    recall_at_k,
)
from sublearn.metrics.label_sets import f1_macro, f1_micro, hamming_loss
from sublearn.metrics.propensity import propensities

__all__ = [
    "f1_macro",
    "f1_micro",
    "hamming_loss",
    "ndcg_at_k",
    "precision_at_k",
    "propensities",
    "psndcg_at_k",
    "psp_at_k",
    "recall_at_k",
]
