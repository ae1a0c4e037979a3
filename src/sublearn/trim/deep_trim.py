"""Deep-Trim: far fewer weights of a trained network at a loss that hardly rises."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor, nn

from sublearn.errors import ParameterError
from sublearn.fitting.held_out import split_rows
from sublearn.fitting.progress import Progress
from sublearn.trace import Callback, Status, watch
from sublearn.trim.checks import copy_of, refuse_misfit, refuse_other_inputs
from sublearn.trim.choice import candidates_in, choose_layers
from sublearn.trim.losses import Loss, as_loss, error
from sublearn.trim.result import Judged, TrimResult
from sublearn.trim.samples import Data, Samples, read_samples
from sublearn.trim.search import Judge, Search
from sublearn.trim.settings import L1Search, QuasiNewton, Retraining
from sublearn.trim.trimmer import Trimmer
from sublearn.trim.units import Units
from sublearn.typing import Seed
from sublearn.validation import (
    WATCH_RULES,
    Interval,
    OneOf,
    OrNone,
    Positive,
    RandomState,
    Rule,
    SettingsOf,
    as_seed,
    check_arguments,
)
from sublearn.validation.values import show

__all__ = ["deep_trim"]

#: The rise of the criterion that is allowed where nothing is said.
_MAX_INCREASE = 0.01
#: Fewer held-out samples would tell too little.
_FEWEST_HELD_OUT = 20
#: Samples whose gradients tell which layers take part in the answers.
_N_TELLING = 16

_RULES: dict[str, Rule] = {
    "max_increase": OrNone(Interval(float, -math.inf, math.inf, closed="neither")),
    "max_weights": OrNone(Positive(int)),
    "criterion": OneOf("loss", "error"),
    "l1": OrNone(Positive(float)),
    "search": SettingsOf(L1Search),
    "retraining": SettingsOf(Retraining),
    "quasi_newton": SettingsOf(QuasiNewton),
    "random_state": RandomState(),
    **WATCH_RULES,
}


@contextlib.contextmanager
def _without_fast_path() -> Iterator[None]:
    """While it lasts, encoders of transformers call their layers instead of reading the weights."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


