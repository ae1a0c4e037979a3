"""LoadForecaster: fitted once, then updated with each day before the next is forecast."""

import copy
from dataclasses import fields, replace

import numpy as np

from sublearn.forecast import LoadFeatures, LoadForecaster, LocalKernels, TubeLoss


def taken(cls, settings, **more):
    """A settings object of those of its fields that are there, and some more."""
    return cls(**{f.name: settings.pop(f.name) for f in fields(cls) if f.name in settings}, **more)


def fit(train, task):
    day, n = int(train["day"]), int(train["n_train"])
    settings = {name: value for name, value in task.settings.items() if name != "coverages"}
    features = taken(LoadFeatures, settings, steps_per_day=day)
    kernels = taken(LocalKernels, settings)
    loss = TubeLoss.quantile(settings["quantile"]) if "quantile" in settings else None
    if "epsilon" in settings:
        loss = TubeLoss.shifted(settings["epsilon"], settings["eta"])
    solver = settings.get("solver", "interior_point")
    made = []
    for s in range(train["y"].shape[1]):
        X = train["X"][:n, s : s + 1] if "X" in train else None
        model = LoadForecaster(
            int(train["horizon"]), features=features, kernels=kernels, loss=loss, solver=solver,
            intervals="coverages" in task.settings, random_state=task.seed, n_jobs=task.threads,
        )  # fmt: skip
        if "start" in train:
            import pandas as pd

            start = pd.Timestamp(int(train["start"]), unit="D")
            index = pd.date_range(start, periods=n, freq=pd.Timedelta(days=1) / day)
            y = pd.Series(train["y"][:n, s], index=index)
            days = train["holidays"].astype("datetime64[D]")
            made.append(model.set_params(holidays=[str(d) for d in days]).fit(y, X))
        else:
            made.append(model.fit(train["y"][:n, s], X))
    return made


def predict(models, test, task):
    y, origins, horizon = test["y"], test["origins"], int(test["horizon"])
    out = np.empty((len(origins), horizon, y.shape[1]))
    coverages = task.settings.get("coverages", [])
    ends = np.empty((2, 2, len(coverages), *out.shape))  # as fitted, updated; lower, upper
    for s, (fitted, model) in enumerate(zip(models, copy.deepcopy(models), strict=True)):
        known = model._fitted.history.end  # positions count from the first load of fit
        for i, origin in enumerate(origins):
            new = y[known:origin, s]
            X = test["X"][:, s : s + 1] if "X" in test else None
            if len(new):
                model.update(_like(new, model, known), None if X is None else X[known:origin])
                known = origin
            ahead = None if X is None else X[origin : origin + horizon]
            out[i, :, s] = np.asarray(model.predict(horizon, ahead))
            # The same loads, but nothing learned from them.
            fitted._fitted = replace(fitted._fitted, history=model._fitted.history)
            for k, m in enumerate([fitted, model] if coverages else []):
                for c, share in enumerate(coverages):
                    found = m.predict_interval(horizon, ahead, coverage=share)
                    ends[k, :, c, i, :, s] = np.asarray(found)
    answer = {"forecast": out}
    return answer | {"fitted": ends[0], "updated": ends[1]} if coverages else answer


def _like(new, model, first):
    if not model._fitted.shape.is_pandas:
        return new
    import pandas as pd

    times = model._fitted.history.clock.times(first, len(new))
    return pd.Series(new, index=pd.DatetimeIndex(times))
