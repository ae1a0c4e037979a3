"""`sublearn quickstart`: from raw text to an explained prediction, on data in the package."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sublearn.cli.options import Jobs, Json, check_folder, output_option

if TYPE_CHECKING:
    import numpy as np
    from rich.console import Console

__all__ = ["command"]

_CUTS = [1, 3, 5]
_N_WORDS = 4  # words that explain a label, if they add at least
_MIN_SHARE = 0.2  # of what the first one adds
_NEXT = """
[bold]On your data[/]
 sublearn fit --text my.tsv --model my.model   [dim]raw text: labels, a tab, the text[/]
 sublearn fit train.txt --model my.model       [dim]or a .svm, .arff or .npz file[/]
 sublearn evaluate my.model test.txt           [dim]precision, nDCG, recall[/]
 sublearn predict my.model new.txt             [dim]the best labels of each row[/]"""


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
    jobs: Jobs = None,
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

    check_folder(output, "--output")
    talk = err if json else out
    data, vectorizer, X_train, X_test = _vectors(talk, rows)
    model, figures = _fit(talk, X_train, data.train_labels, l1, jobs)
    figures |= _precision(model, X_test, data.test_labels)
    with _model_path(output) as path:
        figures |= _save_and_reload(model, X_test, path, is_kept=output is not None)
    texts = data.test_texts[:examples] + ([text] if text else [])
    truth = data.test_labels[:examples] + ([[]] if text else [])
    tagged = _tag(model, vectorizer, texts, truth)
    if json:
        print_json({**figures, "examples": tagged})
    else:
        _show(out, figures, tagged)


def _vectors(talk: Console, rows: int | None) -> tuple[Any, Any, Any, Any]:
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer

    from sublearn.io import load_quickstart

    data = load_quickstart(rows)
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2, dtype=np.float32)
    X_train = vectorizer.fit_transform(data.train_texts)
    X_test = vectorizer.transform(data.test_texts)
    talk.print(
        f"Read {len(data.train_texts):,} library records with their subject headings, and turned "
        f"the words into tf-idf vectors of {X_train.shape[1]:,} features."
    )
    return data, vectorizer, X_train, X_test


def _fit(
    talk: Console, X: Any, labels: list[list[str]], l1: float, jobs: int | None
) -> tuple[Any, dict[str, Any]]:
    from sublearn.cli.fitting import fit_with_figures
    from sublearn.cli.methods import make_estimator

    talk.print("Fitting one sparse classifier per heading ...")
    params = {"l1": l1, "n_jobs": -1 if jobs is None else jobs, "random_state": 0, "verbose": 1}
    model = make_estimator("ppd-sparse", params)
    figures = fit_with_figures(model, X, labels)
    return model.set_params(verbose=0), figures


def _precision(model: Any, X: Any, labels: list[list[str]]) -> dict[str, Any]:
    from sublearn.metrics import precision_at_k

    ranked, _ = model.predict_top_k(X, max(_CUTS))
    values = precision_at_k(labels, ranked, _CUTS)
    return {
        "test_rows": X.shape[0],
        **{f"P@{k}": round(float(v), 4) for k, v in zip(_CUTS, values, strict=True)},  # type: ignore[arg-type]
    }


@contextlib.contextmanager
def _model_path(output: Path | None) -> Iterator[Path]:
    if output is not None:
        yield output
        return
    with tempfile.TemporaryDirectory(prefix="sublearn-") as folder:
        yield Path(folder) / "quickstart.model"


def _save_and_reload(model: Any, X: Any, path: Path, *, is_kept: bool) -> dict[str, Any]:
    import numpy as np

    import sublearn

    model.save(path)
    again = sublearn.load(path)
    pairs = zip(model.predict_top_k(X, 5), again.predict_top_k(X, 5), strict=True)
    if not all(np.array_equal(before, after) for before, after in pairs):
        raise RuntimeError("the reloaded model predicts differently")
    return {
        "model": str(path) if is_kept else "temporary file",
        "model_bytes": path.stat().st_size,
        "reloaded_predicts_the_same": True,
    }


def _tag(
    model: Any, vectorizer: Any, texts: list[str], truth: list[list[str]]
) -> list[dict[str, Any]]:
    """The five best headings of each text, each with the words that speak for it."""
    if not texts:
        return []
    X = vectorizer.transform(texts)
    words = vectorizer.get_feature_names_out()
    ranked, scores = model.predict_top_k(X, max(_CUTS))
    coef = model.coef_.tocsr()
    position = {name: row for row, name in enumerate(model.classes_.tolist())}
    return [
        {
            "text": text,
            "headings": truth[i],
            "predicted": [
                {
                    "label": str(label),
                    "score": round(float(score), 4),
                    "words": _explain(coef[position[label]], X[i], words),
                }
                for label, score in zip(ranked[i].tolist(), scores[i].tolist(), strict=True)
            ],
        }
        for i, text in enumerate(texts)
    ]


def _explain(weights: Any, x: Any, words: np.ndarray) -> list[str]:
    """Words with the largest contributions w_j x_j to a label's score, largest first."""
    import numpy as np

    product = weights.multiply(x).tocsr()
    order = np.argsort(-product.data, kind="stable")[:_N_WORDS]
    least = _MIN_SHARE * product.data.max(initial=0)
    return [str(words[product.indices[j]]) for j in order if product.data[j] > least]


def _show(out: Console, figures: dict[str, Any], tagged: list[dict[str, Any]]) -> None:
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


def _show_example(out: Console, example: dict[str, Any]) -> None:
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
