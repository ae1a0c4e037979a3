"""Arguments and options that several commands share, so that they mean and read the same."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from sublearn.typing import JsonObject

__all__ = [
    "NUMBERS",
    "RAW_TEXT",
    "Columns",
    "Data",
    "DataFormat",
    "Jobs",
    "Json",
    "Labels",
    "Model",
    "Quiet",
    "Separator",
    "Text",
    "TextForm",
    "ZeroBased",
    "check_folder",
    "output_option",
    "parse_labels",
    "refuse_given",
]

_FORMATS = (
    "`.txt`, `.xmc` (extreme classification repository), `.svm`, `.svmlight`, `.libsvm` (LIBSVM), "
    "`.arff` (Mulan) or `.npz`; with `.gz`, `.xz` or `.bz2` if compressed"
)

#: Panels of the help.
NUMBERS, RAW_TEXT = "Data of numbers", "Raw text"

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
        rich_help_panel=NUMBERS,
    ),
]
DataFormat = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Format of a data file whose name does not tell: xmc, libsvm, arff or npz.",
        show_default="by the ending",
        rich_help_panel=NUMBERS,
    ),
]
ZeroBased = Annotated[
    bool,
    typer.Option(
        "--zero-based",
        help="Features of a LIBSVM file count from 0, not from 1.",
        rich_help_panel=NUMBERS,
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(metavar="N", help="Threads; -1 for all cores.", show_default="all cores"),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object on standard output instead of a table."),
]
Text = Annotated[
    bool,
    typer.Option(
        "--text",
        help="DATA is raw text: on each line labels, a tab and the text (`.tsv`), or `.csv` and "
        "`.jsonl` with `text` and `labels`.",
        rich_help_panel=RAW_TEXT,
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        show_default="a comma, or what `fit` was told",
        help="What stands between two labels in a text file; a blank for any white space.",
        rich_help_panel=RAW_TEXT,
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="ORDER",
        show_default="labels,text, or what `fit` was told",
        help="Order in a tab-separated text file: labels,text or text,labels.",
        rich_help_panel=RAW_TEXT,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no table.")]


def output_option(default: str, help: str, *, metavar: str = "FILE") -> Any:
    """`--output`: what is written where it is not given, and what it holds."""
    return typer.Option(
        "--output", "-o", metavar=metavar, dir_okay=False, show_default=default, help=help
    )


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


def refuse_given(options: Mapping[str, object], reason: str) -> None:
    """Refuse options, by name, that mean nothing here; those not given are None."""
    for name, value in options.items():
        if value is not None:
            raise typer.BadParameter(reason, param_hint=f"--{name.replace('_', '-')}")


@dataclass(frozen=True)
class TextForm:
    """What the command line says about the form of text files."""

    is_text: bool = False
    separator: str | None = None
    columns: str | None = None

    def as_notes(self) -> JsonObject:
        """The form with its defaults, for a model to remember."""
        if self.separator == "":
            raise typer.BadParameter("must have characters, got none", param_hint="--separator")
        form = {"separator": self.separator or ",", "columns": self.columns or "labels,text"}
        orders = ("labels,text", "text,labels")
        if form["columns"] not in orders:
            raise typer.BadParameter(
                f"must be {orders[0]} or {orders[1]}, got {self.columns}", param_hint="--columns"
            )
        return form

    def refuse_unless_text(self) -> None:
        """Refuse options for text files where the data are numbers."""
        for option, value in (("--separator", self.separator), ("--columns", self.columns)):
            if value is not None:
                raise typer.BadParameter("is for text, got data of numbers", param_hint=option)
