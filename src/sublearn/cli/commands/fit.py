"""`sublearn fit`: learn a model from a data file, by a method or by the one that suits the file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from sublearn.cli.fitting import Learner, command_of, find_method
from sublearn.cli.methods import METHODS, TEXT
from sublearn.kinds.base import Refused

__all__ = ["complete", "make_group"]

_HELP = """Learn a model from DATA by a method, and save it.

`sublearn fit DATA --model OUT`, without a method, chooses one that suits DATA and says which.

The model is one file (safetensors, no pickle) that appears when it is complete; Ctrl-C leaves
nothing behind. It loads with `sublearn predict`, `evaluate`, `explain`, `inspect` and `serve`, and
in Python with `sublearn.load(path)`. `sublearn fit METHOD --help` shows the options of a method.

Example: `sublearn fit text records.tsv --model tags.model --min-df 2`

Example: `sublearn fit prices.csv --labels price --model prices.model`"""

#: Options of `fit` that stand alone; all others take the word after them.
_ALONE = {
    "-q", "--quiet", "--json", "--text", "--zero-based", "--normalize", "--no-normalize",
    "--standardize", "-h", "--help", "--help-all",
}  # fmt: skip
_HELPS = {"-h", "--help", "--help-all"}


def make_group(arguments: Sequence[str]) -> typer.Typer:
    """The methods as commands; of the one that is called the options, of the others a sentence."""
    group = typer.Typer(
        help=_HELP, rich_markup_mode="markdown", add_completion=False,
        subcommand_metavar="METHOD DATA --model OUT [OPTIONS]",
    )  # fmt: skip
    wanted = arguments[0] if arguments and arguments[0] in METHODS else None
    for name, method in METHODS.items():
        if name == wanted:
            learner = Learner.of(name, _value_of(arguments, "--classifier"))
            command = command_of(learner, shows_all="--help-all" in arguments)
            settings = {"help_option_names": ["-h", "--help", "--help-all"]}
            group.command(name, context_settings=settings)(command)
        else:
            group.command(name, help=method.sentence, short_help=method.sentence)(_nothing)
    return group


def _nothing() -> None:
    """Stands for methods that are only listed."""


def complete(arguments: Sequence[str]) -> list[str]:
    """The call with its method: as given, from `--method`, or the one that suits the data."""
    words = list(arguments)
    positions = _positionals(words)
    first = words[positions[0]] if positions else None
    if first in METHODS or (first is None and _HELPS & set(words)):
        return (
            words if first is None else [first, *words[: positions[0]], *words[positions[0] + 1 :]]
        )
    if first is not None and len(positions) > 1 and not _is_file_name(first):
        find_method(first)
    method, words = _take_method(words)
    if method is not None:
        return [method, *words]
    if first is None:
        got = " ".join(words) or "none"
        raise Refused(
            "DATA", f"must be a data file, got {got}; `sublearn fit --help` lists methods"
        )
    if not Path(first).is_file():
        raise Refused("DATA", f"no such file: {first}")
    return [_choose(Path(first), words), *words]


def _is_file_name(word: str) -> bool:
    return "." in word or "/" in word or Path(word).exists()


def _positionals(words: Sequence[str]) -> list[int]:
    """Places of words that are neither options nor their values."""
    found = []
    for i, word in enumerate(words):
        before = words[i - 1] if i else ""
        is_value = before.startswith("-") and before not in _ALONE and "=" not in before
        if not word.startswith("-") and not (is_value and before != "-"):
            found.append(i)
    return found


def _value_of(words: Sequence[str], option: str) -> str | None:
    for i, word in enumerate(words):
        if word == option and i + 1 < len(words):
            return words[i + 1]
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return None


def _without(words: Sequence[str], option: str) -> list[str]:
    found: list[str] = []
    skips = False
    for word in words:
        if skips:
            skips = False
        elif word == option:
            skips = True
        elif not word.startswith(f"{option}="):
            found.append(word)
    return found


def _take_method(words: list[str]) -> tuple[str | None, list[str]]:
    """The method by the words of earlier versions: `--method NAME`, and `--text` for texts."""
    name = _value_of(words, "--method")
    words = _without(words, "--method")
    if name is not None:
        find_method(name, "--method")
    if "--text" not in words:
        return name, words
    words.remove("--text")
    return TEXT, words if name in (None, TEXT) else [*words, "--classifier", str(name)]


def _choose(data: Path, words: Sequence[str]) -> str:
    """The first method that suits the file and has all options that were typed."""
    from sublearn.cli.choosing import choose_methods
    from sublearn.cli.console import err

    choice = choose_methods(data, _value_of(words, "--data-format"), _value_of(words, "--labels"))
    flags = [word.partition("=")[0] for word in words if word.startswith("-") and word != "-"]
    fitting = (n for n in choice.methods if all(map(Learner.of(n, None).knows, flags)))
    name = next(fitting, choice.methods[0])
    if not {"-q", "--quiet"} & set(words):
        err.print(
            f"[dim]method:[/] {name} ({choice.reason}); sublearn fit {name} --help has its options",
            soft_wrap=True,
        )
    return name
