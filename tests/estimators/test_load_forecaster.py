"""LoadForecaster: what it forecasts, what it takes, what it refuses, files."""

import copy
import datetime
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import d2_absolute_error_score, mean_absolute_error, mean_pinball_loss

import sublearn
from sublearn.errors import ParameterError
from sublearn.forecast import (
    LoadFeatures,
    LoadForecaster,
    LocalKernels,
    TubeLoss,
    backtest,
    local_models,
)
from sublearn.forecast.local_models import Learner, LocalSettings
from sublearn.forecast.residuals import SHARES
from sublearn.forecast.settings import Dates

DAY = 8  # steps of three hours keep the tests short


def loads(n_weeks=12, noise=0.5, seed=0):
    """A daily and a weekly pattern, and what temperature adds."""
    rng = np.random.default_rng(seed)
    t = np.arange(7 * DAY * n_weeks)
    temperature = 10 * np.sin(2 * np.pi * t / (DAY * 30)) + rng.normal(0, 2, len(t))
    load = 100 + 20 * np.sin(2 * np.pi * t / DAY) + 8 * (t // DAY % 7 < 5)
    load += 0.05 * temperature**2 + rng.normal(0, noise, len(t))
    return load, temperature[:, None]


def small(**parameters):
    """A quick forecaster; parameters of its features and kernels are given by their names alone."""
    given = {"horizon": DAY, "lead_blocks": [DAY], "n_components": 40, "random_state": 0}
    given |= {"steps_per_day": DAY, "profile_weeks": 0, "anchored": False, "relevance_rows": 60}
    given |= parameters

    def taken(cls):
        return cls(**{f.name: given.pop(f.name) for f in fields(cls) if f.name in given})

    return LoadForecaster(features=taken(LoadFeatures), kernels=taken(LocalKernels), **given)


@pytest.fixture(scope="module")
def fitted():
    y, X = loads()
    return small(intervals=True).fit(y[:-DAY], X[:-DAY])


class Nameless(datetime.tzinfo):
    """A time zone that no file can keep."""

    def utcoffset(self, when):
        return datetime.timedelta(hours=1)

    def dst(self, when):
        return datetime.timedelta(0)

    def tzname(self, when):
        return "CET"


def frame(y, start="2021-01-04", **more):
    return pd.Series(y, index=pd.date_range(start, periods=len(y), freq="3h", **more), name="load")


def error(forecast, truth):
    return np.abs(np.asarray(forecast) - truth).mean()


def test_forecasts_a_day_better_than_last_week_did(fitted):
    y, X = loads()
    truth = y[-DAY:]
    assert error(fitted.predict(X=X[-DAY:]), truth) < 0.5 * error(y[-8 * DAY : -7 * DAY], truth)
    assert fitted.certificate_ <= fitted.tol
    assert fitted.n_iter_ >= 1
    assert len(fitted.trace_) == 1
    assert fitted.lags_ == sorted(fitted.lags_)


def test_a_shorter_horizon_gives_the_first_steps(fitted):
    _, X = loads()
    first = fitted.predict(3, X[-DAY:][:3])
    np.testing.assert_allclose(first, fitted.predict(X=X[-DAY:])[:3], rtol=1e-12)


def test_another_history_forecasts_from_its_end(fitted):
    y, X = loads()
    again = fitted.predict(X=X, y=y[:-DAY])
    np.testing.assert_allclose(again, fitted.predict(X=X[-DAY:]), rtol=1e-12)
    earlier = fitted.predict(X=X[: -DAY * 3], y=y[: -DAY * 4])
    assert error(earlier, y[-DAY * 4 : -DAY * 3]) < 3.0


def test_intervals_hold_the_truth_as_often_as_asked():
    y, X = loads(24, noise=2.0)
    n = 7 * DAY * 16
    model = small().fit(y[:n], X[:n])
    inside = []
    for origin in range(n, len(y) - DAY, DAY):
        low, high = model.predict_interval(X=X[: origin + DAY], y=y[:origin], coverage=0.8)
        inside.append((low <= y[origin : origin + DAY]) & (y[origin : origin + DAY] <= high))
    assert 0.65 < np.mean(inside) < 0.95
    wide = model.predict_interval(X=X[n : n + DAY], coverage=0.95)
    narrow = model.predict_interval(X=X[n : n + DAY], coverage=0.5)
    assert (wide[1] - wide[0] > narrow[1] - narrow[0]).all()


def test_a_shift_lowers_the_share_of_under_forecasts_and_a_quantile_sets_it():
    y, X = loads(16, noise=3.0)
    n = 7 * DAY * 14

    def share_too_low(**parameters):
        model = small(intervals=False, C=3.0, **parameters).fit(y[:n], X[:n])
        origins = range(n, len(y) - DAY, DAY)
        found = [model.predict(X=X[: o + DAY], y=y[:o]) < y[o : o + DAY] for o in origins]
        return np.mean(found)

    plain, shifted = (share_too_low(loss=TubeLoss.shifted(0.04, eta)) for eta in (0.0, 0.035))
    assert shifted < plain - 0.2
    assert 0.02 < share_too_low(loss=TubeLoss.quantile(0.9)) < 0.2
    assert 0.12 < share_too_low(loss=TubeLoss.quantile(0.7)) < 0.45


def test_recursive_and_direct_agree_on_an_easy_series():
    y, _ = loads(10, noise=0.1)
    y = y - y.mean() + 200
    direct = small(intervals=False).fit(y)
    recursive = small(intervals=False, strategy="recursive", lead_blocks=None).fit(y)
    assert recursive.blocks_ == [1]
    assert recursive.predict().shape == (DAY,)
    assert error(recursive.predict(), direct.predict()) < 8.0


def test_several_series_are_forecast_as_each_alone():
    y, X = loads()
    both = np.stack([y, 2 * y], axis=1)
    together = small(intervals=False, n_jobs=2).fit(both, X)
    alone = small(intervals=False).fit(y, X)
    forecast = together.predict(X=X[:DAY])
    assert forecast.shape == (DAY, 2)
    np.testing.assert_array_equal(forecast[:, 0], alone.predict(X=X[:DAY]))
    assert together.n_series_in_ == 2
    assert len(together.trace_) == 2


@pytest.mark.parametrize(
    "parameters",
    [{"kernel_map": "fourier"}, {"solver": "online"}, {"solver": "online_kernel", "batch": 8},
     {"line": False, "C": 30.0}, {"lags": "held_out"}, {"lags": [1, 8, 56]},
     {"profile_weeks": "auto"}, {"profile_weeks": 2}, {"X_lags": [0], "X_windows": []}],
    ids=str,
)  # fmt: skip
def test_every_choice_forecasts(parameters):
    y, X = loads()
    model = small(intervals=False, **parameters).fit(y[:-DAY], X[:-DAY])
    assert error(model.predict(X=X[-DAY:]), y[-DAY:]) < 8.0


def test_without_a_line_local_models_are_all_there_is():
    y, X = loads()
    model = small(intervals=False, line=False).fit(y, X)
    (member,) = model._fitted.models[0][0].members
    assert not member.line.fixed.any()
    assert not member.line.varying.any()
    assert member.share == 1.0


def test_the_kernel_form_keeps_rows_grows_by_updates_and_is_saved(tmp_path):
    y, X = loads()
    model = small(intervals=False, solver="online_kernel", n_clusters=2).fit(y[:-DAY], X[:-DAY])
    maps = model._fitted.models[0][0].members[0].models.maps
    assert {type(own).__name__ for own in maps} == {"RowsMap"}
    n_rows = sum(own.n_features for own in maps)
    model.update(y[-DAY:] + 20.0, X[-DAY:])
    after = model._fitted.models[0][0].members[0].models.maps
    assert sum(own.n_features for own in after) > n_rows
    model.save(tmp_path / "m")
    again = sublearn.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(X=X[:DAY]), model.predict(X=X[:DAY]))


