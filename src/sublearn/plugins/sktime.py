"""LoadForecaster behind the interface of sktime's forecasters.

pip install "sublearn[sktime]"
from sublearn.plugins.sktime import SktimeLoadForecaster

forecaster = SktimeLoadForecaster(horizon=24, settings={"random_state": 0})
forecaster.fit(y, X)                   # pandas, with a DatetimeIndex of a fixed frequency
forecaster.predict(fh=[1, 2, 24], X=X_of_these_hours)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np

from sublearn.errors import needs_extra
from sublearn.forecast import LoadForecaster
from sublearn.typing import JsonObject

with needs_extra("sublearn.plugins.sktime", "sktime"):
    import pandas as pd
    from sktime.forecasting.base import BaseForecaster

if TYPE_CHECKING:
    from sktime.forecasting.base import ForecastingHorizon

#: As sktime passes and takes them.
_Table: TypeAlias = "pd.Series | pd.DataFrame"

__all__ = ["SktimeLoadForecaster"]


class SktimeLoadForecaster(BaseForecaster):  # type: ignore[misc,unused-ignore]
    """sktime's view of :class:`sublearn.forecast.LoadForecaster`.

    Parameters
    ----------
    horizon : int, optional
        Longest lead that may be asked for; by default a day, or a week of daily steps.
    settings : dict, optional
        Further parameters of LoadForecaster by name.
    """

    _tags: ClassVar[dict[str, object]] = {
        "y_inner_mtype": "pd.Series",
        "X_inner_mtype": "pd.DataFrame",
        "capability:exogenous": True,
        "capability:missing_values": True,
        "capability:pred_int": True,
        "capability:update": True,
        "requires-fh-in-fit": False,
    }

    def __init__(self, horizon: int | None = None, settings: JsonObject | None = None):
        self.horizon = horizon
        self.settings = settings
        super().__init__()
        # The forecaster inside keeps the loads it needs; a second copy would grow with updates.
        self.set_config(remember_data=False)

    def _fit(self, y: _Table, X: _Table | None, fh: ForecastingHorizon) -> SktimeLoadForecaster:
        model = LoadForecaster(self.horizon, **(self.settings or {}))
        self._name = y.name
        self.forecaster_ = model.fit(_dated(y), _dated(X))
        return self

    def _predict(self, fh: ForecastingHorizon, X: _Table | None) -> _Table:
        leads = self._leads(fh)
        ahead = int(leads.max())
        forecast = self.forecaster_.predict(ahead, self._known(X, ahead))
        index = fh.to_absolute_index(self.cutoff)
        return pd.Series(np.asarray(forecast)[leads - 1], index=index, name=self._name)

    def _predict_interval(
        self, fh: ForecastingHorizon, X: _Table | None, coverage: list[float]
    ) -> pd.DataFrame:
        leads = self._leads(fh)
        ahead = int(leads.max())
        name = self._get_varnames()[0]
        columns = {}
        for share in coverage:
            ends = self.forecaster_.predict_interval(ahead, self._known(X, ahead), coverage=share)
            for which, values in zip(("lower", "upper"), ends, strict=True):
                columns[name, share, which] = np.asarray(values)[leads - 1]
        return pd.DataFrame(columns, index=fh.to_absolute_index(self.cutoff))

    def _predict_quantiles(
        self, fh: ForecastingHorizon, X: _Table | None, alpha: list[float]
    ) -> pd.DataFrame:
        leads = self._leads(fh)
        ahead = int(leads.max())
        name = self._get_varnames()[0]
        found = self.forecaster_.predict_quantiles(ahead, self._known(X, ahead), quantiles=alpha)
        columns = {
            (name, share): np.asarray(values)[leads - 1]
            for share, values in zip(alpha, found, strict=True)
        }
        return pd.DataFrame(columns, index=fh.to_absolute_index(self.cutoff))

    def _update(
        self, y: _Table, X: _Table | None = None, update_params: bool = True
    ) -> SktimeLoadForecaster:
        self.forecaster_.update(_dated(y), _dated(X))
        return self

    def _leads(self, fh: ForecastingHorizon) -> np.ndarray:
        leads = np.asarray(fh.to_relative(self.cutoff).to_numpy(), dtype=int)
        if leads.min() < 1:
            raise ValueError(f"fh must lie after the series, got a lead of {leads.min()}")
        return leads

    def _known(self, X: _Table | None, ahead: int) -> _Table | None:
        """Rows of all steps up to `ahead`: lags of exogenous columns need them.

        X may begin before the forecast, as sktime's data often do.
        """
        return None if X is None else _dated(X[X.index > self.cutoff[0]])[:ahead]


def _dated(table: _Table) -> _Table:
    """sktime may give a PeriodIndex; LoadForecaster asks for times."""
    has_periods = table is not None and isinstance(table.index, pd.PeriodIndex)
    return table.to_timestamp() if has_periods else table
