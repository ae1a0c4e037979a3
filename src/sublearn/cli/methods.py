"""Names of the learning methods on the command line, and the estimators behind them."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING

import typer

from sublearn.cli.options import refuse_given

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["METHODS", "make_estimator", "parse_fit_intercept", "parse_l1", "refuse_foreign"]

#: A method's published name to the room and the class that implement it.
METHODS = {
    "ppd-sparse": ("sublearn.extreme", "PPDSparseClassifier"),
    "pd-sparse": ("sublearn.extreme", "PDSparseClassifier"),
    "sparse-logistic": ("sublearn.linear", "SparseLogisticRegression"),
    "sparse-linear": ("sublearn.linear", "SparseLinearRegression"),
    "hiclass": ("sublearn.hierarchy", "HierarchicalClassifier"),
    "hml": ("sublearn.hierarchy", "HierarchicalMultilabelClassifier"),
    "chain": ("sublearn.structured", "ChainSVM"),
    "forecast": ("sublearn.forecast", "LoadForecaster"),
}
#: Methods with a form of data of their own, and the options of `fit` that no other method has.
_OWN_OPTIONS = {
    "forecast": ("horizon", "target", "quantile", "holidays", "time_zone"),
    "chain": ("token_columns",),
}
#: Methods whose l1 may be chosen by cross-validation, and what then stands for it.
_CHOOSE_L1 = ("sparse-logistic", "sparse-linear")
_BY_FOLDS = ("cv", "cv_1se")


def parse_l1(text: str | None, method: str) -> float | str | None:
    """What `--l1` says: a number, or by which rule to choose where the method can."""
    if text is None or (text in _BY_FOLDS and method in _CHOOSE_L1):
        return text
    try:
        return float(text)
    except ValueError:
        choice = ", cv or cv_1se" if method in _CHOOSE_L1 else f" for {method}"
        raise typer.BadParameter(
            f"must be a number{choice}, got {text}", param_hint="--l1"
        ) from None


def parse_fit_intercept(text: str | None) -> bool | str | None:
    """What `--fit-intercept` says: a truth value, or a word for the estimator to judge."""
    return None if text is None else {"true": True, "false": False}.get(text.lower(), text)


def make_estimator(method: str, params: Mapping[str, object]) -> BaseEstimator:
    """An unfitted estimator; a parameter that is None keeps the estimator's own default."""
    if method not in METHODS:
        raise typer.BadParameter(
            f"must be one of {', '.join(METHODS)}, got {method}", param_hint="--method"
        )
    room, name = METHODS[method]
    cls = getattr(importlib.import_module(room), name)
    given = {key: value for key, value in params.items() if value is not None}
    known = inspect.signature(cls).parameters.keys()
    if "random_state" not in known:  # which --seed always has a value for
        given.pop("random_state", None)
    unknown = sorted(given.keys() - known)
    if unknown:
        option = f"--{unknown[0].replace('_', '-')}"
        raise typer.BadParameter(f"{method} has no parameter {unknown[0]}", param_hint=option)
    return cls(**given)


def refuse_foreign(method: str, options: Mapping[str, object]) -> None:
    """Refuse options about data that the method does not read; those not given are None."""
    owners = {name: owner for owner, names in _OWN_OPTIONS.items() for name in names}
    for owner in _OWN_OPTIONS:
        if owner != method:
            own = {name: options[name] for name in _OWN_OPTIONS[owner]}
            refuse_given(own, f"needs --method {owner}")
    if method in _OWN_OPTIONS:
        others = {name: value for name, value in options.items() if name not in owners}
        refuse_given(others, f"is not for --method {method}")