def test_steps_below_an_hour_take_more_rows_for_a_cluster(monkeypatch):
    monkeypatch.setattr(local_models, "_ROWS_PER_CLUSTER", 300)
    U, kernels = np.random.default_rng(0).normal(size=(1300, 3)), LocalKernels(n_components=20)
    settings = LocalSettings(kernels, TubeLoss(), None, "interior_point", 1e-3, 50)
    counts = []
    for day in (1, 24, 48, 96):
        learner = Learner(settings, np.random.default_rng(0), lambda: False, day=day)
        counts.append(local_models._distribute(U, learner)[1].n_clusters)
    assert counts == [4, 4, 2, 1]


def test_updates_follow_a_new_level_and_keep_forecasts_of_an_old_one():
    y, X = loads()
    n = len(y) - 14 * DAY
    raised = y.copy()
    raised[n:] += 15.0
    model = small(intervals=False).fit(raised[:n], X[:n])
    fixed = copy.deepcopy(model)
    late, early = [], []
    for origin in range(n, len(y), DAY):
        ahead = X[origin : origin + DAY]
        truth = raised[origin : origin + DAY]
        late.append(error(model.predict(X=ahead), truth))
        early.append(error(fixed.predict(X=X[: origin + DAY], y=raised[:origin]), truth))
        assert model.update(truth, ahead) is model
    assert np.mean(late[2:]) < np.mean(early[2:])


def test_intervals_widen_when_loads_become_harder_to_forecast():
    y, X = loads()
    n = len(y) - 21 * DAY
    y[n:] += np.random.default_rng(1).normal(0, 8, len(y) - n)
    model = small().fit(y[:n], X[:n])
    low, high = model.predict_interval(X=X[n : n + DAY])
    model.update(y[n:], X[n:])
    later = model.predict_interval(X=X[:DAY])
    assert (later[1] - later[0]).mean() > 2 * (high - low).mean()


def test_updates_bring_the_coverage_to_the_share_asked_for():
    """Twice as much noise at first, which the residuals of fit know nothing of; then half."""
    y, X = loads(44, noise=1.0)
    n, rng = 7 * DAY * 12, np.random.default_rng(5)
    y[n : 2 * n] += rng.normal(0, 2, n)
    model, inside = small().fit(y[:n], X[:n]), []
    for origin in range(n, len(y) - DAY + 1, DAY):
        truth, ahead = y[origin : origin + DAY], X[origin : origin + DAY]
        low, high = model.predict_interval(X=ahead)
        inside.append((low <= truth) & (truth <= high))
        model.update(truth, ahead)
    assert abs(np.mean(inside) - 0.9) < 0.01


