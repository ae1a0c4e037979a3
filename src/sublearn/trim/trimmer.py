"""The steps that trimming is made of, and the weights they leave."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from sublearn.optim import lhac
from sublearn.trim.blocks import Block, in_blocks
from sublearn.trim.layer_objective import (
    LayerObjective,
    evaluate,
    layer_objective,
    only_gradient_of,
)
from sublearn.trim.losses import Loss, count_support_labels, divergence
from sublearn.trim.proximal_adam import Passes, Trained, train
from sublearn.trim.replay import Batch, answers_of
from sublearn.trim.samples import Samples, call
from sublearn.trim.settings import QuasiNewton, Retraining
from sublearn.trim.units import Units

__all__ = ["Fit", "Shrunk", "Snapshot", "Trimmer", "Weights"]

#: The weights of the layers by name.
Weights = dict[str, Tensor]

#: A part of the samples that is mostly noise is taken at most this many times as large.
_MOST_TIMES = 4
#: Samples that are changed by one call: a function that moves all of a batch by the same distance
#: should be called often.
_AUGMENTED_AT_ONCE = 128
#: Changed samples that tell whether a polish was for the worse.
_JUDGED = 8192
#: A sparse tensor has up to five indices of 8 bytes for each of its weights.
_FEW = 16
#: A weight of 0 is penalised 1 / this times as much as one of mean size, about.
_LEAST_SHARE = 0.1


@dataclass(frozen=True)
class Snapshot:
    """Copies of all that trimming may change; a search keeps a dozen of them."""

    kept: Weights  # sparse tensors where that takes less memory
    biases: list[Tensor]

    @classmethod
    def of(cls, weights: Weights, biases: Iterable[Tensor]) -> Snapshot:
        """Copies of tensors."""
        return cls(
            {name: _compact_copy(weight) for name, weight in weights.items()},
            [bias.detach().clone() for bias in biases],
        )

    @property
    def weights(self) -> Weights:
        """The weights by layer, dense."""
        return {
            name: weight.to_dense() if weight.is_sparse else weight
            for name, weight in self.kept.items()
        }


def _compact_copy(weight: Tensor) -> Tensor:
    is_small = _FEW * int(torch.count_nonzero(weight)) < weight.numel()
    return weight.to_sparse() if is_small else weight.clone()


@dataclass(frozen=True)
class Fit:
    """How the network does on all samples."""

    loss: float
    n_support_labels: int  # of definition 1


@dataclass(frozen=True)
class Shrunk:
    """Where a stage ends before its polish, and the next one goes on."""

    l1: float | None  # None for the network given
    snapshot: Snapshot
    bound: int | None  # of theorem 7, the same for each layer
    stationarity: dict[str, float]


class Trimmer:
    """A network, the layers to trim and the data it is trimmed for."""

    def __init__(
        self,
        module: nn.Module,
        layers: Mapping[str, nn.Module],
        samples: Samples,
        loss: Loss,
        generator: torch.Generator,
        is_stopped: Callable[[], bool],
        retraining: Retraining | None = None,
        quasi_newton: QuasiNewton | None = None,
        units: Units | None = None,
    ):
        """`units` go as a whole, if they are given."""
        self.module, self.layers, self.samples, self.loss = module, dict(layers), samples, loss
        self._generator, self._is_stopped, self._units = generator, is_stopped, units
        self.retraining, self._limits = Retraining.of(retraining), QuasiNewton.of(quasi_newton)
        self._augment, self._chunk_size = self.retraining.augment, self._limits.chunk_size
        biases = [getattr(layer, "bias", None) for layer in self.layers.values()]
        is_trained = self.retraining.train_biases
        self._biases = [bias for bias in biases if is_trained and bias is not None]
        self._stationarity: dict[str, float] = {}
        self._fit: Fit | None = None
        self._answers = answers_of(
            module, self.layers.values(), samples, self._chunk_size, self._augment
        )
        # The network given: its answers, or itself where no input comes twice.
        self._given: Tensor | nn.Module | None = None
        if self.retraining.distill and self._augment is None:
            self._given = torch.cat([logits for logits, _ in self._all_answers()])
        elif self.retraining.distill:
            self._given = copy.deepcopy(module)

    # --- the state -------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """The network as it is."""
        return Snapshot.of(self._weights(), self._biases)

    def _weights(self) -> Weights:
        return {name: layer.weight.detach() for name, layer in self.layers.items()}

    @torch.no_grad()
    def put(self, snapshot: Snapshot) -> None:
        """Go back to what the network was."""
        self._fit = None
        for name, weight in snapshot.weights.items():
            self.layers[name].weight.copy_(weight)
        for bias, value in zip(self._biases, snapshot.biases, strict=True):
            bias.copy_(value)

    def n_weights(self) -> int:
        """How many weights are not 0."""
        return sum(int(torch.count_nonzero(weight)) for weight in self._weights().values())

    def size(self) -> int:
        """What a search makes small: weights that are not 0, or those between living units."""
        return self.n_weights() if self._units is None else self._units.n_dense(self.module)

    def is_mostly_zero(self) -> bool:
        """Whether the network has been trimmed before: which weights it needs is told by size."""
        n_all = sum(layer.weight.numel() for layer in self.layers.values())
        return 2 * self.n_weights() < n_all

    def fit(self) -> Fit:
        """Mean loss and support labels over all samples; kept until a weight changes."""
        if self._fit is None:
            total, n_support_labels = 0.0, 0
            for logits, targets in self._all_answers():
                total += self.loss(logits, targets).item() * len(targets)
                n_support_labels += count_support_labels(logits, targets, self.loss)
            self._fit = Fit(total / len(self.samples), n_support_labels)
        return self._fit

    @torch.no_grad()
    def _all_answers(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Logits and targets of all samples, a chunk at a time."""
        with in_blocks(list(self.layers.values())), self._answers.active():
            yield from self._answers.in_order(self._chunk_size)

    def mean(self, measure: Loss, samples: Samples) -> float:
        """The mean of a measure over other samples."""
        with in_blocks(list(self.layers.values())):
            return evaluate(self.module, samples, self._chunk_size, measure)

    def penalties(self, l1: float, is_adaptive: bool) -> Weights:
        r"""The penalty of each weight: l1, or :math:`l_1 \bar w / (|w_j| + 0.1 \bar w_j)`.

        The second is the first-order majoriser of the concave penalty :math:`\log(|w| + 0.1 \bar
        w_j)` at the present weights, where :math:`\bar w_j` is the mean size of the layer's weights
        that are left and :math:`\bar w` that of all layers. Large weights hardly shrink any more,
        small ones go. Every weight costs the same, whatever the scale of its layer: a rectified
        network is the same function if one layer is doubled and the next one halved.
        """
        weights, n_all = self._weights(), self.n_weights()
        if not (is_adaptive or self._units) or not n_all:
            return {name: torch.full_like(weight, l1) for name, weight in weights.items()}
        sizes = {name: float(weight.abs().sum()) for name, weight in weights.items()}
        mean = sum(sizes.values()) / n_all
        penalties = {}
        for name, weight in weights.items():
            own = sizes[name] / int(torch.count_nonzero(weight)) if sizes[name] else mean
            groups = (self._units.sizes(name) if self._units else []) or [weight.abs()]
            rates = [1.0 / (size + _LEAST_SHARE * own) for size in groups]
            penalties[name] = l1 * mean * torch.stack(rates).mean(0)
        return penalties

    # --- the steps -------------------------------------------------------------------------------

    def shrink(self, l1: float, before: float | None, is_adaptive: bool) -> Shrunk:
        """Bring weights to 0: passes while l1 rises, then each layer to high precision.

        `before` is the l1 that the weights come from, None for those of the network given. By
        theorem 7, a stationary point has no more weights in a layer than there are support labels.
        """
        is_adaptive = is_adaptive and (before is not None or self.is_mostly_zero())
        for once in self._passes(self.retraining.warm_epochs).one_by_one():
            rising = l1 if before is None else before * (l1 / before) ** once.part[1]
            self.descend(once, self.penalties(rising, is_adaptive))
        penalties = self.penalties(l1, is_adaptive)
        if self._limits.max_iter:
            for name in reversed(penalties):
                self.solve_layer(name, penalties[name])
        if self._units:
            self._units.drop_dead()
            self._fit = None
        bound = self.fit().n_support_labels
        return Shrunk(l1, self.snapshot(), bound, dict(self._stationarity))

    def polish(self, factor: int = 1) -> None:
        """Train the weights that are left without a penalty; taken back if the loss rises.

        `factor` times as many passes as a stage has.
        """
        passes = self._passes(factor * self.retraining.polish_epochs)
        if not passes.n_epochs:
            return
        before, judge = self.snapshot(), self._judge()
        loss = judge()
        self.descend(passes, None)
        after = judge()
        if not (math.isfinite(after) and after <= loss):
            self.put(before)

    def _passes(self, n_epochs: int) -> Passes:
        return Passes(n_epochs, self.retraining.learning_rate, self.retraining.batch_size)

    def descend(self, passes: Passes, penalties: Weights | None) -> None:
        """Proximal steps on all layers at once, or plain ones on the weights that are left."""
        self._fit = None
        with (
            only_gradient_of(self.module, self._biases),
            in_blocks(list(self.layers.values())) as blocks,
            self._answers.active(),
        ):
            parts = [
                self._trained(name, block, penalties)
                for name, block in zip(self.layers, blocks, strict=True)
            ]
            parts += [Trained(bias, is_free=True) for bias in self._biases]
            train(self._answers, parts, self._loss_of, passes, self._generator, self._is_stopped)

    def _trained(self, name: str, block: Block, penalties: Weights | None) -> Trained:
        """A layer under its penalties, or those of its weights that are left."""
        if penalties is not None:
            return Trained(block.weight, block.part_of(penalties[name]))
        alive = self._units and block.part_of(self._units.alive(name))
        return Trained(block.weight, support=alive)

    def _loss_of(self, batch: Batch) -> Tensor:
        """What passes minimise, besides the penalty."""
        loss = self.loss(batch.logits, self.samples.targets[batch.rows])
        if self._given is None:
            return loss
        other = divergence(batch.logits, self._answers_given(batch))
        return torch.lerp(loss, other, self.retraining.distill)

    @torch.no_grad()
    def _answers_given(self, batch: Batch) -> Tensor:
        if isinstance(self._given, Tensor):
            return self._given[batch.rows]
        assert self._given is not None
        assert batch.changed is not None
        return call(self._given, batch.changed.inputs)

    def solve_layer(self, name: str, penalty: Tensor) -> None:
        """Minimise (2.51) over one layer from its present weights; F never rises."""
        self._fit = None
        layer = self.layers[name]
        others = [other for other in self.layers.values() if other is not layer]
        weights = penalty.double().reshape(-1).cpu().numpy()
        with only_gradient_of(self.module, [layer.weight]), in_blocks(others):
            objective = self._objective(layer, weights)
            solution = lhac(
                objective,
                objective.start(),
                weights,
                tol=self._limits.violation_tol,
                max_iter=self._limits.max_iter,
                callback=lambda _: self._is_stopped(),
            )
            objective.put(solution.x)
        self._stationarity[name] = solution.certificate

    def _objective(self, layer: nn.Module, penalty: np.ndarray) -> LayerObjective:
        """Over all samples, or over a part, enlarged if that is mostly noise."""
        n_samples, chunk_size = len(self.samples), self._chunk_size
        size = self._limits.sample_size or n_samples
        if size < n_samples:
            few = min(chunk_size, max(1, size // 8))  # eight chunks or more, to see a variance
            objective = layer_objective(self.module, layer, self._drawn(size), self.loss, few)
            times = objective.noise(objective.start(), penalty)
            if times <= 1:
                return objective
            size = math.ceil(size * min(times, _MOST_TIMES))
        return layer_objective(self.module, layer, self._drawn(size), self.loss, chunk_size)

    def _drawn(self, size: int) -> Samples:
        """Some of the samples, or all in order, each changed once if there is an `augment`."""
        samples = self.samples
        if size < len(samples):
            rows = torch.randperm(len(samples), generator=self._generator)[:size]
            samples = samples.take(rows.to(samples.targets.device))
        if self._augment is None:
            return samples
        return samples.changed_in_parts(self._augment, _AUGMENTED_AT_ONCE)

    def _judge(self) -> Callable[[], float]:
        """The mean loss over all samples, or over some that have been changed once."""
        if self._augment is None:
            return lambda: self.fit().loss
        some = self._drawn(_JUDGED)
        return lambda: self.mean(self.loss, some)
