"""The command line: ``sublearn COMMAND``, also ``python -m sublearn COMMAND``.

A command is one file in `commands/`; nothing else has to be told about it. Results go to standard
output, everything else to standard error.
"""

from __future__ import annotations

import io
import os
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process and exit with its code.

    0: done. 1: the run failed. 2: the command was called wrongly. 130: stopped by Ctrl-C.
    """
    for stream in (sys.stdout, sys.stderr):  # a name the terminal cannot show is no failure
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        from sublearn.cli.app import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # while the modules above were being imported
        code = 130
    if code == 130:  # work that was left in the background is not worth waiting for
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
