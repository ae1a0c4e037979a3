"""Deep-Trim: far fewer weights of a trained network at a loss that hardly rises."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from sublearn.errors import ParameterError
from sublearn.trace import Callback, Status, Trace, watch
from sublearn.trim.layer_objective import evaluate
from sublearn.trim.losses import Loss, as_loss, count_support_labels
from sublearn.trim.proximal_adam import Passes
from sublearn.trim.report import LayerReport, TrimReport, weights_on_disk
from sublearn.trim.samples import Samples, call, read_samples
from sublearn.trim.trimmer import QuasiNewton, Trimmer, Weights
from sublearn.validation import (
    Boolean,
    CallableOrNone,
    NonNegative,
    OneOf,
    OrNone,
    Positive,
    RandomState,
    Rule,
    Verbosity,
    as_seed,
)
from sublearn.validation.values import show

__all__ = ["TRIMMABLE", "TrimResult", "deep_trim"]

TRIMMABLE = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Embedding)

_RULES: dict[str, Rule] = {
    "tolerance": NonNegative(float),
    "criterion": OneOf("loss", "error"),
    "l1": OrNone(Positive(float)),
    "max_stages": Positive(int),
    "growth": Positive(float),
    "adaptive": Boolean(),
    "warm_epochs": NonNegative(int),
    "polish_epochs": NonNegative(int),
    "learning_rate": Positive(float),
    "batch_size": Positive(int),
    "chunk_size": Positive(int),
    "sample_size": OrNone(Positive(int)),
    "tol": Positive(float),
    "max_iter": NonNegative(int),
    "random_state": RandomState(),
    "verbose": Verbosity(),
    "callback": CallableOrNone(),
}

#: The search for l1 ends when the next step would change it by less than this factor.
_LEAST_GROWTH = 1.1
#: Stages in a row above the limit before going back. A criterion on held-out samples is noisy (the
#: error of 5,000 has a standard deviation of 0.2 points), and one such stage does not end the path.
_MOST_MISSES = 2


@dataclass(frozen=True)
class TrimResult:
    """A trimmed network and how it came about.

    Parameters
    ----------
    module : Module
        A copy of the network with most weights 0; the same class, interface and state names.
    report : TrimReport
        Weights left, the bound of theorem 7, loss and error before and after.
    masks : dict of str to Tensor
        For each trimmed layer, True where a weight is left.
    trace : Trace
        A row for each l1 that was tried.
    status : Status
        Why the search ended: CONVERGED if a larger l1 is known to be too large.
    """

    module: nn.Module = field(repr=False)
    report: TrimReport
    masks: dict[str, Tensor] = field(repr=False)
    trace: Trace = field(repr=False)
    status: Status

    def keep_zeros(self) -> list[Any]:
        """Make further training of `module` leave the removed weights at 0.

        Returns
        -------
        list
            Handles; ``handle.remove()`` ends it.
        """
        layers = dict(self.module.named_modules())
        return [
            layers[name].weight.register_hook(lambda gradient, mask=mask: gradient * mask)
            for name, mask in self.masks.items()
        ]

    def to_sparse(self, *, remove_neurons: bool = True, n_jobs: int | None = None) -> nn.Module:
        """The network with sparse layers, for prediction on a CPU; see :func:`to_sparse`."""
        from sublearn.trim.sparse_network import to_sparse

        return to_sparse(self.module, remove_neurons=remove_neurons, n_jobs=n_jobs)


def deep_trim(
    module: nn.Module,
    data: Any,
    loss: str | Loss = "cross_entropy",
    *,
    layers: Iterable[str] | None = None,
    tolerance: float = 0.01,
    validation: Any = None,
    criterion: str = "loss",
    l1: float | None = None,
    max_stages: int = 12,
    growth: float = 1.6,
    adaptive: bool = True,
    warm_epochs: int = 4,
    polish_epochs: int = 2,
    learning_rate: float = 1e-3,
    batch_size: int = 128,
    chunk_size: int = 4096,
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
    which are quick but leave many tiny weights; the quasi-Newton steps bring these to 0; those that
    are left are trained on without a penalty. After two stages in a row whose criterion is too
    high, the last network that was good enough is taken up again with smaller steps. From the
    second stage on, small weights are penalised more than large ones (`adaptive`).

    Biases, normalisation and all else that is not a weight of a chosen layer stays as it is: the
    network is trimmed in evaluation mode. `module` itself is not changed.

    Parameters
    ----------
    module : Module
        A trained network. It may return logits, an object with `logits`, or a tuple that begins
        with them.
    data : (inputs, targets), Dataset or DataLoader
        The training data. `inputs` is a tensor or an array, a tuple of them, or a dict of them by
        name of the argument. All is held in memory.
    loss : {"cross_entropy", "max_margin"} or callable
        Of logits and targets, to the mean loss of the batch. Targets are class numbers or rows of
        0 and 1.
    layers : iterable of str, optional
        Names of the layers to trim, as in ``module.named_modules()``; by default all fully
        connected, convolution and embedding layers.
    tolerance : float
        How much the criterion may rise above that of the network given.
    validation : (inputs, targets), Dataset or DataLoader, optional
        Where the criterion is measured; by default on `data`. A network that has learnt its
        training data by heart has a training loss near 0, which a smaller one cannot and need not
        have: then held-out data say better what may go.
    criterion : {"loss", "error"}
        Mean loss, or share of samples whose largest logit is not (one of) theirs.
    l1 : float, optional
        :math:`\lambda`, for one stage without a search.
    max_stages : int
        Limit on the values of :math:`\lambda` that are tried.
    growth : float
        By how much :math:`\lambda` grows after a stage.
    adaptive : bool
        Whether small weights are penalised more from the second stage on.
    warm_epochs, polish_epochs : int
        Passes over the data in small batches at the beginning and at the end of a stage.
    learning_rate, batch_size : float, int
        Of these passes.
    chunk_size : int
        Samples that are evaluated at once where all are: memory against speed.
    sample_size : int, optional
        Samples that the quasi-Newton method looks at, chosen at random; by default all. The number
        is doubled, up to all, until the variance of the gradient is below the squared length of
        the least subgradient: a direction that is mostly noise is not worth a long descent.
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
    samples = read_samples("data", data)
    held_out = samples if validation is None else read_samples("validation", validation)
    trimmed = copy.deepcopy(module).eval()
    chosen = _choose(trimmed, layers)
    device = next(iter(chosen.values())).weight.device
    monitor = _TrimMonitor()
    trimmer = Trimmer(
        trimmed,
        chosen,
        samples.to(device),
        as_loss(loss),
        torch.Generator().manual_seed(as_seed(random_state) % 2**63),
        lambda: monitor.stop_requested,
    )
    measure = _criterion(trimmer, held_out.to(device), criterion, chunk_size)
    stage = _Stage(
        trimmer,
        Passes(warm_epochs, learning_rate, batch_size),
        QuasiNewton(tol, max_iter, chunk_size, sample_size),
        Passes(polish_epochs, learning_rate, batch_size),
        adaptive,
    )
    search = _Search(trimmer, stage, measure, tolerance, monitor)
    watch(
        lambda: search.run(l1, growth, 1 if l1 is not None else max_stages),
        monitor,
        n_total=1 if l1 is not None else max_stages,
        callback=callback,
        verbose=verbose,
        title="deep_trim",
    )
    return search.result(module)


class _TrimMonitor:
    """The counters that `sublearn.trace.watch` looks at."""

    def __init__(self) -> None:
        self.n_done = self.nnz_primal = self.nnz_dual = self.work = 0
        self.objective = self.gap = 0.0
        self.stop_requested = False

    def request_stop(self) -> None:
        self.stop_requested = True


@dataclass(frozen=True)
class _Stage:
    """What is done for one l1."""

    trimmer: Trimmer
    warm: Passes
    quasi_newton: QuasiNewton
    polish: Passes
    is_adaptive: bool

    def run(self, l1: float, is_first: bool) -> dict[str, int]:
        """Leaves the trimmer with the new weights; returns the bound of theorem 7 by layer."""
        trimmer = self.trimmer
        penalties = trimmer.penalties(l1, self.is_adaptive and not is_first)
        if self.warm.n_epochs:
            trimmer.descend(self.warm, penalties)
        if self.quasi_newton.max_iter:
            for name in reversed(penalties):
                trimmer.solve_layer(name, penalties[name], self.quasi_newton)
        bounds = dict.fromkeys(penalties, self._n_support_labels())
        if self.polish.n_epochs:
            trimmer.polish(self.polish, self.quasi_newton.chunk_size)
        return bounds

    def _n_support_labels(self) -> int:
        trimmer = self.trimmer
        total = 0
        with torch.no_grad():
            for chunk in trimmer.samples.chunks(self.quasi_newton.chunk_size):
                logits = call(trimmer.module, chunk.inputs)
                total += count_support_labels(logits, chunk.targets, trimmer.loss)
        return total


class _Search:
    """Tries stages of growing l1, keeps the last that the criterion allows."""

    def __init__(
        self,
        trimmer: Trimmer,
        stage: _Stage,
        measure: Callable[[], float],
        tolerance: float,
        monitor: _TrimMonitor,
    ):
        self._trimmer, self._stage, self._measure, self._monitor = trimmer, stage, measure, monitor
        self._chunk_size = stage.quasi_newton.chunk_size
        self._start = trimmer.weights()
        self._before = (trimmer.mean_loss(self._chunk_size), measure())
        if not all(math.isfinite(value) for value in self._before):
            raise ParameterError(
                f"deep_trim: module must have a finite loss on the data, got {self._before[0]}"
            )
        self._limit = self._before[1] + tolerance
        self._current = self._start
        self._best: Weights | None = None
        self._best_row: dict[str, float] = {}
        self._bounds: dict[str, int] = {}
        self._stationarity: dict[str, float] = {}
        self._rows: list[dict[str, float]] = []
        self._status = Status.MAX_ITER
        self._clock = time.perf_counter()

    def run(self, l1: float | None, growth: float, n_stages: int) -> None:
        is_fixed, accepted, n_misses = l1 is not None, None, 0
        step = growth
        trial = l1 if l1 is not None else self._first_l1()
        for _ in range(n_stages):
            is_allowed = self._try(trial) or is_fixed
            if self._monitor.stop_requested:
                return
            if is_allowed:
                self._accept()
                accepted, n_misses, trial = trial, 0, trial * step
            elif accepted is None:
                self._current = self._start
                trial /= 4 * step
            else:
                n_misses += 1
                trial *= step
            if n_misses == _MOST_MISSES:
                assert self._best is not None
                assert accepted is not None
                self._current, n_misses = self._best, 0
                step = math.sqrt(step)
                trial = accepted * step
            if is_fixed or step < _LEAST_GROWTH:
                self._status = Status.CONVERGED
                return

    def _first_l1(self) -> float:
        """Where the penalty of the weights given is half the loss of a network without weights.

        By comparison with that loss, because it depends on neither the scale of the weights nor
        their number.
        """
        size = sum(float(weight.abs().sum()) for weight in self._start.values())
        self._trimmer.put({name: torch.zeros_like(w) for name, w in self._start.items()})
        empty = self._trimmer.mean_loss(self._chunk_size)
        self._trimmer.put(self._start)
        worth = empty - self._before[0]
        scale = worth if math.isfinite(worth) and worth > 0 else max(self._before[0], 1.0)
        return 0.5 * scale / max(size, 1e-30)

    def _try(self, l1: float) -> bool:
        """A stage from the last weights; whether the criterion allows what it leaves."""
        is_first = self._best is None
        self._trimmer.put(self._current)
        self._stage_bounds = self._stage.run(l1, is_first)
        loss, value = self._trimmer.mean_loss(self._chunk_size), self._measure()
        self._current, n_weights = self._trimmer.weights(), self._trimmer.n_weights()
        is_allowed = value <= self._limit
        self._rows.append(
            {
                "seconds": time.perf_counter() - self._clock,
                "l1": l1,
                "loss": loss,
                "criterion": value,
                "n_weights": n_weights,
                "is_accepted": float(is_allowed),
            }
        )
        monitor = self._monitor
        monitor.n_done += 1
        monitor.objective, monitor.nnz_primal = loss, n_weights
        monitor.gap = max(0.0, value - self._before[1])
        return is_allowed

    def _accept(self) -> None:
        self._best = self._current
        self._best_row = self._rows[-1]
        self._bounds = self._stage_bounds
        self._stationarity = dict(self._trimmer.stationarity)

    def result(self, module: nn.Module) -> TrimResult:
        trimmer = self._trimmer
        weights = self._start if self._best is None else self._best
        trimmer.put(weights)
        parameters = dict(trimmer.module.named_parameters())
        for name, parameter in module.named_parameters():
            parameters[name].requires_grad_(parameter.requires_grad)
        for name, part in module.named_modules():  # back to the mode it came in
            trimmer.module.get_submodule(name).training = part.training
        masks = {name: weight != 0 for name, weight in weights.items()}
        columns = {key: [row[key] for row in self._rows] for key in (self._rows or [{}])[0]}
        return TrimResult(
            module=trimmer.module,
            report=self._report(weights),
            masks=masks,
            trace=Trace(columns),
            status=Status.STOPPED if self._monitor.stop_requested else self._status,
        )

    def _report(self, weights: Weights) -> TrimReport:
        layers = [
            LayerReport(
                name=name,
                kind=type(self._trimmer.layers[name]).__name__,
                shape=tuple(weight.shape),
                n_before=int(torch.count_nonzero(self._start[name])),
                n_after=int(torch.count_nonzero(weight)),
                bound=self._bounds.get(name),
                stationarity=self._stationarity.get(name),
            )
            for name, weight in weights.items()
        ]
        loss = self._best_row.get("loss", self._before[0])
        return TrimReport(
            layers=layers,
            l1=self._best_row.get("l1", 0.0),
            loss_before=self._before[0],
            loss_after=loss,
            criterion_before=self._before[1],
            criterion_after=self._best_row.get("criterion", self._before[1]),
            bytes_dense=weights_on_disk(self._start, is_sparse=False),
            bytes_sparse=weights_on_disk(weights, is_sparse=True),
        )


def _check(arguments: Mapping[str, Any]) -> None:
    for name, rule in _RULES.items():
        if not rule.accepts(arguments[name]):
            raise ParameterError(f"deep_trim: {name} must be {rule}, got {show(arguments[name])}")
    if arguments["growth"] <= _LEAST_GROWTH:
        raise ParameterError(
            f"deep_trim: growth must be more than {_LEAST_GROWTH}, got {arguments['growth']}"
        )
    if not isinstance(arguments["module"], nn.Module):
        raise ParameterError(
            f"deep_trim: module must be a torch.nn.Module, got {show(arguments['module'])}"
        )


def _choose(module: nn.Module, names: Iterable[str] | None) -> dict[str, nn.Module]:
    candidates = {name: part for name, part in module.named_modules() if _is_trimmable(part)}
    if names is None:
        if not candidates:
            raise ParameterError(
                "deep_trim: module must have a fully connected, convolution or embedding layer, "
                f"got {show(type(module).__name__)}"
            )
        return candidates
    if isinstance(names, str):
        names = [names]
    wanted = list(names)
    unknown = [name for name in wanted if name not in candidates]
    if unknown or not wanted:
        raise ParameterError(
            f"deep_trim: layers must be names of layers that can be trimmed "
            f"({', '.join(candidates)}), got {show(unknown[0] if unknown else wanted)}"
        )
    return {name: part for name, part in candidates.items() if name in set(wanted)}


def _is_trimmable(part: nn.Module) -> bool:
    return isinstance(part, TRIMMABLE) and isinstance(part.weight, nn.Parameter)


def _criterion(
    trimmer: Trimmer, samples: Samples, criterion: str, chunk_size: int
) -> Callable[[], float]:
    def loss(logits: Tensor, chunk: Samples) -> float:
        return trimmer.loss(logits, chunk.targets).item()

    def error(logits: Tensor, chunk: Samples) -> float:
        best, targets = logits.argmax(dim=1), chunk.targets
        if targets.ndim < logits.ndim:
            return (best != targets).double().mean().item()
        return (targets.gather(1, best[:, None]) == 0).double().mean().item()

    kind = loss if criterion == "loss" else error
    return lambda: evaluate(trimmer.module, samples, chunk_size, kind)