def test_quantiles_of_one_fit_never_cross_and_hold_their_shares(fitted):
    y, X = loads(24, noise=2.0)
    n, shares = 7 * DAY * 16, [0.9, 0.1, 0.5, 0.55]
    model = small().fit(y[:n], X[:n])
    below = []
    for origin in range(n, len(y) - DAY + 1, DAY):
        truth, ahead = y[origin : origin + DAY], X[origin : origin + DAY]
        found = model.predict_quantiles(X=ahead, quantiles=shares)
        assert all(
            (a <= b).all()
            for a, b in zip(np.array(found)[[1, 2, 3]], np.array(found)[[2, 3, 0]], strict=True)
        )
        below.append([truth <= own for own in found])
        model.update(truth, ahead)
    np.testing.assert_allclose(np.mean(below, axis=(0, 2)), shares, atol=0.05)
    low, high = fitted.predict_interval(X=X[:DAY], coverage=0.8)
    np.testing.assert_array_equal(
        [low, high], fitted.predict_quantiles(X=X[:DAY], quantiles=[0.1, 0.9])
    )
    with pytest.raises(ValueError, match=r"predict_quantiles.quantiles must be a sequence of numb"):
        fitted.predict_quantiles(X=X[:DAY], quantiles=[0.1, 1.0])


def test_levels_that_learned_survive_a_file(tmp_path):
    y, X = loads(noise=2.0)
    model = small().fit(y[:-70], X[:-70]).update(y[-70:], X[-70:])
    assert not np.array_equal(model._fitted.models[0][0].residuals.levels, SHARES)
    model.save(tmp_path / "m")
    again = sublearn.load(tmp_path / "m")
    np.testing.assert_array_equal(
        again.predict_interval(X=X[:DAY]), model.predict_interval(X=X[:DAY])
    )


def test_the_score_is_the_share_of_the_absolute_error_explained(fitted):
    y, X = loads()
    forecast = fitted.predict(X=X[-DAY:])
    wanted = d2_absolute_error_score(y[-DAY:], forecast)
    assert fitted.score(y[-DAY:], X[-DAY:]) == pytest.approx(wanted)
    assert wanted > 0.8
    holed = np.where(np.arange(DAY) == 2, np.nan, y[-DAY:])
    kept = np.arange(DAY) != 2
    assert fitted.score(holed, X[-DAY:]) == pytest.approx(
        d2_absolute_error_score(y[-DAY:][kept], forecast[kept])
    )


# --- backtests ---------------------------------------------------------------------------------


def test_a_backtest_forecasts_each_origin_from_what_was_known(fitted):
    y, X = loads()
    result = backtest(small(), y, X, n_origins=3)
    assert result.truth.shape == (3, DAY, 1)
    np.testing.assert_array_equal(result.truth[-1, :, 0], y[-DAY:])
    by_hand = small().fit(y[: -3 * DAY], X[: -3 * DAY])
    np.testing.assert_array_equal(
        result.forecast[0, :, 0], by_hand.predict(X=X[-3 * DAY : -2 * DAY])
    )
    by_hand.update(y[-3 * DAY : -2 * DAY], X[-3 * DAY : -2 * DAY])
    np.testing.assert_array_equal(result.forecast[1, :, 0], by_hand.predict(X=X[-2 * DAY : -DAY]))
    anew = backtest(small(), y, X, n_origins=2, refit_every=1)
    np.testing.assert_array_equal(anew.forecast[1, :, 0], fitted.predict(X=X[-DAY:]))


def test_the_figures_of_a_backtest_are_those_of_scikit_learn():
    y, X = loads()
    result = backtest(small(steps_per_day=None), frame(y), X, n_origins=4, step=3, coverage=0.8)
    truth, forecast = result.truth.ravel(), result.forecast.ravel()
    scores = result.scores
    assert scores["mae"] == pytest.approx(mean_absolute_error(truth, forecast))
    assert scores["d2"] == pytest.approx(d2_absolute_error_score(truth, forecast))
    ends = [(result.lower, 0.1), (result.upper, 0.9)]
    losses = [mean_pinball_loss(truth, own.ravel(), alpha=share) for own, share in ends]
    assert scores["pinball"] == pytest.approx(np.mean(losses))
    assert result.times[-1, -1] == frame(y).index[-1]
    assert result.table["lead"].tolist() == list(range(1, DAY + 1))
    assert np.mean(result.table["mae"]) == pytest.approx(scores["mae"])
    assert "4 origins, 8 leads, 1 series: mae" in str(result)


def test_a_backtest_draws_forecasts_and_the_error_of_each_lead():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    y, _ = loads()
    table = pd.DataFrame({"a": y, "b": 2 * y}, index=frame(y).index)
    result = backtest(small(steps_per_day=None), table, n_origins=2)
    series, leads = result.plot(series=1).axes_
    labels = [text.get_text() for text in series.get_legend().get_texts()]
    assert labels == ["90% interval", "forecast", "load"]
    np.testing.assert_array_equal(series.lines[1].get_ydata(), result.truth[0, :, 1])
    assert len(leads.lines[0].get_ydata()) == DAY
    matplotlib.pyplot.close("all")


