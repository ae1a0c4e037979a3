"""Loads over time to the loads that follow."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from sublearn.io.prepared import notes_of
from sublearn.kinds.base import Asked, Field, Form, Kind, Lesson
from sublearn.kinds.judging import Judgement, Measure, mean
from sublearn.kinds.load_files import read_dates, read_loads
from sublearn.typing import JsonObject, Matrix

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.base import BaseEstimator

__all__ = ["Loads"]

_TARGET = "target"  # note of a saved model: which columns are loads


class Loads(Kind):
    """The steps that follow a series."""

    name = "loads"
    gives = "forecasts"
    data = "a model of loads (forecast)"
    instead = "use `sublearn forecast`"
    fit_form: ClassVar[tuple[str, ...]] = ("target", "quantile", "holidays", "time_zone")
    form: ClassVar[tuple[str, ...]] = ("target",)
    main_measure = "MAPE"

    # --- fitting -----------------------------------------------------------------------------

    def lesson(self, estimator: BaseEstimator, path: Path, form: Form) -> Lesson:
        """Loads and exogenous columns; the estimator gets the quantile and the holidays."""
        from sublearn.forecast import TubeLoss

        if form.quantile is not None:
            estimator.set_params(loss=TubeLoss.quantile(form.quantile))
        if form.holidays is not None:
            estimator.set_params(holidays=read_dates(form.holidays))
        y, X = read_loads(path, form.target, form.time_zone)
        notes = {} if form.target is None else {_TARGET: form.target}
        return Lesson((y, X), len(y), notes, {"rows": len(y)})

    def figures(self, model: BaseEstimator, lesson: Lesson, seconds: float) -> JsonObject:
        """With the numbers of series, columns and clusters."""
        return lesson.figures | {
            "series": model.n_series_in_,
            "columns": model.n_features_in_,
            "seconds": round(seconds, 3),
            "certificate": model.certificate_,
            "n_iter": model.n_iter_,
            "clusters": int(model.trace_["n_clusters"].max()),
        }

    def finish(self, model: BaseEstimator, bits: int | None) -> BaseEstimator:
        """Silent, and on as many threads as whoever loads it says."""
        return model.set_params(verbose=0, n_jobs=None)

    def hold_out(self, lesson: Lesson, n_rows: int) -> tuple[Lesson, Asked]:
        """The end of the series is what is asked: nothing is known of what comes later."""
        n, (y, X) = lesson.n_rows - n_rows, lesson.arguments
        before, after = (
            (y[own], None if X is None else X[own]) for own in (slice(n), slice(n, None))
        )
        train = dataclasses.replace(lesson, arguments=before, n_rows=n)
        return train, Asked([after[1]], after[0], np.zeros(n_rows, dtype=bool))

    # --- judging -----------------------------------------------------------------------------

    def target_of(self, model: BaseEstimator, form: Form) -> str | None:
        """Columns that are loads: as said, else as the model was told when it was fitted."""
        found = form.target or notes_of(model).get(_TARGET)
        return None if found is None else str(found)

    def read(
        self, model: BaseEstimator, path: Path, form: Form, *, needs_truth: bool = False
    ) -> Asked:
        """The loads that came after those of the fit, and the columns beside them."""
        if not needs_truth:
            raise self._cannot(model, "answer rows of a file")
        y, X = read_loads(path, self.target_of(model, form), model.time_zone_)
        return Asked([X], y, np.zeros(len(y), dtype=bool))

    def judge(self, model: BaseEstimator, asked: Asked, options: JsonObject) -> Judgement:
        """Errors of forecasts of `horizon` steps, the model learning the loads after each."""
        y, X = asked.truth, asked.items[0]
        n, horizon = len(asked), int(model.horizon_)
        found = []
        for start in range(0, n, horizon):
            own = slice(start, min(n, start + horizon))
            X_own = None if X is None else X[own]
            found.append(np.asarray(model.predict(own.stop - start, X_own), dtype=np.float64))
            if own.stop < n:
                model.update(y[own], X_own)
        truth = np.asarray(y, dtype=np.float64).reshape(n, -1)
        forecast = np.concatenate([one.reshape(len(one), -1) for one in found])
        errors = np.abs(forecast - truth)
        sizes = np.abs(truth)
        share = np.divide(errors, sizes, out=np.zeros_like(errors), where=sizes > 0)
        rmse = np.stack([(errors**2).mean(axis=1), np.ones(n)], axis=1)
        measures = {
            "MAPE": mean(share.mean(axis=1), is_better_high=False),
            "MAE": mean(errors.mean(axis=1), is_share=False, is_better_high=False),
            "RMSE": Measure(rmse, lambda s: np.sqrt(s[:, 0] / s[:, 1]), False, False),
        }
        title = f"{n:,} steps, forecasts of {horizon}"
        sketches = {"forecast": (truth[:, 0], forecast[:, 0])}
        return Judgement(title, {"rows": n}, measures, sketches)

    # --- over HTTP ---------------------------------------------------------------------------

    def question(self, model: BaseEstimator) -> dict[str, Field]:
        """How far to look ahead, and what is known of that time."""
        return {
            "horizon": Field(int | None, None, "Steps; as fitted if absent.", {"ge": 1}),
            "future": Field(
                list[list[float]] | None, None, "Rows of exogenous columns, one for each step."
            ),
            "coverage": Field(
                float | None,
                None,
                "Adds the ends of an interval that holds loads this often.",
                {"gt": 0, "lt": 1},
            ),
        }

    def example(self, model: BaseEstimator) -> JsonObject:
        """One step."""
        question: JsonObject = {"horizon": 1}
        if model.n_features_in_:
            question["future"] = [[0.0] * model.n_features_in_]
        return question

    def answer(
        self,
        model: BaseEstimator,
        question: Mapping[str, object],
        check: Callable[[], None],
        reader: Callable[[list[object], int], Matrix | list[object]] | None = None,
    ) -> JsonObject:
        """`forecast`, by series if there are several, with `times`, `low` and `high` if known."""
        horizon, coverage = question.get("horizon"), question.get("coverage")
        rows = question.get("future")
        future = None if rows is None else np.array(rows, dtype=np.float64)
        values = model.predict(horizon, future)
        found: JsonObject = {"forecast": _series(values)}
        if not isinstance(values, np.ndarray):
            found["times"] = [str(when) for when in values.index]
        if coverage is not None:
            ends = model.predict_interval(horizon, future, coverage=coverage)
            found["low"], found["high"] = map(_series, ends)
        return found


def _series(values: np.ndarray | pd.Series | pd.DataFrame) -> JsonObject | list[float]:
    if isinstance(values, np.ndarray):
        return values.tolist()
    if values.ndim == 2:
        return {str(name): values[name].tolist() for name in values.columns}
    return values.to_numpy().tolist()
