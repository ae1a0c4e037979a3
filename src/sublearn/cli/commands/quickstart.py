"""`sublearn quickstart`: from raw text to an explained prediction, on data in the package."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sublearn.cli.options import Jobs, Json, output_option
from sublearn.typing import JsonObject

if TYPE_CHECKING:
    from rich.console import Console

    from sublearn.extreme import TextTagger
    from sublearn.extreme.explanation import Explanation
    from sublearn.io import Quickstart

__all__ = ["command"]

_CUTS = [1, 3, 5]
_N_WORDS = 4  # words that explain a label, if they add at least
_MIN_SHARE = 0.2  # of what the first one adds
_NEXT = """
[bold]On your data[/]
 sublearn fit text my.tsv --model my.model     [dim]raw text: labels, a tab, the text[/]
 sublearn fit train.txt --model my.model       [dim]or a .svm, .arff, .npz or .csv file[/]
 sublearn evaluate my.model test.txt           [dim]precision, nDCG, recall[/]
 sublearn predict my.model new.txt             [dim]the best labels of each row[/]
 sublearn serve my.model                       [dim]a page to try it, and HTTP[/]"""


def command(
    output: Annotated[
        Path | None, output_option("a temporary file", "Keep the model here.")
    ] = None,
    examples: Annotated[
        int, typer.Option(min=0, metavar="N", help="Test records to tag and explain.")
    ] = 2,
    text: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Tag this text of yours too.", show_default=False),
    ] = None,
    l1: Annotated[
        float, typer.Option(metavar="X", help="Weight of the l1 penalty: larger is sparser.")
    ] = 0.3,
    rows: Annotated[
        int | None,
        typer.Option(
            min=10, metavar="N", help="Learn from the first N records only.", show_default="all"
        ),
    ] = None,
    n_jobs: Jobs = None,
    json: Json = False,
) -> None:
    """Train an extreme classifier from raw text in seconds, and look at what it learnt.

    The text is 13,000 library records (title and description), the labels are their subject
    headings, thousands of them. The steps: tf-idf vectors, a fit with PPD-Sparse, precision on
    2,000 other records, saving and reloading the model, and tags for a new record with the words
    that led to them. The records are Finna metadata (CC0) and come with the package.

    Example: `sublearn quickstart --text "Solar energy and wind power in the electricity market"`
    """
    from sublearn.cli.console import err, out, print_json
    from sublearn.io.files import check_target

    check_target(output, "--output")
    talk = err if json else out
    data = _read(talk, rows)
    tagger, figures = _fit(talk, data, l1, n_jobs)
    figures |= _precision(tagger, data)
    with _model_path(output) as path:
        figures |= _save_and_reload(tagger, data.test_texts, path, is_kept=output is not None)
    texts = data.test_texts[:examples] + ([text] if text else [])
    truth = data.test_labels[:examples] + ([[]] if text else [])
    tagged = _tag(tagger, texts, truth)
    if json:
        print_json({**figures, "examples": tagged})
    else:
        _show(out, figures, tagged)


def _read(talk: Console, rows: int | None) -> Quickstart:
    from sublearn.io import load_quickstart

    data = load_quickstart(rows)
    talk.print(f"Read {len(data.train_texts):,} library records with their subject headings.")
    return data


def _fit(
    talk: Console, data: Quickstart, l1: float, n_jobs: int | None
) -> tuple[TextTagger, JsonObject]:
    import time

    from sublearn.extreme import PPDSparseClassifier, TextTagger
    from sublearn.kinds.base import fit_figures

    talk.print("Turning words into tf-idf vectors and fitting one classifier per heading ...")
    n_jobs = -1 if n_jobs is None else n_jobs
    classifier = PPDSparseClassifier(l1=l1, n_jobs=n_jobs, random_state=0, verbose=1)
    start = time.perf_counter()
    tagger = TextTagger(classifier, analyzer="word", min_df=2).fit(
        data.train_texts, data.train_labels
    )
    figures = fit_figures(tagger.classifier_, tagger.fit_size_, time.perf_counter() - start)
    figures["labels"] = len(tagger.classes_)
    tagger.classifier_.set_params(verbose=0, n_jobs=None)
    return tagger, figures


def _precision(tagger: TextTagger, data: Quickstart) -> JsonObject:
    from sublearn.metrics import precision_at_k

    ranked, _ = tagger.predict_top_k(data.test_texts, max(_CUTS))
    figures: JsonObject = {"test_rows": len(data.test_texts)}
    for k in _CUTS:
        figures[f"P@{k}"] = round(float(precision_at_k(data.test_labels, ranked, k)), 4)
    return figures


@contextlib.contextmanager
def _model_path(output: Path | None) -> Iterator[Path]:
    if output is not None:
        yield output
        return
    with tempfile.TemporaryDirectory(prefix="sublearn-") as folder:
        yield Path(folder) / "quickstart.model"


def _save_and_reload(
    tagger: TextTagger, texts: list[str], path: Path, *, is_kept: bool
) -> JsonObject:
    import numpy as np

    import sublearn

    tagger.save(path)
    again = sublearn.load(path)
    pairs = zip(tagger.predict_top_k(texts, 5), again.predict_top_k(texts, 5), strict=True)
    if not all(np.array_equal(before, after) for before, after in pairs):
        raise RuntimeError("the reloaded model predicts differently")
    return {
        "model": str(path) if is_kept else "temporary file",
        "model_bytes": path.stat().st_size,
        "reloaded_predicts_the_same": True,
    }


def _tag(tagger: TextTagger, texts: list[str], truth: list[list[str]]) -> list[JsonObject]:
    """The five best headings of each text, each with the words that speak for it."""
    if not texts:
        return []
    ranked, scores = tagger.predict_top_k(texts, max(_CUTS))
    return [
        {
            "text": text,
            "headings": truth[i],
            "predicted": [
                {
                    "label": str(label),
                    "score": round(float(score), 4),
                    "words": _words_for(tagger.explain(text, label, _N_WORDS)),
                }
                for label, score in zip(ranked[i].tolist(), scores[i].tolist(), strict=True)
            ],
        }
        for i, text in enumerate(texts)
    ]


def _words_for(explanation: Explanation) -> list[str]:
    """Words that raise the score, those left out that add little beside the first."""
    raising = [part for part in explanation.contributions if part.contribution > 0]
    least = _MIN_SHARE * max((part.contribution for part in raising), default=0.0)
    return [str(part.feature) for part in raising if part.contribution > least]


def _show(out: Console, figures: JsonObject, tagged: list[JsonObject]) -> None:
    from sublearn.cli.console import facts, print_titled
    from sublearn.cli.fitting import figure_rows

    precision = "  ".join(f"P@{k} {100 * figures[f'P@{k}']:.1f} %" for k in _CUTS)
    rows = [
        ("precision", f"{precision}  on {figures['test_rows']:,} other records"),
        *figure_rows(figures),
        ("reloaded", "predicts the same"),
    ]
    print_titled("\nWhat came out", facts(rows))
    for example in tagged:
        _show_example(out, example)
    out.print(_NEXT)


def _show_example(out: Console, example: JsonObject) -> None:
    from rich.markup import escape

    from sublearn.cli.console import table

    out.print(f"\n[bold]{escape(example['text'])}[/]")
    if example["headings"]:
        out.print(f"[dim]headings given by librarians:[/] {escape(', '.join(example['headings']))}")
    grid = table(["predicted heading", "score", "because of"])
    grid.columns[2].justify = "left"
    for found in example["predicted"]:
        is_right = found["label"] in example["headings"]
        mark = "[green]✓[/] " if is_right else "  "
        words = ", ".join(found["words"]) or "no word: its intercept alone"
        grid.add_row(mark + escape(found["label"]), f"{found['score']:+.2f}", escape(words))
    out.print(grid)
