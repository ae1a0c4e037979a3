"""For tests of users: which checks of scikit-learn an estimator does not pass, and why.

>>> from sublearn.linear import SparseLogisticRegression
>>> for check, reason in expected_failed_checks(SparseLogisticRegression()).items():
...     print(check.removeprefix("check_"), "-", reason[:43])
sample_weight_equivalence_on_dense_data - equal problems have equal solutions up to t
sample_weight_equivalence_on_sparse_data - equal problems have equal solutions up to t
"""

from __future__ import annotations

from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import estimator_checks_generator

__all__ = ["NO_TABLE", "expected_failed_checks"]

#: Classes that learn from something else than one matrix with one label or number for each row,
#: which is what the checks pass.
NO_TABLE = {
    "ChainSVM": "learns from sequences of rows",
    "LabelReranker": "learns from texts",
    "LoadForecaster": "learns from one series and predicts what comes after it",
    "MIPSIndex": "learns nothing: it finds the vectors that it holds",
    "SkipGram": "learns from texts",
    "SparseNetwork": "a module of PyTorch",
    "StructuralSVM": "learns from graphs",
    "TextTagger": "learns from texts",
}

_TO_TOLERANCE = "equal problems have equal solutions up to tol, and the check compares to 1e-7"
_WEIGHTS = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
_LABELS = {"PDSparseClassifier", "PPDSparseClassifier"}
_LINEAR = {
    "GroupLinearRegression",
    "GroupLogisticRegression",
    "HierarchicalClassifier",
    "HierarchicalMultilabelClassifier",
    "SparseLinearRegression",
    "SparseLogisticRegression",
}
_TIGHT = 1e-10  # a tol at which they pass


def expected_failed_checks(estimator: BaseEstimator) -> dict[str, str]:
    """Checks that ask for what an estimator does not promise, each with its reason.

    Parameters
    ----------
    estimator : estimator
        One of this library's, with its parameters set: some of them decide.

    Returns
    -------
    dict of str to str
        Names of checks and reasons, as `check_estimator` and `parametrize_with_checks` of
        :mod:`sklearn.utils.estimator_checks` take them.
    """
    name = type(estimator).__name__
    if name in NO_TABLE:
        checks = estimator_checks_generator(estimator, legacy=True)
        return {_name_of(check): NO_TABLE[name] for _, check in checks}
    params = estimator.get_params()
    is_rough = name in _LABELS or (name in _LINEAR and params["tol"] > _TIGHT)
    reasons = dict.fromkeys(_WEIGHTS, _TO_TOLERANCE) if is_rough else {}
    if name in _LABELS and params["fit_intercept"] is not True:
        reasons["check_class_weight_classifiers"] = "no class wins everywhere by weights alone"
    return reasons


def _name_of(check: object) -> str:
    """The name of a check, which may have arguments bound to it."""
    return str(getattr(getattr(check, "func", check), "__name__", check))
