"""Short-term load forecasting by local kernel models."""

from sublearn.forecast.forecaster import LoadForecaster
from sublearn.forecast.plot import plot_forecast

__all__ = ["LoadForecaster", "plot_forecast"]
