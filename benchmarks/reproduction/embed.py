"""Loss decomposition and greedy search: section 3.3 of Yen 2018, beside ours.

The paper prints curves without numbers: what its text says of them is compared. One thread, CPU
seconds, three seeds. fastText and gensim are rivals where they are installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from harness.bench import Bench
from harness.corpora import real_corpus
from harness.layer_course import Course, Method, course_of
from harness.output_layers import faces
from harness.table import Cell, Chart, Figures, Series, Table
from harness.text_layers import fasttext_labels, records
from harness.verdicts import NOT_HERE, REPRODUCED, WORSE, verdict
from harness.word_course import Point, gensim_point, sublearn_point

from sublearn.metrics import precision_at_k

__all__ = ["TABLES"]

SEEDS = (0, 1, 2)
YEN = "yen2018"
EXACT, SEARCHED, PLAIN = "Margin", "Decomp-MIPS", "MIPS"
SOFTMAX, SAMPLED, FULL = "Softmax", "Sampled-Softmax", "Decomp-MIPS, in full"
TREE = "fastText, hierarchical softmax"
COLUMNS = {
    "method, or what the text says": "",
    "paper": "",
    "ours": ".2f",
    "epochs": ".2f",
    "CPU s an epoch": ".2f",
    "verdict": "",
}
Courses = Mapping[str, Sequence[Course]]


def methods(
    n_labels: int, n_blocks: int, mu: float, n_warm: float, rates: Sequence[float]
) -> list[Method]:
    """Those of section 3.3.4, with batch queries of K / 100; rates of margins and of softmax."""
    margin, softmax = rates
    near = {"n_candidates": max(8, n_labels // 100), "n_warm": n_warm, "smoothing": mu}
    blocks = {**near, "n_blocks": n_blocks}
    sampled = {"n_sampled": max(1, n_labels // 100)}
    return [
        Method(SEARCHED, "smoothed_margin", "decomposed", margin, {**blocks, "n_messages": 1}),
        Method(FULL, "smoothed_margin", "decomposed", margin, blocks),
        Method(PLAIN, "smoothed_margin", "mips", margin, near),
        Method(EXACT, "smoothed_margin", "exact", margin, {"smoothing": mu}),
        Method(SOFTMAX, "softmax", "exact", softmax),
        Method(SAMPLED, "softmax", "sampled", softmax, sampled),
    ]


def run(
    bench: Bench, figure: str, chosen: Sequence[Method], times: Sequence[float],
    data_of: Callable[[int], Any], **options: int,
) -> dict[str, list[Course]]:  # fmt: skip
    """The course of each method and seed."""
    found: dict[str, list[Course]] = {method.name: [] for method in chosen}
    for seed in bench.some(SEEDS):
        for method in chosen:
            key = {"figure": figure, "method": method.name, "seed": seed, "times": list(times)}
            made = bench.once(
                key, lambda m=method, s=seed: vars(course_of(m, data_of(s), times, s, **options))
            )
            found[method.name].append(Course(**made))
            bench.say(f"{figure}, {method.name}, seed {seed}: {found[method.name][-1].precisions}")
    return found


# --- what courses say -----------------------------------------------------------------------------


def at_end(courses: Courses, name: str) -> float:
    """Mean precision at the last time."""
    return float(np.mean([course.precisions[-1] for course in courses[name]]))


def at_epoch(courses: Courses, name: str, epoch: float) -> float:
    """Mean precision after so many epochs, by straight lines between the points."""
    found = [np.interp(epoch, [0, *c.epochs], [0, *c.precisions]) for c in courses[name]]
    return float(np.mean(found))


def epoch_seconds(courses: Courses, name: str) -> float:
    return float(np.mean([course.seconds_of_epoch for course in courses[name]]))


def holds(condition: bool) -> str:
    return REPRODUCED if condition else WORSE


def method_rows(courses: Courses) -> list[list[Cell]]:
    return [
        [name, "", at_end(courses, name), float(np.mean([c.epochs[-1] for c in of])),
         epoch_seconds(courses, name), ""]
        for name, of in courses.items()
    ]  # fmt: skip


def claim(text: str, paper: str, ours: float, found: str) -> list[Cell]:
    return [text, paper, ours, None, None, found]


def courses_of_layers(courses: Courses, name: str, times: Sequence[float]) -> list[Chart]:
    """Precision by time and by epochs, as the paper draws it."""
    by_time, by_epoch = [], []
    for method, of in courses.items():
        points = np.array([course.precisions for course in of])
        epochs = np.mean([course.epochs for course in of], axis=0).tolist()
        mean, low, high = points.mean(axis=0), points.min(axis=0), points.max(axis=0)
        band = (mean.tolist(), low.tolist(), high.tolist())
        by_time.append(Series(method, list(times), *band))
        by_epoch.append(Series(method, epochs, *band))
    y = "test accuracy, %"
    return [
        Chart(f"{name}_time", "By time", "CPU seconds", y, by_time, log_x=True),
        Chart(f"{name}_epochs", "By epochs", "epochs", y, by_epoch, log_x=True),
    ]


def shared_claims(courses: Courses) -> list[list[Cell]]:
    """What the text says of both figures."""
    speed = epoch_seconds(courses, EXACT) / epoch_seconds(courses, SEARCHED)
    plain = epoch_seconds(courses, EXACT) / epoch_seconds(courses, PLAIN)
    sampled = at_end(courses, SAMPLED) - max(at_end(courses, n) for n in (SEARCHED, PLAIN))
    return [
        claim("epoch of Margin over one of Decomp-MIPS", "10 or more", speed,
              verdict(10.0, speed, is_less_better=False)),
        claim("epoch of Margin over one of MIPS", "10 or more", plain,
              verdict(10.0, plain, is_less_better=False)),
        claim("at equal time, points of Decomp-MIPS above MIPS", "above 0",
              at_end(courses, SEARCHED) - at_end(courses, PLAIN),
              holds(at_end(courses, SEARCHED) > at_end(courses, PLAIN))),
        claim("the same, labels scored in full", "above 0",
              at_end(courses, FULL) - at_end(courses, PLAIN),
              holds(at_end(courses, FULL) > at_end(courses, PLAIN))),
        claim("at equal time, points of Sampled-Softmax above the better search", "below 0",
              sampled, holds(sampled < 0)),
    ]  # fmt: skip


def equal_epochs(courses: Courses) -> list[list[Cell]]:
    """Progress for each epoch, where the exact method has come to."""
    epoch = float(np.mean([course.epochs[-1] for course in courses[EXACT]]))
    rows = []
    for name, paper in ((SEARCHED, "about 0"), (PLAIN, "below 0")):
        gain = at_epoch(courses, name, epoch) - at_epoch(courses, EXACT, epoch)
        fits = gain > -2.0 if name == SEARCHED else gain < -2.0
        text = f"at equal epochs, points of {name} above Margin"
        rows.append(claim(text, paper, gain, holds(fits)))
    return rows


# --- figures 3.5 and 3.6 --------------------------------------------------------------------------


def multiclass(bench: Bench) -> Figures:
    """Figure 3.5: identities, K = 672,000 in the paper (table 3.3)."""
    n_labels = bench.size(8_000, 300)
    times = bench.size([0.5, 1.0, 2.0], [0.02, 0.04])
    chosen = methods(n_labels, 8, 1.0, 0.25, (1.0, 1.0))

    def data_of(seed: int) -> Any:
        return faces(n_labels, 3 * n_labels, seed)

    courses = run(bench, "figure 3.5", chosen, times, data_of)
    slower = at_end(courses, EXACT) - at_end(courses, SOFTMAX)
    rows = [
        *method_rows(courses),
        *shared_claims(courses),
        claim("at equal time, points of Margin above Softmax", "above 0", slower,
              holds(slower > 0)),
    ]  # fmt: skip
    return Figures(COLUMNS, rows, charts=courses_of_layers(courses, "figure_3_5", times))


def multilabel(bench: Bench) -> Figures:
    """Figure 3.6: documents, K = 325,000 in the paper (table 3.4)."""
    data = records(bench.data, bench.size(6_000, 300))
    times = bench.size([1.0, 2.0, 4.0], [0.02, 0.04])
    chosen = methods(data.Y.shape[1], 4, 5.0, 1.0, (0.05, 0.05))
    courses = run(bench, "figure 3.6", chosen, times, lambda _: data, n_components=100)
    rows: list[list[Cell]] = [*method_rows(courses)]
    best, charts = at_end(courses, SEARCHED), courses_of_layers(courses, "figure_3_6", times)
    for n_epochs in bench.some((5, 25)):
        try:
            ranked, seconds = fasttext_labels(data, 100, n_epochs, "hs", bench.seed)
        except ImportError:
            rows.append([TREE, "", None, n_epochs, None, NOT_HERE])
        else:
            share = 100 * float(precision_at_k(data.Y_test, ranked, [1])[0])
            rows.append([TREE, "not in the figure", share, n_epochs, seconds / n_epochs, ""])
    alike = at_end(courses, SOFTMAX) - at_end(courses, EXACT)
    rows += [
        *shared_claims(courses),
        *equal_epochs(courses),
        claim("at equal time, points of Softmax above Margin", "about 0", alike,
              holds(abs(alike) < 0.1 * best)),
    ]  # fmt: skip
    return Figures(COLUMNS, rows, charts=charts)


# --- figure 3.7 -----------------------------------------------------------------------------------

GD, GD_MIPS, GD_DECOMP = "GD", "GD-MIPS", "GD-Decomp-MIPS"
OURS, HS, NEGATIVE = "sampled sums", "Word2vec-HS", "Word2vec-Neg"
PASSES = {GD: (1, 2), GD_MIPS: (2, 4, 8), GD_DECOMP: (1, 2, 4), OURS: (2, 8)}
RIVAL_PASSES = {HS: (2, 6), NEGATIVE: (2, 6)}
WORD_COLUMNS = {
    "method, or what the text says": "",
    "paper": "",
    "ours": ".3f",
    "passes": "d",
    "CPU s": ".1f",
    "verdict": "",
}
Points = dict[str, list[list[Point]]]


def word_points(bench: Bench, sentences: Sequence[Sequence[str]]) -> Points:
    """By method and seed, a point for each number of passes. Queries are of K / 20 contexts."""
    found: Points = {}
    for seed in bench.some(SEEDS):
        first, judge = sublearn_point(sentences, 0, seed)
        n_words = first.n_words
        near = {"partition": "decomposed", "n_candidates": max(4, n_words // 20)}
        # Clusters have about half the root of K contexts: twice as many as are asked for.
        near["n_probe"] = max(4, 4 * near["n_candidates"] // max(1, round(n_words**0.5)))
        ways = {
            GD: {"partition": "exact"},
            GD_MIPS: {**near, "n_blocks": 1},
            GD_DECOMP: {**near, "n_blocks": 4},
            OURS: {"partition": "sampled"},
        }
        runs = [
            (name, n, partial(_ours, sentences, n, seed, ways[name]))
            for name, counts in PASSES.items()
            for n in bench.some(counts)
        ] + [
            (name, n, partial(gensim_point, sentences, n, seed, kind, judge))
            for name, kind in ((HS, "hs"), (NEGATIVE, "negative"))
            for n in bench.some(RIVAL_PASSES[name])
        ]
        for name, n, make in runs:
            try:
                key = {"figure": "figure 3.7", "method": name, "passes": n, "seed": seed}
                point = Point(**bench.once(key, lambda call=make: vars(call())))
            except ImportError:
                continue
            bench.say(f"figure 3.7, {name}, seed {seed}: {point}")
            found.setdefault(name, []).append([point])
    return {name: _by_seed(points) for name, points in found.items()}


def _ours(sentences: Any, n_passes: int, seed: int, search: Mapping[str, Any]) -> Point:
    return sublearn_point(sentences, n_passes, seed, **search)[0]


def _by_seed(points: list[list[Point]]) -> list[list[Point]]:
    """Points of the same number of passes together."""
    counts = sorted({point.n_passes for (point,) in points})
    return [[point for (point,) in points if point.n_passes == n] for n in counts]


def _mean(points: Sequence[Point], name: str) -> float:
    return float(np.mean([getattr(point, name) for point in points]))


def _at_time(of: list[list[Point]], seconds: float) -> float:
    times = [_mean(points, "seconds") for points in of]
    return float(np.interp(seconds, times, [_mean(points, "objective") for points in of]))


def _pass_seconds(of: list[list[Point]]) -> float:
    """A pass of the softmax: what the last one costs more than the first."""
    first, last = of[0], of[-1]
    more = _mean(last, "seconds") - _mean(first, "seconds")
    return more / max(1, last[0].n_passes - first[0].n_passes)


def words(bench: Bench) -> Figures:
    """Figure 3.7: skip-gram, 451,000 words of 680 million tokens in the paper (table 3.5)."""
    sentences = real_corpus(bench.data)[:: bench.size(64, 2000)]
    found = word_points(bench, sentences)
    rows: list[list[Cell]] = [
        [name, "", _mean(points, "objective"), points[0].n_passes, _mean(points, "seconds"), ""]
        for name, of in found.items()
        for points in of
    ]
    rows += [[name, "", None, None, None, NOT_HERE] for name in (HS, NEGATIVE) if name not in found]
    end = min(_mean(found[name][-1], "seconds") for name in (GD_DECOMP, GD_MIPS))
    gain = _at_time(found[GD_MIPS], end) - _at_time(found[GD_DECOMP], end)
    rows.append([
        "at equal time, GD-Decomp-MIPS below GD-MIPS", "above 0", gain, None, end, holds(gain > 0)
    ])  # fmt: skip
    if len(found[GD]) > 1 and len(found[GD_DECOMP]) > 1:
        speed = _pass_seconds(found[GD]) / _pass_seconds(found[GD_DECOMP])
        good = verdict(5.0, speed, is_less_better=False, within=0.2)
        rows.append(["pass of GD over one of GD-Decomp-MIPS", "5", speed, None, None, good])
    for name in (HS, NEGATIVE):
        if name in found:
            end = min(_mean(found[n][-1], "seconds") for n in (GD_DECOMP, name))
            gain = _at_time(found[name], end) - _at_time(found[GD_DECOMP], end)
            text = f"at equal time, GD-Decomp-MIPS below {name}"
            rows.append([text, "above 0", gain, None, end, holds(gain > 0)])
    return Figures(WORD_COLUMNS, rows, charts=[_word_chart(found)])


def _word_chart(found: Points) -> Chart:
    series = []
    for name, of in found.items():
        values = [[point.objective for point in points] for points in of]
        series.append(Series(
            name,
            [_mean(points, "seconds") for points in of],
            [float(np.mean(v)) for v in values], [min(v) for v in values], [max(v) for v in values],
        ))  # fmt: skip
    return Chart(
        "figure_3_7", "Skip-gram", "CPU seconds", "objective (3.45), nats a pair", series,
        log_x=True,
    )  # fmt: skip


TABLES = [
    Table(
        "figure_3_5",
        "Figure 3.5: multiclass, at equal CPU time",
        "The paper: MegaFace, 672,000 identities and 4.7 million pictures. Here: 8,000 generated "
        "identities in families of fifty, 24,000 pictures of 128 numbers, B = 8, a quarter of an "
        "epoch by sampling before the first search. Adagrad for all, with batches of 32. The first "
        "rows are methods with their test accuracy at the last time. *In full*: labels that a "
        "block finds get their whole score, not one message. Both designs lose to plain search at "
        "equal time: in eight blocks an epoch costs five times as much or more. By epochs, scores "
        "in full are ahead of plain search, and one message is not.",
        multiclass,
        page=YEN,
    ),
    Table(
        "figure_3_6",
        "Figure 3.6: multilabel, at equal CPU time",
        "The paper: WikiLSHTC, 325,000 labels and 1.8 million documents. Here: 6,000 records of "
        "`yso_en`, 20,578 labels, from weighted words by 100 hidden numbers, B = 4, an epoch by "
        "sampling first. Share of 2,000 test records whose best label is theirs. All have learnt "
        "little by then, and differences of less than a point are within the bands.",
        multilabel,
        page=YEN,
    ),
    Table(
        "figure_3_7",
        "Figure 3.7: skip-gram, at equal CPU time",
        "The paper: 451,000 words of 680 million tokens. Here: every 64th text of 20news, brown "
        "and reuters21578. Exact objective, lower is better. Searches are of K / 20 contexts, in "
        "one block (GD-MIPS) or four, after one pass of negative sampling. Hierarchical softmax is "
        "judged by its own distribution, negative sampling with the noise put back. *Sampled sums* "
        "is what `SkipGram` does by default. With 4,000 words a pass over all contexts costs no "
        "more than searches of K / 20 in four blocks.",
        words,
        page=YEN,
    ),
]
