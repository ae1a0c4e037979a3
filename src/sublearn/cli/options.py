"""Arguments and options that several commands share, so that they mean and read the same.

Options that belong together are the fields of a dataclass, a group: a command under
:func:`with_groups` takes the whole group as one parameter.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_type_hints

import typer
from typer.models import OptionInfo

from sublearn.typing import JsonObject

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = [
    "NUMBERS",
    "RAW_TEXT",
    "Data",
    "DataForm",
    "DataFormat",
    "Jobs",
    "Json",
    "Labels",
    "Model",
    "Panel",
    "Quiet",
    "RandomState",
    "ZeroBased",
    "check_folder",
    "given_of",
    "output_option",
    "parse_labels",
    "refuse_given",
    "with_groups",
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
RandomState = Annotated[int, typer.Option(metavar="N", help="Seed of the random order.")]
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


@dataclass(frozen=True)
class Panel:
    """Makes options of a panel: the value's name, the default shown, the sentence of help."""

    title: str

    def __call__(
        self,
        metavar: str | None,
        default: str | bool,
        help: str,
        *flags: str,
        min: int | None = None,
        is_file: bool = False,
    ) -> OptionInfo:
        """One of them."""
        found: OptionInfo = typer.Option(
            *flags,
            metavar=metavar,
            show_default=default,
            help=help,
            rich_help_panel=self.title,
            min=min,
            exists=is_file,
            dir_okay=not is_file,
        )
        return found


def output_option(default: str, help: str, *, metavar: str = "FILE") -> OptionInfo:
    """`--output`: what is written where it is not given, and what it holds."""
    found: OptionInfo = typer.Option(
        "--output", "-o", metavar=metavar, dir_okay=False, show_default=default, help=help
    )
    return found


def parse_labels(text: str | None) -> str | int | list[str] | None:
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
class DataForm:
    """What the command line says about the form of a data file, of numbers or of text."""

    labels: Labels = None
    data_format: DataFormat = None
    text: Text = False
    separator: Separator = None
    columns: Columns = None

    def refuse_numbers(self, got: str) -> None:
        """Refuse options about numbers where the data are text."""
        options = {"labels": self.labels, "data_format": self.data_format}
        refuse_given(options, f"is for data of numbers, got {got}")

    def refuse_text(self) -> None:
        """Refuse options about text where the data are numbers."""
        options = {"separator": self.separator, "columns": self.columns}
        refuse_given(options, "is for text, got data of numbers")

    def of_text(self, notes: Mapping[str, object] | None = None) -> JsonObject:
        """The form of text: as given, else as the notes of a model say, else the usual one."""
        if self.separator == "":
            raise typer.BadParameter("must have characters, got none", param_hint="--separator")
        usual: JsonObject = {"separator": ",", "columns": "labels,text"}
        known = usual | dict(notes or {})
        form = {name: getattr(self, name) or known[name] for name in usual}
        orders = ("labels,text", "text,labels")
        if form["columns"] not in orders:
            raise typer.BadParameter(
                f"must be {orders[0]} or {orders[1]}, got {self.columns}", param_hint="--columns"
            )
        return form


def given_of(group: DataclassInstance) -> JsonObject:
    """Options of a group that were given, by name: those that differ from their default."""
    values = {field: getattr(group, field.name) for field in dataclasses.fields(group)}
    return {field.name: value for field, value in values.items() if value != field.default}


def with_groups(function: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameters that are groups stand for the options in them."""
    own = inspect.signature(function, eval_str=True).parameters
    groups: dict[str, type[DataclassInstance]] = {
        name: parameter.annotation
        for name, parameter in own.items()
        if isinstance(parameter.annotation, type) and dataclasses.is_dataclass(parameter.annotation)
    }
    flat = [
        option.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in own.items()
        for option in (_options_in(groups[name]) if name in groups else [parameter])
    ]

    def run(**options: object) -> None:
        for name, group in groups.items():
            fields = [field.name for field in dataclasses.fields(group)]
            options[name] = group(**{field: options.pop(field) for field in fields})
        function(**options)

    run.__doc__ = function.__doc__
    run.__dict__["__signature__"] = inspect.Signature(flat)
    return run


def _options_in(group: type[DataclassInstance]) -> list[inspect.Parameter]:
    """The fields of a group; one that is no option yet becomes one, in a panel of the group."""
    types = get_type_hints(group, include_extras=True)
    meanings: dict[str, str] = getattr(group, "meanings", dict)()
    found = []
    for field in dataclasses.fields(group):
        kind = types[field.name]
        if not hasattr(kind, "__metadata__"):
            option = typer.Option(
                metavar="X", help=meanings.get(field.name), rich_help_panel=group.__name__
            )
            kind = Annotated[kind, option]
        found.append(
            inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=kind
            )
        )
    return found
