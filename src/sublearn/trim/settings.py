"""What `deep_trim` can be told beyond its aim: how l1 grows, how weights are trained and solved."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from sublearn.validation import (
    Boolean,
    CallableOrNone,
    Interval,
    NonNegative,
    OrNone,
    Positive,
    Settings,
)

__all__ = ["LEAST_GROWTH", "L1Search", "QuasiNewton", "Retraining"]

#: The search for l1 ends when the next step would change it by less than this factor.
LEAST_GROWTH = 1.03


@dataclass(frozen=True)
class L1Search(Settings):
    r"""How :math:`\lambda` grows from stage to stage of :func:`deep_trim`, and who judges a stage.

    Parameters
    ----------
    first_l1 : float, optional
        :math:`\lambda` of the first stage; by default the penalty is then half of what the network
        has learnt. The first stages are the longest, and a very wide network has so many weights
        that have learnt nothing that more is better: try 1e-3.
    max_stages : int, default=12
        Limit on the values of :math:`\lambda` that are tried.
    growth : float, default=1.6
        By how much :math:`\lambda` grows after a stage, more than 1.03. Slower growth takes longer
        and leaves fewer weights at the same criterion.
    patience : int, default=2
        Stages in a row above the limit before the search goes back to the last one that was good
        enough. A criterion on held-out data is noisy: the error of 5,000 samples has a standard
        deviation of 0.2 points. A search for `max_weights` is not ended by the criterion, so it has
        no use for this.
    adaptive : bool, default=True
        Whether small weights are penalised more from the second stage on, or from the first one in
        a network most of whose weights are 0.
    structured : bool, default=False
        Whether whole neurons and channels go instead of single weights. The penalty of a weight is
        then that of its groups, the weights into and out of a unit, and the weights counted are
        those of the smaller dense network that `TrimResult.remove_neurons` makes.
    validation_fraction : float, default=0.1
        Share of `data` that is held out where no `eval_set` is given: these samples are not trained
        on, and the criterion is measured on them. 0 measures it on the samples that are trained on,
        which a small network may learn by heart as well as a large one.
    """

    first_l1: float | None = None
    max_stages: int = 12
    growth: float = 1.6
    patience: int = 2
    adaptive: bool = True
    structured: bool = False
    validation_fraction: float = 0.1

    _rules: ClassVar = {
        "first_l1": OrNone(Positive(float)),
        "max_stages": Positive(int),
        "growth": Interval(float, LEAST_GROWTH, math.inf, closed="neither"),
        "patience": Positive(int),
        "adaptive": Boolean(),
        "structured": Boolean(),
        "validation_fraction": Interval(float, 0, 1, closed="left"),
    }


@dataclass(frozen=True)
class Retraining(Settings):
    r"""How weights are trained in small batches during :func:`deep_trim`.

    Parameters
    ----------
    warm_epochs : int, default=4
        Passes over the data at the beginning of a stage, while :math:`\lambda` rises.
    polish_epochs : int, default=2
        Passes at the end of a stage, without a penalty, where the rate falls to 0. In the end 8
        times as many follow, for the smallest network whose criterion they bring below the limit.
    learning_rate : float, default=2e-3
        Of proximal Adam.
    batch_size : int, default=128
        Samples of a step.
    train_biases : bool, default=False
        Whether the passes train the biases of the chosen layers as well. A network of very few
        weights needs other biases than the one it came from.
    augment : callable, optional
        Gets the inputs of a batch and returns as many others that have the same targets: images
        moved by a pixel, say. Called anew for every batch, with random numbers of PyTorch that
        follow from `random_state`. A network that was trained this way should be trimmed this way;
        one that was not can lose more weights. Inputs below the chosen layers are then computed in
        every pass, and the quasi-Newton method sees each sample changed once per layer.
    distill : float, default=0.0
        Share of the loss that compares with the answers of the network given instead of the
        targets. Worth a try (0.5) where a trimmed network still has a training error far below the
        held-out one; no gain beyond the noise was measured.
    """

    warm_epochs: int = 4
    polish_epochs: int = 2
    learning_rate: float = 2e-3
    batch_size: int = 128
    train_biases: bool = False
    augment: Callable[..., object] | None = None
    distill: float = 0.0

    _rules: ClassVar = {
        "warm_epochs": NonNegative(int),
        "polish_epochs": NonNegative(int),
        "learning_rate": Positive(float),
        "batch_size": Positive(int),
        "train_biases": Boolean(),
        "augment": CallableOrNone(),
        "distill": Interval(float, 0, 1),
    }


@dataclass(frozen=True)
class QuasiNewton(Settings):
    """How precisely :func:`deep_trim` solves for the weights of one layer.

    Parameters
    ----------
    violation_tol : float, default=1e-3
        The method ends at a least subgradient of this share of that of its start.
    max_iter : int, default=30
        Limit on the iterations of a layer; 0 leaves the method out.
    sample_size : int, optional
        Samples that the method looks at, chosen at random for each layer; by default all. Up to 4
        times as many, as needed for a variance of the gradient below the squared length of the
        least subgradient: a direction that is mostly noise is not worth a descent.
    chunk_size : int, default=1024
        Samples that are evaluated at once, here and wherever all samples are: memory against speed.
    """

    violation_tol: float = 1e-3
    max_iter: int = 30
    sample_size: int | None = None
    chunk_size: int = 1024

    _rules: ClassVar = {
        "violation_tol": Positive(float),
        "max_iter": NonNegative(int),
        "sample_size": OrNone(Positive(int)),
        "chunk_size": Positive(int),
    }
