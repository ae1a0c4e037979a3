"""The paths of a server in the terms of OpenAPI, with an example for each model."""

from __future__ import annotations

import sublearn
from sublearn.serve.models import Models, Served
from sublearn.serve.services import Question
from sublearn.typing import JsonObject

__all__ = ["openapi_of"]

_ERROR = {
    "description": "One sentence on what is wrong.",
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "required": ["error"],
                "properties": {"error": {"type": "string"}},
            },
            "example": {"error": "k must be greater than or equal to 1, got 0"},
        }
    },
}


def openapi_of(title: str, models: Models) -> JsonObject:
    """The description of all paths, as it is when asked for: a reload may change examples."""
    paths: JsonObject = {
        "/": _get("A page to try the models", "text/html"),
        "/healthz": _get("Whether the server is up"),
        "/readyz": _get("Whether the server takes another question"),
        "/metrics": _get("Counts in the text format of Prometheus", "text/plain"),
        "/models": _get("What the models are and how to ask them"),
    }
    for served in models.values():
        own = _paths_of(served)
        paths |= {f"/models/{served.name}{path}": value for path, value in own.items()}
        if served is models.only:
            paths |= {path or "/model": value for path, value in own.items()}
    info = {"title": title, "version": sublearn.__version__}
    return {"openapi": "3.1.0", "info": info, "paths": paths}


def _paths_of(served: Served) -> JsonObject:
    loaded = served.loaded
    service, explainer = loaded.service, loaded.explainer
    asked = _post(f"Gives {service.answers}", service.question, service.example())
    asked["post"]["responses"]["200"] |= _json({"example": loaded.example_answer})
    found = {"": _get("What the model is and how to ask it"), "/predict": asked}
    if explainer is not None:
        gives = " and ".join(explainer.gives)
        summary = f"Says why a label is in an answer: {gives}"
        found["/explain"] = _post(summary, explainer.question, explainer.example())
    return found


def _get(summary: str, kind: str = "application/json") -> JsonObject:
    return {"get": {"summary": summary, "responses": _responses({"content": {kind: {}}})}}


def _post(summary: str, question: type[Question], example: JsonObject) -> JsonObject:
    body = _json({"schema": question.model_json_schema(), "example": example})
    return {
        "post": {
            "summary": summary,
            "requestBody": {"required": True} | body,
            "responses": _responses(_json({})),
        }
    }


def _json(content: JsonObject) -> JsonObject:
    return {"content": {"application/json": content}}


def _responses(answer: JsonObject) -> JsonObject:
    return {"200": {"description": "The answer."} | answer, "4XX": _ERROR, "503": _ERROR}