@_without_fast_path()
def deep_trim(
    module: nn.Module,
    data: Data,
    loss: str | Loss = "cross_entropy",
    *,
    layers: Iterable[str] | None = None,
    max_increase: float | None = None,
    max_weights: int | None = None,
    l1: float | None = None,
    eval_set: Data | None = None,
    criterion: str = "loss",
    search: L1Search | None = None,
    retraining: Retraining | None = None,
    quasi_newton: QuasiNewton | None = None,
    random_state: Seed = None,
    verbose: int = 0,
    callback: Callback | None = None,
) -> TrimResult:
    r"""Remove weights of a trained network, as many as a loss that may rise a little allows.

    Layer by layer, the last one first, proximal quasi-Newton steps (LHAC) minimise

    .. math::
        \lambda \|W^{(j)}\|_1 + \frac1N L(X^{(J)}(W), Y) \qquad (2.51)

    from the weights that the layer has. No step raises this. By theorem 7 of [1]_ a stationary
    point has at most :math:`N k_S` weights other than 0, where :math:`k_S` is the number of logits
    with a loss gradient, per sample: far fewer than a wide layer has, for any
    :math:`\lambda > 0`. What is above a layer is evaluated hundreds of times, what is below, once.

    :math:`\lambda` grows by stages. A stage begins with passes of proximal Adam over small batches,
    which are quick but leave many tiny weights; the quasi-Newton steps bring these to 0. What is
    left is trained on without a penalty and judged by the criterion, which decides how the search
    goes on; the next stage starts from where this one was before that training. From the second
    stage on, small weights are penalised more than large ones.

    Normalisation and all else that is not a weight of a chosen layer (or its bias, with
    `Retraining.train_biases`) stays as it is: the network is trimmed in evaluation mode. `module`
    itself is not changed.

    Parameters
    ----------
    module : Module
        A trained network with weights of float32 or float64. It may return logits, an object with
        `logits`, or a tuple that begins with them. It must not change its inputs in place.
    data : (inputs, targets), Dataset or DataLoader
        The training data. `inputs` is a tensor or an array, a tuple of them, or a dict of them by
        name of the argument. All is held in memory.
    loss : {"cross_entropy", "max_margin"} or callable
        Of logits and targets, to the mean loss of the batch. With a name, targets are class
        numbers (-100 is passed over) or rows of 0 and 1.
    layers : iterable of str, optional
        Names of the layers to trim, as in ``module.named_modules()``; by default all fully
        connected, convolution and embedding layers whose weights have this one use. What is left
        out: layers that share their weights with others, that the network reads without calling
        them (the projections of ``nn.MultiheadAttention``), that are parametrized or have a
        `forward` of their own, and embeddings with a `max_norm`.
    max_increase : float, optional
        How much the criterion may rise above that of the network given; by default 0.01. Less than
        0: by how much it has to fall. The smallest of many networks that just pass owes it to
        chance in part; a margin of a standard deviation, :math:`\sqrt{p (1 - p) / n}` for a share p
        of errors on n samples, makes up for that.
    max_weights : int, optional
        How many weights the chosen layers may keep, all together, instead of a `max_increase`:
        :math:`\tau` of definition 2. Of the networks that are small enough, the one of least
        criterion is returned.
    l1 : float, optional
        :math:`\lambda`, for one stage without a search.
    eval_set : (inputs, targets), Dataset or DataLoader, optional
        Where the criterion is measured: samples that `module` was not trained on tell best what may
        go. By default a tenth of `data` is held out (`L1Search.validation_fraction`). `module` may
        know these by heart, so that fewer weights go than could; a warning says so where nothing
        goes, and where `data` are too few to hold any out.
    criterion : {"loss", "error"}
        Mean loss, or share of samples whose largest logit is not (one of) theirs.
    search : L1Search, optional
        How :math:`\lambda` grows from stage to stage, and how many stages there are.
    retraining : Retraining, optional
        The passes over small batches: how many, how fast, with which changes to the inputs.
    quasi_newton : QuasiNewton, optional
        How precisely the weights of a layer are solved for.
    random_state : int, Generator, RandomState or None
        Of the order of samples; None gives another result each time.
    verbose : {0, 1}
        1 draws a progress bar over the stages.
    callback : callable, optional
        Gets an event ten times a second; a true value ends the search with the best network so far.

    Returns
    -------
    TrimResult

    References
    ----------
    .. [1] I. E. H. Yen, "Sublinear-Time Learning and Inference for High-Dimensional Models",
       thesis, Carnegie Mellon University, 2018, section 2.3.
    """
    check_arguments("deep_trim", locals(), _RULES)
    _refuse_two_aims({"max_increase": max_increase, "max_weights": max_weights, "l1": l1})
    search, retraining = L1Search.of(search), Retraining.of(retraining)
    trimmed = copy_of(module, "deep_trim")
    candidates = candidates_in(trimmed)
    weight = next(iter(candidates.values())).weight
    seed = as_seed(random_state)
    samples, held_out, rows = _read(data, eval_set, weight, search.validation_fraction, seed)
    for name, own in (("data", samples), ("eval_set" if rows == "eval_set" else "data", held_out)):
        refuse_misfit(name, trimmed, own, loss, criterion, retraining.distill)
    chosen = choose_layers(trimmed, candidates, layers, samples.take(slice(0, _N_TELLING)))
    if retraining.augment is not None:
        refuse_other_inputs(trimmed, samples, retraining.augment)
    progress = Progress(1 if l1 is not None else search.max_stages, n_done=0)
    draw = torch.Generator().manual_seed(seed)
    trimmer = Trimmer(
        trimmed, chosen, samples, as_loss(loss), draw, lambda: progress.stop_requested,
        retraining, quasi_newton, _units_of(trimmed, chosen) if search.structured else None,
    )  # fmt: skip
    judge = Judge(
        Judged(criterion, rows, len(held_out)),
        lambda: trimmer.mean(trimmer.loss if criterion == "loss" else error, held_out),
        (lambda: trimmer.mean(error, held_out)) if isinstance(loss, str) else None,
    )
    limit = _MAX_INCREASE if max_increase is None else max_increase
    stages = Search(trimmer, search, judge, limit, progress)

    def run() -> None:
        with torch.random.fork_rng():
            torch.manual_seed(seed)  # for `augment`
            stages.run(l1, max_weights)

    watch(
        run, progress, n_total=progress.n_total, callback=callback, verbose=verbose,
        title="deep_trim",
    )  # fmt: skip
    result = stages.result(module)
    if max_weights is None and l1 is None and result.status is not Status.STOPPED:
        _warn_of_nothing(result)
    _warn_of_too_many(result, max_weights, search)
    return result


