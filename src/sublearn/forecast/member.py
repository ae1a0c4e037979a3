"""A model of one series and one block of leads, measured from one baseline.

A Gaussian kernel falls back to the mean far from its rows, where loads go on rising or falling
with their lags; so the kernel models learn what a linear model leaves. What yesterday says of
today is not the same at noon and when the lamps go on, hence its coefficients change with the time
of day:

    f(x, tau) = <u, x> + sum_k b_k(tau) (<v_k, x'> + c_k)

with hat functions b_k of the time of day tau and x' those columns that may vary. Penalties of u
and of (v, c) are those of least squared error over contiguous quarters of the series.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import scipy.linalg

from sublearn.forecast.local_models import Learner, LocalModels
from sublearn.forecast.rows import Baseline, Rows
from sublearn.forecast.tube_regression import Fit
from sublearn.interruption import check
from sublearn.io.fields import Fields, Floats, Number, Parts, Record, check_fields, take_parts
from sublearn.typing import State
from sublearn.validation import Boolean, Interval

__all__ = ["Line", "Member"]

_N_HATS, _FEWER_HATS = 24, 12  # an hour or two each
_MOST_PRODUCTS = 400  # of hats and columns, for all hats: a Gram matrix costs their square
_N_FOLDS = 4
_OF_ALL, _OF_HATS = (1e-3, 0.03, 0.3, 1.0), (0.3, 3.0, 30.0)  # penalties that are tried
_CHUNK = 4096  # rows whose products are in memory at once
_MOST_WEEKS = 1000  # of a profile in a file
_FIELDS: Fields = {
    "share": Number(),
    "centre": Floats("columns", bits=64),
    "spread": Floats("columns", bits=64),
    "y_centre": Number(),
    "y_spread": Number(),
    "baseline": Record({"weeks": Interval(int, 0, _MOST_WEEKS), "is_anchored": Boolean()}),
    "line.fixed": Floats("linear", bits=64),
    "line.varying": Floats("hats", "varying+1", bits=64),
    "models.*": Parts(),
}


@dataclass(frozen=True)
class Member:
    """Fitted: a line, and local models of what it leaves, which count by `share`.

    On a short series whose errors hang together the local models learn some of the errors; held-out
    rows say how much of them to believe.
    """

    baseline: Baseline
    share: float
    centre: np.ndarray
    spread: np.ndarray
    y_centre: float
    y_spread: float
    line: Line
    models: LocalModels

    @classmethod
    def fit(
        cls, rows: Rows, loads: np.ndarray, baseline: Baseline, share: float, learner: Learner
    ) -> tuple[Member, list[Fit]]:
        """To rows in the order of time; the tube of the loss is in shares of the mean load."""
        target = loads - rows.base
        unit = float(np.abs(loads).mean())
        units = np.where(np.arange(rows.design.shape[1]) < rows.n_loads, unit, 1.0)
        centre, spread = rows.design.mean(axis=0), _spread(rows.design, units)
        y_centre = float(target.mean())
        Z = (rows.design - centre) / spread
        has_line = learner.settings.kernels.line
        line, left = _line_and_rest(rows, Z, target - y_centre, loads, has_line)
        y_spread = float(_spread(left[:, None], unit)[0])
        models, fits = LocalModels.fit(Z, left / y_spread, _in_units(learner, unit / y_spread))
        return cls(baseline, share, centre, spread, y_centre, y_spread, line, models), fits

    def refit(self, rows: Rows, loads: np.ndarray, learner: Learner) -> tuple[Member, list[Fit]]:
        """The same scales, features and clusters with coefficients fitted to these rows."""
        Z = self._standardised(rows)
        z, has_line = loads - rows.base - self.y_centre, learner.settings.kernels.line
        line, left = _line_and_rest(rows, Z, z, loads, has_line)
        learner = _in_units(learner, float(np.abs(loads).mean()) / self.y_spread)
        models, fits = self.models.refit(Z, left / self.y_spread, learner)
        return replace(self, line=line, models=models), fits

    @property
    def shift(self) -> float:
        """What a tube that is not centred (eta) adds to all forecasts."""
        loss = self.models.loss
        return -0.5 * (loss.lower + loss.upper) * self.y_spread

    def parts(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Loads by baseline and line, and what the local models would add but for their shift."""
        Z = self._standardised(rows)
        linear = rows.base + self.y_centre + self.line(Z[:, rows.linear], rows.times)
        return linear, self.models.predict(Z) * self.y_spread - self.shift

    def forecast(self, rows: Rows) -> np.ndarray:
        """Loads of rows."""
        linear, local = self.parts(rows)
        return linear + self.share * local + self.shift

    def updated(self, rows: Rows, loads: np.ndarray) -> Member:
        """After one online pass over new rows."""
        Z = self._standardised(rows)
        z = loads - rows.base - self.y_centre - self.line(Z[:, rows.linear], rows.times)
        return replace(self, models=self.models.updated(Z, z / self.y_spread))

    def to_state(self) -> State:
        """Arrays and numbers by name."""
        parts = ("models", "baseline", "line")
        own = {k: v for k, v in vars(self).items() if k not in parts}
        own |= {f"line.{k}": v for k, v in vars(self.line).items()}
        own["baseline"] = vars(self.baseline)
        return own | {f"models.{k}": v for k, v in self.models.to_state().items()}

    @classmethod
    def from_state(cls, state: State) -> Member:
        """Inverse of `to_state`."""
        sizes = check_fields(state, _FIELDS)
        models, line = take_parts(state, "models."), take_parts(state, "line.")
        own = state | {"baseline": Baseline(**state["baseline"])}
        return cls(
            **own, line=Line(**line), models=LocalModels.from_state(models, sizes["columns"])
        )

    def _standardised(self, rows: Rows) -> np.ndarray:
        return (rows.design - self.centre) / self.spread


