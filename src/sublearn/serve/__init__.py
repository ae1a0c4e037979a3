"""A saved model behind HTTP: questions and answers are JSON, and a page lets people try it.

Needs FastAPI and uvicorn: ``pip install 'sublearn[serve]'``. On the command line it is
``sublearn serve MODEL``; `create_app` is for those who run the application in a server of theirs.
"""

from sublearn.serve.app import create_app
from sublearn.serve.server import serve

__all__ = ["create_app", "serve"]
