"""Deep-Trim: far fewer weights of a trained network at a loss that hardly rises."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor, nn

from sublearn.errors import ParameterError
from sublearn.fitting.progress import Progress
from sublearn.trace import Callback, watch
from sublearn.trim.blocks import in_blocks
from sublearn.trim.checks import refuse_misfit, refuse_other_inputs
from sublearn.trim.choice import candidates_in, choose_layers
from sublearn.trim.copies import copy_of
from sublearn.trim.layer_objective import evaluate
from sublearn.trim.losses import IGNORED, Loss, as_loss
from sublearn.trim.proximal_adam import Passes
from sublearn.trim.result import TrimResult
from sublearn.trim.samples import Augment, Samples, read_samples
from sublearn.trim.search import LEAST_GROWTH, Search, Stage
from sublearn.trim.trimmer import QuasiNewton, Trimmer
from sublearn.validation import (
    WATCH_RULES,
    Boolean,
    CallableOrNone,
    Interval,
    NonNegative,
    OneOf,
    OrNone,
    Positive,
    RandomState,
    Rule,
    as_seed,
    check_arguments,
)
from sublearn.validation.values import show

__all__ = ["TrimResult", "deep_trim"]

#: The rise of the criterion that is allowed where nothing is said.
_TOLERANCE = 0.01
#: Samples whose gradients tell which layers take part in the answers.
_N_TELLING = 16


@contextlib.contextmanager
def _without_fast_path() -> Iterator[None]:
    """While it lasts, encoders of transformers call their layers instead of reading the weights."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


_RULES: dict[str, Rule] = {
    "tolerance": OrNone(Interval(float, -math.inf, math.inf, closed="neither")),
    "max_weights": OrNone(Positive(int)),
    "criterion": OneOf("loss", "error"),
    "l1": OrNone(Positive(float)),
    "first_l1": OrNone(Positive(float)),
    "max_stages": Positive(int),
    "growth": Positive(float),
    "patience": Positive(int),
    "adaptive": Boolean(),
    "warm_epochs": NonNegative(int),
    "polish_epochs": NonNegative(int),
    "train_biases": Boolean(),
    "distill": Interval(float, 0, 1),
    "augment": CallableOrNone(),
    "learning_rate": Positive(float),
    "batch_size": Positive(int),
    "chunk_size": Positive(int),
    "sample_size": OrNone(Positive(int)),
    "tol": Positive(float),
    "max_iter": NonNegative(int),
    "random_state": RandomState(),
    **WATCH_RULES,
}