def test_refuses_a_backtest_longer_than_the_series():
    with pytest.raises(ValueError, match=r"backtest.y must have more than 8000 steps for 1000"):
        backtest(small(), Y, n_origins=1000)
    with pytest.raises(ValueError, match=r"backtest.n_origins must be a positive integer, got 0"):
        backtest(small(), Y, n_origins=0)


def test_a_short_series_is_forecast_by_the_mean_of_two_baselines(tmp_path):
    y, _ = loads(noise=3.0)
    model = small(intervals=False, profile_weeks="auto", anchored="auto").fit(y[:-DAY])
    (block,) = model._fitted.models[0]
    assert len(block.members) == 2
    assert block.members[0].baseline != block.members[1].baseline
    assert block.weights.sum() == pytest.approx(1.0)
    assert error(model.predict(), y[-DAY:]) < 8.0
    model.save(tmp_path / "two")
    np.testing.assert_array_equal(sublearn.load(tmp_path / "two").predict(), model.predict())


def test_a_load_that_never_changes_is_forecast_as_it_is():
    y = np.full(7 * DAY * 8, 100.0)
    model = small(profile_weeks="auto", anchored="auto").fit(y)
    np.testing.assert_allclose(model.predict(), 100.0)
    wave = 100 + 10 * np.sin(2 * np.pi * np.arange(len(y)) / DAY)
    model = small(profile_weeks=1, loss=TubeLoss.quantile(0.9)).fit(wave)
    np.testing.assert_allclose(model.predict(), wave[:DAY], rtol=1e-6)


def test_daily_loads_are_forecast_too():
    t = np.arange(300)
    y = 100 + 10 * (t % 7 < 5) + np.random.default_rng(0).normal(0, 1, 300)
    model = small(horizon=7, lead_blocks=[7], steps_per_day=1, anchored="auto").fit(y[:294])
    assert error(model.predict(6), y[294:]) < 3.0


def test_local_models_that_learn_nothing_are_hardly_heard():
    y = np.random.default_rng(2).normal(100, 5, 7 * DAY * 12)
    (block,) = small(intervals=False).fit(y)._fitted.models[0]
    assert block.members[0].share < 0.2


def test_an_update_with_nothing_changes_nothing(fitted):
    _, X = loads()
    model = copy.deepcopy(fitted)
    model.update(np.empty(0), np.empty((0, 1)))
    np.testing.assert_array_equal(model.predict(X=X[-DAY:]), fitted.predict(X=X[-DAY:]))


# --- times -------------------------------------------------------------------------------------


def test_a_series_with_times_comes_back_with_times():
    y, X = loads()
    model = small(steps_per_day=None, holidays=[datetime.date(2021, 1, 18)]).fit(frame(y), X)
    forecast = model.predict(X=X[:DAY])
    assert isinstance(forecast, pd.Series)
    assert forecast.name == "load"
    assert forecast.index[0] == frame(y).index[-1] + pd.Timedelta("3h")
    low, high = model.predict_interval(X=X[:DAY])
    assert (low <= high).all()
    new = pd.Series([100.0] * 3, index=forecast.index[2:5])  # two steps are missing
    model.update(new, X[:3])
    assert model.predict(X=X[:DAY]).index[0] == new.index[-1] + pd.Timedelta("3h")


def test_a_table_comes_back_as_a_table():
    y, _ = loads(8)
    table = pd.DataFrame({"north": y, "south": y + 5}, index=frame(y).index)
    forecast = small(intervals=False, steps_per_day=None).fit(table).predict()
    assert list(forecast.columns) == ["north", "south"]
    assert len(forecast) == DAY


def test_clocks_that_change_are_followed_with_a_zone_and_refused_without():
    y, _ = loads(8)
    zoned = frame(y, start="2021-10-01", tz="Europe/Berlin")
    forecast = small(intervals=False, steps_per_day=None).fit(zoned).predict()
    assert str(forecast.index.tz) == "Europe/Berlin"
    hours = pd.Series(y, index=pd.date_range("2021-10-30", periods=len(y), freq="h", tz="CET"))
    naive = hours.tz_localize(None)
    with pytest.raises(ValueError, match=r"stands twice.*time zone"):
        LoadForecaster().fit(naive)


@pytest.mark.parametrize(("freq", "ahead"), [("3h", 8), ("12h", 2), ("D", 7)])
def test_the_next_day_is_forecast_by_default_or_the_next_week_of_days(freq, ahead, tmp_path):
    y = loads(30)[0][:300]
    dated = pd.Series(y, index=pd.date_range("2021-01-04", periods=len(y), freq=freq))
    model = small(horizon=None, lead_blocks=None, steps_per_day=None, intervals=False).fit(dated)
    assert model.horizon_ == len(model.predict()) == ahead
    model.save(tmp_path / "m")
    again = sublearn.load(tmp_path / "m")
    assert (again.horizon, again.horizon_) == (None, ahead)


