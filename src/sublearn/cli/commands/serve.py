"""`sublearn serve`: predictions of a saved model over HTTP."""

from __future__ import annotations

import contextlib
import os
import re
import socket
from pathlib import Path
from typing import Annotated

import typer

from sublearn.cli.options import with_groups
from sublearn.serve.limits import Limits

__all__ = ["command"]

TOKEN_VARIABLE = "SUBLEARN_TOKEN"
_ALL_NETWORKS = {"0.0.0.0", "::"}

ModelFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="MODEL...",
        help="Saved models; NAME=MODEL to give a name that is not the file's.",
        show_default=False,
    ),
]
Host = Annotated[
    str, typer.Option(metavar="ADDRESS", help="Where to listen; 0.0.0.0 for all networks.")
]
Port = Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="Port; 0 for a free one.")]
AllowHost = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="A name by which clients may call the server, beside localhost and the address "
        "that it listens at; * is any name. May be given several times.",
    ),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="Clients must send the token in this file as `Authorization: Bearer TOKEN`; "
        f"without the option, the token in the variable {TOKEN_VARIABLE}, if it is set.",
    ),
]
Certificate = Annotated[
    Path | None,
    typer.Option(metavar="FILE", exists=True, dir_okay=False, help="Certificate for TLS, in PEM."),
]
Key = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", exists=True, dir_okay=False, help="Key of the certificate, in PEM."
    ),
]
Mapped = Annotated[
    bool,
    typer.Option(
        "--mapped",
        metavar=" ",
        help="Map the model from its file instead of reading it into memory: for models larger "
        "than the memory, whose file nothing changes in place.",
    ),
]
Workers = Annotated[
    int, typer.Option(metavar="N", min=1, help="Processes that answer, each with the limits below.")
]
Watch = Annotated[
    bool,
    typer.Option(
        "--watch",
        metavar=" ",
        help="Look each second if a file was replaced, and read it; SIGHUP does so once.",
    ),
]
Log = Annotated[
    bool, typer.Option("--log", metavar=" ", help="A line on standard error for each request.")
]


@with_groups
def command(
    models: ModelFiles,
    *,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    allow_host: AllowHost = None,
    token_file: TokenFile = None,
    certificate: Certificate = None,
    key: Key = None,
    mapped: Mapped = False,
    workers: Workers = 1,
    watch: Watch = False,
    log: Log = False,
    limits: Limits,
) -> None:
    """Answer questions to MODEL, or to several, over HTTP until Ctrl-C.

    `POST /predict` takes and gives JSON, `GET /model` shows a question that the model answers, and
    the address itself is a page to try it in a browser. Several models are at
    `/models/NAME/predict`. Without a token, whoever reaches the port may ask.

    Needs `pip install 'sublearn[serve]'`.

    Example: `sublearn serve my.model --port 8000`

    Example: `sublearn serve tags=a.model b.model --workers 2 --watch`

    Example: `curl localhost:8000/predict --json '{"texts": ["history of railways"], "k": 3}'`
    """
    if key is not None and certificate is None:
        raise ValueError("--key must come with --certificate, got none")
    files = _files(models)
    from sublearn.cli.console import err
    from sublearn.serve import AppMaker, ModelFile, serve

    sources = {name: ModelFile(path, mapped) for name, path in files.items()}
    hosts = [*(allow_host or ()), socket.gethostname() if host in _ALL_NETWORKS else host]
    with contextlib.suppress(KeyboardInterrupt):  # the ordinary end of a server
        serve(
            AppMaker(sources, limits, hosts, _token(token_file)),
            host,
            port,
            workers=workers,
            watch=watch,
            certificate=certificate,
            key=key,
            ready=lambda address: err.print(f"{address} answers; Ctrl-C ends it", soft_wrap=True),
            log_level="info" if log else "warning",
        )


def _files(models: list[str]) -> dict[str, Path]:
    """The file of each model by its name: what stands before =, or the name of the file."""
    found: dict[str, Path] = {}
    for model in models:
        name, _, rest = model.partition("=")
        path = Path(model if not rest or Path(model).exists() else rest)
        if not path.is_file():
            raise typer.BadParameter(f"File {str(path)!r} does not exist.", param_hint="MODEL")
        if path == Path(model):
            name = re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).lstrip("._-") or "model"
        if name in found:
            raise typer.BadParameter(
                f"must have names that differ (NAME=MODEL), got {name!r} twice", param_hint="MODEL"
            )
        found[name] = path
    return found


def _token(file: Path | None) -> str | None:
    """The token from where it is kept; not an option, which every user of the machine can see."""
    if file is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    return file.read_text(encoding="utf-8").strip()
