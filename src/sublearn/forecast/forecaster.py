"""Short-term load forecasts as an estimator."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from sublearn.errors import ParameterError
from sublearn.execution import all_or_nothing
from sublearn.fitting.model import FittedModel
from sublearn.forecast.block_fits import fit_blocks
from sublearn.forecast.horizon import Fitted, History
from sublearn.forecast.incoming import asked, exogenous_grid, extended
from sublearn.forecast.local_models import LocalSettings
from sublearn.forecast.plan import Choices, Plan
from sublearn.forecast.rules import Dates, Integers
from sublearn.forecast.series import check_series, column_names
from sublearn.forecast.stored import FITTED_FIELDS, restore_fitted, state_of_fitted
from sublearn.forecast.tube_loss import TubeLoss
from sublearn.trace import Callback, Status
from sublearn.validation import (
    RUN_RULES,
    Boolean,
    Either,
    Interval,
    NonNegative,
    OneOf,
    OrNone,
    Positive,
    Rule,
    as_n_threads,
    as_seed,
    check_argument,
    check_params,
)

__all__ = ["LoadForecaster"]


class LoadForecaster(FittedModel, BaseEstimator):
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
        time, each week counting half as much as the next; "auto" tries 0, 1 and 4.
    anchored : "auto" or bool, default="auto"
        Whether loads are measured from the last hour known, so that a row holds what was gained
        or lost since. Of all combinations that "auto" leaves open the one of least error on the
        last fifth is taken, block by block; on a series of up to 10,000 steps the mean of the two
        best, if the second comes near.
    X_lags : "auto" or sequence of int, default="auto"
        Steps back at which exogenous columns are taken, 0 for the row's own time.
    X_windows : "auto" or sequence of int, default="auto"
        Lengths of trailing means of exogenous columns; "auto" is one day and two.
    holidays : collection of dates, mapping with dates as keys, or None, default=None
        Days unlike others, as `datetime.date`, `datetime64` or "2008-12-25". Needs times.
    steps_per_day : int or None, default=None
        Steps of a series without times, a divisor of 1440; None is 24. A series with times says it
        itself.
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
        For loss="quantile": the share of hours whose load should be below the forecast, which is
        levelled on held-out rows as intervals are.
    C : float or None, default=None
        Weight of the loss (in the paper: 1 / (lambda N)); None takes it from the noise that the
        relevance of columns is learned with.
    solver : {"interior-point", "online"}, default="interior-point"
        "online" is algorithm 8 of the paper: stochastic steps, without a useful certificate.
    intervals : bool, default=True
        Keep residuals for `predict_interval`, of a fit without the last tenth of the series (of a
        short one the last four weeks, up to a quarter). Fitting twice costs about a third more.
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
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if X was a data frame with string column names.
    time_zone_ : str or None
        Name of the time zone of the series.

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

    _rules: ClassVar[Mapping[str, Rule]] = {
        "horizon": Interval(int, 1, 24 * 366),
        "strategy": OneOf("direct", "recursive"),
        "lags": Either(OneOf("auto", "held-out"), Integers(1)),
        "lead_blocks": OrNone(Integers(1)),
        "profile_weeks": Either(OneOf("auto"), Interval(int, 0, 52)),
        "anchored": Either(OneOf("auto"), Boolean()),
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
        **RUN_RULES,
    }

    def __init__(
        self,
        horizon: int = 24,
        *,
        strategy: str = "direct",
        lags: str | Sequence[int] = "auto",
        lead_blocks: Sequence[int] | None = None,
        profile_weeks: str | int = "auto",
        anchored: str | bool = "auto",
        X_lags: str | Sequence[int] = "auto",
        X_windows: str | Sequence[int] = "auto",
        holidays: Collection[Any] | None = None,
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
        self.anchored = anchored
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

    @all_or_nothing
    def fit(self, y: Any, X: Any = None) -> LoadForecaster:
        """Learn from a load series.

        Parameters
        ----------
        y : array-like of shape (n_steps,) or (n_steps, n_series)
            Loads, oldest first. NaN, and times missing from a pandas index, are gaps: rows that
            need them are left out.
        X : array-like of shape (n_steps, n_columns), optional
            What is known of each step besides, such as temperature. Of a forecast's own steps it
            must be given to `predict` as well. All series share it. With a pandas index of times,
            these must be the times of y.

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
        if self.steps_per_day is not None and 1440 % self.steps_per_day:
            raise ParameterError(
                f"{name}.steps_per_day must divide the 1440 minutes of a day, got "
                f"{self.steps_per_day}"
            )
        series = check_series(y, self.steps_per_day, f"{name}: y")
        X_grid = None if X is None else exogenous_grid(X, series, f"{name}: X")
        plan = Plan.of(self._choices(as_seed(self.random_state)), series, X_grid)
        models, solution = fit_blocks(plan, as_n_threads(self.n_jobs), self._watch)
        # Algorithm 8 has no certificate to miss.
        has_certificate = self.solver != "online" or solution.status is Status.STOPPED
        self._keep_solution(solution, warns=has_certificate)
        history = History(series.values, X_grid, series.clock, len(series.values))
        self._fitted = Fitted(
            models, plan.embedding, plan.calendar, series.shape, history, int(self.horizon),
            self.strategy == "recursive",
        ).trimmed()  # fmt: skip
        self.blocks_ = plan.blocks
        self.lags_ = list(plan.embedding.lags)
        self.n_series_in_ = series.values.shape[1]
        self.n_features_in_ = 0 if X_grid is None else X_grid.shape[1]
        self.__dict__.pop("feature_names_in_", None)  # of another fit
        names = column_names(X)
        if names is not None:
            self.feature_names_in_ = np.array(names)
        return self

    def _choices(self, seed: int) -> Choices:
        return Choices(
            who=type(self).__name__,
            horizon=int(self.horizon),
            is_recursive=self.strategy == "recursive",
            lags=self.lags,
            lead_blocks=self.lead_blocks,
            profile_weeks=self.profile_weeks,
            anchored=self.anchored,
            X_lags=self.X_lags,
            X_windows=self.X_windows,
            holidays=self.holidays,
            has_intervals=self.intervals,
            local=self._local_settings(),
            seed=seed,
        )

    def _local_settings(self) -> LocalSettings:
        if self.loss == "quantile":
            loss = TubeLoss.quantile(float(self.quantile))
        else:
            loss = TubeLoss.shifted(float(self.epsilon), float(self.eta))
        return LocalSettings(
            loss, None if self.C is None else float(self.C), self.n_clusters, self.clustering,
            self.kernel_map, int(self.n_components), relevance_rows=int(self.relevance_rows),
            solver=self.solver, tol=float(self.tol), max_iter=int(self.max_iter),
        )  # fmt: skip

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
        history, ahead = self._asked(horizon, X, y)
        values = self._forecast(history, ahead)
        return self._fitted.shape.forecast(values, history.clock, history.end)

    def predict_interval(
        self, horizon: int | None = None, X: Any = None, *, coverage: float = 0.9, y: Any = None
    ) -> tuple[Any, Any]:
        """Lower and upper ends that hold the truth with probability `coverage`.

        The forecast plus quantiles of residuals on rows that a first fit had not seen (split
        conformal), of the same block of leads and, where there are enough, the same time of day.
        `update` renews them.

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
        check_argument("predict_interval.coverage", coverage, Interval(float, 0, 1, "neither"))
        fitted = self._fitted
        if not all(found.has_intervals for own in fitted.models for found in own):
            raise ValueError(
                f"{type(self).__name__}.intervals must be True in fit for predict_interval"
            )
        history, ahead = self._asked(horizon, X, y)
        ends = fitted.interval_ends(self._forecast(history, ahead), history, coverage)
        low, high = (fitted.shape.forecast(v, history.clock, history.end) for v in ends)
        return low, high

    @all_or_nothing
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
        history, n_new = extended(self._fitted, self._names, y_new, X_new)
        with threadpool_limits(1, user_api="blas"):
            self._fitted = self._fitted.updated(history, n_new, self._local_settings())
        return self

    @property
    def time_zone_(self) -> str | None:
        """Name of the time zone of the series."""
        check_is_fitted(self, "n_series_in_")
        zone: str | None = self._fitted.history.clock.zone
        return zone

    def plot(self, *args: Any, **kwargs: Any) -> Any:
        """Forecast, interval and truth; see `sublearn.forecast.plot_forecast`."""
        from sublearn.forecast.plot import plot_forecast

        return plot_forecast(self, *args, **kwargs)

    @property
    def _names(self) -> np.ndarray | None:
        return getattr(self, "feature_names_in_", None)

    def _asked(self, horizon: int | None, X: Any, y: Any) -> tuple[History, int]:
        check_is_fitted(self)
        return asked(self._fitted, self._names, horizon, X, y)

    def _forecast(self, history: History, ahead: int) -> np.ndarray:
        with threadpool_limits(1, user_api="blas"):
            return self._fitted.forecast(history, ahead)

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

    _STORED = ("blocks_", "lags_", "n_series_in_")

    def _to_bundle(self) -> dict[str, Any]:
        return super()._to_bundle() | state_of_fitted(self._fitted)

    def _fields(self) -> Any:
        return super()._fields() | FITTED_FIELDS

    def _restore(self, state: dict[str, Any]) -> None:
        is_recursive = self.strategy == "recursive"
        self._fitted = restore_fitted(state, int(self.horizon), is_recursive)
        super()._restore(state)
