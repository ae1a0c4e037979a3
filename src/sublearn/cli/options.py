"""Arguments and options that several commands share, so that they mean and read the same."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = [
    "Data",
    "DataFormat",
    "Jobs",
    "Json",
    "Labels",
    "Model",
    "Quiet",
    "ZeroBased",
    "check_folder",
    "parse_labels",
]

_FORMATS = (
    "`.txt`, `.xmc` (extreme classification repository), `.svm`, `.svmlight`, `.libsvm` (LIBSVM), "
    "`.arff` (Mulan) or `.npz`; with `.gz`, `.xz` or `.bz2` if compressed"
)

Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        exists=True,
        dir_okay=False,
        help=f"Data file: {_FORMATS}.",
        show_default=False,
    ),
]
Model = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", exists=True, dir_okay=False, help="Saved model.", show_default=False
    ),
]
Labels = Annotated[
    str | None,
    typer.Option(
        metavar="WHICH",
        help="Which attributes of an ARFF file are labels: Mulan's .xml file, how many stand at "
        "the end, or their names with commas between. For an .npz file that holds one matrix of "
        "SciPy: the .npz file with the labels.",
        show_default=False,
    ),
]
DataFormat = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Format of a data file whose name does not tell: xmc, libsvm, arff or npz.",
        show_default="by the ending",
    ),
]
ZeroBased = Annotated[
    bool, typer.Option("--zero-based", help="Features of a LIBSVM file count from 0, not from 1.")
]
Jobs = Annotated[
    int | None,
    typer.Option(metavar="N", help="Threads; -1 for all cores.", show_default="all cores"),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object on standard output instead of a table."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no table.")]


def parse_labels(text: str | None) -> Any:
    """What `--labels` says, in the form the readers take: a path, a number, or names."""
    if text is None or Path(text).exists():
        return text
    if text.isdigit():
        return int(text)
    if text.endswith((".xml", ".npz")):
        raise typer.BadParameter(f"no such file: {text}", param_hint="--labels")
    return text.split(",")


def check_folder(path: Path | None, option: str) -> None:
    """Refuse a file that could not be written: better now than after an hour of work."""
    folder = path.resolve().parent if path else None
    if folder and not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise typer.BadParameter(
            f"must be in a folder that can be written, got {folder}", param_hint=option
        )
    if path and path.exists() and not path.is_file():
        raise typer.BadParameter(f"must be a regular file, got {path}", param_hint=option)
