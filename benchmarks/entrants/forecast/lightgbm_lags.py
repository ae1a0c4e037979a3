"""LightGBM on the same lags, temperatures and calendar, fitted once."""

import lightgbm as lgb
from entrants.forecast.tables import fit_each, predict_each


def fit(train, task):
    def make(rows, target):
        model = lgb.LGBMRegressor(
            n_estimators=500, learning_rate=0.05, n_jobs=task.threads, verbose=-1,
            random_state=task.seed,
        )  # fmt: skip
        return model.fit(rows, target)

    return fit_each(train, task, make)


predict = predict_each
