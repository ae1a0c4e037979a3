"""A page about a model: one HTML file with its pictures inside, for a browser without a network."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from sublearn.cli.charts import Axis, bars, dots, lines
from sublearn.cli.console import in_bytes
from sublearn.typing import JsonObject

if TYPE_CHECKING:
    import numpy as np

    from sublearn.cli.asking import Opened
    from sublearn.kinds.judging import Judgement

__all__ = ["write_report"]

_N_LABELS = 6  # whose weights are drawn
_N_WEIGHTS = 10
_MOST_POINTS = 400
#: Columns of a trace that are drawn, and what they are called.
_TRACED = {
    "objective": "objective",
    "certificate": "certificate",
    "nnz_primal": "number of weights that are not zero",
    "held_out": "score of held-out rows",
}

_STYLE = """
:root { --ink:#1a2733; --soft:#8695a4; --grid:#dfe5ea; --page:#fff; --one:#0072b2; --two:#c04f00;
  --three:#00815e; color-scheme: light dark }
@media (prefers-color-scheme: dark) { :root { --ink:#e4eaf0; --soft:#8494a5; --grid:#313d49;
  --page:#12181f; --one:#56b4e9; --two:#e8702a; --three:#1fb58a } }
body { font:16px/1.5 system-ui,sans-serif; color:var(--ink); background:var(--page);
  max-width:1180px; margin:0 auto; padding:2rem 1rem }
h1 { font-size:1.6rem; margin:0 0 .3rem } h2 { font-size:1.15rem; margin:2.2rem 0 .6rem }
p.lead { color:var(--soft); margin:0 }
.grid { display:grid; gap:1.5rem;
  grid-template-columns:repeat(auto-fill,minmax(min(100%,420px),1fr)) }
figure { margin:0 } figcaption { color:var(--soft); font-size:.9rem; margin-top:.2rem }
svg { width:100%; height:auto }
table { border-collapse:collapse; font-size:.95rem } th { font-weight:600 }
td, th { text-align:left; padding:.25rem 1.2rem .25rem 0; border-bottom:1px solid var(--grid);
  vertical-align:top } td.n { text-align:right; font-variant-numeric:tabular-nums }
"""


def write_report(
    path: Path,
    opened: Opened,
    found: JsonObject,
    judgement: Judgement | None,
    data: str | None,
) -> None:
    """Write the page: what the model is, how the fit went, what labels look at, how good it is."""
    sections = [_facts(opened, found), _fit(opened), _sizes(opened), _weights(opened)]
    if judgement is not None:
        sections.append(_quality(judgement, data or "data"))
    body = "\n".join(section for section in sections if section)
    title = escape(opened.path.name)
    page = (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style></head>\n<body>\n"
        f'<h1>{title}</h1>\n<p class="lead">A {escape(str(found["class"]))}, which gives '
        f"{escape(opened.kind.gives)}; {escape(in_bytes(opened.path.stat().st_size))}, written by "
        f"{escape(str(found['written_by']))}.</p>\n{body}\n</body></html>\n"
    )
    from sublearn.cli.writing import open_text

    with open_text(path) as stream:
        stream.write(page)


def _figure(picture: str, caption: str) -> str:
    return f"<figure>{picture}<figcaption>{escape(caption)}</figcaption></figure>"


def _section(title: str, figures: list[str]) -> str:
    if not figures:
        return ""
    return f'<h2>{escape(title)}</h2>\n<div class="grid">{"".join(figures)}</div>'


def _facts(opened: Opened, found: JsonObject) -> str:
    skipped = {"class", "written_by", "gives", "top_weights", "each_label"}
    rows = "".join(
        f"<tr><th>{escape(name.replace('_', ' '))}</th><td>{escape(_in_words(value))}</td></tr>"
        for name, value in found.items()
        if name not in skipped
    )
    return f"<h2>What it is</h2>\n<table>{rows}</table>"


def _in_words(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_in_words(one)}" for key, one in value.items())
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


# --- how the fit went --------------------------------------------------------------------------


def _fit(opened: Opened) -> str:
    """Objective and certificate along the trace, where there is one."""
    trace = vars(opened.kind.own(opened.model)).get("trace_")
    if trace is None or len(trace) < 2:
        return ""
    along = next((name for name in ("seconds", "n_done") if name in trace.columns), None)
    xs = list(range(len(trace))) if along is None else trace[along].tolist()
    figures = []
    for column, name in _TRACED.items():
        if column in trace.columns:
            pairs = _thinned(xs, trace[column].tolist())
            y = Axis.of(name, [b for _, b in pairs], is_log=column == "certificate")
            x = Axis.of(along or "row of the trace", [a for a, _ in pairs])
            picture = lines(f"{name} along the fit", x, y, [_series(name, pairs)])
            figures.append(_figure(picture, f"The {name} along the fit"))
    return _section("How the fit went", figures)


def _thinned(xs: list[float], ys: list[float]) -> list[tuple[float, float]]:
    step = max(1, len(xs) // _MOST_POINTS)
    kept = [*range(0, len(xs), step), len(xs) - 1]
    return [(xs[i], ys[i]) for i in dict.fromkeys(kept)]


def _series(name: str, pairs: list[tuple[float, float]]) -> tuple[str, list[float], list[float]]:
    return name, [a for a, _ in pairs], [b for _, b in pairs]


# --- what is in the model ----------------------------------------------------------------------


def _sizes(opened: Opened) -> str:
    """Weights of labels, largest first, and rows that carry them."""
    import numpy as np

    from sublearn.kinds.base import label_weights

    if not opened.kind.has_labels:
        return ""
    coef = label_weights(opened.kind.own(opened.model))
    if coef is None:
        return ""
    figures = [_ranked(np.diff(coef.indptr), "weights of a label")]
    counts = opened.kind.label_counts(opened.model)
    if counts is not None:
        figures.append(_ranked(counts, "training rows of a label"))
    return _section("Sizes", figures)


def _ranked(counts: np.ndarray, name: str) -> str:
    import numpy as np

    ordered = np.sort(counts)[::-1].astype(float) + 0.0
    pairs = _thinned(list(range(1, len(ordered) + 1)), ordered.tolist())
    x = Axis.of("labels, the largest first", [a for a, _ in pairs], is_log=True)
    y = Axis.of(name, [b for _, b in pairs])
    picture = lines(f"{name}, by rank", x, y, [_series(name, pairs)])
    caption = f"{name}: median {np.median(ordered):g}, largest {ordered[0]:g}"
    return _figure(picture, caption)


def _weights(opened: Opened) -> str:
    """What the most frequent labels look at, or the one row of weights of a model of numbers."""
    import numpy as np

    from sublearn.kinds.base import label_weights

    kind, model = opened.kind, opened.model
    if not kind.has_labels:
        top = kind.describe(model).get("top_weights", {})
        figures = [
            _figure(bars(name, pairs), f"largest weights of {name}") for name, pairs in top.items()
        ]
        return _section("What it looks at", figures)
    coef = label_weights(kind.own(model))
    if coef is None:
        return ""
    counts = kind.label_counts(model)
    sizes = np.diff(coef.indptr) if counts is None else counts
    if coef.shape[0] < len(kind.labels_of(model)):
        sizes = np.arange(len(kind.labels_of(model)))
    best = np.argsort(-sizes, kind="stable")[:_N_LABELS].tolist()
    found = kind.each_label(model, best, _N_WEIGHTS)
    figures = [
        _figure(bars(f"weights of {one['label']}", one["strongest"]), _caption(one))
        for one in found
        if one["strongest"]
    ]
    return _section("What labels look at", figures)


def _caption(label: JsonObject) -> str:
    rows = "" if label["positives"] is None else f"{label['positives']:,} training rows, "
    return f"{label['label']}: {rows}{label['weights']:,} weights, bias {label['bias']:+.3g}"


# --- how good it is ----------------------------------------------------------------------------


def _quality(judgement: Judgement, data: str) -> str:
    from sublearn.kinds.judging import intervals

    ranges = intervals(judgement.measures)
    rows = "".join(
        f'<tr><th>{escape(name)}</th><td class="n">{_shown(one.value, one.is_share)}</td>'
        f'<td class="n">{_shown(ranges[name][0], one.is_share)} to '
        f"{_shown(ranges[name][1], one.is_share)}</td></tr>"
        for name, one in judgement.measures.items()
    )
    head = "<tr><th>measure</th><th>value</th><th>95 % of resamples</th></tr>"
    title = f"<h2>How good it is on {escape(data)} ({escape(judgement.title)})</h2>"
    return f"{title}\n<table>{head}{rows}</table>\n{_sketches(judgement)}"


def _shown(value: float, is_share: bool) -> str:
    return f"{100 * value:.2f}" if is_share else f"{value:.4g}"


def _sketches(judgement: Judgement) -> str:
    import numpy as np

    figures = []
    found = judgement.sketches
    if "reliability" in found:
        figures.append(_reliability(np.asarray(found["reliability"])))
    confused = found.get("confused")
    if confused:
        entries = [(f"{true} → {given}", n) for true, given, n in confused]  # type: ignore[attr-defined]
        caption = "the true label that was missed, and the one given first instead"
        figures.append(_figure(bars("most confused labels", entries), caption))
    if "numbers" in found:
        figures.append(_true_and_found(*found["numbers"]))  # type: ignore[misc]
    if "forecast" in found:
        figures.append(_forecast(*found["forecast"]))  # type: ignore[misc]
    return _section("Where it is right and wrong", figures)


def _reliability(sums: np.ndarray) -> str:
    counts, probabilities, hits = sums
    some = counts > 0
    xs, ys = probabilities[some] / counts[some], hits[some] / counts[some]
    points = [
        (x, y, f"{int(n):,} answers", 0)
        for x, y, n in zip(xs.tolist(), ys.tolist(), counts[some].tolist(), strict=True)
    ]
    axes = Axis("probability of the first label", 0.0, 1.0), Axis("share that is right", 0.0, 1.0)
    picture = dots("calibration curve", *axes, points, diagonal=True)
    return _figure(picture, "Calibration: on the line, probabilities are as they say")


def _true_and_found(truth: np.ndarray, found: np.ndarray) -> str:
    pairs = _thinned(truth.tolist(), found.tolist())
    values = [value for pair in pairs for value in pair]
    axes = Axis.of("true number", values), Axis.of("predicted number", values)
    picture = dots("true and predicted", *axes, [(a, b, "", 0) for a, b in pairs], diagonal=True)
    return _figure(picture, "Each dot is a row; on the line it is predicted exactly")


def _forecast(truth: np.ndarray, found: np.ndarray) -> str:
    n = min(len(truth), _MOST_POINTS)
    steps = list(range(n))
    x, y = Axis.of("step", steps), Axis.of("load", [*truth[:n], *found[:n]])
    series = [("true", steps, truth[:n].tolist()), ("forecast", steps, found[:n].tolist())]
    return _figure(lines("loads and forecasts", x, y, series), "Loads and their forecasts")
