"""The models of a server, each under a name, and their files, which may be replaced at any time.

What belongs to one state of a model is one object, :class:`Loaded`, that a request takes once: a
reload puts another one in its place, and requests that have begun end with the old one.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import sublearn
from sublearn.hierarchy import HierarchicalClassifier
from sublearn.kinds.base import offers
from sublearn.serve.explaining import Explainer, explainer_of
from sublearn.serve.limits import Limits
from sublearn.serve.metrics import Metrics
from sublearn.serve.services import LabelQuestion, Question, Service, service_of
from sublearn.serve.writing import write_json
from sublearn.typing import JsonObject
from sublearn.validation.values import show

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["Loaded", "ModelFile", "Models", "Served"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MOST_NAMES = 64  # features that a form has fields for
_LOG = logging.getLogger("sublearn.serve")


@dataclass(frozen=True)
class ModelFile:
    """A saved model, for `create_app`, that can be read again when its file is replaced.

    Parameters
    ----------
    path : path
        The file.
    mapped : bool, default=False
        Whether to map it instead of reading it into memory; then it must not be changed in place.
    """

    path: str | os.PathLike[str]
    mapped: bool = False

    def load(self) -> BaseEstimator:
        """The model."""
        return sublearn.load(self.path, mapped=self.mapped)

    def stamp(self) -> tuple[int, int, int] | None:
        """What differs when the file is another one; None while there is none."""
        try:
            found = Path(self.path).stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


@dataclass(frozen=True)
class Loaded:
    """One state of a model: how to ask it, and what is known of it."""

    service: Service[Question]
    explainer: Explainer | None
    facts: JsonObject
    example_answer: JsonObject


class Served:
    """A model under a name."""

    def __init__(self, name: str, source: BaseEstimator | ModelFile):
        if not _NAME.fullmatch(name):
            raise ValueError(
                "a model's name must be letters, digits, dots, dashes and underscores, "
                f"got {show(name)}"
            )
        self.name, self.file = name, source if isinstance(source, ModelFile) else None
        self._stamp = None if self.file is None else self.file.stamp()
        self.loaded = _loaded(name, source)

    @property
    def is_replaced(self) -> bool:
        """Whether there is another file than the one that was read last."""
        now = None if self.file is None else self.file.stamp()
        return now is not None and now != self._stamp

    def reload(self) -> None:
        """Read the file again; what cannot be used raises, and the old model stays."""
        if self.file is None:
            return
        self._stamp = self.file.stamp()  # a damaged file is not tried again until it changes
        self.loaded = _loaded(self.name, self.file)


class Models(Mapping[str, Served]):
    """All of a server."""

    def __init__(self, sources: Mapping[str, BaseEstimator | ModelFile], metrics: Metrics):
        if not sources:
            raise ValueError("models must be at least one, got none")
        self._served = {name: Served(name, source) for name, source in sources.items()}
        self._metrics = metrics
        self._lock = threading.Lock()

    def __getitem__(self, name: str) -> Served:
        return self._served[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._served)

    def __len__(self) -> int:
        return len(self._served)

    @property
    def only(self) -> Served | None:
        """The model, if there is one alone."""
        return next(iter(self._served.values())) if len(self._served) == 1 else None

    def reload(self, only_replaced: bool = False) -> None:
        """Read files again, one after the other; not on the event loop's thread.

        A file that cannot be used is logged and counted, and the server goes on with the model that
        it has.
        """
        with self._lock:
            for served in self._served.values():
                if served.file is not None and (served.is_replaced or not only_replaced):
                    self._reload(served)

    def _reload(self, served: Served) -> None:
        try:
            served.reload()
        except (ValueError, OSError, MemoryError) as error:
            _LOG.error("%s keeps the model that it has: %s", served.name, error)
            self._metrics.reload(served.name, "failed")
        else:
            _LOG.info("%s is read again", served.name)
            self._metrics.reload(served.name, "done")


def _loaded(name: str, source: BaseEstimator | ModelFile) -> Loaded:
    """A model that has answered its own example: one that cannot is refused here."""
    model = source.load() if isinstance(source, ModelFile) else source
    try:
        service = service_of(model)
    except ValueError as error:
        where = f"{source.path}: " if isinstance(source, ModelFile) else ""
        raise ValueError(f"{where}{error}") from None
    answer = service.answer(service.question.model_validate(service.example()), lambda: None)
    write_json(answer, Limits(), lambda: None)
    explainer = explainer_of(model, service)
    return Loaded(service, explainer, _facts(name, model, service, explainer), answer)


def _facts(
    name: str, model: BaseEstimator, service: Service[Question], explainer: Explainer | None
) -> JsonObject:
    """What clients and the page need to know."""
    found: JsonObject = {
        "name": name,
        "class": type(model).__name__,
        "sublearn": sublearn.__version__,
        "answers": service.answers,
        "fields": list(service.question.model_fields),
        "probabilities": offers(model, "predict_proba_top_k"),  # once it is calibrated
        "scores": "probabilities" if isinstance(model, HierarchicalClassifier) else "margins",
        "explains": [] if explainer is None else list(explainer.gives),
        "example": service.example(),
    }
    if issubclass(service.question, LabelQuestion):
        found["n_labels"] = len(model.classes_)
    if "rows" in service.question.model_fields:
        found["n_features"] = int(model.n_features_in_)
        names = service.kind.feature_names(model)
        if names is not None and len(names) <= _MOST_NAMES:
            found["feature_names"] = [str(each) for each in names]
    return found
