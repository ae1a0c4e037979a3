"""Arguments and options that several commands share, so that they mean and read the same.

Options that belong together are the fields of a dataclass, a group: a command under
:func:`with_groups` takes the whole group as one parameter.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_type_hints

import typer
from typer.models import OptionInfo

from sublearn.kinds.base import Form, Refused

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = [
    "Csv",
    "Data",
    "DataForm",
    "DataFormat",
    "Jobs",
    "Json",
    "Labels",
    "Model",
    "Quiet",
    "RandomState",
    "ZeroBased",
    "output_option",
    "refuse_given",
    "with_groups",
]

_FORMATS = (
    "`.txt`, `.xmc` (extreme classification repository), `.svm`, `.svmlight`, `.libsvm` (LIBSVM), "
    "`.arff` (Mulan), `.npz` or `.csv`; with `.gz`, `.xz`, `.bz2` or `.zst` if compressed; `-` for "
    "standard input"
)

#: What stands for the value of an option that has none.
FLAG = " "
#: Panels of the help.
OF_DATA = "The form of DATA"

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
        help="What to learn: names of columns, how many at the end, or the .xml or .npz file.",
        show_default=False,
        rich_help_panel=OF_DATA,
    ),
]
DataFormat = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Format of a data file whose name does not tell: xmc, libsvm, arff, npz, csv, hmc.",
        show_default=False,
        rich_help_panel=OF_DATA,
    ),
]
ZeroBased = Annotated[
    bool,
    typer.Option(
        "--zero-based",
        metavar=FLAG,
        help="Features of a LIBSVM file count from 0, not from 1.",
        rich_help_panel=OF_DATA,
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(metavar="N", help="Threads; -1 for all cores. [all cores]", show_default=False),
]
RandomState = Annotated[
    int, typer.Option(metavar="N", help="Seed of the random order. [0]", show_default=False)
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object instead of a table.", metavar=FLAG),
]
Text = Annotated[
    bool,
    typer.Option(
        "--text",
        help="DATA is raw text, which a model of text knows by itself.",
        hidden=True,
        rich_help_panel=OF_DATA,
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        show_default=False,
        help="What stands between two labels; a blank for any white space. [a comma, or as fitted]",
        rich_help_panel=OF_DATA,
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="ORDER",
        show_default=False,
        help="Order on a line: labels,text or text,labels. [labels,text, or as fitted]",
        rich_help_panel=OF_DATA,
    ),
]
Csv = Annotated[
    bool, typer.Option("--csv", help="Write a CSV table with a line of names.", metavar=FLAG)
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress bar and no table.", metavar=FLAG)
]


def output_option(default: str, help: str, *, metavar: str = "FILE") -> OptionInfo:
    """`--output`: what is written where it is not given, and what it holds."""
    found: OptionInfo = typer.Option(
        "--output", "-o", metavar=metavar, dir_okay=False, show_default=default, help=help
    )
    return found


def refuse_given(options: Mapping[str, object], reason: str) -> None:
    """Refuse options, by name, that mean nothing here; those not given are None."""
    for name, value in options.items():
        if value is not None:
            raise Refused(f"--{name.replace('_', '-')}", reason)


@dataclass(frozen=True)
class DataForm:
    """What the command line says about the form of a data file that a model is asked about."""

    labels: Labels = None
    data_format: DataFormat = None
    zero_based: ZeroBased = False
    text: Text = False
    separator: Separator = None
    columns: Columns = None

    def form(self) -> Form:
        """The same for kinds."""
        return Form(**dataclasses.asdict(self))


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
