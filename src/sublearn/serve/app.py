"""The application: its paths, and the way of a question through it."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

import sublearn
from sublearn.serve.asking import Asked, answer
from sublearn.serve.batches import Batches
from sublearn.serve.guard import Guard, Rules, check_token
from sublearn.serve.limits import MEGABYTE, Limits, Refusal
from sublearn.serve.metrics import CONTENT_TYPE, Metrics
from sublearn.serve.models import ModelFile, Models, Served
from sublearn.serve.openapi import openapi_of
from sublearn.serve.page import PAGE, PAGE_HEADERS
from sublearn.serve.shortcut import Shortcut
from sublearn.serve.work import Buffers, ClientGone, Held, Work
from sublearn.serve.writing import PiecesResponse
from sublearn.typing import JsonObject
from sublearn.validation.values import show

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["create_app"]

_OF_SERVER = ("/", "/healthz", "/readyz", "/metrics", "/models", "/openapi.json")
_ALIASES = ("/health", "/ready")
_OF_MODEL = ("/model", "/predict", "/explain")


def create_app(
    model: BaseEstimator | ModelFile | Mapping[str, BaseEstimator | ModelFile],
    *,
    name: str = "model",
    limits: Limits | None = None,
    hosts: Sequence[str] = (),
    token: str | None = None,
) -> FastAPI:
    """The application that answers questions to one model, or to several.

    ``POST /predict`` takes a question and gives its answer, ``POST /explain`` says why a label is
    in it, ``GET /model`` says what the model is and shows a question. ``GET /healthz`` says that
    the server is up, ``GET /readyz`` whether it takes another question, ``GET /metrics`` what it
    has counted, ``GET /`` is a page to try it and ``/openapi.json`` describes all of it. Each model
    also has paths of its own, ``/models/NAME``, ``/models/NAME/predict`` and
    ``/models/NAME/explain``; where there are several, these are the only ones. Predictions run in
    threads: the compiled core does not hold Python's lock. Small questions that come at the same
    time are answered together.

    Parameters
    ----------
    model : fitted estimator, ModelFile, or dict from names to them
        What `sublearn.load` gives. With ``mapped=False`` it is in memory, so that nothing that
        happens to its file can end the server. A `ModelFile` can be read again while the server
        runs.
    name : str, default="model"
        Of a single model.
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
        For `serve` or any ASGI server. ``app.state.models.reload()`` reads all files again.

    Raises
    ------
    ValueError
        If a model of this class cannot be asked over HTTP, or the token is too short.
    """
    check_token(token)
    limits, metrics = limits or Limits(), Metrics((*_OF_SERVER, *_ALIASES, *_OF_MODEL))
    models = Models(model if isinstance(model, Mapping) else {name: model}, metrics)
    title = f"sublearn: {', '.join(models)}"
    app = FastAPI(
        title=title,
        version=sublearn.__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.limits, app.state.metrics, app.state.models = limits, metrics, models
    app.openapi = lambda: openapi_of(app.title, models)  # type: ignore[method-assign]
    rules, desk = Rules(hosts=hosts, token=token), Desk(models, limits, metrics)
    app.add_middleware(Guard, rules=rules, metrics=metrics)
    app.state.shortcut = Shortcut(desk, rules)
    _add_descriptions(app, models, limits)
    _add_state(app, desk, metrics)
    _add_questions(app, desk)
    app.exception_handler(HTTPException)(desk.no_such_path)
    return app


class Desk:
    """Where questions are taken: finds their model, reads, has them answered, and sends."""

    def __init__(self, models: Models, limits: Limits, metrics: Metrics):
        self.models, self.limits, self.metrics = models, limits, metrics
        self.work, self.buffers = Work(limits), Buffers(limits)
        self.batches = Batches(limits, metrics)
        metrics.watch("questions_in_work", "Questions worked on or waiting", self._n_jobs)
        metrics.watch("buffered_bytes", "Bytes of questions and answers", self._n_bytes)

    def _n_jobs(self) -> int:
        return self.work.n_jobs

    def _n_bytes(self) -> int:
        return self.buffers.n_bytes

    def model_of(self, request: Request) -> Served:
        """The model that a path names, or the only one."""
        name = request.path_params.get("name")
        found = self.models.only if name is None else self.models.get(name)
        if found is None:
            raise self._unknown(request.url.path)
        return found

    def _unknown(self, path: str) -> Refusal:
        names = ", ".join(self.models)
        return Refusal(404, f"the path must be /models/NAME with one of {names}, got {show(path)}")

    async def predict(self, request: Request) -> Response:
        """Answer a question."""
        served = self.model_of(request)
        self.metrics.ask(served.name)
        return await self._exchange(request, partial(self._predict, served))

    async def explain(self, request: Request) -> Response:
        """Answer why a label."""
        served = self.model_of(request)
        explainer = served.loaded.explainer
        if explainer is None:
            raise Refusal(404, _unexplained(served.loaded.facts))
        return await self._exchange(request, partial(self._alone, explainer))

    async def _predict(self, served: Served, request: Request, body: bytes) -> list[bytes]:
        """Together with other small questions, or in a thread of its own."""
        service = served.loaded.service
        if self.batches.takes(service, body):
            waiting = partial(self.batches.add, service, body)
            outcome = await self.work.wait_for(waiting)
            if isinstance(outcome, Exception):
                raise outcome
            if outcome is not None:
                return outcome
        return await self._alone(service, request, body)

    async def _alone(self, asked: Asked, request: Request, body: bytes) -> list[bytes]:
        return await self.work.run(partial(answer, asked, self.limits, body), request.receive())

    async def _exchange(
        self, request: Request, work: Callable[[Request, bytes], Awaitable[list[bytes]]]
    ) -> Response:
        held = self.buffers.hold()
        try:
            pieces = await work(request, await self._read(request, held))
            held.take(sum(map(len, pieces)))
        except (ClientGone, ClientDisconnect):
            held.release()
            return Response(status_code=499)  # for the log: the client has closed the connection
        except BaseException:
            held.release()
            raise
        return PiecesResponse(pieces, held.release)

    @property
    def most_bytes(self) -> int:
        """Of a question."""
        return int(self.limits.max_megabytes * MEGABYTE)

    async def _read(self, request: Request, held: Held) -> bytes:
        """The body of a request, which must be small enough and come soon enough."""
        most = self.most_bytes
        length = request.headers.get("content-length", "0")
        if length.isdecimal() and int(length[:20]) > most:
            raise self._too_large()
        try:
            return await asyncio.wait_for(self._join(request, most, held), self.limits.body_seconds)
        except asyncio.TimeoutError:
            sentence = "a question must arrive within {} s"
            raise self.limits.refusal("body_seconds", sentence, 408) from None

    async def _join(self, request: Request, most: int, held: Held) -> bytes:
        parts, n_bytes = [], 0
        async for part in request.stream():
            n_bytes += len(part)
            if n_bytes > most:
                raise self._too_large()
            held.take(len(part))
            parts.append(part)
        return b"".join(parts)

    def _too_large(self) -> Refusal:
        return self.limits.refusal(
            "max_megabytes",
            "a question must have at most {} MB, got more; send its items in several questions",
        )

    async def no_such_path(self, request: Request, error: Exception) -> JSONResponse:
        """A path or method that is not there."""
        assert isinstance(error, HTTPException)
        own = () if self.models.only is None else _OF_MODEL
        paths = ", ".join((*_OF_SERVER, *own, *(f"/models/NAME{p}" for p in _OF_NAMED)))
        sentence = (
            f"the path must be one of {paths}, got {show(request.url.path)}"
            if error.status_code == 404
            else f"{request.url.path} has no method {request.method}"
        )
        return JSONResponse({"error": sentence}, error.status_code, headers=error.headers)


def _unexplained(facts: JsonObject) -> str:
    """What a model is that has no weights of features, and what it can be asked."""
    fields = ", ".join(facts["fields"])
    return (
        "the model must be one whose labels have weights of features or a place in a taxonomy, got "
        f"{facts['name']}, a {facts['class']}, which gives {facts['answers']}: ask it at /predict, "
        f"by the fields {fields}"
    )


_OF_NAMED = ("", "/predict", "/explain")


def _add_questions(app: FastAPI, desk: Desk) -> None:
    for path, handler in {"/predict": desk.predict, "/explain": desk.explain}.items():
        app.add_route(f"/models/{{name}}{path}", handler, methods=["POST"])
        if desk.models.only is not None:
            app.add_route(path, handler, methods=["POST"])

    async def describe(request: Request) -> Response:
        return JSONResponse(desk.model_of(request).loaded.facts)

    app.add_route("/models/{name}", describe, methods=["GET"])
    if desk.models.only is not None:
        app.add_route("/model", describe, methods=["GET"])


def _add_descriptions(app: FastAPI, models: Models, limits: Limits) -> None:
    """Paths that say what there is, to people and to programs."""

    async def home(request: Request) -> Response:
        return HTMLResponse(PAGE, headers=PAGE_HEADERS)

    async def list_models(request: Request) -> Response:
        facts = [served.loaded.facts for served in models.values()]
        return JSONResponse({"models": facts, "limits": dataclasses.asdict(limits)})

    app.add_route("/", home, methods=["GET"])
    app.add_route("/models", list_models, methods=["GET"])


def _add_state(app: FastAPI, desk: Desk, metrics: Metrics) -> None:
    """Paths that say how the server is doing."""

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def ready(request: Request) -> Response:
        if desk.work.is_full:
            return JSONResponse({"status": "busy"}, status_code=503, headers={"retry-after": "1"})
        return JSONResponse({"status": "ready"})

    async def counts(request: Request) -> Response:
        return Response(metrics.text(), media_type=CONTENT_TYPE)

    for path in ("/healthz", "/health"):
        app.add_route(path, health, methods=["GET"])
    for path in ("/readyz", "/ready"):
        app.add_route(path, ready, methods=["GET"])
    app.add_route("/metrics", counts, methods=["GET"])
