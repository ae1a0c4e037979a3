"""`sublearn predict`: the best labels of each row of a data file."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from sublearn.cli.options import (
    Columns,
    Data,
    DataFormat,
    Labels,
    Model,
    Separator,
    Text,
    TextForm,
    check_folder,
    output_option,
    refuse_given,
)
from sublearn.typing import JsonObject, Matrix

if TYPE_CHECKING:
    import numpy as np
    from sklearn.base import BaseEstimator

__all__ = ["command"]

_BLOCK_ROWS = 4096  # rows scored at a time: the first lines come soon, memory stays small
_FORMATS = ("text", "jsonl", "npz")
_Block = tuple["np.ndarray", "np.ndarray"]  # labels and scores, best first


def command(
    model: Model,
    data: Data,
    k: Annotated[
        int | None,
        typer.Option("--k", "-k", min=1, metavar="N", show_default="5", help="Labels per row."),
    ] = None,
    output: Annotated[Path | None, output_option("standard output", "Where to write.")] = None,
    format: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="text: `label:score` pairs with tabs between. jsonl: one object a row. npz: "
            "arrays `labels` and `scores`, or `predictions`.",
            show_default="by the ending of FILE, else text",
        ),
    ] = None,
    probabilities: Annotated[
        bool,
        typer.Option(
            "--probabilities", help="Write probabilities instead of scores (calibrated models)."
        ),
    ] = False,
    labels: Labels = None,
    data_format: DataFormat = None,
    text: Text = False,
    separator: Separator = None,
    columns: Columns = None,
) -> None:
    """Write the k best labels of each row of DATA, best first.

    Rows are scaled as they were when the model was fitted. Labels that DATA carries are ignored.
    A model of numbers (sparse-linear) writes one number a row, one of sequences (chain) the tokens
    of DATA with their tags as the last column.
    In text a label ends at the last colon of its pair. For a model of raw text DATA is text, as for
    `sublearn fit --text`; a line without a tab is text without labels.

    Example: `sublearn predict wiki.model test.txt -k 3 | head`
    """
    import sublearn
    from sublearn.cli.data import (
        predicts_numbers,
        read_rows,
        refuse_uncalibrated,
        refuse_unless_of_rows,
    )
    from sublearn.cli.tagging import is_tagger, write_tags

    format = _choose_format(format, output)
    check_folder(output, "--output")
    fitted = sublearn.load(model)
    if is_tagger(fitted):
        given: JsonObject = {"k": k, "probabilities": probabilities or None, "labels": labels}
        given |= {"data_format": data_format, "text": text or None, "separator": separator}
        refuse_given(given | {"columns": columns}, "is not for a model of sequences (chain)")
        if format == "npz":
            raise typer.BadParameter(
                "must be text or jsonl for a model of sequences, got npz", param_hint="--format"
            )
        with _open_text(output) as stream:
            write_tags(stream, fitted, data, format=format)
        return
    refuse_unless_of_rows(fitted)
    is_of_numbers = predicts_numbers(fitted)
    if is_of_numbers:
        refuse_given({"k": k}, "needs a model of labels, got one of numbers")
    if probabilities:
        refuse_uncalibrated(fitted, "--probabilities")
    form = TextForm(text, separator, columns)
    X, _ = read_rows(data, fitted, labels, data_format, form, needs_labels=False)
    if is_of_numbers:
        _write_numbers(output, format, fitted, X)
        return
    blocks = _predict(fitted, X, min(k or 5, len(fitted.classes_)), probabilities)
    if format == "npz":
        _write_npz(output, blocks)
    else:
        write = _write_text if format == "text" else _write_jsonl
        with _open_text(output) as stream:
            for block in blocks:
                write(stream, *block)


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


def _predict(model: BaseEstimator, X: Matrix, k: int, probabilities: bool) -> Iterator[_Block]:
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if n_rows == 0:  # estimators refuse a matrix without rows
        yield model.classes_[:0].repeat(k).reshape(0, k), model.intercept_[:0].reshape(0, k)
    best = model.predict_proba_top_k if probabilities else model.predict_top_k
    for start in range(0, n_rows, _BLOCK_ROWS):
        yield best(X[start : start + _BLOCK_ROWS], k)


def _write_numbers(output: Path | None, format: str, model: BaseEstimator, X: Matrix) -> None:
    import numpy as np

    from sublearn.io.files import write_atomically

    blocks = range(0, X.shape[0], _BLOCK_ROWS)
    found = [model.predict(X[start : start + _BLOCK_ROWS]) for start in blocks]
    numbers = np.concatenate(found) if found else np.zeros(0)
    if format == "npz":
        with write_atomically(output or "") as stream:
            np.savez_compressed(stream, predictions=numbers)
        return
    with _open_text(output) as stream:
        for number in numbers.tolist():
            line = f"{number:.6g}" if format == "text" else json.dumps({"prediction": number})
            stream.write(line + "\n")


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


def _write_text(stream: IO[str], labels: np.ndarray, scores: np.ndarray) -> None:
    for names, values in zip(labels.tolist(), scores.tolist(), strict=True):
        pairs = (f"{name}:{value:.6g}" for name, value in zip(names, values, strict=True))
        stream.write("\t".join(pairs) + "\n")


def _write_jsonl(stream: IO[str], labels: np.ndarray, scores: np.ndarray) -> None:
    for names, values in zip(labels.tolist(), scores.tolist(), strict=True):
        stream.write(json.dumps({"labels": names, "scores": values}, ensure_ascii=False) + "\n")


def _write_npz(output: Path | None, blocks: Iterator[_Block]) -> None:
    import numpy as np

    from sublearn.io.files import write_atomically

    labels, scores = zip(*blocks, strict=True)
    ranked = np.concatenate(labels)
    ranked = ranked.astype(str) if ranked.dtype == object else ranked  # never pickled
    with write_atomically(output or "") as stream:
        np.savez_compressed(stream, labels=ranked, scores=np.concatenate(scores))
