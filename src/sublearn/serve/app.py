"""The application: paths, limits, and refusals of one sentence each."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import ValidationError

import sublearn
from sublearn.serve.services import Question, Service, service_of
from sublearn.validation.values import show

__all__ = ["create_app"]

_MEGABYTE = 10**6
_LOG = logging.getLogger("sublearn.serve")


def create_app(model: Any, *, name: str = "model", max_megabytes: float = 16.0) -> FastAPI:
    """The application that answers questions to one model.

    ``POST /predict`` takes a question and gives its answer, ``GET /model`` says what the model is
    and shows a question, ``GET /health`` says that the server is up, ``GET /`` is a page to try it
    and ``/openapi.json`` describes all of it. Predictions of several requests run at the same
    time, in threads: the compiled core does not hold Python's lock.

    Parameters
    ----------
    model : fitted estimator
        What `sublearn.load` gives.
    name : str, default="model"
        Shown to people.
    max_megabytes : float, default=16.0
        Larger questions are refused with status 413.

    Returns
    -------
    fastapi.FastAPI
        For any ASGI server.

    Raises
    ------
    ValueError
        If a model of this class cannot be asked over HTTP.
    """
    service = service_of(model)
    app = FastAPI(
        title=f"sublearn: {name}", version=sublearn.__version__, docs_url=None, redoc_url=None
    )
    page = files("sublearn.serve").joinpath("page.html").read_text(encoding="utf-8")
    facts = _describe(service, name)

    @app.get("/", response_class=HTMLResponse, summary="A page to try the model")
    async def home() -> str:
        return page

    @app.get("/health", summary="Whether the server is up")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/model", summary="What the model is and how to ask it")
    async def describe() -> dict[str, Any]:
        return facts

    @app.post("/predict", summary=f"Gives {service.answers}", openapi_extra=_body_of(service))
    async def predict(request: Request) -> JSONResponse:
        body = await _read(request, int(max_megabytes * _MEGABYTE))
        return JSONResponse(await run_in_threadpool(_answer, service, body))

    app.exception_handler(_TooLarge)(_refusal(413))
    app.exception_handler(ValueError)(_refusal(422))
    app.exception_handler(Exception)(_failure)
    return app


class _TooLarge(Exception):
    """A question over the limit."""


async def _read(request: Request, most: int) -> bytes:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > most:
            raise _TooLarge(
                f"the question must have at most {most / _MEGABYTE:g} MB, got more; send its "
                "items in several questions"
            )
    return bytes(body)


def _answer(service: Service, body: bytes) -> dict[str, Any]:
    try:
        question = service.question.model_validate_json(body)
    except ValidationError as error:
        raise ValueError(_sentence(error, service.question)) from None
    return service.answer(question)


def _sentence(error: ValidationError, question: type[Question]) -> str:
    """The first thing that is wrong with a question."""
    first = error.errors(include_url=False)[0]
    where = _path(first["loc"])
    if first["type"] == "json_invalid":
        reason = first["ctx"]["error"]
        return f"the question must be JSON in UTF-8, got something else: {reason}"
    if first["type"] == "missing":
        return f"{where} must be given, got {show(first['input'])}"
    if first["type"] == "extra_forbidden":
        return f"a question must have no field but {', '.join(question.model_fields)}, got {where}"
    if first["type"] == "too_short":
        return f"{where} must hold at least one item, got none"
    must = first["msg"].replace("Input should", "must").replace("List should", "must")
    return f"{where or 'the question'} {must}, got {show(first['input'])}"


def _path(location: tuple[int | str, ...]) -> str:
    """`rows[0][2]` for ("rows", 0, 2); names of types, which pydantic adds for unions, are left."""
    parts = [location[0] if location else ""]
    parts += [f"[{step}]" for step in location[1:] if isinstance(step, int)]
    return "".join(map(str, parts))


def _refusal(status: int) -> Callable[[Request, Exception], Awaitable[JSONResponse]]:
    async def respond(request: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"error": str(error)}, status_code=status)

    return respond


async def _failure(request: Request, error: Exception) -> JSONResponse:
    """What nobody foresaw: the traceback goes to the log, not to the caller."""
    _LOG.error("a question failed", exc_info=error)
    sentence = f"unexpected {type(error).__name__}; the log of the server says where"
    return JSONResponse({"error": sentence}, status_code=500)


def _describe(service: Service, name: str) -> dict[str, Any]:
    model = service.model
    found: dict[str, Any] = {
        "name": name,
        "class": type(model).__name__,
        "sublearn": sublearn.__version__,
        "answers": service.answers,
        "probabilities": hasattr(model, "predict_proba_top_k"),
        "example": service.example(),
    }
    if hasattr(model, "classes_"):
        found["n_labels"] = len(model.classes_)
    if hasattr(model, "n_features_in_"):
        found["n_features"] = int(model.n_features_in_)
    return found


def _body_of(service: Service) -> dict[str, Any]:
    """The question in the terms of OpenAPI."""
    content = {"schema": service.question.model_json_schema(), "example": service.example()}
    return {"requestBody": {"required": True, "content": {"application/json": content}}}
