"""What a server counts, in the text format of Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

__all__ = ["Metrics"]

_BOUNDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0)


class Metrics:
    """Counts of requests, refusals and closed connections; of the event loop's thread alone."""

    def __init__(self, paths: tuple[str, ...]):
        self._paths = paths  # others are counted together: a client does not choose what we keep
        self.requests: Counter[tuple[str, int]] = Counter()
        self.refusals: Counter[str] = Counter()
        self.n_in_flight = 0
        self._slots = [0] * (len(_BOUNDS) + 1)
        self._seconds = 0.0

    def add(self, path: str, status: int, seconds: float) -> None:
        """Count a request that is over."""
        self.requests[path if path in self._paths else "other", status] += 1
        if path == "/predict":
            self._seconds += seconds
            self._slots[sum(seconds > bound for bound in _BOUNDS)] += 1

    def text(self, **gauges: int) -> str:
        """All counts, and the values of today's gauges."""
        return "\n".join([*self._lines(gauges), ""])

    def _lines(self, gauges: dict[str, int]) -> Iterator[str]:
        yield "# TYPE sublearn_requests_total counter"
        for (path, status), count in sorted(self.requests.items()):
            yield f'sublearn_requests_total{{path="{path}",status="{status}"}} {count}'
        yield "# TYPE sublearn_refusals_total counter"
        for limit, count in sorted(self.refusals.items()):
            yield f'sublearn_refusals_total{{limit="{limit}"}} {count}'
        yield "# TYPE sublearn_predict_seconds histogram"
        total = 0
        for bound, count in zip((*_BOUNDS, "+Inf"), self._slots, strict=True):
            total += count
            yield f'sublearn_predict_seconds_bucket{{le="{bound}"}} {total}'
        yield f"sublearn_predict_seconds_sum {self._seconds:.6f}"
        yield f"sublearn_predict_seconds_count {total}"
        for name, value in ({"requests_in_flight": self.n_in_flight} | gauges).items():
            yield f"# TYPE sublearn_{name} gauge"
            yield f"sublearn_{name} {value}"
