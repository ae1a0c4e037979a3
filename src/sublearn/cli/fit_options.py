"""Options of `sublearn fit`, by the panel of its help in which they stand.

Not given, an option keeps the default of the estimator or the vectoriser. The one shown is that of
ppd-sparse, which a test checks.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from sublearn.cli.options import NUMBERS, RAW_TEXT, Panel

__all__ = [
    "Bits",
    "Learning",
    "Loads",
    "Method",
    "Normalize",
    "Output",
    "Taxonomies",
    "TokenColumns",
    "Words",
]

_TAXONOMY = "Labels in a taxonomy (--method hiclass, hml)"

TaxonomyFile = Annotated[
    Path | None,
    typer.Option(
        "--taxonomy",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        show_default="that of DATA, if it is an ARFF file with one",
        rich_help_panel=_TAXONOMY,
        help="Labels and their parents: lines `parent TAB child TAB ...`, a "
        "SKOS vocabulary (.ttl) or an ARFF file with a hierarchical class (.arff).",
    ),
]
LabelPaths = Annotated[
    str | None,
    typer.Option(
        "--label-paths",
        metavar="SEP",
        show_default=False,
        rich_help_panel=_TAXONOMY,
        help="Labels are paths with SEP between their parts, such as rec.sport.hockey.",
    ),
]
Output = Annotated[
    Path,
    typer.Option(
        "--model", "-m", metavar="OUT", dir_okay=False, show_default=False,
        help="Where to save the model.",
    ),
]  # fmt: skip


Method = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="One of those above. Defaults shown are those of ppd-sparse, and of pd-sparse "
        "where they differ.",
    ),
]
Normalize = Annotated[
    bool | None,
    typer.Option(
        "--normalize/--no-normalize",
        show_default="normalize, but not for sparse-linear",
        help="Scale each row to length 1; the model remembers it for predict and evaluate.",
        rich_help_panel=NUMBERS,
    ),
]


_objective = Panel("What is minimised")

LossWeight = Annotated[
    float | None,
    _objective("X", "1.0", "Weight of the loss; larger fits the training rows closer.", "--C"),
]
L1 = Annotated[
    str | None,
    _objective(
        "X",
        "0.1",
        "Weight of the l1 penalty; larger gives fewer weights and a smaller file. cv or cv_1se "
        "chooses it by cross-validation (sparse-logistic, sparse-linear).",
    ),
]
Loss = Annotated[
    str | None,
    _objective(
        "NAME",
        "squared_hinge",
        "squared_hinge or hinge (ppd-sparse); squared, huber or poisson (sparse-linear).",
    ),
]
FitIntercept = Annotated[
    str | None,
    _objective(
        "VALUE",
        "True",
        "Whether to learn an intercept: True or False (the default of pd-sparse); fixed sets it to "
        "-1 (ppd-sparse, in place of False).",
    ),
]
ClassWeight = Annotated[
    str | None,
    _objective(
        "NAME",
        False,
        "balanced gives rare labels more weight; propensity makes up for labels that nobody "
        "assigned.",
    ),
]

_solver = Panel("How")

Tol = Annotated[
    float | None,
    _solver(
        "X",
        "0.03",
        "Stop when the certificate (relative duality gap) is below: that of a label "
        "(pd-sparse, chain: of the whole problem, default 0.01).",
    ),
]
MaxIter = Annotated[
    int | None,
    _solver("N", "100", "Most searches for a label (pd-sparse, chain: most passes over the rows)."),
]
Prune = Annotated[
    float | None,
    _solver("X", "0.0", "Leave weights of this size or smaller out of the model."),
]
EarlyStopping = Annotated[
    int | None,
    _solver(
        "N",
        False,
        "Hold a tenth of the rows or sequences out, end after N passes without a gain for them "
        "and keep the weights that are best for them (pd-sparse, chain).",
        min=1,
    ),
]
Bits = Annotated[
    int | None,
    _solver(
        "N",
        "as learnt",
        "Save weights with 8, 16 or 32 bits: smaller files, almost the same scores.",
    ),
]

_text = Panel(RAW_TEXT)

Vectorizer = Annotated[
    str | None,
    _text(
        "NAME",
        "tfidf",
        "tfidf learns the words and how rare they are; hashing learns nothing.",
    ),
]
Analyzer = Annotated[
    str | None,
    _text("NAME", "word", "Features are word, char or char_wb (characters within words)."),
]
NgramRange = Annotated[
    str | None, _text("A,B", "1,1", "Shortest and longest sequence of words or characters.")
]
MinDf = Annotated[int | None, _text("N", "1", "Leave out words of fewer texts.", min=1)]
MaxDf = Annotated[
    float | None, _text("X", False, "Leave out words of more than this share of the texts.")
]
MaxFeatures = Annotated[int | None, _text("N", False, "Keep the N most frequent words.", min=1)]
StopWords = Annotated[str | None, _text("NAME", False, "english: leave out words such as `the`.")]
Hashes = Annotated[int | None, _text("N", "1048576", "Columns that words are hashed to.", min=1)]

TokenColumns = Annotated[
    str | None,
    typer.Option(
        "--token-columns",
        metavar="N,...",
        show_default="all columns; 2,4 of a .conllu file",
        rich_help_panel="Tokens and their tags (--method chain)",
        help="Columns to read, counted from 1: the word's, further ones, the tag's last.",
    ),
]

_loads = Panel("Loads over time (--method forecast)")

Horizon = Annotated[int | None, _loads("N", "24", "Longest lead, in steps.", min=1)]
Target = Annotated[
    str | None,
    _loads(
        "NAMES",
        "the first column of numbers",
        "Columns that are loads, with commas between; the others are exogenous.",
    ),
]
Quantile = Annotated[
    float | None,
    _loads("X", False, "Forecast the load that is not exceeded this often, such as 0.9."),
]
Holidays = Annotated[
    Path | None,
    _loads(
        "FILE",
        False,
        "Days unlike others, a date such as 2008-12-25 at the beginning of each line.",
        is_file=True,
    ),
]
TimeZone = Annotated[
    str | None,
    _loads("NAME", False, "Of the times in DATA, such as Europe/Berlin: clock changes count."),
]


@dataclass(frozen=True)
class Learning:
    """Parameters of estimators, each with its name and meaning there."""

    C: LossWeight = None
    l1: L1 = None
    loss: Loss = None
    fit_intercept: FitIntercept = None
    tol: Tol = None
    max_iter: MaxIter = None
    prune: Prune = None
    class_weight: ClassWeight = None
    early_stopping: EarlyStopping = None


@dataclass(frozen=True)
class Words:
    """Parameters of `TextTagger`: how text becomes numbers."""

    vectorizer: Vectorizer = None
    analyzer: Analyzer = None
    ngram_range: NgramRange = None
    min_df: MinDf = None
    max_df: MaxDf = None
    max_features: MaxFeatures = None
    stop_words: StopWords = None
    n_hashes: Hashes = None


@dataclass(frozen=True)
class Taxonomies:
    """Where the taxonomy of labels comes from."""

    taxonomy: TaxonomyFile = None
    label_paths: LabelPaths = None


@dataclass(frozen=True)
class Loads:
    """How loads over time are read and what is forecast."""

    horizon: Horizon = None
    target: Target = None
    quantile: Quantile = None
    holidays: Holidays = None
    time_zone: TimeZone = None
