"""Short-term load forecasting by local kernel models."""

from sublearn.forecast.backtest import Backtest, backtest
from sublearn.forecast.forecaster import LoadForecaster
from sublearn.forecast.settings import LoadFeatures, LocalKernels
from sublearn.forecast.tube_regression import TubeLoss

__all__ = [
    "Backtest",
    "LoadFeatures",
    "LoadForecaster",
    "LocalKernels",
    "TubeLoss",
    "backtest",
]
