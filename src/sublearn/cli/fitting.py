"""Fits an estimator and tells what it cost: shared by `fit` and `quickstart`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sublearn.typing import JsonObject, LabelsLike

if TYPE_CHECKING:
    import scipy.sparse as sp
    from sklearn.base import BaseEstimator

    from sublearn.trace import Trace
    from sublearn.validation import EncodedLabels

__all__ = [
    "figure_rows",
    "fit_texts_with_figures",
    "fit_with_figures",
    "show_figures",
    "show_plain_figures",
]


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
        print_titled(title, facts(figure_rows(figures)))


def _share(part: int, whole: int, verb: str) -> str:
    percent = 100 * part / whole
    return f"{part:,} of {whole:,} {verb} ({percent:.2g} %)"


def _work(work: int, one_pass: int) -> str:
    return (
        f"{work:,} matrix entries visited; a single pass of one-vs-rest over all rows "
        f"would visit {one_pass:,}"
    )


def show_plain_figures(figures: JsonObject, *, title: str, json: bool, quiet: bool) -> None:
    """Figures by their names, of methods for which the work of one pass says nothing."""
    from sublearn.cli.console import facts, print_json, print_titled

    if json:
        print_json(figures)
    elif not quiet:
        words = {k: f"{v:.4g}" if isinstance(v, float) else str(v) for k, v in figures.items()}
        print_titled(title, facts([(name.replace("_", " "), word) for name, word in words.items()]))
