"""What entrants share that learn from a table of lags: rows drawn as LoadForecaster draws them."""

import numpy as np
from harness.loads import lagged_rows


def fit_each(train, task, make):
    """A model of each series from `make(rows, target)`; the newest `most_rows` rows."""
    day, horizon, n = int(train["day"]), int(train["horizon"]), int(train["n_train"])
    rng = np.random.default_rng(task.seed)
    positions = np.arange(15 * day, n)[-int(task.settings.get("most_rows", n)) :]
    leads = rng.integers(1, horizon + 1, len(positions))
    models = []
    for s in range(train["y"].shape[1]):
        X = train["X"][:, s] if "X" in train else None
        y = train["y"][:, s]
        rows = lagged_rows(y, X, train["calendar"], positions, leads, day)
        models.append(make(rows, y[positions]))
    return models


def predict_each(models, test, task):
    """Forecasts from every origin."""
    origins, horizon, day = test["origins"], int(test["horizon"]), int(test["day"])
    out = np.empty((len(origins), horizon, len(models)))
    leads = np.arange(1, horizon + 1)
    for s, model in enumerate(models):
        X = test["X"][:, s] if "X" in test else None
        for i, origin in enumerate(origins):
            at = origin + leads - 1
            rows = lagged_rows(test["y"][:, s], X, test["calendar"], at, leads, day)
            out[i, :, s] = model.predict(rows)
    return {"forecast": out}