@pytest.mark.parametrize(
    ("start", "zone"), [("2021-01-04", "Europe/Berlin"), ("2017-06-01", "America/Sao_Paulo")]
)
def test_days_from_midnight_to_midnight_may_have_23_or_25_hours(start, zone, tmp_path):
    y = loads(44)[0][:300]
    index = pd.DatetimeIndex(pd.date_range(start, periods=310, freq="D")).tz_localize(
        zone, nonexistent="shift_forward"
    )
    if zone == "America/Sao_Paulo":  # where no midnight is, on 15 October
        index = index[index != pd.Timestamp("2017-10-15 01:00", tz=zone)]
        y, n = y[:299], 299
    else:
        n = 300
    options = {"horizon": None, "lead_blocks": None, "steps_per_day": None, "intervals": False}
    model = small(**options).fit(pd.Series(y, index=index[:n]))
    forecast = model.predict()
    assert forecast.index.equals(index[n : n + 7])
    assert forecast.index[0].tzinfo is not None
    plain = small(**options).fit(pd.Series(y, index=index[:n].tz_localize(None)))
    np.testing.assert_array_equal(forecast, plain.predict())
    model.save(tmp_path / "m")
    again = sublearn.load(tmp_path / "m").update(pd.Series([100.0], index=index[n : n + 1]))
    assert again.predict().index[0] == index[n + 1]


def test_errors_show_times_as_the_clock_of_the_series_does():
    zoned = frame(Y, start="2021-07-01", tz="Europe/Berlin")
    beside = zoned.rename(index={zoned.index[9]: zoned.index[9] + pd.Timedelta("1h")})
    model = small(intervals=False, steps_per_day=None)
    with pytest.raises(ValueError, match=r"got 2021-07-02T04:00\+02:00 beside the grid"):
        model.fit(beside)
    with pytest.raises(ValueError, match=r"got 2021-07-02T00:00\+02:00 which comes after a later"):
        model.fit(pd.concat([zoned, zoned[8:9]]))
    X = frame(X1[:, 0], start="2021-07-02", tz="Europe/Berlin")
    with pytest.raises(
        ValueError, match=r"got 2021-07-02T00:00\+02:00 in the row of 2021-07-01T00"
    ):
        model.fit(zoned, X)
    late = pd.Series([1.0], index=[zoned.index[-1] + pd.Timedelta("4h")])
    with pytest.raises(ValueError, match=r"on the steps of the known series, got .*\+02:00"):
        model.fit(zoned).update(late)


def test_gaps_of_exogenous_columns_are_filled_left_out_and_told():
    y, X = loads()
    short, long = X.copy(), X.copy()
    short[[50, 51, 90]] = np.nan
    long[100:140] = np.nan
    with pytest.warns(
        UserWarning, match=r"X has 3 gaps \(NaN\): up to 2 in a row are filled by st"
    ):
        filled = small(intervals=False).fit(y, short)
    assert filled.trace_["work"][0] == small(intervals=False).fit(y, X).trace_["work"][0]
    with pytest.warns(UserWarning, match="rows that need longer ones are left out"):
        holed = small(intervals=False).fit(y[:-DAY], long[:-DAY])
    assert holed.trace_["work"][0] < filled.trace_["work"][0] - 40
    assert error(holed.predict(X=X[-DAY:]), y[-DAY:]) < 3.0
    ahead = X[-DAY:].copy()
    ahead[3:6] = np.nan
    with pytest.warns(UserWarning, match=r"X has 3 gaps .* day or a week before stand in"):
        forecast = holed.predict(X=ahead)
    stand_in = np.where(np.isnan(ahead), X[-2 * DAY : -DAY], ahead)
    np.testing.assert_array_equal(forecast, holed.predict(X=stand_in))


def test_missing_hours_and_missing_times_are_gaps():
    y, _ = loads()
    broken = frame(y)
    broken.iloc[100:110] = np.nan
    broken = broken.drop(broken.index[200:204])
    forecast = small(intervals=False, steps_per_day=None).fit(broken).predict()
    whole = small(intervals=False, steps_per_day=None).fit(frame(y)).predict()
    assert forecast.index.equals(whole.index)
    assert error(forecast, whole) < 3.0
    broken.iloc[-3:] = np.nan  # the newest loads are missing too
    assert np.isfinite(small(intervals=False, steps_per_day=None).fit(broken).predict()).all()


def test_numbers_as_names_of_columns_stay_numbers(tmp_path):
    y = pd.DataFrame(np.column_stack([Y, Y]), index=frame(Y).index)
    model = small(intervals=False, steps_per_day=None).fit(y)
    model.save(tmp_path / "model")
    assert sublearn.load(tmp_path / "model").predict().columns.tolist() == [0, 1]


def test_float32_stays_float32():
    y, _ = loads(8)
    assert small(intervals=False).fit(y.astype(np.float32)).predict().dtype == np.float32


# --- files, copies, watching -------------------------------------------------------------------


def test_times_and_holidays_survive_a_file(tmp_path):
    y, _ = loads(8)
    model = small(intervals=False, steps_per_day=None, holidays={"2021-02-01": "a day off"})
    model.fit(frame(y, tz="Europe/Helsinki")).save(tmp_path / "m")
    pd.testing.assert_series_equal(sublearn.load(tmp_path / "m").predict(), model.predict())


