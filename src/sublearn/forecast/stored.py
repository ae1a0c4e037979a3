"""A fitted forecaster as arrays and JSON values by name, and back."""

from __future__ import annotations

import numpy as np

from sublearn.forecast.block_model import BlockModel
from sublearn.forecast.fitted import Fitted, History
from sublearn.forecast.rows import Calendar, Embedding
from sublearn.forecast.series import Clock, Shape
from sublearn.io.fields import Fields, Floats, ListOf, OrAbsent, Parts, Record, Size, take_parts
from sublearn.io.limits import check_expansion
from sublearn.typing import State
from sublearn.validation import Boolean, Either, InstanceOf, Interval, OneOf, OrNone

__all__ = ["FITTED_FIELDS", "restore_fitted", "state_of_fitted"]


def state_of_fitted(fitted: Fitted) -> State:
    """Arrays and JSON values by name."""
    embedding, history = fitted.embedding, fitted.history
    calendar = embedding.calendar
    columns = {name: list(getattr(embedding, name)) for name in _COLUMNS}
    state: State = {
        "embedding": columns | {"day": embedding.day},
        "calendar": vars(calendar)
        | {"holidays": list(calendar.holidays), "clock": vars(calendar.clock)},
        "shape": vars(fitted.shape),
        "history.values": history.values,
        "history.end": history.end,
        "history.clock": vars(history.clock),
    }
    if history.X is not None:
        state["history.X"] = history.X
    for s, own in enumerate(fitted.models):
        for b, found in enumerate(own):
            state |= {f"block{s}.{b}/{k}": v for k, v in found.to_state().items()}
    return state


_COLUMNS = ("lags", "windows", "X_lags", "X_windows")
_MOST_STEPS = 2**31  # of a number of steps; times of a thousand years have fewer minutes
_STEPS, _BACK = Interval(int, 0, _MOST_STEPS), Interval(int, 1, _MOST_STEPS)
_CLOCK = Record(
    {
        "start": Interval(int, -_MOST_STEPS, _MOST_STEPS),
        "step": Interval(int, 1, 24 * 60),
        "zone": OrNone(InstanceOf(str)),
        "has_dates": Boolean(),
        "is_wall": OrAbsent(Boolean()),
    }
)
#: What `state_of_fitted` gives; parts of models are checked where they are made again.
FITTED_FIELDS: Fields = {
    "n_series_in_": Size("series", low=1),
    "blocks_": ListOf(_BACK),
    "lags_": ListOf(_BACK),
    "embedding": Record(
        {
            "day": Interval(int, 1, 24 * 60),
            "X_lags": ListOf(_STEPS),
            **dict.fromkeys(("lags", "windows", "X_windows"), ListOf(_BACK)),
        }
    ),
    "calendar": Record(
        {
            "has_week": Boolean(),
            "has_year": Boolean(),
            "holidays": ListOf(Interval(int, -_MOST_STEPS, _MOST_STEPS)),
            "clock": _CLOCK,
        }
    ),
    "shape": Record(
        {
            "is_pandas": Boolean(),
            "is_one": Boolean(),
            "names": OrNone(InstanceOf(list)),
            "dtype": OneOf("float32", "float64"),
        }
    ),
    "history.values": Floats("steps", "series", bits=64),
    "history.X": OrAbsent(Floats(None, "features", bits=64)),
    "history.end": _STEPS,
    "history.clock": _CLOCK,
    "block*": Parts(),
}
_NAME = Either(InstanceOf(str), InstanceOf(int))


def restore_fitted(state: State, horizon: int | None, is_recursive: bool) -> Fitted:
    """Inverse of `state_of_fitted`; takes what it uses out of the state and leaves the rest.

    `horizon` is what the user asked for.
    """
    n_series, blocks = state["n_series_in_"], state["blocks_"]
    check_expansion("n_series_in_", 1000 * n_series * len(blocks), _stored_bytes(state))
    models = [
        [BlockModel.from_state(take_parts(state, f"block{s}.{b}/")) for b in range(len(blocks))]
        for s in range(n_series)
    ]
    history, names = take_parts(state, "history."), state.get("feature_names_in_")
    clock = Clock(**history.pop("clock"))
    fitted = Fitted(
        models,
        _restored_embedding(state.pop("embedding"), state.pop("calendar")),
        Shape(**state.pop("shape")),
        History(history["values"], history.get("X"), clock, history["end"]),
        names if names is None else names.tolist(),
        clock.day_ahead if horizon is None else int(horizon),
        is_recursive,
    )
    _refuse_other_blocks(fitted, blocks)
    _refuse_other_series(fitted, n_series, state["n_features_in_"])
    _refuse_other_rows(fitted)
    return fitted


def _restored_embedding(columns: State, calendar: State) -> Embedding:
    clock, holidays = Clock(**calendar["clock"]), tuple(calendar["holidays"])
    days = Calendar(clock, calendar["has_week"], calendar["has_year"], holidays)
    made = Embedding(days, **{name: tuple(columns[name]) for name in _COLUMNS})
    if made.day != columns["day"] or not made.lags:
        raise ValueError(
            f"embedding.day must be that of the clock and have lags, got {columns['day']}"
        )
    return made


def _stored_bytes(state: State) -> int:
    return sum(value.nbytes for value in state.values() if isinstance(value, np.ndarray))


def _refuse_other_blocks(fitted: Fitted, blocks: list[int]) -> None:
    """Blocks follow each other up to the horizon."""
    firsts = [1, *(last + 1 for last in blocks[:-1])]
    spans = list(zip(firsts, blocks, strict=True))
    is_right = all([(own.first, own.last) for own in of] == spans for of in fitted.models)
    reaches = fitted.is_recursive or (blocks and blocks[-1] == fitted.horizon)
    if not blocks or not is_right or not reaches or any(a > b for a, b in spans):
        raise ValueError(f"blocks_ must lead to the horizon {fitted.horizon}, got {blocks}")


def _refuse_other_series(fitted: Fitted, n_series: int, n_columns: int) -> None:
    history, shape = fitted.history, fitted.shape
    if (history.X is None) != (n_columns == 0):
        raise ValueError(f"history.X must have {n_columns} columns, got another number")
    if history.clock != fitted.embedding.calendar.clock:
        raise ValueError(f"history.clock must be that of the calendar, got {history.clock}")
    if history.end < len(history.values) or not len(history.values):
        raise ValueError(f"history.end must be {len(history.values)} or more, got {history.end}")
    names = shape.names
    is_named = names is None or (len(names) == n_series and all(map(_NAME.accepts, names)))
    if not is_named or (shape.is_one and n_series != 1):
        raise ValueError(f"shape must be that of {n_series} series, got {shape}")


def _refuse_other_rows(fitted: Fitted) -> None:
    """Each model must take the rows that this history and calendar make."""
    history = fitted.history
    at, lead = np.array([history.end]), np.array([1])
    for own in (member for of in fitted.models for block in of for member in block.members):
        rows = history.rows(0, fitted.embedding, at, lead, own.baseline)
        found = (len(own.centre), len(own.line.fixed), own.line.varying.shape[1] - 1)
        wanted = (rows.design.shape[1], int(rows.linear.sum()), rows.n_varying)
        if found != wanted:
            raise ValueError(
                f"block models must have {wanted} columns, coefficients and varying ones, "
                f"got {found}"
            )
