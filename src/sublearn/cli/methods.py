"""The learning methods by name: the estimator of each, its fit, and what the fit cost."""

from __future__ import annotations

import importlib
import inspect
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

import typer

from sublearn.cli.options import refuse_given
from sublearn.typing import JsonObject, LabelsLike

if TYPE_CHECKING:
    import scipy.sparse as sp
    from sklearn.base import BaseEstimator

    from sublearn.trace import Trace
    from sublearn.validation import EncodedLabels

__all__ = [
    "METHODS",
    "figure_rows",
    "fit_texts_with_figures",
    "fit_with_figures",
    "make_estimator",
    "refuse_foreign",
    "show_figures",
]

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


def _parse_l1(text: str, method: str) -> float | str:
    """What `--l1` says: a number, or by which rule to choose where the method can."""
    if text in _BY_FOLDS and method in _CHOOSE_L1:
        return text
    try:
        return float(text)
    except ValueError:
        choice = ", cv or cv_1se" if method in _CHOOSE_L1 else f" for {method}"
        raise typer.BadParameter(
            f"must be a number{choice}, got {text}", param_hint="--l1"
        ) from None


def _parse_fit_intercept(text: str, method: str) -> bool | str:
    """What `--fit-intercept` says: a truth value, or a word for the estimator to judge."""
    return {"true": True, "false": False}.get(text.lower(), text)


_PARSERS = {"l1": _parse_l1, "fit_intercept": _parse_fit_intercept}


def make_estimator(method: str, params: Mapping[str, object]) -> BaseEstimator:
    """An unfitted estimator; a parameter that is None keeps the estimator's own default.

    `l1` and `fit_intercept` may be the words of their options.
    """
    if method not in METHODS:
        raise typer.BadParameter(
            f"must be one of {', '.join(METHODS)}, got {method}", param_hint="--method"
        )
    room, name = METHODS[method]
    cls = getattr(importlib.import_module(room), name)
    given = {key: value for key, value in params.items() if value is not None}
    for name, parse in _PARSERS.items():
        text = given.get(name)
        if isinstance(text, str):
            given[name] = parse(text, method)
    known = inspect.signature(cls).parameters.keys()
    if "random_state" not in known:  # which --random-state always has a value for
        given.pop("random_state", None)
    unknown = sorted(given.keys() - known)
    if unknown:
        option = f"--{unknown[0].replace('_', '-')}"
        raise typer.BadParameter(f"{method} has no parameter {unknown[0]}", param_hint=option)
    return cls(**given)


def refuse_foreign(method: str, given: Mapping[str, object]) -> None:
    """Refuse options about data, of those given, that the method does not read."""
    owners = {name: owner for owner, names in _OWN_OPTIONS.items() for name in names}
    for name, value in given.items():
        owner = owners.get(name)
        if owner not in (None, method):
            refuse_given({name: value}, f"needs --method {owner}")
        if owner is None and method in _OWN_OPTIONS:
            refuse_given({name: value}, f"is not for --method {method}")


def fit_with_figures(estimator: BaseEstimator, X: sp.csr_matrix, Y: LabelsLike) -> JsonObject:
    """Fit in place; sizes, seconds, certificate, and how little was touched.

    `work` counts matrix entries visited. One pass of one-vs-rest over all rows visits nnz(X) for
    each label, which is what `work_of_one_pass` gives to compare with.
    """
    start = time.perf_counter()
    estimator.fit(X, Y)
    return _figures(estimator, (*X.shape, int(X.nnz)), time.perf_counter() - start)


def fit_texts_with_figures(
    tagger: BaseEstimator, texts: list[str], labels: LabelsLike | EncodedLabels
) -> JsonObject:
    """As `fit_with_figures`, for a `TextTagger`; the seconds are those of words and labels."""
    start = time.perf_counter()
    tagger.fit(texts, labels)
    return _figures(tagger.classifier_, tagger.fit_size_, time.perf_counter() - start)


