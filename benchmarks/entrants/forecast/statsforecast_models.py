"""statsforecast's models, which are fitted anew at every origin to the weeks before it."""

import warnings

import numpy as np
from statsforecast.models import MSTL, AutoARIMA, AutoETS, SeasonalNaive

warnings.simplefilter("ignore")


def make(name, day):
    return {
        "naive": lambda: SeasonalNaive(7 * day),
        "mstl": lambda: MSTL([day, 7 * day], trend_forecaster=AutoETS(model="ZZN")),
        "ets": lambda: AutoETS(season_length=day),
        "arima": lambda: AutoARIMA(season_length=day, approximation=True, max_order=4),
    }[name]()


def fit(train, task):
    return None


def predict(model, test, task):
    y, day, horizon = test["y"], int(test["day"]), int(test["horizon"])
    n_past = int(task.settings["weeks"]) * 7 * day
    out = np.empty((len(test["origins"]), horizon, y.shape[1]))
    for i, origin in enumerate(test["origins"]):
        for s in range(y.shape[1]):
            past = np.ascontiguousarray(y[max(0, origin - n_past) : origin, s])
            forecaster = make(task.settings["model"], day)
            out[i, :, s] = forecaster.forecast(past, h=horizon)["mean"]
    return {"forecast": out}
