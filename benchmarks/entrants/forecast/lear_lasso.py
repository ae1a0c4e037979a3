"""A lasso for each step of the day, as LEAR (Lago et al. 2021): fitted anew at every origin.

Its columns are all loads of the last day, of the two before it and of the same day a week ago, the
exogenous column of the day itself and of the day before, and the day of the week. The penalty is
that of least AIC along the LARS path. Origins must be at the first step of a day.
"""

import warnings

import numpy as np
from sklearn.linear_model import LassoLarsIC

warnings.simplefilter("ignore")
DAYS_BACK = (1, 2, 3, 7)


def day_rows(y, X, days, day):
    """A row for each of some days: what is known when it begins."""
    by_day = y[: len(y) // day * day].reshape(-1, day)
    parts = [by_day[days - back] for back in DAYS_BACK]
    if X is not None:
        x = X[: len(X) // day * day].reshape(-1, day)
        parts += [x[days], x[days - 1]]
    return np.hstack([*parts, np.eye(7)[days % 7]])


def fit(train, task):
    return None


def predict(model, test, task):
    y, origins, day = test["y"], test["origins"], int(test["day"])
    out = np.empty((len(origins), int(test["horizon"]), y.shape[1]))
    for s in range(y.shape[1]):
        X = test["X"][:, s] if "X" in test else None
        for i, origin in enumerate(origins):
            today = origin // day
            days = np.arange(max(DAYS_BACK), today)
            rows = day_rows(y[:origin, s], None if X is None else X[:origin], days, day)
            now = y[: origin + day, s].copy()
            now[origin:] = 0.0  # not known yet
            new = day_rows(now, None if X is None else X[: origin + day], np.array([today]), day)
            centre, spread = rows.mean(axis=0), np.maximum(rows.std(axis=0), 1e-9)
            Z, z = (rows - centre) / spread, (new - centre) / spread
            targets = y[:origin, s].reshape(-1, day)[days]
            for step in range(day):
                lasso = LassoLarsIC("aic", max_iter=100, noise_variance=_noise(Z, targets[:, step]))
                out[i, step, s] = lasso.fit(Z, targets[:, step]).predict(z)[0]
    return {"forecast": out}


def _noise(Z, target):
    """The variance that least squares leaves; where rows are few, that of a ridge regression."""
    n, d = Z.shape
    if n > 2 * d:
        return None
    A = Z.T @ Z + 0.1 * n * np.eye(d)
    left = target - target.mean() - Z @ np.linalg.solve(A, Z.T @ (target - target.mean()))
    return float(np.maximum(left.var(), 1e-12))