def _read(
    data: Data, eval_set: Data | None, weight: Tensor, fraction: float, seed: int
) -> tuple[Samples, Samples, str]:
    """Samples to train on, samples to judge by, and what the latter are (see `Judged.rows`)."""
    with torch.random.fork_rng():  # a DataLoader draws a seed
        samples = read_samples("data", data).beside(weight)
        if eval_set is not None:
            return samples, read_samples("eval_set", eval_set).beside(weight), "eval_set"
    if fraction == 0:
        return samples, samples, "training"
    if fraction * len(samples) < _FEWEST_HELD_OUT:
        warnings.warn(
            f"deep_trim: {len(samples):,} samples are too few to hold a share of {fraction:g} out, "
            "so all figures are of training samples; pass eval_set to judge by others",
            UserWarning,
            stacklevel=4,
        )
        return samples, samples, "training"
    parts = split_rows(len(samples), fraction, np.random.default_rng(seed))
    at = samples.targets.device
    old, new = (samples.take(torch.from_numpy(rows).to(at)) for rows in parts)
    return old, new, "held-out"


def _units_of(module: nn.Module, layers: Mapping[str, nn.Module]) -> Units:
    units = Units(module, layers)
    if not len(units):
        raise ParameterError(
            "L1Search.structured must be False for a network without neurons or channels between "
            "two of the layers (as torch.fx sees it), got True"
        )
    return units


def _refuse_two_aims(aims: dict[str, float | None]) -> None:
    given = [name for name, value in aims.items() if value is not None]
    if len(given) > 1:
        raise ParameterError(
            f"deep_trim.{given[1]} must be None where {given[0]} is given, got "
            f"{show(aims[given[1]])}"
        )


def _warn_of_nothing(result: TrimResult) -> None:
    """Held-out samples that the network given was trained on may forbid all that could go."""
    report = result.report
    if report.judged.rows == "held-out" and report.n_after == report.n_before:
        warnings.warn(
            f"deep_trim: no weights are removed, since each smaller network has a "
            f"{report.judged.criterion} of {report.judged} above {report.criterion_before:.4g} and "
            "max_increase. The network given may know these samples by heart: pass an eval_set "
            "that it was not trained on, or a larger max_increase",
            ConvergenceWarning,
            stacklevel=4,
        )


def _warn_of_too_many(result: TrimResult, max_weights: int | None, search: L1Search) -> None:
    n_after = result.report.n_after
    if max_weights is not None and n_after > max_weights:
        warnings.warn(
            f"deep_trim: {result.status}; {n_after:,} weights are left, more than max_weights="
            f"{max_weights:,} (max_stages={search.max_stages}, growth={search.growth:g})",
            ConvergenceWarning,
            stacklevel=4,
        )
