"""`sublearn serve`: predictions of a saved model over HTTP."""

from __future__ import annotations

import contextlib
from typing import Annotated

import typer

from sublearn.cli.options import Model

__all__ = ["command"]


def command(
    model: Model,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; 0.0.0.0 for all networks.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="Port; 0 for a free one.")
    ] = 8000,
    max_megabytes: Annotated[
        float, typer.Option(metavar="X", min=0.001, help="Larger questions are refused.")
    ] = 16.0,
    log: Annotated[
        bool, typer.Option("--log", help="A line on standard error for each request.")
    ] = False,
) -> None:
    """Answer questions to MODEL over HTTP until Ctrl-C.

    `POST /predict` takes and gives JSON, `GET /model` shows a question that the model answers, and
    the address itself is a page to try it in a browser. Whoever reaches the port may ask: put a
    proxy that knows your users before it where that matters.

    Needs FastAPI and uvicorn: `pip install 'sublearn[serve]'`.

    Example: `sublearn serve my.model --port 8000`

    Example: `curl localhost:8000/predict -d '{"texts": ["history of railways"], "k": 3}'`
    """
    import sublearn
    from sublearn.cli.console import err

    try:
        from sublearn.serve import create_app, serve
    except ModuleNotFoundError as error:
        raise ValueError(
            f"serve needs {error.name}, which is not installed: pip install 'sublearn[serve]'"
        ) from None
    try:
        app = create_app(sublearn.load(model), name=model.name, max_megabytes=max_megabytes)
    except ValueError as error:
        raise ValueError(f"{model}: {error}") from None
    with contextlib.suppress(KeyboardInterrupt):  # the ordinary end of a server
        serve(
            app,
            host,
            port,
            ready=lambda address: err.print(f"{address} answers; Ctrl-C ends it", soft_wrap=True),
            log_level="info" if log else "warning",
        )