def test_a_callback_sees_blocks_and_may_stop():
    y, X = loads()
    events = []
    small(lead_blocks=[2, 4, DAY], callback=events.append).fit(y, X)
    assert events[-1].n_done == events[-1].n_total == 3
    with pytest.warns(ConvergenceWarning, match="asked to stop"):
        stopped = small(lead_blocks=[2, 4, DAY], callback=lambda event: True).fit(y, X)
    assert np.isfinite(stopped.predict(X=X[:DAY])).all()


def test_a_stop_ends_the_trials_of_baselines():
    y, X = loads()
    tried = {"profile_weeks": "auto", "anchored": "auto", "intervals": True}
    with pytest.warns(ConvergenceWarning, match="asked to stop"):
        stopped = small(**tried, callback=lambda event: True).fit(y, X)
    (block,) = stopped._fitted.models[0]
    assert (len(block.members), block.weights.tolist(), block.has_intervals) == (1, [1.0], False)


def test_too_few_steps_are_a_warning():
    y, X = loads()
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        small(max_iter=1).fit(y, X)


def test_the_plot_shows_forecast_interval_and_truth(fitted):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    y, X = loads()
    axes = fitted.plot(X=X[-DAY:], truth=y[-DAY:]).ax_
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["90% interval", "forecast", "load"]
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), fitted.predict(X=X[-DAY:]))
    matplotlib.pyplot.close("all")


# --- refusals ----------------------------------------------------------------------------------

Y, X1 = loads(8)


@pytest.mark.parametrize(
    ("y", "X", "words"),
    [
        (Y[:60], None, "at least"),
        (np.full(400, np.nan), None, "must have numbers"),
        (np.array(["a", "b"]), None, "must hold numbers"),
        (np.append(Y, np.inf), None, "finite"),
        (np.zeros((4, 2, 2)), None, "shape"),
        (Y, X1[:-1], "rows"),
        (Y, np.where(X1 > 5, np.inf, X1), "finite or NaN"),
        (Y, np.full_like(X1, np.nan), "must have numbers in each column"),
        (pd.Series(Y), None, "DatetimeIndex"),
        (frame(Y).iloc[::-1], None, "rising"),
        (frame(Y), frame(X1[:, 0], start="2021-01-05"), "X must have the times of y, got 2021-01"),
        (frame(Y), frame(X1[:, 0], tz="UTC"), "must have times without a time zone, as y"),
        (frame(Y, start="2021-01-01 00:00:30"), None, "whole minutes, got 2021-01-01T00:00:30"),
        (frame(Y, start="2021-01-01 00:00:00.5"), None, "whole minutes"),
        (frame(Y).set_axis(frame(Y).index.where(Y[5] != Y)), None, "got NaT in row 5"),
        (frame(Y).sample(frac=1, random_state=0), None, "sort the rows by time"),
        (frame(Y, tz=Nameless()), None, "a time zone with a name"),
        (frame(Y).where(np.arange(len(Y)) % 50 == 0), None, "at least 8 steps whose lags"),
        (Y + 0j, None, "must hold numbers, got dtype complex128"),
        ([str(load) for load in Y], None, "must hold numbers, got dtype <U"),
        (frame(Y).index.to_numpy(), None, "times belong to a pandas DatetimeIndex"),
        (frame(Y).reset_index(), None, "got dtype datetime64.* in column 'index'; times"),
        (Y, ["warm"] * len(Y), "X must hold numbers"),
        (Y, pd.DataFrame({"t": X1[:, 0], "sky": "blue"}), "X must hold numbers.* column 'sky'"),
        (Y, 20.0, "X must be a column or a table"),
        (Y, X1[:, :, None], "X must be a column or a table"),
        (Y, np.where(np.arange(len(Y)) == 7, np.inf, X1[:, 0]), "NaN, got inf in row 7"),
    ],
)
def test_refuses_what_is_no_load_series(y, X, words):
    with pytest.raises(ValueError, match=words):
        small(steps_per_day=None if isinstance(y, pd.Series) else DAY).fit(y, X)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"lead_blocks": [4]}, "must end at horizon"),
        ({"lead_blocks": [DAY], "strategy": "recursive"}, "lead_blocks must be None for Load"),
        ({"solver": "interior-point"}, "solver must be 'interior_point', 'online' or 'online_k"),
        ({"holidays": ["soon"]}, "holidays must be"),
        ({"holidays": [20210101]}, "holidays must be"),
        ({"holidays": ["NaT"]}, "holidays must be"),
        ({"holidays": (day for day in ["2021-01-01"])}, "holidays must be"),
        ({"holidays": ["2021-01-01"]}, "without times"),
    ],
)
def test_refuses_parameters_by_name(parameters, words):
    with pytest.raises(ParameterError, match=words):
        small(**parameters).fit(Y)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: LoadFeatures(lags=[0]), "LoadFeatures.lags must be 'auto' or 'held_out' or a seq"),
        (lambda: LoadFeatures(lags="held-out"), "LoadFeatures.lags must be"),
        (lambda: LoadFeatures(lead_blocks=[]), "LoadFeatures.lead_blocks must be a sequence"),
        (lambda: LoadFeatures(steps_per_day=100), "must divide the 1440 minutes of a day, got 100"),
        (lambda: LocalKernels(relevance_rows=9), r"LocalKernels.relevance_rows must be .* got 9"),
        (lambda: TubeLoss.shifted(eta=0.1), r"TubeLoss.shifted.eta must be below epsilon=0.005"),
        (lambda: TubeLoss.shifted(-1.0), "TubeLoss.shifted.epsilon must be a non-negative number"),
        (lambda: TubeLoss.quantile(1.0), r"TubeLoss.quantile.share must be a number in \(0, 1\)"),
        (lambda: TubeLoss(0.2, 0.1), "TubeLoss.lower must not be above upper=0.1, got 0.2"),
    ],
)
def test_refuses_settings_when_they_are_made(make, words):
    with pytest.raises(ParameterError, match=words):
        make()


