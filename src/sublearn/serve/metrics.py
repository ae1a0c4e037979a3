"""What a server counts, for Prometheus.

Several processes of one server (`--workers`) count together: `prometheus_client` keeps their counts
in files of the folder that the variable ``PROMETHEUS_MULTIPROC_DIR`` names, which
`sublearn.serve.workers` makes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.multiprocess import MultiProcessCollector

__all__ = ["CONTENT_TYPE", "SHARED_FOLDER", "Metrics"]

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 10.0, 30.0)
_BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_OF_ONE_MODEL = re.compile(r"/models/[^/]+((?:/predict|/explain)?)")

disable_created_metrics()


class Metrics:
    """Counts of one server; `paths` are those that are counted by themselves.

    All others are counted together: a client does not choose what is kept.
    """

    def __init__(self, paths: tuple[str, ...]):
        self._paths = frozenset(paths)
        self._registry = CollectorRegistry()
        self._requests = self._counter("requests", "Requests that are over", "path", "status")
        self._refusals = self._counter("refusals", "Requests refused, by limit", "limit")
        self._reloads = self._counter("reloads", "Files read again", "model", "outcome")
        self._questions = self._counter("questions", "Questions to a model", "model")
        self._short = self._counter("short_requests", "Requests that went the short way")
        self._seconds = Histogram(
            "sublearn_predict_seconds",
            "Time of a question from its head to the end of its answer",
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._batches = Histogram(
            "sublearn_batch_questions",
            "Small questions that were answered together",
            buckets=_BATCHES,
            registry=self._registry,
        )
        self._in_flight = self._gauge("requests_in_flight", "Requests that are not over")
        self._gauges: list[tuple[Gauge, Callable[[], int]]] = []
        self._counted: dict[tuple[str, int], Counter] = {}

    def begin(self) -> None:
        """Count a request that has come."""
        self._in_flight.inc()

    def end(self, path: str, status: int, seconds: float) -> None:
        """Count a request that is over."""
        self._in_flight.dec()
        template = path if path in self._paths else _template(path)
        counter = self._counted.get((template, status))
        if counter is None:  # to look it up by its labels takes longer than to count
            counter = self._requests.labels(template, str(status))
            self._counted[template, status] = counter
        counter.inc()
        if template.endswith("/predict"):
            self._seconds.observe(seconds)

    def leave(self) -> None:
        """A request that had begun is to begin again."""
        self._in_flight.dec()

    def shorten(self) -> None:
        """Count a request that was answered past HTTP's library and the application."""
        self._short.inc()

    def refuse(self, limit: str) -> None:
        """Count a refusal."""
        self._refusals.labels(limit).inc()

    def ask(self, model: str) -> None:
        """Count a question to a model."""
        self._questions.labels(model).inc()

    def batch(self, n_questions: int) -> None:
        """Count questions that were answered together."""
        self._batches.observe(n_questions)

    def reload(self, model: str, outcome: str) -> None:
        """Count a file that was read again, with or without success."""
        self._reloads.labels(model, outcome).inc()

    def watch(self, name: str, meaning: str, value: Callable[[], int]) -> None:
        """Show what `value` gives whenever the counts are asked for."""
        self._gauges.append((self._gauge(name, meaning), value))

    def text(self) -> bytes:
        """All counts in Prometheus' text format, those of other processes included."""
        for gauge, value in self._gauges:
            gauge.set(value())
        if SHARED_FOLDER not in os.environ:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)
        return generate_latest(together)

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"sublearn_{name}", meaning, labels, registry=self._registry)

    def _gauge(self, name: str, meaning: str) -> Gauge:
        return Gauge(
            f"sublearn_{name}", meaning, registry=self._registry, multiprocess_mode="livesum"
        )


def _template(path: str) -> str:
    found = _OF_ONE_MODEL.fullmatch(path)
    return "other" if found is None else f"/models/NAME{found[1]}"
