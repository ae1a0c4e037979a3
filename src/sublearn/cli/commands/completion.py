"""`sublearn completion`: completes commands, methods and options in a shell."""

from __future__ import annotations

from typing import Annotated

import typer

from sublearn.kinds.base import Refused

__all__ = ["command"]

_SHELLS = ("bash", "zsh", "fish")


def command(
    shell: Annotated[
        str, typer.Argument(metavar="SHELL", show_default=False, help="bash, zsh or fish.")
    ],
) -> None:
    """Print a script that makes SHELL complete commands, methods, options and file names.

    Example: `sublearn completion bash > ~/.local/share/bash-completion/completions/sublearn`

    Example: `sublearn completion zsh > ~/.zfunc/_sublearn`
    """
    from typer.completion import get_completion_script

    if shell not in _SHELLS:
        raise Refused("SHELL", f"must be one of {', '.join(_SHELLS)}, got {shell}")
    print(
        get_completion_script(prog_name="sublearn", complete_var="_SUBLEARN_COMPLETE", shell=shell)
    )
