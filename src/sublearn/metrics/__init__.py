"""How good predictions are: rankings cut at k, label sets, probabilities; and as `scoring`."""

from sublearn.metrics.at_k import (
    f1_at_k,
    ndcg_at_k,
    precision_at_k,
    psndcg_at_k,
    psp_at_k,
    r_precision,
    recall_at_k,
)
from sublearn.metrics.bootstrap import (
    BootstrapInterval,
    bootstrap_difference,
    bootstrap_interval,
)
from sublearn.metrics.by_label import (
    FrequencyBand,
    frequency_bands,
    macro_f1_at_k,
    macro_precision_at_k,
    macro_recall_at_k,
)
from sublearn.metrics.calibration import (
    Reliability,
    brier_score,
    expected_calibration_error,
    reliability_curve,
)
from sublearn.metrics.hierarchical import (
    LevelScores,
    f1_by_level,
    hierarchical_f1,
    hierarchical_precision,
    hierarchical_recall,
)
from sublearn.metrics.label_sets import (
    f1_macro,
    f1_micro,
    f1_samples,
    hamming_loss,
    jaccard_samples,
)
from sublearn.metrics.propensity import propensities
from sublearn.metrics.scorers import ndcg_scorer, precision_scorer, recall_scorer

__all__ = [
    "BootstrapInterval",
    "FrequencyBand",
    "LevelScores",
    "Reliability",
    "bootstrap_difference",
    "bootstrap_interval",
    "brier_score",
    "expected_calibration_error",
    "f1_at_k",
    "f1_by_level",
    "f1_macro",
    "f1_micro",
    "f1_samples",
    "frequency_bands",
    "hamming_loss",
    "hierarchical_f1",
    "hierarchical_precision",
    "hierarchical_recall",
    "jaccard_samples",
    "macro_f1_at_k",
    "macro_precision_at_k",
    "macro_recall_at_k",
    "ndcg_at_k",
    "ndcg_scorer",
    "precision_at_k",
    "precision_scorer",
    "propensities",
    "psndcg_at_k",
    "psp_at_k",
    "r_precision",
    "recall_at_k",
    "recall_scorer",
    "reliability_curve",
]
