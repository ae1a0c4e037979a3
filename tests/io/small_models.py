"""A small fitted model of every kind that can be saved, and questions for a loaded one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).parents[1] / "estimators"))

from estimator_cases import ALL, CASES, answers, listed, sentences, texts, words

from sublearn.structured import Sample

__all__ = ["CHANGED", "SMALL_MODELS", "ask"]

#: Models whose fit takes seconds; other rows have files of the same form.
_SLOW = ("LoadForecaster kmeans", "LoadForecaster two baselines")
#: Take dense rows only.
_DENSE = ("DenseExtremeClassifier", "LatentFeatureLasso", "MIPSIndex", "SparseInverseCovariance")


def _calibrated(method: str) -> Any:
    model = ALL["PPDSparseClassifier of lists"].fit()
    return model.calibrate(*listed(), method, min_positives=2)


def _without_a_row() -> Any:
    index = CASES["MIPSIndex"].fit()
    index.remove([3])
    return index


#: Models that were changed after their fit.
CHANGED: dict[str, Callable[[], Any]] = {
    "PPDSparseClassifier compressed": lambda: ALL["PPDSparseClassifier of lists"].fit().compress(8),
    "PPDSparseClassifier sigmoid": lambda: _calibrated("sigmoid"),
    "PPDSparseClassifier isotonic": lambda: _calibrated("isotonic"),
    "MIPSIndex without a row": _without_a_row,
}

#: Name of a case to what makes its model.
SMALL_MODELS: dict[str, Callable[[], Any]] = {
    name: case.fit for name, case in ALL.items() if name not in _SLOW
} | CHANGED


def _question(case: str, n_features: int) -> Any:
    """What a model of a case is asked: its own kind of rows, of the width that it has now."""
    kind = case.split()[0]
    if kind in ("LabelReranker", "TextTagger", "SkipGram"):
        return (sentences if kind == "SkipGram" else texts)()[0][:3]
    if case == "ChainSVM of words":
        return words()[0][:2]
    rows = np.random.default_rng(7).normal(size=(4, min(n_features, 10_000)))
    if kind == "ChainSVM":
        return [rows]
    if kind == "StructuralSVM":
        is_star = case.endswith("stars")
        return [Sample(rows, {"vote": [[0, 1, 2, 3]]}) if is_star else Sample.chain(rows)]
    return rows if kind in _DENSE else sp.csr_matrix(rows)


def ask(case: str, model: Any) -> list[Any]:
    """Answers of a model to all that it can be asked; errors are raised."""
    return answers(model, _question(case, int(getattr(model, "n_features_in_", 0))))