def test_settings_are_equal_whatever_their_lists_were_given_as():
    forms = ([1, 8], (1, 8), np.array([1, 8]), range(1, 9, 7))
    assert len({LoadFeatures(lags=form) for form in forms}) == 1


def former(**changes):
    """Parameters of a file that was written before there were settings."""
    stored = {
        "horizon": 24, "strategy": "direct", "lags": "auto", "lead_blocks": None,
        "profile_weeks": "auto", "anchored": "auto", "X_lags": "auto", "X_windows": "auto",
        "holidays": None, "steps_per_day": None, "n_clusters": None, "clustering": "nmf",
        "kernel_map": "nystroem", "n_components": 400, "relevance_rows": 700, "loss": "shifted",
        "epsilon": 0.005, "eta": 0.0, "quantile": 0.5, "C": None, "solver": "interior-point",
        "intervals": True, "tol": 0.001, "max_iter": 50, "n_jobs": None, "random_state": None,
        "verbose": 0,
    }  # fmt: skip
    return LoadForecaster(**LoadForecaster._current_params(stored | changes))


def test_parameters_of_earlier_files_are_translated():
    kernels = LocalKernels(relevance_rows=700)
    own = {"features": LoadFeatures(), "kernels": kernels, "loss": TubeLoss()}
    assert former().get_params() == LoadForecaster(24, **own).get_params()
    model = former(lags="held-out", lead_blocks=[2, 24], n_clusters=3, solver="online")
    assert model.features == LoadFeatures("held_out", [2, 24])
    assert (model.kernels, model.solver) == (replace(kernels, n_clusters=3), "online")
    assert former(epsilon=0.04, eta=0.01).loss == TubeLoss.shifted(0.04, 0.01)
    assert former(loss="quantile", quantile=0.9).loss == TubeLoss.quantile(0.9)


def test_refuses_questions_that_do_not_fit(fitted):
    with pytest.raises(ValueError, match="horizon must be"):
        fitted.predict(DAY + 1, X1[: DAY + 1])
    with pytest.raises(ValueError, match="X must be as in fit"):
        fitted.predict()
    with pytest.raises(ValueError, match="X must have 8 rows"):
        fitted.predict(X=X1[:3])
    with pytest.raises(ValueError, match=r"X must have as many columns as in fit \(1\), got 2"):
        fitted.predict(X=np.zeros((DAY, 2)))
    with pytest.raises(ValueError, match="y_new must hold numbers"):
        fitted.update(["a"])
    with pytest.raises(ValueError, match="X_new must have 4 rows"):
        fitted.update(Y[:4], X1[:3])
    with pytest.raises(ValueError, match="y must have no times as the fitted series"):
        fitted.predict(X=np.zeros((len(Y) + DAY, 1)), y=frame(Y))
    with pytest.raises(ValueError, match="1 series"):
        fitted.predict(X=X1[:DAY], y=np.zeros((300, 2)))
    with pytest.raises(ValueError, match="X_new must be as in fit"):
        copy.deepcopy(fitted).update(Y[:4])
    with pytest.raises(ValueError, match="coverage"):
        fitted.predict_interval(X=X1[:DAY], coverage=1.0)
    with pytest.raises(ValueError, match="intervals must be True"):
        small(intervals=False).fit(Y).predict_interval()
    with pytest.raises(ValueError, match=r"must hold the last 66 loads .* got 16 steps"):
        fitted.predict(X=X1[: 3 * DAY], y=Y[: 2 * DAY])
    gaps = np.where(np.arange(len(Y)) < len(Y) - 5, np.nan, Y)
    with pytest.raises(ValueError, match="gaps that no load"):
        fitted.predict(X=np.zeros((len(Y) + DAY, 1)), y=gaps)


def test_refuses_times_of_another_kind():
    """As UTC a wall time would be off by hours, and nobody would notice."""
    plain, zoned = frame(Y), frame(Y, tz="Europe/Berlin")
    models = [small(intervals=False, steps_per_day=None).fit(y[:-DAY]) for y in (plain, zoned)]
    with pytest.raises(ValueError, match=r"y_new must have times with a time zone \(Europe/Berlin"):
        models[1].update(plain[-DAY:])
    with pytest.raises(ValueError, match="y must have times with a time zone"):
        models[1].predict(y=plain)
    with pytest.raises(ValueError, match="y_new must have times without a time zone"):
        models[0].update(zoned[-DAY:])
    with pytest.raises(ValueError, match="y must have a DatetimeIndex as the fitted series"):
        models[0].predict(y=Y)
    with pytest.raises(ValueError, match="y must be on the steps of the known series"):
        models[0].predict(y=plain.shift(freq="1h"))


