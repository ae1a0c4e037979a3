"""Small questions to one model that arrive together are answered together.

A call of a model costs the same for one row as for ten: checking, transposing, starting threads. So
questions that come while others are answered are collected, and one call answers them all. A client
alone never waits: a question that finds nothing going on begins at once. If the last call answered
several, the next one waits for `Limits.batch_seconds`, and again while more come, a few times.

Answers are those that each question would have got by itself, bit for bit: only questions with the
same settings go together, and only to models whose score of an item does not depend on the items
beside it (:func:`is_itemwise`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from sublearn.extreme import TextTagger
from sublearn.extreme.linear_classifier import LinearLabelClassifier
from sublearn.serve.asking import read_question, refusing
from sublearn.serve.limits import Limits
from sublearn.serve.metrics import Metrics
from sublearn.serve.services import LabelQuestion, Question, Service
from sublearn.serve.writing import write_json

__all__ = ["SMALL_BODY", "Batches", "Outcome", "Waiting", "is_itemwise"]

SMALL_BODY = 1 << 14  # bytes
_SMALL_ITEMS = 8
_SMALL_LABELS = 256
_MOST_WINDOWS = 8

Outcome = list[bytes] | Exception | None


def is_itemwise(service: Service[Question]) -> bool:
    """Whether answers to items are the same, to the last bit, whatever items are beside them.

    The compiled core goes through sparse rows one by one. A product of dense matrices does not: its
    sums depend on the number of rows.
    """
    model = service.model
    if isinstance(model, TextTagger):
        model = model.classifier_
    return isinstance(model, LinearLabelClassifier) and issubclass(service.question, LabelQuestion)


@dataclass(eq=False)
class Waiting:
    """A question of a batch to come; `tell` gets its outcome on the event loop's thread."""

    service: Service[Question]
    body: bytes
    tell: Callable[[Outcome], None]
    is_given_up: bool = False

    def give_up(self, *_: object) -> None:
        """No one waits for it any longer."""
        self.is_given_up = True


@dataclass
class _Read:
    """A question that was read, and where it stands in its batch."""

    at: int
    service: Service[Question]
    question: LabelQuestion
    items: list[object]

    @property
    def group(self) -> tuple[object, ...]:
        """Equal for questions that one call may answer."""
        settings = self.question
        return id(self.service), settings.k, settings.probabilities, settings.threshold


class Batches:
    """Collects small questions on the event loop and answers them in a thread of its own."""

    def __init__(self, limits: Limits, metrics: Metrics):
        self._limits, self._metrics = limits, metrics
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sublearn-batch")
        self._waiting: deque[Waiting] = deque()
        self._is_running = False
        self._last_size = 0

    def takes(self, service: Service[Question], body: bytes) -> bool:
        """Whether a question is one for a batch, as far as its body tells."""
        return len(body) <= SMALL_BODY and self._limits.max_batch > 1 and is_itemwise(service)

    def add(self, service: Service[Question], body: bytes) -> asyncio.Future[Outcome]:
        """The pieces of an answer to come, an exception, or None for a question that is not small.

        Give it up by cancelling.
        """
        found: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        asked = self.put(service, body, lambda one: None if found.done() else found.set_result(one))
        found.add_done_callback(asked.give_up)
        return found

    def put(
        self, service: Service[Question], body: bytes, tell: Callable[[Outcome], None]
    ) -> Waiting:
        """As `add`, with a function that gets the outcome."""
        asked = Waiting(service, body, tell)
        self._waiting.append(asked)
        if not self._is_running:
            self._is_running = True
            self._collect(_MOST_WINDOWS if self._last_size > 1 else 0)
        return asked

    def _collect(self, n_windows: int, n_before: int = 0) -> None:
        """Begin when no more questions come, or enough have come, or enough time is over."""
        n_waiting = len(self._waiting)
        if n_windows == 0 or n_waiting == n_before or n_waiting >= self._limits.max_batch:
            self._begin()
        else:
            loop = asyncio.get_running_loop()
            loop.call_later(self._limits.batch_seconds, self._collect, n_windows - 1, n_waiting)

    def _begin(self) -> None:
        """Answer what waits, on the event loop's thread."""
        n_taken = min(len(self._waiting), self._limits.max_batch)
        taken = [self._waiting.popleft() for _ in range(n_taken)]
        batch = [asked for asked in taken if not asked.is_given_up]
        self._last_size = len(batch)
        if batch:
            self._metrics.batch(len(batch))
        loop = asyncio.get_running_loop()
        running = loop.run_in_executor(self._thread, self._answers, batch)
        running.add_done_callback(lambda done: self._deliver(batch, done.result()))

    def _deliver(self, batch: Sequence[Waiting], outcomes: Sequence[Outcome]) -> None:
        for asked, outcome in zip(batch, outcomes, strict=True):
            if not asked.is_given_up:
                asked.tell(outcome)
        self._is_running = bool(self._waiting)
        if self._is_running:
            self._collect(_MOST_WINDOWS)

    # --- in the thread -----------------------------------------------------------------------

    def _answers(self, batch: Sequence[Waiting]) -> list[Outcome]:
        outcomes: list[Outcome] = [None] * len(batch)
        groups: dict[tuple[object, ...], list[_Read]] = {}
        for at, asked in enumerate(batch):
            read = self._read(at, asked)
            if isinstance(read, _Read):
                groups.setdefault(read.group, []).append(read)
            else:
                outcomes[at] = read
        for group in groups.values():
            for read, outcome in zip(group, self._answer_together(group), strict=True):
                outcomes[read.at] = outcome
        return outcomes

    def _read(self, at: int, asked: Waiting) -> _Read | Exception | None:
        """A small question; what is wrong with it; or None if it is large."""
        try:
            with refusing(asked.service.question):
                question, n_items = read_question(asked.service, self._limits, asked.body, _never)
        except Exception as error:
            return error
        assert isinstance(question, LabelQuestion)
        items = getattr(question, _items_field(question))
        is_small = n_items <= _SMALL_ITEMS and n_items * question.k <= _SMALL_LABELS
        is_list = isinstance(items, list)  # rows are not checked yet
        return _Read(at, asked.service, question, items) if is_small and is_list else None

    def _answer_together(self, group: list[_Read]) -> Iterable[Outcome]:
        """One call for all; where it fails, each by itself, so that each error is its own."""
        first = group[0]
        if len(group) == 1:
            return [self._answer_alone(first)]
        items = [item for read in group for item in read.items]
        together = first.question.model_copy(update={_items_field(first.question): items})
        try:
            found = first.service.answer(together, _never)["predictions"]
            ends = [0]
            for read in group:
                ends.append(ends[-1] + len(read.items))
            parts = [found[ends[i] : ends[i + 1]] for i in range(len(group))]
            return [self._written({"predictions": part}) for part in parts]
        except Exception:
            return [self._answer_alone(read) for read in group]

    def _answer_alone(self, read: _Read) -> Outcome:
        try:
            with refusing(read.service.question):
                return self._written(read.service.answer(read.question, _never))
        except Exception as error:
            return error

    def _written(self, answer: dict[str, object]) -> list[bytes]:
        return write_json(answer, self._limits, _never)


def _items_field(question: LabelQuestion) -> str:
    return "texts" if "texts" in type(question).model_fields else "rows"


def _never() -> None:
    """Small questions are answered even if no one waits any longer."""
