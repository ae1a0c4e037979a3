"""Pictures of what was fitted: one class for each kind of picture, all of one style.

A display holds plain numbers and draws them when `plot` is called; only then is matplotlib
imported, which the extra `plot` installs. Estimators and results have methods that make one.
"""

from sublearn.display.base import Display
from sublearn.display.bounds import BoundDisplay
from sublearn.display.confusion import LabelConfusionDisplay
from sublearn.display.explanations import ExplanationDisplay, Highlight
from sublearn.display.forecasts import BacktestDisplay, ForecastDisplay
from sublearn.display.images import ImagesDisplay
from sublearn.display.layers import LayersDisplay, TrimDisplay
from sublearn.display.networks import NetworkDisplay
from sublearn.display.paths import PathDisplay
from sublearn.display.taxonomies import TaxonomyDisplay
from sublearn.display.traces import TraceDisplay

__all__ = [
    "BacktestDisplay",
    "BoundDisplay",
    "Display",
    "ExplanationDisplay",
    "ForecastDisplay",
    "Highlight",
    "ImagesDisplay",
    "LabelConfusionDisplay",
    "LayersDisplay",
    "NetworkDisplay",
    "PathDisplay",
    "TaxonomyDisplay",
    "TraceDisplay",
    "TrimDisplay",
]
