"""What one server grants its clients, and the refusal of whatever asks for more."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, cast

from sublearn.typing import JsonObject

if TYPE_CHECKING:
    from sublearn.validation.params import Rule

__all__ = ["MEGABYTE", "Limits", "Refusal"]

MEGABYTE = 10**6

#: Fields of questions that hold items, and what an item of them is called.
_ITEMS = {"texts": "texts", "rows": "rows", "sequences": "positions", "future": "steps"}
#: Fields of questions that hold characters.
_CHARACTERS = ("text", "texts", "sequences")


class Refusal(Exception):
    """A request that is not answered: its status, its sentence, and the limit that it breaks."""

    def __init__(self, status: int, sentence: str, limit: str = ""):
        super().__init__(sentence)
        self.status = status
        self.limit = limit


@dataclass(frozen=True)
class Limits:
    """What a server grants; each field is an option of `sublearn serve` (``--max-rows``).

    A question over a limit is refused with status 413, a question that waits too long for its
    client with 408, and one that finds the server busy with 503 and ``Retry-After``. The sentence
    of the refusal names the limit.

    Parameters
    ----------
    max_rows : int, default=1000
        Items of a question: texts, rows, positions of all sequences, or steps.
    max_k : int, default=1000
        Labels of an item.
    max_labels : int, default=100000
        Labels of an answer, k times rows.
    max_characters : int, default=500000
        Characters of all texts or words of a question.
    max_megabytes : float, default=4.0
        Size of a question.
    max_answer_megabytes : float, default=16.0
        Size of an answer.
    max_buffered_megabytes : float, default=64.0
        Size of all questions that arrive or are worked on and of all answers that are being sent.
    max_connections : int, default=512
        Connections at the same time. One more takes the place of the connection that has sent no
        whole head for longest.
    max_working : int, default=4
        Questions that are worked on at the same time.
    max_waiting : int, default=128
        Questions that wait for their turn.
    max_batch : int, default=64
        Small questions to one model that are answered together; 1 answers each by itself.
    batch_seconds : float, default=0.001
        Time for which small questions wait for another one, if several came before; at most 8
        times.
    header_seconds : float, default=10.0
        Time for a client to send the head of a request, or to finish TLS's handshake.
    body_seconds : float, default=30.0
        Time for a client to send a question.
    work_seconds : float, default=30.0
        Time for a question to wait and to be worked on.
    send_seconds : float, default=30.0
        Time for a client to take an answer.
    idle_seconds : float, default=5.0
        Time for which a connection without a request is kept.
    shutdown_seconds : float, default=10.0
        Time for requests to end after SIGTERM or Ctrl-C.
    """

    max_rows: int = 1_000
    max_k: int = 1_000
    max_labels: int = 100_000
    max_characters: int = 500_000
    max_megabytes: float = 4.0
    max_answer_megabytes: float = 16.0
    max_buffered_megabytes: float = 64.0
    max_connections: int = 512
    max_working: int = 4
    max_waiting: int = 128
    max_batch: int = 64
    batch_seconds: float = 0.001
    header_seconds: float = 10.0
    body_seconds: float = 30.0
    work_seconds: float = 30.0
    send_seconds: float = 30.0
    idle_seconds: float = 5.0
    shutdown_seconds: float = 10.0

    def __post_init__(self) -> None:
        from sublearn.validation.params import check_params  # late: `sublearn --help` is quick

        check_params(cast("Any", self))

    @property
    def _rules(self) -> Mapping[str, Rule]:
        from sublearn.validation.params import Positive

        kinds = {"int": int, "float": float}
        return {field.name: Positive(kinds[str(field.type)]) for field in fields(self)}

    @classmethod
    def meanings(cls) -> dict[str, str]:
        """What each limit is, as the docstring says it."""
        entries = re.findall(r"^    (\w+) : .+\n((?:        .+\n)+)", cls.__doc__ or "", re.M)
        return {name: " ".join(text.split()) for name, text in entries}

    def refusal(self, name: str, sentence: str, status: int = 413) -> Refusal:
        """A refusal by the limit `name`; `sentence` has ``{}`` where its value belongs."""
        value = f"{getattr(self, name):,}".removesuffix(".0")
        option = f"--{name.replace('_', '-')}"
        return Refusal(status, f"{sentence.format(value)} (limit {name}, option {option})", name)

    def check_items(self, question: JsonObject) -> int:
        """The number of items of a question as it was read; refuse too many or too long ones."""
        from sublearn.validation.values import show

        counts = {
            noun: _count(name, question[name])
            for name, noun in _ITEMS.items()
            if isinstance(question.get(name), list)
        }
        if type(question.get("horizon")) is int:
            counts["steps"] = question["horizon"]
        for noun, count in counts.items():
            if count > self.max_rows:
                got = show(count)
                raise self.refusal(
                    "max_rows", f"a question must have at most {{}} {noun}, got {got}"
                )
        n_characters = _characters([question.get(name) for name in _CHARACTERS])
        if n_characters > self.max_characters:
            raise self.refusal(
                "max_characters",
                f"a question must have at most {{}} characters, got {n_characters:,}",
            )
        return max(counts.values(), default=0)

    def check_labels(self, k: int, n_items: int, n_labels: int) -> None:
        """Refuse a `k` that is too large, by itself or for this many items."""
        from sublearn.validation.values import show

        if k > self.max_k:
            raise self.refusal("max_k", f"k must be at most {{}}, got {show(k)}")
        n_answered = min(k, n_labels) * n_items
        if n_answered > self.max_labels:
            raise self.refusal(
                "max_labels", f"k times rows must be at most {{}}, got {n_answered:,}"
            )


def _count(name: str, items: Sequence[object]) -> int:
    if name != "sequences":
        return len(items)
    return sum(len(positions) if isinstance(positions, list) else 1 for positions in items)


def _characters(value: object) -> int:
    if isinstance(value, str):
        return len(value)
    return sum(map(_characters, value)) if isinstance(value, (list, dict)) else 0
