"""A saved model behind HTTP: questions and answers are JSON, and a page lets people try it.

Needs FastAPI and uvicorn: ``pip install 'sublearn[serve]'``. On the command line it is
``sublearn serve MODEL``; `create_app` is for those who run the application in a server of theirs.
"""

from typing import TYPE_CHECKING

from sublearn.errors import needs_extra as _needs_extra
from sublearn.serve.limits import Limits

if TYPE_CHECKING:
    from sublearn.serve.app import create_app
    from sublearn.serve.server import serve

__all__ = ["Limits", "create_app", "serve"]


def __getattr__(name: str) -> object:
    """Late, so that `sublearn serve --help` shows the limits where FastAPI is not installed."""
    with _needs_extra("sublearn.serve", "serve"):
        if name == "create_app":
            from sublearn.serve.app import create_app

            return create_app
        if name == "serve":
            from sublearn.serve.server import serve

            return serve
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