def _figures(estimator: BaseEstimator, size: tuple[int, int, int], seconds: float) -> JsonObject:
    n_rows, n_features, n_values = size
    trace = estimator.trace_
    weights = estimator.sparse_coef_ if hasattr(estimator, "sparse_coef_") else estimator.coef_
    n_models = weights.shape[0]  # one for two classes, and for numbers
    figures = {
        "rows": n_rows,
        "features": n_features,
        "seconds": round(seconds, 3),
        "certificate": float(estimator.certificate_),
        "n_iter": int(estimator.n_iter_),
        "weights": int(weights.nnz),
        "weights_possible": n_models * n_features,
    }
    if "work" in trace.columns:
        figures |= {"work": _total_work(trace), "work_of_one_pass": n_models * n_values}
    if getattr(estimator, "phi_", None) is not None:
        figures["held_out_score"] = float(estimator.held_out_score_)
    if hasattr(estimator, "classes_"):
        figures["labels"] = len(estimator.classes_)
    if getattr(estimator, "l1", None) in ("cv", "cv_1se"):
        figures["l1"] = float(estimator.l1_)
    if "nnz_dual" in trace.columns:
        figures["duals"] = int(trace["nnz_dual"][-1])
        figures["duals_possible"] = n_rows * n_models
    return figures


def _total_work(trace: Trace) -> int:
    """Entries visited; a trace may have the rows of several problems, one after another."""
    if "output" not in trace.columns:
        return int(trace["work"][-1])
    outputs = trace["output"]
    return sum(int(trace["work"][outputs == k].max()) for k in set(outputs.tolist()))


def figure_rows(figures: JsonObject) -> list[tuple[str, str]]:
    """The figures in words, in reading order."""
    from sublearn.cli.console import in_bytes

    sizes = [what for what in ("rows", "features", "labels") if what in figures]
    rows = [("data", ", ".join(f"{figures[what]:,} {what}" for what in sizes))]
    if "l1" in figures:
        rows.append(("l1", f"{figures['l1']:.4g}, chosen by cross-validation"))
    rows += [
        ("fit", f"{figures['seconds']:.2f} s"),
        ("certificate", f"{figures['certificate']:.2g} (relative duality gap)"),
        ("weights", _share(figures["weights"], figures["weights_possible"], "are not zero")),
    ]
    if "duals" in figures:
        duals = _share(figures["duals"], figures["duals_possible"], "are active")
        rows.append(("dual variables", duals))
    if "held_out_score" in figures:
        rows.append(("held-out rows", f"{figures['held_out_score']:.4f}, the metric learned for"))
    if "work" in figures:
        rows.append(("work", _work(figures["work"], figures["work_of_one_pass"])))
    if "model_bytes" in figures:
        rows.append(("model", f"{figures['model']}, {in_bytes(figures['model_bytes'])}"))
    return rows


def show_figures(figures: JsonObject, *, title: str, json: bool, quiet: bool) -> None:
    """The figures on standard output: JSON, or a table unless `quiet`."""
    from sublearn.cli.console import facts, print_json, print_titled

    if json:
        print_json(figures)
    elif not quiet:
        has_work = "weights_possible" in figures
        print_titled(title, facts(figure_rows(figures) if has_work else _by_name(figures)))


def _by_name(figures: JsonObject) -> list[tuple[str, str]]:
    """Figures of methods for which the work of one pass says nothing."""
    return [
        (name.replace("_", " "), f"{value:.4g}" if isinstance(value, float) else str(value))
        for name, value in figures.items()
    ]


def _share(part: int, whole: int, verb: str) -> str:
    percent = 100 * part / whole
    return f"{part:,} of {whole:,} {verb} ({percent:.2g} %)"


def _work(work: int, one_pass: int) -> str:
    return (
        f"{work:,} matrix entries visited; a single pass of one-vs-rest over all rows "
        f"would visit {one_pass:,}"
    )
