"""Saved models behind HTTP: questions and answers are JSON, and a page lets people try it.

Needs FastAPI, uvicorn and prometheus-client: ``pip install 'sublearn[serve]'``. On the command line
it is ``sublearn serve MODEL``; `create_app` is for those who run the application in a server of
theirs.
"""

import importlib
from typing import TYPE_CHECKING

from sublearn.errors import needs_extra as _needs_extra
from sublearn.serve.limits import Limits

if TYPE_CHECKING:
    from sublearn.serve.app import create_app
    from sublearn.serve.models import ModelFile
    from sublearn.serve.server import AppMaker, serve

__all__ = ["AppMaker", "Limits", "ModelFile", "create_app", "serve"]
_HOMES = {"AppMaker": "server", "ModelFile": "models", "create_app": "app", "serve": "server"}


def __getattr__(name: str) -> object:
    """Late, so that `sublearn serve --help` shows the limits where FastAPI is not installed."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with _needs_extra("sublearn.serve", "serve"):
        home = importlib.import_module(f"{__name__}.{_HOMES[name]}")
    found: object = getattr(home, name)
    return found
