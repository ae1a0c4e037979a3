"""Short-term load forecasts as an estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from sublearn.execution import all_or_nothing
from sublearn.fitting.model import FittedModel
from sublearn.forecast.figures import d2_pinball
from sublearn.forecast.fitted import Fitted, History
from sublearn.forecast.incoming import asked, extended
from sublearn.forecast.local_models import LocalSettings
from sublearn.forecast.plan import Choices, Plan
from sublearn.forecast.series import LoadsLike, Table, check_series, column_names, exogenous_grid
from sublearn.forecast.settings import Dates, DatesLike, LoadFeatures, LocalKernels, Shares
from sublearn.forecast.stored import FITTED_FIELDS, restore_fitted, state_of_fitted
from sublearn.forecast.tube_regression import TubeLoss
from sublearn.io.fields import Fields
from sublearn.trace import Callback, Status
from sublearn.typing import Seed, State
from sublearn.validation import (
    RUN_RULES,
    Boolean,
    Interval,
    OneOf,
    OrNone,
    Positive,
    Rule,
    SettingsOf,
    as_n_threads,
    as_seed,
    check_argument,
    check_params,
)

if TYPE_CHECKING:
    from sublearn.display import ForecastDisplay
    from sublearn.display.base import AxesLike

__all__ = ["LoadForecaster"]

_SHARE = Interval(float, 0, 1, "neither")


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
    horizon : int or None, default=None
        Longest lead, in steps of the series; None is a day, or a week of daily steps.
    strategy : {"direct", "recursive"}, default="direct"
        "direct" has a model for each block of leads; "recursive" has one for the next step and
        feeds its forecasts back to it.
    features : LoadFeatures or None, default=None
        Lags, blocks of leads and other columns of a row; None is ``LoadFeatures()``.
    holidays : collection of dates, mapping with dates as keys, or None, default=None
        Days unlike others, as `datetime.date`, `datetime64` or "2008-12-25". Needs times.
    kernels : LocalKernels or None, default=None
        Number and size of the local models; None is ``LocalKernels()``.
    loss : TubeLoss or None, default=None
        ``TubeLoss.shifted(epsilon, eta)``, of which None is the default, or
        ``TubeLoss.quantile(share)``, whose forecasts are levelled on held-out rows as intervals
        are.
    C : float or None, default=None
        Weight of the loss (in the paper: 1 / (lambda N)); None takes it from the noise that the
        relevance of columns is learned with.
    solver : {"interior_point", "online", "online_kernel"}, default="interior_point"
        "online" is algorithm 8 of the paper on explicit features: stochastic steps, without a
        useful certificate. "online_kernel" is its printed form, with a coefficient for each row of
        a cluster and the kernel itself: for a few thousand rows.
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
    horizon_ : int
        Longest lead.
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
    >>> from sublearn.forecast import LoadFeatures, LoadForecaster, LocalKernels
    >>> hours = np.arange(24 * 7 * 8)
    >>> load = 100 + 20 * np.sin(2 * np.pi * hours / 24) + 5 * (hours // 24 % 7 < 5)
    >>> model = LoadForecaster(
    ...     24,
    ...     features=LoadFeatures(lead_blocks=[24]),
    ...     kernels=LocalKernels(relevance_rows=150),
    ...     random_state=0,
    ... )
    >>> model = model.fit(load)
    >>> bool(np.abs(model.predict() - load[-168:-144]).max() < 1.0)
    True
    """

    _kind: ClassVar[str] = "loads"

    _rules: ClassVar[Mapping[str, Rule]] = {
        "horizon": OrNone(Interval(int, 1, 24 * 366)),
        "strategy": OneOf("direct", "recursive"),
        "features": SettingsOf(LoadFeatures),
        "holidays": OrNone(Dates()),
        "kernels": SettingsOf(LocalKernels),
        "loss": SettingsOf(TubeLoss),
        "C": OrNone(Positive(float)),
        "solver": OneOf("interior_point", "online", "online_kernel"),
        "intervals": Boolean(),
        "tol": Positive(float),
        "max_iter": Positive(int),
        **RUN_RULES,
    }

    def __init__(
        self,
        horizon: int | None = None,
        *,
        strategy: str = "direct",
        features: LoadFeatures | None = None,
        holidays: DatesLike | None = None,
        kernels: LocalKernels | None = None,
        loss: TubeLoss | None = None,
        C: float | None = None,
        solver: str = "interior_point",
        intervals: bool = True,
        tol: float = 1e-3,
        max_iter: int = 50,
        n_jobs: int | None = None,
        random_state: Seed = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ):
        self.horizon = horizon
        self.strategy = strategy
        self.features = features
        self.holidays = holidays
        self.kernels = kernels
        self.loss = loss
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
    def fit(self, y: LoadsLike, X: LoadsLike | None = None) -> LoadForecaster:
        """Learn from a load series.

        The series comes first and X may be missing, as for forecasters of sktime: here y is not
        the answer to X but its own past.

        Parameters
        ----------
        y : array-like of shape (n_steps,) or (n_steps, n_series)
            Loads, oldest first. NaN, and times missing from a pandas index, are gaps: rows that
            need them are left out.
        X : array-like of shape (n_steps, n_columns), optional
            What is known of each step besides, such as temperature. Of a forecast's own steps it
            must be given to `predict` as well. All series share it. With a pandas index of times,
            these must be the times of y. NaN are gaps: those of up to six hours are filled by
            straight lines, rows that need longer ones are left out, and a warning counts them.

        Returns
        -------
        LoadForecaster
            Itself, fitted.
        """
        check_params(self)
        name = type(self).__name__
        features = LoadFeatures.of(self.features)
        series = check_series(y, features.steps_per_day, f"{name}: y")
        X_grid = None if X is None else exogenous_grid(X, series, f"{name}: X")
        local = LocalSettings(
            LocalKernels.of(self.kernels), TubeLoss.of(self.loss),
            None if self.C is None else float(self.C), self.solver, float(self.tol),
            int(self.max_iter),
        )  # fmt: skip
        horizon = series.clock.day_ahead if self.horizon is None else int(self.horizon)
        choices = Choices(
            name, horizon, self.strategy == "recursive", features, self.holidays,
            self.intervals, local, as_seed(self.random_state),
        )  # fmt: skip
        plan = Plan.of(choices, series, X_grid)
        models, solution = plan.fit(as_n_threads(self.n_jobs), self._watch)
        # Algorithm 8 has no certificate to miss.
        has_certificate = not self.solver.startswith("online") or solution.status is Status.STOPPED
        self._keep_solution(solution, warns=has_certificate)
        history = History(series.values, X_grid, series.clock, len(series.values))
        names = column_names(X)
        self._fitted = Fitted(
            models, plan.embedding, series.shape, history, names, horizon, choices.is_recursive
        ).trimmed()
        self.blocks_ = plan.blocks
        self.horizon_ = horizon
        self.lags_ = list(plan.embedding.lags)
        self.n_series_in_ = series.values.shape[1]
        self.n_features_in_ = 0 if X_grid is None else X_grid.shape[1]
        self.__dict__.pop("feature_names_in_", None)  # of another fit
        if names is not None:
            self.feature_names_in_ = np.array(names)
        return self

    # --- forecasting ---------------------------------------------------------------------------

    def predict(
        self, horizon: int | None = None, X: LoadsLike | None = None, *, y: LoadsLike | None = None
    ) -> Table:
        """Forecast the steps that follow the series.

        Parameters
        ----------
        horizon : int, optional
            Number of steps, up to `horizon_`, which is the default.
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
        values, history = self._forecast(horizon, X, y)
        return self._fitted.shape.forecast(values, history.clock, history.end)

    def predict_interval(
        self,
        horizon: int | None = None,
        X: LoadsLike | None = None,
        *,
        coverage: float = 0.9,
        y: LoadsLike | None = None,
    ) -> tuple[Table, Table]:
        """Lower and upper ends that hold the truth with probability `coverage`.

        The forecast plus quantiles of residuals on rows that a first fit had not seen (split
        conformal), of the same block of leads and, where there are enough, the same time of day.
        `update` renews them, and moves the levels at which they are taken until the share asked for
        lies inside (adaptive conformal inference).

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
        check_argument("predict_interval.coverage", coverage, _SHARE)
        beyond = (1.0 - coverage) / 2.0
        low, high = self._quantiles([beyond, 1.0 - beyond], horizon, X, y, "predict_interval")
        return low, high

    def predict_quantiles(
        self,
        horizon: int | None = None,
        X: LoadsLike | None = None,
        *,
        quantiles: Sequence[float] = (0.1, 0.5, 0.9),
        y: LoadsLike | None = None,
    ) -> list[Table]:
        """Loads below which the given shares of loads will lie, all from one fit.

        They come from the residuals that intervals come from, and never cross: a larger share has
        no smaller load.

        Parameters
        ----------
        horizon, X, y
            As for `predict`.
        quantiles : sequence of float, default=(0.1, 0.5, 0.9)
            Shares, above 0 and below 1.

        Returns
        -------
        list
            For each share a result like that of `predict`.
        """
        check_argument("predict_quantiles.quantiles", quantiles, Shares())
        return self._quantiles(quantiles, horizon, X, y, "predict_quantiles")

    def score(self, y: LoadsLike, X: LoadsLike | None = None) -> float:
        r"""The share of the pinball loss of loads to come that forecasts explain, :math:`D^2`.

        .. math::
            D^2 = 1 - \frac{\sum_i \ell(y_i - f_i)}{\sum_i \ell(y_i - q)}

        with the pinball loss of the share that `loss` asks for, the absolute error if it asks for
        none, and q the quantile of these loads themselves. 1 is best, a constant has 0 at most.
        :func:`backtest` measures it, and more, over many origins.

        Parameters
        ----------
        y : array-like
            The loads that follow the series, up to `horizon_` of them; NaN are left out.
        X : array-like, optional
            Their exogenous columns.

        Returns
        -------
        float
            The mean over the series.
        """
        truth = np.asarray(y, dtype=np.float64)
        forecast = np.asarray(self.predict(len(truth), X))
        share = TubeLoss.of(self.loss).share_below
        return d2_pinball(truth, forecast, 0.5 if share is None else share)

    @all_or_nothing
    def update(self, y_new: LoadsLike, X_new: LoadsLike | None = None) -> LoadForecaster:
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
        history, n_new = extended(self._fitted, y_new, X_new)
        with threadpool_limits(1, user_api="blas"):
            self._fitted = self._fitted.updated(history, n_new)
        return self

    @property
    def time_zone_(self) -> str | None:
        """Name of the time zone of the series."""
        check_is_fitted(self, "n_series_in_")
        return self._fitted.history.clock.zone

    def plot(
        self, horizon: int | None = None, X: LoadsLike | None = None, *,
        y: LoadsLike | None = None, truth: LoadsLike | None = None, coverage: float = 0.9,
        series: int = 0, ax: AxesLike = None,
    ) -> ForecastDisplay:  # fmt: skip
        """Draw the next steps of a series, with an interval if fitted with `intervals`.

        Parameters
        ----------
        horizon, X, y
            As for `predict`.
        truth : array-like, optional
            Loads that came, drawn over the forecast.
        coverage : float, default=0.9
            Of the shaded interval.
        series : int, default=0
            Which series, counted from 0.
        ax : matplotlib axes, optional
            Where to draw.

        Returns
        -------
        ForecastDisplay
        """
        from sublearn.display import ForecastDisplay

        forecast = self.predict(horizon, X, y=y)
        check_argument(
            "LoadForecaster.plot.series", series, Interval(int, 0, self.n_series_in_ - 1)
        )

        def column(values: LoadsLike) -> np.ndarray:
            table = np.asarray(values, dtype=np.float64)
            return table if table.ndim == 1 else table[:, series]

        interval = None
        if self.intervals:
            low, high = self.predict_interval(horizon, X, coverage=coverage, y=y)
            interval = column(low), column(high)
        display = ForecastDisplay(
            getattr(forecast, "index", np.arange(1, len(forecast) + 1)), column(forecast),
            interval=interval, truth=None if truth is None else column(truth), coverage=coverage,
        )  # fmt: skip
        return display.called_by("LoadForecaster.plot").plot(ax)

    def _forecast(
        self, horizon: int | None, X: LoadsLike | None, y: LoadsLike | None
    ) -> tuple[np.ndarray, History]:
        """Loads, and the history that they follow."""
        check_is_fitted(self)
        history, ahead = asked(self._fitted, horizon, X, y)
        with threadpool_limits(1, user_api="blas"):
            return self._fitted.forecast(history, ahead), history

    def _quantiles(
        self, shares: Sequence[float], horizon: int | None, X: LoadsLike | None,
        y: LoadsLike | None, caller: str,
    ) -> list[Table]:  # fmt: skip
        check_is_fitted(self)
        fitted = self._fitted
        if not all(found.has_intervals for own in fitted.models for found in own):
            raise ValueError(f"{type(self).__name__}.intervals must be True in fit for {caller}")
        values, history = self._forecast(horizon, X, y)
        found = fitted.quantiles(values, history, shares)
        return [fitted.shape.forecast(own, history.clock, history.end) for own in found]

    # --- saving --------------------------------------------------------------------------------

    _FORMER_PARAMS: ClassVar[dict[str, str | None]] = {
        **{name: f"features.{name}" for name in LoadFeatures._rules},
        **{name: f"kernels.{name}" for name in LocalKernels._rules},
    }
    _FORMER_VALUES: ClassVar[dict[str, dict[object, object]]] = {
        "solver": {"interior-point": "interior_point"}
    }

    @classmethod
    def _current_params(cls, stored: Mapping[str, object]) -> dict[str, object]:
        params: State = dict(stored)
        if isinstance(params.get("loss"), str):  # before there were settings
            epsilon, eta, share = (params.pop(name) for name in ("epsilon", "eta", "quantile"))
            is_quantile = params["loss"] == "quantile"
            params["loss"] = (
                TubeLoss.quantile(share) if is_quantile else TubeLoss.shifted(epsilon, eta)
            )
        if params.get("lags") == "held-out":
            params["lags"] = "held_out"
        return super()._current_params(params)

    def _stored_params(self) -> State:
        params = super()._stored_params()
        if self.holidays is not None:
            days = np.array(Dates.days(self.holidays)).astype("datetime64[D]")
            params["holidays"] = [str(day) for day in days]
        return params

    _STORED = ("blocks_", "lags_", "n_series_in_")

    def _to_bundle(self) -> State:
        return super()._to_bundle() | state_of_fitted(self._fitted)

    def _fields(self) -> Fields:
        return super()._fields() | FITTED_FIELDS

    def _restore(self, state: State) -> None:
        is_recursive = self.strategy == "recursive"
        self._fitted = restore_fitted(state, self.horizon, is_recursive)
        self.horizon_ = self._fitted.horizon
        super()._restore(state)
