"""A fitted forecaster as arrays and JSON values by name, and back."""

from __future__ import annotations

from typing import Any

from sublearn.forecast.block_model import BlockModel
from sublearn.forecast.clock import Clock
from sublearn.forecast.embedding import Calendar, Embedding
from sublearn.forecast.horizon import History
from sublearn.forecast.series import Shape
from sublearn.trace import Trace

__all__ = ["restore_fitted", "state_of_fitted"]

_PLAIN = (
    "blocks_", "lags_", "n_series_in_", "n_features_in_", "objective_", "certificate_", "n_iter_",
)  # fmt: skip


def state_of_fitted(model: Any) -> dict[str, Any]:
    """All that forecasts and updates need."""
    state: dict[str, Any] = {name: getattr(model, name) for name in _PLAIN}
    if hasattr(model, "feature_names_in_"):
        state["feature_names_in_"] = model.feature_names_in_
    state["trace_"] = {name: model.trace_[name].tolist() for name in model.trace_.columns}
    state["embedding"] = model._embedding.to_state()
    calendar = model._calendar_of
    state["calendar"] = {
        "has_week": calendar.has_week, "has_year": calendar.has_year,
        "holidays": list(calendar.holidays), "clock": calendar.clock.to_state(),
    }  # fmt: skip
    state["shape"] = model._shape.to_state()
    state |= {f"history.{k}": v for k, v in model._history.to_state().items()}
    for s, own in enumerate(model._models):
        for b, found in enumerate(own):
            state |= {f"block{s}.{b}/{k}": v for k, v in found.to_state().items()}
    return state


def restore_fitted(model: Any, state: dict[str, Any]) -> None:
    """Inverse of `state_of_fitted`; takes what it uses out of the state and leaves the rest."""
    n_series, n_blocks = state["n_series_in_"], len(state["blocks_"])
    model._models = [
        [BlockModel.from_state(_taken(state, f"block{s}.{b}/")) for b in range(n_blocks)]
        for s in range(n_series)
    ]
    model._history = History.from_state(_taken(state, "history."))
    calendar = state.pop("calendar")
    clock, holidays = Clock(**calendar.pop("clock")), tuple(calendar.pop("holidays"))
    model._calendar_of = Calendar(clock, holidays=holidays, **calendar)
    model._embedding = Embedding.from_state(state.pop("embedding"))
    model._shape = Shape(**state.pop("shape"))
    model.trace_ = Trace(state.pop("trace_"))


def _taken(state: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Values under a prefix, taken out of the state."""
    names = [name for name in state if name.startswith(prefix)]
    return {name.removeprefix(prefix): state.pop(name) for name in names}
