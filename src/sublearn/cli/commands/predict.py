"""`sublearn predict`: the best labels of each row of a data file."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from sublearn.cli.options import (
    Data,
    DataForm,
    Model,
    check_folder,
    given_of,
    output_option,
    refuse_given,
    with_groups,
)
from sublearn.typing import Matrix

if TYPE_CHECKING:
    import numpy as np
    from sklearn.base import BaseEstimator

__all__ = ["command"]

_BLOCK_ROWS = 4096  # rows scored at a time: the first lines come soon, memory stays small
_FORMATS = ("text", "jsonl", "npz")
_Block = tuple["np.ndarray", "np.ndarray", "np.ndarray"]  # labels and scores, best first; is_empty


K = Annotated[
    int | None,
    typer.Option("--k", "-k", min=1, metavar="N", show_default="5", help="Labels per row."),
]
Output = Annotated[Path | None, output_option("standard output", "Where to write.")]
Format = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="text: `label:score` pairs with tabs between. jsonl: one object a row. npz: "
        "arrays `labels` and `scores`, or `predictions`.",
        show_default="by the ending of FILE, else text",
    ),
]
Probabilities = Annotated[
    bool,
    typer.Option(
        "--probabilities", help="Write probabilities instead of scores (calibrated models)."
    ),
]


@with_groups
def command(
    model: Model,
    data: Data,
    *,
    k: K = None,
    output: Output = None,
    format: Format = None,
    probabilities: Probabilities = False,
    form: DataForm,
) -> None:
    """Write the k best labels of each row of DATA, best first.

    Rows are scaled as they were when the model was fitted. Labels that DATA carries are ignored.
    A model of numbers (sparse-linear) writes one number a row, one of sequences (chain) the tokens
    of DATA with their tags as the last column.
    In text a label ends at the last colon of its pair. For a model of raw text DATA is text, as for
    `sublearn fit --text`; a line without a tab is text without labels. Each row has its answer, in
    the order of DATA; that of a blank line or of a row without text is empty (an empty line,
    `"empty": true`, or a row marked in `is_empty`), and a warning counts them.

    Example: `sublearn predict wiki.model test.txt -k 3 | head`
    """
    import sublearn
    from sublearn.cli.data import predicts_numbers, refuse_uncalibrated, refuse_unless_of_rows
    from sublearn.cli.tagging import is_tagger

    format = _choose_format(format, output)
    check_folder(output, "--output")
    fitted = sublearn.load(model)
    ranking = {"k": k, "probabilities": probabilities or None}
    if is_tagger(fitted):
        refuse_given(ranking | given_of(form), "is not for a model of sequences (chain)")
        _predict_tags(fitted, data, output, format)
        return
    refuse_unless_of_rows(fitted)
    if probabilities:
        refuse_uncalibrated(fitted, "--probabilities")
    if predicts_numbers(fitted):
        refuse_given(ranking, "needs a model of labels, got one of numbers")
        _predict_numbers(fitted, data, form, output, format)
        return
    _predict_labels(fitted, data, form, output, format, k=k or 5, probabilities=probabilities)


def _choose_format(name: str | None, output: Path | None) -> str:
    if name is None:
        ending = output.suffix.removeprefix(".") if output else ""
        name = ending if ending in _FORMATS else "text"
    if name not in _FORMATS:
        raise typer.BadParameter(
            f"must be one of {', '.join(_FORMATS)}, got {name}", param_hint="--format"
        )
    if name == "npz" and output is None:
        raise typer.BadParameter("npz needs a file, got none", param_hint="--output")
    return name


def _predict_tags(model: BaseEstimator, data: Path, output: Path | None, format: str) -> None:
    from sublearn.cli.tagging import write_tags

    if format == "npz":
        raise typer.BadParameter(
            "must be text or jsonl for a model of sequences, got npz", param_hint="--format"
        )
    with _open_text(output) as stream:
        write_tags(stream, model, data, format=format)


def _predict_numbers(
    model: BaseEstimator, data: Path, form: DataForm, output: Path | None, format: str
) -> None:
    import numpy as np

    from sublearn.cli.data import read_for_prediction
    from sublearn.io.files import write_atomically

    X, is_empty = read_for_prediction(data, model, form)
    blocks = range(0, len(is_empty), _BLOCK_ROWS)
    found = [model.predict(X[start : start + _BLOCK_ROWS]) for start in blocks]
    numbers = np.concatenate([np.zeros(0), *found])
    if format == "npz":
        numbers[is_empty] = np.nan
        with write_atomically(output or "") as stream:
            np.savez_compressed(stream, predictions=numbers, is_empty=is_empty)
        return
    empty = "" if format == "text" else json.dumps({"prediction": None, "empty": True})
    with _open_text(output) as stream:
        for number, has_none in zip(numbers.tolist(), is_empty.tolist(), strict=True):
            line = f"{number:.6g}" if format == "text" else json.dumps({"prediction": number})
            stream.write((empty if has_none else line) + "\n")


def _predict_labels(
    model: BaseEstimator,
    data: Path,
    form: DataForm,
    output: Path | None,
    format: str,
    *,
    k: int,
    probabilities: bool,
) -> None:
    from sublearn.cli.data import read_for_prediction

    X, is_empty = read_for_prediction(data, model, form)
    best = model.predict_proba_top_k if probabilities else model.predict_top_k
    blocks = _rank(model, best, X, is_empty, min(k, len(model.classes_)))
    if format == "npz":
        _write_npz(output, blocks)
        return
    write = _write_text if format == "text" else _write_jsonl
    with _open_text(output) as stream:
        for block in blocks:
            write(stream, *block)


def _rank(
    model: BaseEstimator,
    best: Callable[[Matrix | list[str], int], tuple[np.ndarray, np.ndarray]],
    X: Matrix | list[str],
    is_empty: np.ndarray,
    k: int,
) -> Iterator[_Block]:
    n_rows = len(is_empty)
    if n_rows == 0:  # estimators refuse a matrix without rows
        nothing = model.classes_[:0].repeat(k).reshape(0, k)
        yield nothing, model.intercept_[:0].reshape(0, k), is_empty
    for start in range(0, n_rows, _BLOCK_ROWS):
        own = slice(start, start + _BLOCK_ROWS)
        yield *best(X[own], k), is_empty[own]


@contextlib.contextmanager
def _open_text(output: Path | None) -> Iterator[IO[str]]:
    if output is None:
        yield sys.stdout
        return
    import io

    from sublearn.io.files import write_atomically

    with (
        write_atomically(output) as stream,
        io.TextIOWrapper(stream, encoding="utf-8", newline="\n") as text,
    ):
        yield text


def _write_text(
    stream: IO[str], labels: np.ndarray, scores: np.ndarray, is_empty: np.ndarray
) -> None:
    rows = zip(labels.tolist(), scores.tolist(), is_empty.tolist(), strict=True)
    for names, values, has_none in rows:
        pairs = (f"{name}:{value:.6g}" for name, value in zip(names, values, strict=True))
        stream.write(("" if has_none else "\t".join(pairs)) + "\n")


def _write_jsonl(
    stream: IO[str], labels: np.ndarray, scores: np.ndarray, is_empty: np.ndarray
) -> None:
    rows = zip(labels.tolist(), scores.tolist(), is_empty.tolist(), strict=True)
    for names, values, has_none in rows:
        found = {"labels": names, "scores": values}
        answer = {"labels": [], "scores": [], "empty": True} if has_none else found
        stream.write(json.dumps(answer, ensure_ascii=False) + "\n")


def _write_npz(output: Path | None, blocks: Iterator[_Block]) -> None:
    import numpy as np

    from sublearn.io.files import write_atomically

    labels, scores, is_empty = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    labels = labels.astype(str) if labels.dtype == object else labels  # never pickled
    if is_empty.any():
        labels, scores = labels.copy(), scores.astype(float)
        labels[is_empty] = "" if labels.dtype.kind == "U" else -1
        scores[is_empty] = np.nan
    with write_atomically(output or "") as stream:
        np.savez_compressed(stream, labels=labels, scores=scores, is_empty=is_empty)
