#!/usr/bin/env python3
"""Draw the page that chooses a method: questions on the left, methods to click on the right.

    python3 tools/draw_choosing.py docs/pictures/choosing.svg

The site shows the picture as a part of its page, so that the boxes are links and the colours those
of the page.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WIDTH, LEFT, METHOD, LINE, GAP = 720, 250, 200, 34, 14
SIZE = 14


@dataclass(frozen=True)
class Answer:
    """A case of a question, the class that fits, and its page."""

    case: str
    method: str
    page: str


#: Each question with its cases.
QUESTIONS: dict[str, tuple[Answer, ...]] = {
    "Which labels fit?": (
        Answer("raw text", "TextTagger", "text"),
        Answer("sparse rows, several labels", "PPDSparseClassifier", "methods/ppd_sparse"),
        Answer("sparse rows, one best class", "PDSparseClassifier", "methods/pd_sparse"),
        Answer("dense rows, very many labels", "DenseExtremeClassifier", "methods/dense_extreme"),
        Answer("labels form a tree", "HierarchicalClassifier", "methods/hierarchy"),
    ),
    "Which features matter?": (
        Answer("for a class", "SparseLogisticRegression", "methods/sparse_linear"),
        Answer("for a number", "SparseLinearRegression", "methods/sparse_linear"),
        Answer("for each other", "SparseInverseCovariance", "methods/inverse_covariance"),
    ),
    "Which labels go together?": (
        Answer("along a sequence", "ChainSVM", "methods/structured"),
        Answer("over a graph", "StructuralSVM", "methods/structured"),
        Answer("in pairs, in one row", "PairwiseMultilabelSVM", "methods/pairwise_multilabel"),
    ),
    "What is the best assignment?": (
        Answer("of a factor graph", "solve_map", "methods/map_inference"),
        Answer("of binary variables", "solve_boolean_quadratic", "methods/latent_features"),
    ),
    "What is hidden in the rows?": (
        Answer("parts, there or not", "LatentFeatureLasso", "methods/latent_features"),
        Answer("several regressions", "MixLassoRegressor", "methods/mixtures"),
    ),
    "What is near?": (
        Answer("vectors to a vector", "MIPSIndex", "methods/inner_product_search"),
        Answer("words to a word", "SkipGram", "methods/word_vectors"),
    ),
    "What comes next?": (
        Answer("loads, by the hour", "LoadForecaster", "methods/load_forecasting"),
    ),
    "Can it be smaller?": (Answer("a neural network", "deep_trim", "methods/deep_trim"),),
}


def drawn() -> str:
    """The picture, without an empty line: it becomes a part of a Markdown page."""
    parts, y = [], 8
    for question, answers in QUESTIONS.items():
        height = LINE * len(answers)
        parts.append(_question(question, y, height))
        parts += [_answer(answer, y + LINE * i, y + height / 2) for i, answer in enumerate(answers)]
        y += height + GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="choosing" viewBox="0 0 {WIDTH} {y}" '
        'role="img" aria-label="Questions, and the class that answers each">'
    )
    return "\n".join([head, *parts, "</svg>", ""])


def _question(text: str, y: float, height: float) -> str:
    middle = y + height / 2
    return (
        f'<rect x="4" y="{middle - 17:g}" width="212" height="34" rx="17" class="question"/>'
        f'<text x="110" y="{middle + 5:g}" text-anchor="middle" font-weight="600" '
        f'font-size="{SIZE}">{escape(text)}</text>'
    )


def _answer(answer: Answer, y: float, start: float) -> str:
    middle, box = y + LINE / 2, WIDTH - METHOD - 44
    return (
        f'<path d="M216 {start:g}C234 {start:g} 232 {middle:g} {LEFT - 6} {middle:g}"/>'
        f'<text x="{LEFT}" y="{middle + 5:g}" font-size="{SIZE}">{escape(answer.case)}</text>'
        f'<a href="{answer.page}.md"><rect x="{box}" y="{middle - 14:g}" width="{METHOD + 40}" '
        f'height="28" rx="6" class="method"/><text x="{box + (METHOD + 40) / 2:g}" '
        f'y="{middle + 5:g}" text-anchor="middle" font-size="{SIZE}">{escape(answer.method)}</text>'
        "</a>"
    )


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    Path(sys.argv[1]).write_text(drawn(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