def test_another_history_is_read_on_the_clock_of_the_fitted_one():
    """Another zone, another first hour: the same moments give the same forecasts and intervals."""
    y = frame(Y, tz="Europe/Berlin")
    model = small(steps_per_day=None, n_clusters=1).fit(y)
    elsewhere = y.tz_convert("America/New_York").iloc[3:]
    pd.testing.assert_series_equal(model.predict(y=elsewhere), model.predict())
    for found, asked in zip(
        model.predict_interval(y=elsewhere), model.predict_interval(), strict=True
    ):
        pd.testing.assert_series_equal(found, asked)


def test_a_zone_without_a_name_survives_a_file(tmp_path):
    zone = datetime.timezone(datetime.timedelta(hours=-3, minutes=-30))
    y = frame(Y, tz=zone)
    model = small(steps_per_day=None, intervals=False).fit(y)
    model.save(tmp_path / "model")
    forecast = sublearn.load(tmp_path / "model").predict()
    assert forecast.index[0] == y.index[-1] + pd.Timedelta("3h")
    assert forecast.index[0].utcoffset() == zone.utcoffset(None)


@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_the_unit_of_loads_does_not_matter(unit):
    model = small(intervals=False, n_clusters=1)
    expected = model.fit(Y).predict()
    np.testing.assert_allclose(model.fit(unit * Y).predict(), unit * expected, rtol=1e-4)


def test_polars_columns_are_taken_and_keep_their_names():
    polars = pytest.importorskip("polars")
    X = polars.DataFrame({"temperature": X1[:, 0], "wind": 0.0 * Y})
    model = small(intervals=False, n_clusters=1).fit(polars.Series(Y), X)
    assert model.feature_names_in_.tolist() == ["temperature", "wind"]
    with pytest.raises(ValueError, match="in their order, temperature, wind, got wind, temp"):
        model.predict(X=X[:DAY].select("wind", "temperature"))
    dated = polars.DataFrame({"time": frame(Y).index.to_numpy(), "load": Y})
    with pytest.raises(ValueError, match=r"must hold numbers, got dtype datetime64.* 'time'"):
        model.fit(dated)


def test_holidays_are_dates_in_any_form():
    day = datetime.date(2021, 1, 20)
    forms = [
        [day], {day: "a feast"}, ["2021-01-20"], pd.DatetimeIndex([day]), np.array([day], "M8[D]"),
        [pd.Timestamp("2021-01-20 00:00", tz="Europe/Berlin")],  # the day before, in UTC
    ]  # fmt: skip
    for form in forms:
        assert Dates().accepts(form)
        assert Dates.days(form) == [(day - datetime.date(1970, 1, 1)).days]


def test_the_plot_refuses_what_it_cannot_draw(fitted):
    pytest.importorskip("matplotlib").use("Agg")
    with pytest.raises(ValueError, match=r"series must be an integer in \[0, 0\], got 1"):
        fitted.plot(X=X1[:DAY], series=1)
    with pytest.raises(ValueError, match="truth must have 8 rows, got 3"):
        fitted.plot(X=X1[:DAY], truth=Y[:3])


def test_refuses_loads_that_are_known_already():
    model = small(intervals=False, steps_per_day=None).fit(frame(Y))
    with pytest.raises(ValueError, match="must follow"):
        model.update(frame(Y).iloc[-4:])


def test_new_hours_come_one_at_a_time_and_on_the_grid():
    y, X = frame(Y), frame(X1[:, 0]).to_frame("temperature")
    model = small(intervals=False, steps_per_day=None).fit(y[: -2 * DAY], X[: -2 * DAY])
    for t in range(-2 * DAY, -DAY):
        model.update(y[t : t + 1], X[t : t + 1])
    assert model.predict(X=X[-DAY:]).index.equals(y.index[-DAY:])
    with pytest.raises(ValueError, match="X must have the times of y, got"):
        model.predict(X=X[-2 * DAY : -DAY])
    last = y[-DAY:]
    with pytest.raises(ValueError, match="on the steps of the known series"):
        model.update(last.shift(freq="1h"), X[-DAY:])
    with pytest.raises(ValueError, match="8 steps a day as steps_per_day says"):
        model.update(last.set_axis(last.index[0] + pd.timedelta_range(0, periods=DAY, freq="1h")))


def test_columns_of_a_table_keep_their_names_and_order(tmp_path):
    y, X = frame(Y), frame(X1[:, 0]).to_frame("temperature").assign(wind=0.0)
    model = small(intervals=False, steps_per_day=None).fit(y[:-DAY], X[:-DAY])
    model.save(tmp_path / "model")
    for own in (model, sublearn.load(tmp_path / "model")):
        with pytest.raises(ValueError, match="in their order, temperature, wind, got wind, temp"):
            own.predict(X=X[-DAY:][["wind", "temperature"]])
        assert own.feature_names_in_.tolist() == ["temperature", "wind"]
    assert np.isfinite(model.predict(X=X[-DAY:].to_numpy())).all()
    assert not hasattr(model.fit(y, X.to_numpy()), "feature_names_in_")
