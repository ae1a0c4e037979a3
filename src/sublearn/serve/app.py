"""The application: its paths, and the way of a question through it."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

import sublearn
from sublearn.serve.guard import Guard, check_token
from sublearn.serve.limits import MEGABYTE, Limits, Refusal
from sublearn.serve.metrics import Metrics
from sublearn.serve.reading import read_json, sentence_of
from sublearn.serve.services import Question, Service, service_of
from sublearn.serve.work import Buffers, ClientGone, Held, Work
from sublearn.serve.writing import PiecesResponse, write_json
from sublearn.typing import JsonObject
from sublearn.validation.values import show

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["create_app"]

_PATHS = ("/", "/health", "/ready", "/metrics", "/model", "/predict", "/openapi.json")


def create_app(
    model: BaseEstimator,
    *,
    name: str = "model",
    limits: Limits | None = None,
    hosts: Sequence[str] = (),
    token: str | None = None,
) -> FastAPI:
    """The application that answers questions to one model.

    ``POST /predict`` takes a question and gives its answer, ``GET /model`` says what the model is
    and shows a question, ``GET /health`` says that the server is up, ``GET /ready`` whether it
    takes another question, ``GET /metrics`` what it has counted, ``GET /`` is a page to try it
    and ``/openapi.json`` describes all of it. Predictions of several requests run at the same
    time, in threads: the compiled core does not hold Python's lock.

    Parameters
    ----------
    model : fitted estimator
        What `sublearn.load` gives. With ``mapped=False`` it is in memory, so that nothing that
        happens to its file can end the server.
    name : str, default="model"
        Shown to people.
    limits : Limits, optional
        What clients are granted. Deadlines of connections, and their number, are kept by `serve`
        and not by other ASGI servers.
    hosts : sequence of str, default=()
        Names by which clients may call the server (the header ``Host``), beside ``localhost`` and
        the address that a connection came to; ``"*"`` is any name.
    token : str, optional
        What clients must send as ``Authorization: Bearer TOKEN``. Without it whoever reaches the
        port may ask.

    Returns
    -------
    fastapi.FastAPI
        For `serve` or any ASGI server.

    Raises
    ------
    ValueError
        If a model of this class cannot be asked over HTTP, or the token is too short.
    """
    check_token(token)
    service, limits = service_of(model), limits or Limits()
    metrics, work, buffers = Metrics(_PATHS), Work(limits), Buffers(limits)
    app = FastAPI(
        title=f"sublearn: {name}", version=sublearn.__version__, docs_url=None, redoc_url=None
    )
    app.state.limits, app.state.metrics = limits, metrics
    app.add_middleware(Guard, hosts=hosts, token=token, metrics=metrics)
    _add_descriptions(app, service, name)
    _add_state(app, metrics, work, buffers)

    @app.post("/predict", summary=f"Gives {service.answers}", openapi_extra=_body_of(service))
    async def predict(request: Request) -> Response:
        held = buffers.hold()
        try:
            body = await _read(request, limits, held)
            job = partial(_answer, service, limits, body)
            pieces = await work.run(job, request.receive())
            held.take(sum(map(len, pieces)))
        except (ClientGone, ClientDisconnect):
            held.release()
            return Response(status_code=499)  # for the log: the client has closed the connection
        except BaseException:
            held.release()
            raise
        return PiecesResponse(pieces, held.release)

    app.exception_handler(HTTPException)(_no_such_path)
    return app


def _add_descriptions(app: FastAPI, service: Service[Question], name: str) -> None:
    """Paths that say what the model is, to people and to programs."""
    page = files("sublearn.serve").joinpath("page.html").read_text(encoding="utf-8")
    policy = {"content-security-policy": _policy_of(page)}
    facts = _describe(service, name)

    @app.get("/", response_class=HTMLResponse, summary="A page to try the model")
    async def home() -> HTMLResponse:
        return HTMLResponse(page, headers=policy)

    @app.get("/model", summary="What the model is and how to ask it")
    async def describe() -> JSONResponse:
        return JSONResponse(facts)


def _add_state(app: FastAPI, metrics: Metrics, work: Work, buffers: Buffers) -> None:
    """Paths that say how the server is doing."""

    @app.get("/health", summary="Whether the server is up")
    async def health() -> JSONResponse:
        return JSONResponse({"status": "ok"})

    @app.get("/ready", summary="Whether the server takes another question")
    async def ready() -> JSONResponse:
        if work.is_full:
            return JSONResponse({"status": "busy"}, status_code=503, headers={"retry-after": "1"})
        return JSONResponse({"status": "ready"})

    @app.get("/metrics", summary="Counts in the text format of Prometheus")
    async def counts() -> PlainTextResponse:
        text = metrics.text(questions_in_work=work.n_jobs, buffered_bytes=buffers.n_bytes)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


async def _read(request: Request, limits: Limits, held: Held) -> bytes:
    """The body of a request, which must be small enough and come soon enough."""
    most = int(limits.max_megabytes * MEGABYTE)
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length[:20]) > most:
        raise _too_large(limits)
    try:
        return await asyncio.wait_for(_join(request, most, limits, held), limits.body_seconds)
    except asyncio.TimeoutError:
        raise limits.refusal("body_seconds", "a question must arrive within {} s", 408) from None


async def _join(request: Request, most: int, limits: Limits, held: Held) -> bytes:
    parts, n_bytes = [], 0
    async for part in request.stream():
        n_bytes += len(part)
        if n_bytes > most:
            raise _too_large(limits)
        held.take(len(part))
        parts.append(part)
    return b"".join(parts)


def _too_large(limits: Limits) -> Refusal:
    return limits.refusal(
        "max_megabytes",
        "a question must have at most {} MB, got more; send its items in several questions",
    )


def _answer(
    service: Service[Question], limits: Limits, body: bytes, check: Callable[[], None]
) -> list[bytes]:
    """All that is done for a question, in a thread of `Work`."""
    try:
        found = read_json(body, limits)
        if not isinstance(found, dict):
            raise ValueError(f"the question must be an object, got {show(found)}")
        check()
        n_items = limits.check_items(found)
        question = service.question.model_validate(found)
        if hasattr(question, "k"):
            limits.check_labels(question.k, n_items, len(service.model.classes_))
        return write_json(service.answer(question, check), limits, check)
    except ValidationError as error:
        raise Refusal(422, sentence_of(error, service.question), "question") from None
    except ValueError as error:
        raise Refusal(422, str(error), "question") from None


async def _no_such_path(request: Request, error: Exception) -> JSONResponse:
    """A path or method that is not there."""
    assert isinstance(error, HTTPException)
    sentence = (
        f"the path must be one of {', '.join(_PATHS)}, got {show(request.url.path)}"
        if error.status_code == 404
        else f"{request.url.path} has no method {request.method}"
    )
    return JSONResponse({"error": sentence}, error.status_code, headers=error.headers)


def _policy_of(page: str) -> str:
    """A browser runs the scripts and uses the styles that are in the page, and nothing else."""
    hashes = {
        tag: " ".join(
            f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
            for text in re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        )
        for tag in ("script", "style")
    }
    return (
        f"default-src 'none'; script-src {hashes['script']}; style-src {hashes['style']}; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )


def _describe(service: Service[Question], name: str) -> JsonObject:
    model = service.model
    found: JsonObject = {
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


def _body_of(service: Service[Question]) -> JsonObject:
    """The question in the terms of OpenAPI."""
    content = {"schema": service.question.model_json_schema(), "example": service.example()}
    return {"requestBody": {"required": True, "content": {"application/json": content}}}