def _line_and_rest(
    rows: Rows, Z: np.ndarray, z: np.ndarray, loads: np.ndarray, has_line: bool
) -> tuple[Line, np.ndarray]:
    """A line, and what it leaves: zero where that is mere rounding, which no solver could weigh."""
    n_linear = Z[:, rows.linear].shape[1]
    line = Line(np.zeros(n_linear), np.zeros((1, rows.n_varying + 1)))
    if has_line:
        line = Line.fit(Z[:, rows.linear], z, rows.times, rows.n_varying)
    left = z - line(Z[:, rows.linear], rows.times)
    return line, left if left.std() > 1e-9 * np.abs(loads).mean() else np.zeros_like(left)


def _spread(rows: np.ndarray, units: np.ndarray | float) -> np.ndarray:
    """Standard deviations; the unit of a column that is constant but for rounding."""
    spread = rows.std(axis=0)
    is_alive = spread > 1e-9 * (units + np.abs(rows).max(axis=0))
    return np.where(is_alive, spread, np.where(np.asarray(units) > 0, units, 1.0))


def _in_units(learner: Learner, mean_load: float) -> Learner:
    """With a tube, given as shares of the mean load, in units of the target."""
    loss = learner.settings.loss
    tube = replace(loss, lower=loss.lower * mean_load, upper=loss.upper * mean_load)
    return learner.using(loss=tube)


# --- the line ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """Coefficients of all columns, and of the first `varying.shape[1] - 1` ones by hat."""

    fixed: np.ndarray
    varying: np.ndarray  # (n_hats, n_varying + 1), the last column is the constant

    @classmethod
    def fit(cls, Z: np.ndarray, z: np.ndarray, times: np.ndarray, n_varying: int) -> Line:
        """Of standardised rows Z in the order of time, times of day in [0, 1), centred target z."""
        d, n = Z.shape[1], len(Z)
        n_hats = _N_HATS if _N_HATS * (n_varying + 1) <= _MOST_PRODUCTS else _FEWER_HATS
        folds = np.array_split(np.arange(n), _N_FOLDS)
        sums = [_sums(Z[fold], z[fold], times[fold], n_varying, n_hats) for fold in folds]
        gram = np.sum([G for G, _ in sums], axis=0)
        moment = np.sum([b for _, b in sums], axis=0)

        def ridge(penalty: tuple[float, float]) -> np.ndarray:
            of_all, of_hats = penalty
            by_hat = np.full(len(moment) - d, of_hats / n_hats)
            return np.concatenate([np.full(d, of_all), by_hat])

        @cache
        def error(of_all: float, of_hats: float) -> float:
            total, penalty = 0.0, ridge((of_all, of_hats))
            for fold, (G, b) in zip(folds, sums, strict=True):
                w = _solve(gram - G, moment - b, (n - len(fold)) * penalty)
                total += float(w @ (G @ w) - 2.0 * (b @ w))  # but for the sum of z^2
            return total

        of_all = min(_OF_ALL, key=lambda u: error(u, _OF_HATS[1]))
        of_hats = min(_OF_HATS, key=lambda v: error(of_all, v))
        w = _solve(gram, moment, n * ridge((of_all, of_hats)))
        return cls(w[:d], w[d:].reshape(n_hats, n_varying + 1))

    def __call__(self, Z: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Values of rows."""
        by_row = _hats(times, len(self.varying)) @ self.varying
        n_varying = by_row.shape[1] - 1
        found: np.ndarray = Z @ self.fixed + by_row[:, -1]
        return found + np.einsum("ij,ij->i", by_row[:, :-1], Z[:, :n_varying])


def _solve(gram: np.ndarray, moment: np.ndarray, ridge: np.ndarray) -> np.ndarray:
    check()
    A = np.array(gram, order="F")
    A.flat[:: len(A) + 1] += ridge + 1e-9
    _, found, failure = scipy.linalg.lapack.dposv(A, moment, lower=1, overwrite_a=1)
    if failure:
        raise scipy.linalg.LinAlgError("rows must be finite")
    return np.asarray(found)


def _hats(times: np.ndarray, n_hats: int) -> np.ndarray:
    """Values of the periodic hat functions, which sum to 1."""
    away = np.abs(times[:, None] * n_hats - np.arange(n_hats))
    hats: np.ndarray = np.maximum(1.0 - np.minimum(away, n_hats - away), 0.0)
    return hats


def _sums(
    Z: np.ndarray, z: np.ndarray, times: np.ndarray, n_varying: int, n_hats: int
) -> tuple[np.ndarray, np.ndarray]:
    """Gram matrix and moments of the products."""
    size = Z.shape[1] + n_hats * (n_varying + 1)
    gram, moment = np.zeros((size, size)), np.zeros(size)
    for start in range(0, len(Z), _CHUNK):
        check()
        part = slice(start, start + _CHUNK)
        own = np.hstack([Z[part, :n_varying], np.ones((len(Z[part]), 1))])
        products = (_hats(times[part], n_hats)[:, :, None] * own[:, None, :]).reshape(len(own), -1)
        rows = np.hstack([Z[part], products])
        gram += rows.T @ rows
        moment += rows.T @ z[part]
    return gram, moment