@_without_fast_path()
def deep_trim(
    module: nn.Module,
    data: Any,
    loss: str | Loss = "cross_entropy",
    *,
    layers: Iterable[str] | None = None,
    tolerance: float | None = None,
    max_weights: int | None = None,
    validation: Any = None,
    criterion: str = "loss",
    l1: float | None = None,
    first_l1: float | None = None,
    max_stages: int = 12,
    growth: float = 1.6,
    patience: int = 2,
    adaptive: bool = True,
    warm_epochs: int = 4,
    polish_epochs: int = 2,
    train_biases: bool = False,
    distill: float = 0.0,
    augment: Augment | None = None,
    learning_rate: float = 2e-3,
    batch_size: int = 128,
    chunk_size: int = 1024,
    sample_size: int | None = None,
    tol: float = 1e-3,
    max_iter: int = 30,
    random_state: Any = 0,
    verbose: int = 0,
    callback: Callback | None = None,
) -> TrimResult:
    r"""Remove weights of a trained network, as many as a loss that may rise by `tolerance` allows.

    Layer by layer, the last one first, proximal quasi-Newton steps (LHAC) minimise

    .. math::
        \lambda \|W^{(j)}\|_1 + \frac1N L(X^{(J)}(W), Y) \qquad (2.51)

    from the weights that the layer has. No step raises this. By theorem 7 of [1]_ a stationary
    point has at most :math:`N k_S` weights other than 0, where :math:`k_S` is the number of logits
    with a loss gradient, per sample: far fewer than a wide layer has, for any
    :math:`\lambda > 0`. What is above a layer is evaluated hundreds of times, what is below, once.

    :math:`\lambda` grows by stages. A stage begins with passes of proximal Adam over small batches,
    which are quick but leave many tiny weights; the quasi-Newton steps bring these to 0. What is
    left is trained on without a penalty and judged by the criterion; the next stage goes on from
    where this one was before, because a network that is held back by a penalty learns less by
    heart. After `patience` stages in a row whose criterion is too high, the last one that was good
    enough is taken up again with smaller steps. From the second stage on, small weights are
    penalised more than large ones (`adaptive`); from the first one, if the network was trimmed
    before.

    Normalisation and all else that is not a weight of a chosen layer (or its bias, with
    `train_biases`) stays as it is: the network is trimmed in evaluation mode. `module` itself is
    not changed.

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
    tolerance : float, optional
        How much the criterion may rise above that of the network given; by default 0.01. Less than
        0: by how much it has to fall. The smallest of many networks that just pass owes it to
        chance in part; a margin of a standard deviation, :math:`\sqrt{p (1 - p) / n}` for a share p
        of errors on n samples, makes up for that.
    max_weights : int, optional
        How many weights the chosen layers may keep, all together, instead of a `tolerance`:
        :math:`\tau` of definition 2. Of the networks that are small enough, the one of least
        criterion is returned.
    validation : (inputs, targets), Dataset or DataLoader, optional
        Where the criterion is measured; by default on `data`. A network that has learnt its
        training data by heart has a training loss near 0, which a smaller one cannot and need not
        have: then held-out data say better what may go.
    criterion : {"loss", "error"}
        Mean loss, or share of samples whose largest logit is not (one of) theirs.
    l1 : float, optional
        :math:`\lambda`, for one stage without a search.
    first_l1 : float, optional
        :math:`\lambda` of the first stage of a search; by default the penalty is then half of what
        the network has learnt. The first stages are the longest, and a very wide network has so
        many weights that have learnt nothing that more is better: try 1e-3.
    max_stages : int
        Limit on the values of :math:`\lambda` that are tried.
    growth : float
        By how much :math:`\lambda` grows after a stage. Slower growth takes longer and leaves fewer
        weights at the same criterion.
    patience : int
        Stages in a row above the limit before the search goes back to the last one that was good
        enough. A criterion on held-out data is noisy: the error of 5,000 samples has a standard
        deviation of 0.2 points. A search for `max_weights` is not ended by the criterion, so it has
        no use for this.
    adaptive : bool
        Whether small weights are penalised more from the second stage on, or from the first one in
        a network most of whose weights are 0.
    warm_epochs, polish_epochs : int
        Passes over the data in small batches at the beginning of a stage, while :math:`\lambda`
        rises, and at its end, where the rate falls to 0. In the end 8 times as many follow, for
        the smallest network whose criterion they bring below the limit.
    train_biases : bool
        Whether the passes train the biases of the chosen layers as well. A network of very few
        weights needs other biases than the one it came from.
    distill : float
        Share of the loss of the passes that compares with the answers of the network
        given instead of the targets. Worth a try (0.5) where a trimmed network still has a training
        error far below the held-out one; no gain beyond the noise was measured.
    augment : callable, optional
        Gets the inputs of a batch and returns as many others that have the same targets: images
        moved by a pixel, say. Called anew for every batch, with random numbers of PyTorch that
        follow from `random_state`. A network that was trained this way should be trimmed this way;
        one that was not can lose more weights. Inputs below the chosen layers are then computed in
        every pass, and the quasi-Newton method sees each sample changed once per layer.
    learning_rate, batch_size : float, int
        Of these passes.
    chunk_size : int
        Samples that are evaluated at once where all are: memory against speed.
    sample_size : int, optional
        Samples that the quasi-Newton method looks at, chosen at random for each layer; by default
        all. Up to 4 times as many, as needed for a variance of the gradient below the squared
        length of the least subgradient: a direction that is mostly noise is not worth a descent.
    tol, max_iter : float, int
        When the quasi-Newton method ends on a layer: at a subgradient `tol` times that of its
        start, or after `max_iter` iterations.
    random_state : int, Generator or RandomState
        Of the order of samples.
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
    _check(locals())
    with torch.random.fork_rng():  # a DataLoader draws a seed
        samples = read_samples("data", data)
        held_out = samples if validation is None else read_samples("validation", validation)
    trimmed = copy_of(module, "deep_trim")
    candidates = candidates_in(trimmed)
    weight = next(iter(candidates.values())).weight
    samples, held_out = samples.beside(weight), held_out.beside(weight)
    for name, own in (("data", samples), ("validation", held_out)):
        refuse_misfit(name, trimmed, own, loss, criterion, distill)
    chosen = choose_layers(trimmed, candidates, layers, samples.take(slice(0, _N_TELLING)))
    if augment is not None:
        refuse_other_inputs(trimmed, samples, augment)
    progress = Progress(1 if l1 is not None else max_stages, n_done=0)
    seed = as_seed(random_state) % 2**63
    trimmer = Trimmer(
        trimmed,
        chosen,
        samples,
        as_loss(loss),
        torch.Generator().manual_seed(seed),
        lambda: progress.stop_requested,
        _biases_of(chosen) if train_biases else {},
        chunk_size,
        distill,
        augment,
    )
    measure = _criterion(trimmer, held_out, criterion, chunk_size)
    stage = Stage(
        trimmer,
        Passes(warm_epochs, learning_rate, batch_size),
        QuasiNewton(tol, max_iter, chunk_size, sample_size),
        Passes(polish_epochs, learning_rate, batch_size),
        adaptive,
    )
    measure_error = _criterion(trimmer, held_out, "error", chunk_size)
    is_classified = isinstance(loss, str)
    search = Search(
        trimmer,
        stage,
        measure,
        _TOLERANCE if tolerance is None else tolerance,
        progress,
        measure_error if is_classified else None,
    )

    def run() -> None:
        with torch.random.fork_rng():
            torch.manual_seed(seed)  # for `augment`
            if l1 is not None:
                search.run_once(l1)
            elif max_weights is not None:
                search.run_to_size(max_weights, first_l1, growth, max_stages)
                search.finish()
            else:
                search.run(first_l1, growth, max_stages, patience)
                search.finish()

    watch(
        run,
        progress,
        n_total=progress.n_total,
        callback=callback,
        verbose=verbose,
        title="deep_trim",
    )
    result = search.result(module)
    if max_weights is not None and result.report.n_after > max_weights:
        warnings.warn(
            f"deep_trim: {result.status}; {result.report.n_after:,} weights are left, more than "
            f"max_weights={max_weights:,} (max_stages={max_stages}, growth={growth:g})",
            ConvergenceWarning,
            stacklevel=3,
        )
    return result


def _check(arguments: Mapping[str, Any]) -> None:
    check_arguments("deep_trim", arguments, _RULES)
    if arguments["growth"] <= LEAST_GROWTH:
        raise ParameterError(
            f"deep_trim.growth must be more than {LEAST_GROWTH}, got {arguments['growth']}"
        )
    aims = ("tolerance", "max_weights", "l1")
    given = [name for name in aims if arguments[name] is not None]
    if len(given) > 1:
        raise ParameterError(
            f"deep_trim.{given[1]} must be None where {given[0]} is given, got "
            f"{show(arguments[given[1]])}"
        )
    if not isinstance(arguments["module"], nn.Module):
        raise ParameterError(
            f"deep_trim.module must be a torch.nn.Module, got {show(arguments['module'])}"
        )


def _biases_of(layers: Mapping[str, nn.Module]) -> dict[str, nn.Parameter]:
    biases = {name: getattr(layer, "bias", None) for name, layer in layers.items()}
    return {name: bias for name, bias in biases.items() if bias is not None}


def _criterion(
    trimmer: Trimmer, samples: Samples, criterion: str, chunk_size: int
) -> Callable[[], float]:
    def loss(logits: Tensor, chunk: Samples) -> float:
        return trimmer.loss(logits, chunk.targets).item()

    def error(logits: Tensor, chunk: Samples) -> float:
        best, targets = logits.argmax(dim=1), chunk.targets
        if targets.ndim < logits.ndim:
            known = targets != IGNORED
            n_wrong = (best != targets).logical_and(known).sum().item()
            return n_wrong / max(1, int(known.sum()))
        return (targets.gather(1, best[:, None]) == 0).double().mean().item()

    kind = loss if criterion == "loss" else error

    def measure() -> float:
        with in_blocks(list(trimmer.layers.values())):
            return evaluate(trimmer.module, samples, chunk_size, kind)

    return measure
