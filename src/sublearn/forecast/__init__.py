"""Short-term load forecasting by local kernel models."""

from sublearn.forecast.forecaster import LoadForecaster
from sublearn.forecast.plot import plot_forecast
from sublearn.forecast.settings import LoadFeatures, LocalKernels
from sublearn.forecast.tube_regression import TubeLoss

__all__ = ["LoadFeatures", "LoadForecaster", "LocalKernels", "TubeLoss", "plot_forecast"]
