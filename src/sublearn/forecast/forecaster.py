"""Short-term load forecasts as an estimator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from sublearn.errors import ParameterError
from sublearn.execution import Hints, map_blocks
from sublearn.forecast.block_model import BlockModel, BlockReport, BlockTask, Rows
from sublearn.forecast.clock import Clock
from sublearn.forecast.embedding import Calendar, Embedding
from sublearn.forecast.horizon import History, forecast_history
from sublearn.forecast.plan import (
    blocks_of,
    calendar_of,
    embedding_of,
    profile_weeks_of,
    refuse_empty,
    refuse_short,
    settings_of,
)
from sublearn.forecast.progress import Progress
from sublearn.forecast.rules import Dates, Integers
from sublearn.forecast.series import LoadSeries, Shape, check_exogenous, check_series
from sublearn.io.models import SavedModel
from sublearn.trace import Callback, Solution, Status, Trace, watch
from sublearn.validation import (
    Boolean,
    CallableOrNone,
    Either,
    Interval,
    JobCount,
    NonNegative,
    OneOf,
    OrNone,
    Positive,
    RandomState,
    Rule,
    Verbosity,
    as_n_threads,
    as_seed,
    check_params,
)

__all__ = ["LoadForecaster"]

_HURRIED: dict[str, Any] = {
    "relevance_rows": 100,
    "n_clusters": 1,
    "n_components": 50,
    "max_iter": 5,
}


class LoadForecaster(SavedModel, BaseEstimator):
    r"""Forecasts of electric load, hours to weeks ahead, by local kernel models.

    A row of past loads, exogenous columns and calendar (a time-delay embedding) is mapped to the
    load of its hour. Rows are clustered by kernel k-means, every cluster has a kernel regression
    of its own, and a forecast is the sum of theirs weighted by the probability of each cluster.
    A regression minimises

    .. math::
        \tfrac12 \|w\|^2 + C \sum_i \ell(y_i - \langle w, \phi(x_i) \rangle),
        \qquad
        \ell(r) = \max(0,\ r - (\epsilon - \eta),\ -r - (\epsilon + \eta))

    to a relative duality gap of `tol`. With :math:`\eta > 0` a forecast that is too low costs
    more than one that is too high, and the share of under-forecasts falls.

    Parameters
    ----------
    horizon : int, default=24
        Longest lead, in steps of the series.
    strategy : {"direct", "recursive"}, default="direct"
        "direct" has a model for each block of leads; "recursive" has one for the next step and
        feeds its forecasts back to it.
    lags : "auto", "held-out" or sequence of int, default="auto"
        Steps back whose loads are columns. "auto" takes the last three hours, the same hour of the
        last seven days and its neighbours a week before; "held-out" chooses between that, days
        alone and two weeks by the error on the last fifth of the first series. Lags below a day
        count back from the last load known, others from the hour that is forecast, and by whole
        days more until they are known.
    lead_blocks : sequence of int or None, default=None
        Last lead of each block for "direct"; None makes blocks that grow with the lead.
    profile_weeks : "auto" or int, default="auto"
        Above 0, loads are taken as deviations from the mean of so many past weeks at the same
        time; "auto" chooses between 0, 1 and 4 for each block by the error on the last fifth.
    X_lags : "auto" or sequence of int, default="auto"
        Steps back at which exogenous columns are taken, 0 for the row's own time.
    X_windows : "auto" or sequence of int, default="auto"
        Lengths of trailing means of exogenous columns; "auto" is one day and two.
    holidays : sequence of dates, mapping with dates as keys, or None, default=None
        Days unlike others, as `datetime.date`, `datetime64` or "2008-12-25". Needs times.
    steps_per_day : int or None, default=None
        Steps of a series without times; None is 24. A series with times says it itself.
    n_clusters : int or None, default=None
        Number of clusters (in the paper: k); None is one for 4,000 rows, up to eight.
    clustering : {"nmf", "kmeans"}, default="nmf"
        Kernel k-means through a non-negative factorisation, or the plain one.
    kernel_map : {"nystroem", "fourier"}, default="nystroem"
        Landmarks, or random features.
    n_components : int, default=400
        Features of each local model.
    relevance_rows : int, default=700
        Random rows from which the scales of columns are learned, at a cost of their cube.
    loss : {"shifted", "quantile"}, default="shifted"
        The shifted epsilon-insensitive loss, or the quantile (pinball) loss.
    epsilon : float, default=0.005
        Half the width of the tube without a loss, as a share of the mean load.
    eta : float, default=0.0
        Shift of the tube, as a share of the mean load, below `epsilon`.
    quantile : float, default=0.5
        For loss="quantile": the share of hours whose load should be below the forecast.
    C : float or None, default=None
        Weight of the loss (in the paper: 1 / (lambda N)); None takes it from the noise that the
        relevance of columns is learned with.
    solver : {"interior-point", "online"}, default="interior-point"
        "online" is algorithm 8 of the paper: stochastic steps, without a useful certificate.
    intervals : bool, default=True
        Keep residuals of a fit to the first nine tenths for `predict_interval`. Fitting twice
        costs about a third more.
    tol : float, default=1e-3
        Relative duality gap at which a regression is solved.
    max_iter : int, default=50
        Steps of a regression's solver.
    n_jobs : int or None, default=None
        Threads over series and blocks of leads; the model does not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Seed of landmarks, clusters and samples.
    verbose : int, default=0
        1 draws a progress bar.
    callback : callable or None, default=None
        Called with an event ten times a second; a true return value stops the fit: solvers end at
        their next step, and blocks not begun get a small model.

    Attributes
    ----------
    blocks_ : list of int
        Last lead of each block.
    lags_ : list of int
        Lags in use.
    certificate_ : float
        Sum of the duality gaps over the sum of objectives.
    n_iter_ : int
        The most steps that a regression took.
    trace_ : Trace
        A row for each series and block: seconds, objective, certificate, clusters, rows.
    n_series_in_, n_features_in_ : int
        Columns of y, and of X.

    References
    ----------
    Tang, "Big Data Optimization in Machine Learning", Lehigh University 2016, section 2.4.

    Examples
    --------
    >>> import numpy as np
    >>> from sublearn.forecast import LoadForecaster
    >>> hours = np.arange(24 * 7 * 8)
    >>> load = 100 + 20 * np.sin(2 * np.pi * hours / 24) + 5 * (hours // 24 % 7 < 5)
    >>> model = LoadForecaster(24, lead_blocks=[24], relevance_rows=150, random_state=0).fit(load)
    >>> bool(np.abs(model.predict() - load[-168:-144]).max() < 1.0)
    True
    """

    _rules: Mapping[str, Rule] = {
        "horizon": Interval(int, 1, 24 * 366),
        "strategy": OneOf("direct", "recursive"),
        "lags": Either(OneOf("auto", "held-out"), Integers(1)),
        "lead_blocks": OrNone(Integers(1)),
        "profile_weeks": Either(OneOf("auto"), Interval(int, 0, 52)),
        "X_lags": Either(OneOf("auto"), Integers(0)),
        "X_windows": Either(OneOf("auto"), Integers(1, may_be_empty=True)),
        "holidays": OrNone(Dates()),
        "steps_per_day": OrNone(Interval(int, 1, 1440)),
        "n_clusters": OrNone(Positive(int)),
        "clustering": OneOf("nmf", "kmeans"),
        "kernel_map": OneOf("nystroem", "fourier"),
        "n_components": Positive(int),
        "relevance_rows": Interval(int, 10, 5000),
        "loss": OneOf("shifted", "quantile"),
        "epsilon": NonNegative(float),
        "eta": NonNegative(float),
        "quantile": Interval(float, 0, 1, "neither"),
        "C": OrNone(Positive(float)),
        "solver": OneOf("interior-point", "online"),
        "intervals": Boolean(),
        "tol": Positive(float),
        "max_iter": Positive(int),
        "n_jobs": JobCount(),
        "random_state": RandomState(),
        "verbose": Verbosity(),
        "callback": CallableOrNone(),
    }

    def __init__(
        self,
        horizon: int = 24,
        *,
        strategy: str = "direct",
        lags: str | Sequence[int] = "auto",
        lead_blocks: Sequence[int] | None = None,
        profile_weeks: str | int = "auto",
        X_lags: str | Sequence[int] = "auto",
        X_windows: str | Sequence[int] = "auto",
        holidays: Iterable[Any] | None = None,
        steps_per_day: int | None = None,
        n_clusters: int | None = None,
        clustering: str = "nmf",
        kernel_map: str = "nystroem",
        n_components: int = 400,
        relevance_rows: int = 700,
        loss: str = "shifted",
        epsilon: float = 0.005,
        eta: float = 0.0,
        quantile: float = 0.5,
        C: float | None = None,
        solver: str = "interior-point",
        intervals: bool = True,
        tol: float = 1e-3,
        max_iter: int = 50,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ):
        self.horizon = horizon
        self.strategy = strategy
        self.lags = lags
        self.lead_blocks = lead_blocks
        self.profile_weeks = profile_weeks
        self.X_lags = X_lags
        self.X_windows = X_windows
        self.holidays = holidays
        self.steps_per_day = steps_per_day
        self.n_clusters = n_clusters
        self.clustering = clustering
        self.kernel_map = kernel_map
        self.n_components = n_components
        self.relevance_rows = relevance_rows
        self.loss = loss
        self.epsilon = epsilon
        self.eta = eta
        self.quantile = quantile
        self.C = C
        self.solver = solver
        self.intervals = intervals
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    # --- fitting -------------------------------------------------------------------------------

    def fit(self, y: Any, X: Any = None) -> LoadForecaster:
        """Learn from a load series.

        Parameters
        ----------
        y : array-like of shape (n_steps,) or (n_steps, n_series)
            Loads, oldest first. NaN, and times missing from a pandas index, are gaps: rows that
            need them are left out.
        X : array-like of shape (n_steps, n_columns), optional
            What is known of each step besides, such as temperature. Of a forecast's own steps it
            must be given to `predict` as well. All series share it.

        Returns
        -------
        LoadForecaster
            Itself, fitted.
        """
        check_params(self)
        name = type(self).__name__
        if self.loss == "shifted" and not self.eta < max(self.epsilon, 1e-300) and self.eta > 0:
            raise ParameterError(
                f"{name}.eta must be below epsilon={self.epsilon:g}, got {self.eta:g}"
            )
        series = check_series(y, self.steps_per_day, name)
        X_grid = None if X is None else self._exogenous_grid(X, series, 0, None)
        seed = as_seed(self.random_state)
        calendar = calendar_of(self, series)
        refuse_empty(self, series)
        embedding = embedding_of(self, series, X_grid, calendar, seed)
        blocks = blocks_of(self, series.clock)
        refuse_short(self, series, embedding, blocks)
        found = self._fit_blocks(series, X_grid, embedding, calendar, blocks, seed)
        self._keep(series, X_grid, embedding, calendar, blocks, *found)
        return self

    def _fit_blocks(
        self,
        series: LoadSeries,
        X: np.ndarray | None,
        embedding: Embedding,
        calendar: Calendar,
        blocks: list[int],
        seed: int,
    ) -> tuple[list[list[BlockModel]], list[BlockReport], bool]:
        progress = Progress()
        settings = settings_of(self)
        tasks = [
            BlockTask(
                series.values[:, s], X, embedding, calendar, first, last, settings,
                profile_weeks_of(self, last, series.clock), self.intervals, (seed, s, b),
            )
            for s in range(series.values.shape[1])
            for b, (first, last) in enumerate(_ranges(blocks))
        ]  # fmt: skip

        def do(task: BlockTask) -> tuple[BlockModel, BlockReport]:
            if progress.stop_requested:
                hurried = replace(task.settings, **_HURRIED)
                task = replace(task, settings=hurried, has_intervals=False)
            return count(BlockModel.fit(task, progress.should_stop))

        def count(found: tuple[BlockModel, BlockReport]) -> tuple[BlockModel, BlockReport]:
            model, report = found
            progress.finish(report, sum(len(w) for w in model.models.weights))
            return found

        hints = Hints(arrived=count, asks_to_stop=progress.should_stop)
        # Threads of BLAS would change the rounding, hence the model, with their number.
        with threadpool_limits(1, user_api="blas"):
            done = watch(
                lambda: map_blocks(do, tasks, as_n_threads(self.n_jobs), hints=hints),
                progress, n_total=len(tasks), callback=self.callback, verbose=int(self.verbose),
                title="load forecast",
            )  # fmt: skip
        n = len(blocks)
        models = [[model for model, _ in done[i : i + n]] for i in range(0, len(done), n)]
        return models, [report for _, report in done], progress.stop_requested

    def _keep(
        self,
        series: LoadSeries,
        X: np.ndarray | None,
        embedding: Embedding,
        calendar: Calendar,
        blocks: list[int],
        models: list[list[BlockModel]],
        reports: list[BlockReport],
        was_stopped: bool,
    ) -> None:
        objective = sum(report.objective for report in reports)
        gap = sum(report.gap for report in reports)
        certificate = gap / objective if objective > 0 else 0.0
        is_solved = certificate <= self.tol and not was_stopped
        failure = Status.STOPPED if was_stopped else Status.MAX_ITER
        solution = Solution(
            status=Status.CONVERGED if is_solved else failure,
            objective=objective,
            certificate=certificate,
            n_iter=max(report.n_iter for report in reports),
            trace=_trace(reports, blocks),
        )
        if self.solver != "online" or was_stopped:  # algorithm 8 has no certificate to miss
            solution.warn_unless_converged(self, self.tol)
        self._models = models
        self._embedding, self._calendar_of, self._shape = embedding, calendar, series.shape
        self._history = self._tail(History(series.values, X, series.clock, len(series.values)))
        self.blocks_ = blocks
        self.lags_ = list(embedding.lags)
        self.n_series_in_ = series.values.shape[1]
        self.n_features_in_ = 0 if X is None else X.shape[1]
        self.objective_ = solution.objective
        self.certificate_ = solution.certificate
        self.n_iter_ = solution.n_iter
        self.trace_ = solution.trace

    # --- forecasting ---------------------------------------------------------------------------

    def predict(self, horizon: int | None = None, X: Any = None, *, y: Any = None) -> Any:
        """Forecast the steps that follow the series.

        Parameters
        ----------
        horizon : int, optional
            Number of steps, up to the fitted `horizon`, which is the default.
        X : array-like of shape (horizon, n_columns), optional
            Exogenous columns of these steps; needed where the model was fitted with X. With `y`,
            the rows of y come first.
        y : array-like, optional
            Another history to forecast from, of the same series, instead of the fitted one.

        Returns
        -------
        array of shape (horizon,) or (horizon, n_series), or Series or DataFrame
            As y was when the model was fitted, with the times of the forecast.
        """
        history, ahead = self._ask(horizon, X, y)
        values = self._forecast(history, ahead)
        return self._shape.forecast(values, history.clock, history.end)

    def predict_interval(
        self, horizon: int | None = None, X: Any = None, *, coverage: float = 0.9, y: Any = None
    ) -> tuple[Any, Any]:
        """Lower and upper ends that hold the truth with probability `coverage`.

        The forecast plus quantiles of residuals on rows that a first fit had not seen (split
        conformal), of the same block of leads and, where there are enough, the same time of day.

        Parameters
        ----------
        horizon, X, y
            As for `predict`.
        coverage : float, default=0.9
            Share of hours inside, above 0 and below 1.

        Returns
        -------
        lower, upper
            Each like the result of `predict`.
        """
        check_is_fitted(self)
        if not Interval(float, 0, 1, "neither").accepts(coverage):
            raise ValueError(f"coverage must be a number in (0, 1), got {coverage!r}")
        if not all(len(model.residuals) for own in self._models for model in own):
            raise ValueError(
                f"{type(self).__name__}.intervals must be True in fit for predict_interval"
            )
        history, ahead = self._ask(horizon, X, y)
        values = self._forecast(history, ahead)
        lower, upper = values.copy(), values.copy()
        for s, own in enumerate(self._models):
            for h in range(len(values)):
                model = self._model_of_lead(own, h + 1)
                phase = (history.end + h) % history.clock.steps_per_day
                below, above = model.interval(phase, coverage)
                # A forecast fed back to itself h times errs as a sum of h steps, if not alike.
                widening = np.sqrt(h + 1.0) if self.strategy == "recursive" else 1.0
                lower[h, s] += widening * below
                upper[h, s] += widening * above
        shaped = (self._shape.forecast(v, history.clock, history.end) for v in (lower, upper))
        low, high = shaped
        return low, high

    def update(self, y_new: Any, X_new: Any = None) -> LoadForecaster:
        """Go on with new loads, without fitting anew.

        The history grows, and every local model whose cluster new rows belong to takes one pass of
        algorithm 8 over them, from the step size it had reached. Scales, clusters and features
        stay.

        Parameters
        ----------
        y_new : array-like
            Loads that follow the ones known, of the same series; with a pandas index, times may be
            missing but not overlap.
        X_new : array-like, optional
            Their exogenous columns.

        Returns
        -------
        LoadForecaster
            Itself.
        """
        check_is_fitted(self)
        history, n_new = self._extended(y_new, X_new)
        positions = np.arange(history.end - n_new, history.end) - history.first
        settings = settings_of(self)
        with threadpool_limits(1, user_api="blas"):
            for s, own in enumerate(self._models):
                y = history.values[:, s]
                known = positions[np.isfinite(y[positions])]
                for b, model in enumerate(own):
                    at = known + history.first
                    leads = model.first + at % (model.last - model.first + 1)
                    rows = history.rows(
                        s, self._embedding, self._calendar_of, at, leads, model.profile_weeks
                    )
                    usable = rows.usable
                    if usable.any():
                        kept = Rows(rows.design[usable], rows.profile[usable])
                        own[b] = model.updated(kept, y[known[usable]], settings)
        self._history = self._tail(history)
        return self

    def plot(self, *args: Any, **kwargs: Any) -> Any:
        """Forecast, interval and truth; see `sublearn.forecast.plot_forecast`."""
        from sublearn.forecast.plot import plot_forecast

        return plot_forecast(self, *args, **kwargs)

    def _forecast(self, history: History, ahead: int) -> np.ndarray:
        with threadpool_limits(1, user_api="blas"):
            return forecast_history(
                history, self._models, self._embedding, self._calendar_of, ahead,
                is_recursive=self.strategy == "recursive",
            )  # fmt: skip

    def _model_of_lead(self, own: list[BlockModel], lead: int) -> BlockModel:
        return next((model for model in own if lead <= model.last), own[-1])

    # --- what comes in -------------------------------------------------------------------------

    def _ask(self, horizon: int | None, X: Any, y: Any) -> tuple[History, int]:
        check_is_fitted(self)
        ahead = int(self.horizon) if horizon is None else horizon
        if not Interval(int, 1, int(self.horizon)).accepts(ahead):
            raise ValueError(
                f"horizon must be an integer in [1, {self.horizon}] as fitted, got {horizon!r}"
            )
        history = self._history if y is None else self._other_history(y)
        if (X is None) != (self.n_features_in_ == 0):
            has = "with" if self.n_features_in_ else "without"
            raise ValueError(f"X must be as in fit, which was {has} X")
        if X is None:
            return history, ahead
        if y is None:
            future = check_exogenous(X, ahead, self.n_features_in_, "X")
            return history.with_future(future), ahead
        series = check_series(y, self._history.clock.steps_per_day, type(self).__name__)
        grid = self._exogenous_grid(X, series, ahead, self.n_features_in_)
        return replace(history, X=grid), ahead

    def _other_history(self, y: Any) -> History:
        steps = self._history.clock.steps_per_day
        series = check_series(y, steps, type(self).__name__)
        if series.values.shape[1] != self.n_series_in_:
            raise ValueError(
                f"y must have {self.n_series_in_} series as fitted, got {series.values.shape[1]}"
            )
        if series.clock.has_dates != self._history.clock.has_dates:
            raise ValueError("y must have times where the fitted series has, and only there")
        if not series.clock.has_dates:
            # Positions count from the fitted series' first one, whose weekday is that of fit.
            return History(series.values, None, series.clock, len(series.values))
        clock = replace(self._history.clock, start=series.clock.start, zone=series.clock.zone)
        return History(series.values, None, clock, len(series.values))

    def _extended(self, y_new: Any, X_new: Any) -> tuple[History, int]:
        history, name = self._history, type(self).__name__
        if len(np.atleast_1d(np.asarray(y_new))) == 0:
            return history, 0
        series = check_series(y_new, None if hasattr(y_new, "index") else 24, name)
        if series.values.shape[1] != self.n_series_in_:
            raise ValueError(
                f"y_new must have {self.n_series_in_} series as fitted, got "
                f"{series.values.shape[1]}"
            )
        skipped = 0
        if series.clock.has_dates and history.clock.has_dates:
            skipped = history.clock.position(series.clock.start) - history.end
            if skipped < 0:
                raise ValueError(f"y_new must follow the known series, got {-skipped} known steps")
        if (X_new is None) != (self.n_features_in_ == 0):
            has = "with" if self.n_features_in_ else "without"
            raise ValueError(f"X_new must be as in fit, which was {has} X")
        X = None
        if X_new is not None:
            X = self._exogenous_grid(X_new, series, 0, self.n_features_in_)
        return history.followed_by(series.values, X, skipped), len(series.values)

    def _exogenous_grid(
        self, X: Any, series: LoadSeries, ahead: int, n_columns: int | None
    ) -> np.ndarray:
        """X on the series' grid and `ahead` steps beyond; gaps of the grid by straight lines."""
        n_given = len(series.rows)
        given = check_exogenous(X, n_given + ahead, n_columns, f"{type(self).__name__}: X")
        n_grid = len(series.values)
        at = np.concatenate([series.rows, np.arange(n_grid, n_grid + ahead)])
        everywhere = np.arange(n_grid + ahead)
        return np.stack([np.interp(everywhere, at, column) for column in given.T], axis=1)

    def _tail(self, history: History) -> History:
        day = history.clock.steps_per_day
        n_profile = max(model.profile_weeks for own in self._models for model in own)
        # Weeks of the profile, one to fill gaps from, one for new loads.
        weeks = n_profile + 2
        return history.tail(self._embedding.reach(int(self.horizon)) + weeks * 7 * day)

    # --- saving --------------------------------------------------------------------------------

    def _stored_params(self) -> dict[str, Any]:
        params = super()._stored_params()
        if self.holidays is not None:
            days = np.array(Dates.days(self.holidays)).astype("datetime64[D]")
            params["holidays"] = [str(day) for day in days]
        for name in ("lags", "lead_blocks", "X_lags", "X_windows"):
            if params[name] is not None and not isinstance(params[name], str):
                params[name] = [int(value) for value in params[name]]
        return params

    def _to_bundle(self) -> dict[str, Any]:
        names = (
            "blocks_", "lags_", "n_series_in_", "n_features_in_", "objective_", "certificate_",
            "n_iter_",
        )  # fmt: skip
        state: dict[str, Any] = {name: getattr(self, name) for name in names}
        state["trace_"] = {name: self.trace_[name].tolist() for name in self.trace_.columns}
        state["embedding"] = self._embedding.to_state()
        calendar = self._calendar_of
        state["calendar"] = {
            "has_week": calendar.has_week, "has_year": calendar.has_year,
            "holidays": list(calendar.holidays), "clock": calendar.clock.to_state(),
        }  # fmt: skip
        state["shape"] = self._shape.to_state()
        state |= {f"history.{k}": v for k, v in self._history.to_state().items()}
        for s, own in enumerate(self._models):
            for b, model in enumerate(own):
                state |= {f"block{s}.{b}/{k}": v for k, v in model.to_state().items()}
        return state

    def _restore(self, state: dict[str, Any]) -> None:
        n_series, n_blocks = state["n_series_in_"], len(state["blocks_"])
        self._models = [
            [BlockModel.from_state(_taken(state, f"block{s}.{b}/")) for b in range(n_blocks)]
            for s in range(n_series)
        ]
        self._history = History.from_state(_taken(state, "history."))
        calendar = state.pop("calendar")
        clock = Clock(**calendar.pop("clock"))
        holidays = tuple(calendar.pop("holidays"))
        self._calendar_of = Calendar(clock, holidays=holidays, **calendar)
        self._embedding = Embedding.from_state(state.pop("embedding"))
        self._shape = Shape(**state.pop("shape"))
        self.trace_ = Trace(state.pop("trace_"))
        super()._restore(state)


def _ranges(blocks: list[int]) -> list[tuple[int, int]]:
    """First and last lead of each block."""
    return [(before + 1, last) for before, last in zip([0, *blocks], blocks, strict=False)]


def _taken(state: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Values under a prefix, taken out of the state."""
    names = [name for name in state if name.startswith(prefix)]
    return {name.removeprefix(prefix): state.pop(name) for name in names}


def _trace(reports: list[BlockReport], blocks: list[int]) -> Trace:
    objectives = np.array([report.objective for report in reports])
    gaps = np.array([report.gap for report in reports])
    return Trace(
        {
            "seconds": [report.seconds for report in reports],
            "series": [i // len(blocks) for i in range(len(reports))],
            "last_lead": [blocks[i % len(blocks)] for i in range(len(reports))],
            "objective": objectives,
            "certificate": gaps / np.maximum(objectives, 1e-300),
            "n_clusters": [report.n_clusters for report in reports],
            "nnz_dual": [report.n_support for report in reports],
            "work": [report.n_rows for report in reports],
        }
    )
