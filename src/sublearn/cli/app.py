"""Finds the commands, runs one, and turns whatever goes wrong into a sentence and an exit code."""

from __future__ import annotations

import contextlib
import importlib
import os
import pkgutil
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, Protocol, TypeGuard

import typer

import sublearn
from sublearn.cli import commands
from sublearn.cli.console import err, say_error, say_warning
from sublearn.cli.streams import in_words, with_standard_input
from sublearn.errors import ParameterError
from sublearn.typing import JsonObject

__all__ = ["build", "run"]

COMPLETE = "_SUBLEARN_COMPLETE"  # set by a shell that wants to complete a command line
OK, FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130

_HELP = """Learning and inference in time sublinear in the size of the model.

First time here? `sublearn quickstart` trains a classifier with thousands of labels on library
records that come with the package, and explains what it predicts.

Results go to standard output, progress and messages to standard error. Exit codes: 0 done,
1 the run failed, 2 called wrongly, 130 stopped by Ctrl-C."""


def build(arguments: Sequence[str] = ()) -> typer.Typer:
    """The application with every command found in `commands/`, or with the one that is called.

    A module has a function `command`; or `make_group`, from the words after the command to an
    application of its own, and `complete`, which makes those words complete.
    """
    app = typer.Typer(name="sublearn", help=_HELP, context_settings=_CONTEXT, **_LOOKS)
    app.callback()(_global_options)
    names = [module.name for module in pkgutil.iter_modules(commands.__path__)]
    wanted = arguments[0].replace("-", "_") if arguments else None
    for name in [wanted] if wanted in names else names:
        module = importlib.import_module(f"{commands.__name__}.{name}")
        if name in _GROUPS:
            app.add_typer(module.make_group(arguments[1:]), name=name)
        else:
            app.command(name.replace("_", "-"))(module.command)
    return app


#: Commands with a command of their own for each method.
_GROUPS = ("fit", "tune")
_CONTEXT: JsonObject = {"help_option_names": ["-h", "--help"]}
_LOOKS: JsonObject = {"rich_markup_mode": "markdown", "add_completion": False}


def _complete() -> int:
    """Tell a shell how the words that it has so far go on."""
    from typer.completion import completion_init

    completion_init()
    typed = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    command = typer.main.get_command(build(typed.split()[1:]))
    with contextlib.suppress(SystemExit):
        command.main([], prog_name="sublearn", complete_var=COMPLETE, standalone_mode=False)
    return OK


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return the exit code."""
    if COMPLETE in os.environ:
        return _complete()
    wants_traceback, arguments = _take_debug(arguments)
    warnings.showwarning = say_warning
    try:
        if "-" in arguments:
            arguments = with_standard_input(arguments)
        if arguments and arguments[0] in _GROUPS:
            module = importlib.import_module(f"{commands.__name__}.{arguments[0]}")
            arguments = [arguments[0], *module.complete(arguments[1:])]
        code = typer.main.get_command(build(arguments)).main(
            arguments or ["--help"], prog_name="sublearn", standalone_mode=False
        )
        sys.stdout.flush()
        if code == INTERRUPTED:  # what newer releases of Typer make of Ctrl-C
            raise KeyboardInterrupt
        return code if isinstance(code, int) else OK
    except (KeyboardInterrupt, typer.Abort):
        say_error("interrupted")
        return INTERRUPTED
    except (BrokenPipeError, SystemExit) as stop:
        if not _is_broken_pipe(stop):
            raise
        _forget_stdout()
        return OK  # the reader has seen enough, as `head` does
    except Exception as error:
        if wants_traceback and not _is_usage_error(error):
            err.print_exception()
        return _explain(error)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        print(f"sublearn {sublearn.__version__}")
        raise typer.Exit(OK)


def _global_options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            metavar=" ",
            help="Print the version and exit.",
            is_eager=True,
            callback=_print_version,
        ),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", metavar=" ", help="Show the traceback of an error (any position)."),
    ] = False,
) -> None:
    """What stands before the command. Both are dealt with before this runs."""


def _take_debug(arguments: Sequence[str]) -> tuple[bool, list[str]]:
    """`--debug` is allowed after the command too: that is where one adds it to a failed call."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = [argument for argument in arguments[:end] if argument != "--debug"]
    return len(options) < end, [*options, *arguments[end:]]


def _is_broken_pipe(stop: BaseException) -> bool:
    """Typer turns a broken pipe into an exit on its own."""
    return isinstance(stop, BrokenPipeError) or isinstance(stop.__context__, BrokenPipeError)


class _UsageError(Protocol):
    """Typer's own errors, from click in older releases and from a copy of it in newer ones."""

    def format_message(self) -> str:
        """What is wrong with the call."""


def _is_usage_error(error: object) -> TypeGuard[_UsageError]:
    return hasattr(error, "format_message")


def _explain(error: Exception) -> int:
    if _is_usage_error(error):
        context = getattr(error, "ctx", None)
        hint = f" (see {context.command_path} --help)" if context else ""
        message = error.format_message()
        if message:  # empty where the help was shown instead
            say_error(f"{message.rstrip('.')}{hint}")
        return WRONG_USAGE
    if isinstance(error, ParameterError):
        say_error(in_words(str(error)))
        return WRONG_USAGE
    if isinstance(error, OSError) and error.strerror:
        say_error(f"{error.filename}: {error.strerror}" if error.filename else error.strerror)
    elif isinstance(error, (ValueError, OSError, ImportError)):
        say_error(in_words(str(error)))
    elif isinstance(error, MemoryError):
        say_error("not enough memory")
    else:
        say_error(f"unexpected {type(error).__name__}: {error} (--debug shows where)")
    return FAILED


def _forget_stdout() -> None:
    """Python flushes standard output once more when it exits; that must not fail again."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
