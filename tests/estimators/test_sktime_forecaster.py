"""The adapter to sktime: forecasts, intervals and updates are those of LoadForecaster."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sktime")

from sublearn.forecast import LoadFeatures, LoadForecaster, LocalKernels
from sublearn.plugins.sktime import SktimeLoadForecaster

# sktime 1.2 warns of a default that it will change, before any forecaster can choose.
pytestmark = pytest.mark.filterwarnings("ignore:The default of config:FutureWarning")

SETTINGS = {
    "features": LoadFeatures(lead_blocks=[8]),
    "kernels": LocalKernels(n_components=40, relevance_rows=60),
    "random_state": 0,
}


def loads():
    t = np.arange(8 * 7 * 8)
    y = 100 + 20 * np.sin(2 * np.pi * t / 8) + np.random.default_rng(0).normal(0, 1, len(t))
    return pd.Series(y, index=pd.date_range("2021-01-04", periods=len(t), freq="3h"))


def test_forecasts_are_those_of_the_forecaster_inside():
    y = loads()
    theirs = SktimeLoadForecaster(8, SETTINGS).fit(y)
    own = LoadForecaster(8, **SETTINGS).fit(y)
    forecast = theirs.predict(fh=[1, 3, 8])
    np.testing.assert_allclose(forecast, own.predict().iloc[[0, 2, 7]])
    assert list(forecast.index) == list(own.predict().index[[0, 2, 7]])
    interval = theirs.predict_interval(fh=[1, 2], coverage=0.8)
    low, high = own.predict_interval(2, coverage=0.8)
    np.testing.assert_allclose(interval.iloc[:, 0], low)
    np.testing.assert_allclose(interval.iloc[:, 1], high)


def test_updates_move_on():
    y = loads()
    forecaster = SktimeLoadForecaster(8, SETTINGS).fit(y.iloc[:-8])
    forecaster.update(y.iloc[-8:])
    assert forecaster.predict(fh=[1]).index[0] == y.index[-1] + pd.Timedelta("3h")


@pytest.mark.parametrize("has_periods", [False, True])
def test_columns_that_begin_before_the_forecast_are_cut_by_their_times(has_periods):
    y = loads()
    X = pd.DataFrame({"temperature": np.sin(np.arange(len(y)) / 9)}, index=y.index)
    own = LoadForecaster(8, **SETTINGS).fit(y[:-8], X[:-8]).predict(X=X[-8:])
    if has_periods:
        y, X = y.to_period("3h"), X.to_period("3h")
    theirs = SktimeLoadForecaster(8, SETTINGS).fit(y[:-8], X[:-8])
    for known in (X, X[-8:]):
        np.testing.assert_allclose(theirs.predict(fh=list(range(1, 9)), X=known), own)
    with pytest.raises(ValueError, match="X must have 8 rows"):
        theirs.predict(fh=[8], X=X[-8:-3])
