"""Algorithm 8 in its own variables: a coefficient for each row, and the kernel itself.

    f(x) = sum_i a_i (k(x_i, x) + 1),    |w|^2 = a'Ka        (2.4.35 - 2.4.40)

No landmarks stand for the rows, so a step and a forecast cost O(N) where explicit features cost
O(m): for a few thousand rows (solvers/svr/kernel_svr.hpp). A model is kept as the rows that have a
coefficient, `RowsMap`, with the coefficients as weights; their sum is the weight of the bias.
"""

from __future__ import annotations

import numpy as np

from sublearn import _core
from sublearn.forecast.kernel import RowsMap
from sublearn.forecast.tube_regression import Fit, TubeLoss, dual_share, online_settings

__all__ = ["fit_kernel_online", "learn_new_kernel_rows"]

_N_EPOCHS = 20


def fit_kernel_online(
    rows: np.ndarray, y: np.ndarray, loss: TubeLoss, C: float, seed: int,
    *, batch: int = 1, n_epochs: int = _N_EPOCHS, fills_batch: bool = False,
) -> tuple[RowsMap, Fit]:  # fmt: skip
    """The model of scaled rows, averaged over the second half of its steps, and how good it is.

    With `fills_batch` a step draws until it has `batch` rows with a loss, as is printed.
    The mean of slopes over such rows is not that of (2.4.29): rows in the tube should count as
    zeros. Without it a step takes `batch` random rows, whose slopes are those of (2.4.29) on
    average.
    """
    n = len(y)
    settings = online_settings(loss, 1.0 / (C * n))
    settings.n_epochs, settings.seed = n_epochs, seed
    settings.batch, settings.fills_batch = min(batch, n), fills_batch
    settings.radius = float(np.sqrt(2.0 * loss.values(y).mean() * C * n))
    rows, a = np.ascontiguousarray(rows), np.zeros(n)
    _core.kernel_svr(rows, np.ascontiguousarray(y), a, settings, _core.Monitor())
    every = RowsMap(rows)
    forecast = every.sums(rows, a)
    objective = 0.5 * float(a @ forecast) + C * float(loss.values(y - forecast).sum())
    slopes = C * loss.slopes(y - forecast)
    pulled = every.sums(rows, slopes)
    ascent = float(slopes @ y - loss.conjugate(slopes).sum())
    curvature = float(slopes @ pulled)
    share = dual_share(ascent, curvature)
    dual = share * ascent - 0.5 * share**2 * curvature
    kept = np.flatnonzero(a)
    own = a[kept]
    w = np.append(own, own.sum())
    n_support = int(np.count_nonzero(slopes))
    return RowsMap(rows[kept]), Fit(w, objective, objective - max(dual, 0.0), n_epochs, n_support)


def learn_new_kernel_rows(
    model: RowsMap, w: np.ndarray, rows: np.ndarray, y: np.ndarray, loss: TubeLoss, reach: float
) -> tuple[RowsMap, np.ndarray]:
    """One pass over new rows in their order: each with a loss joins the model.

    Its coefficient goes `reach` of the way to its tube, less on the side of the smaller slope, as
    `learn_new_rows` does on features.
    """
    steepest = max(loss.lower_slope, loss.upper_slope)
    landmarks, a = model.rows, w[:-1]
    for x, target in zip(rows, y, strict=True):
        r = target - float(RowsMap(landmarks).sums(x[None], a)[0])
        slope = float(loss.slopes(np.array([r]))[0])
        if slope == 0.0:
            continue
        way = r - (loss.upper if slope > 0 else loss.lower)
        amount = reach * abs(slope) / steepest * way / 2.0  # k(x, x) + 1 is 2
        landmarks, a = np.vstack([landmarks, x]), np.append(a, amount)
    return RowsMap(landmarks), np.append(a, a.sum())
