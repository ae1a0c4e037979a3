"""Which layer's outputs are another's inputs: what ``torch.fx`` sees of a network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, fx, nn
from torch.nn import functional

from sublearn.trim.network_steps import StepNetwork
from sublearn.trim.sparse_layers import SparseConv, SparseEmbedding, SparseLinear, SparseStack

__all__ = ["Pair", "pairs_of", "trace", "whole_sequences"]

_SPARSE = (SparseConv, SparseEmbedding, SparseLinear, SparseStack)
_LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
#: Modules and functions that treat each value alone and are themselves without parameters.
_ELEMENTWISE = (
    nn.ReLU, nn.LeakyReLU, nn.ELU, nn.GELU, nn.SiLU, nn.Sigmoid, nn.Tanh, nn.Softplus, nn.Hardtanh,
    nn.ReLU6, nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d,
)  # fmt: skip
_POOLS = (
    nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d,
    nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d,
)  # fmt: skip
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_FUNCTIONS = {
    functional.relu, torch.relu, torch.sigmoid, torch.tanh, functional.gelu, functional.leaky_relu,
    functional.silu, functional.elu, functional.dropout,
}  # fmt: skip
_POOLING_FUNCTIONS = {
    functional.max_pool1d, functional.max_pool2d, functional.max_pool3d, functional.avg_pool2d,
    functional.adaptive_avg_pool2d,
}  # fmt: skip
_METHODS = {"relu", "sigmoid", "tanh", "contiguous"}


@dataclass
class Pair:
    """Two layers, the second of which reads the first alone, and the steps between them."""

    source: nn.Module
    target: nn.Module
    nodes: list[fx.Node]  # from the first layer to the second
    modules: dict[str, nn.Module]

    def _steps(self) -> Iterator[tuple[fx.Node, nn.Module | None]]:
        """What happens between the layers, with the module that does it."""
        for node in self.nodes[1:-1]:
            yield node, _module_of(node, self.modules)

    def apply(self, values: Tensor) -> Tensor:
        """What becomes of one value per unit on the way; pooling and flattening leave it alone."""
        values = values.clone()  # a rectifier may work in place
        for node, module in self._steps():
            if isinstance(module, _NORMS):
                values = _normalised(module, values)
            elif isinstance(module, _ELEMENTWISE):
                values = module(values)
            elif node.op == "call_function" and node.target in _FUNCTIONS:
                values = node.target(values, *node.args[1:], **node.kwargs)
            elif node.op == "call_method" and node.target in _METHODS:
                values = getattr(values, str(node.target))()
        return values

    def keep_norms(self, keep: Tensor) -> None:
        """Drop the units from the normalisations on the way."""
        for _, module in self._steps():
            if isinstance(module, _NORMS):
                for name in ("weight", "bias", "running_mean", "running_var"):
                    value = getattr(module, name)
                    if value is not None:
                        value.data = value.data[keep].clone()
                module.num_features = int(keep.sum())


class _Tracer(fx.Tracer):
    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[nn.Module] = Counter()

    def call_module(self, m: nn.Module, forward: object, args: object, kwargs: object) -> object:
        self.calls[m] += 1
        return super().call_module(m, forward, args, kwargs)

    def create_args_for_root(
        self, root_fn: object, is_module: bool, concrete_args: object = None
    ) -> tuple[object, list[object]]:
        if not isinstance(self.root, StepNetwork):
            return super().create_args_for_root(root_fn, is_module, concrete_args)
        inputs = [
            self.create_proxy("placeholder", step.target, step.args, {})
            for step in self.root.inputs
        ]
        return root_fn, [self.root, *inputs]

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, _SPARSE) or super().is_leaf_module(m, module_qualified_name)


def trace(module: nn.Module) -> fx.Graph:
    """The network's graph; raises what ``torch.fx`` raises if it cannot be had."""
    return _Tracer().trace(module)


def pairs_of(module: nn.Module) -> list[Pair]:
    """Layers that feed one other layer and nothing else; none if the network cannot be traced."""
    try:
        graph = trace(module)
    except Exception:  # torch.fx raises many kinds, for whatever it does not understand
        return []
    modules = dict(module.named_modules())
    calls: Counter[str] = Counter()
    for node in graph.nodes:
        if node.op == "call_module":
            calls[node.target] += 1
        if node.op == "get_attr":  # a weight that is read beside its layer keeps its shape
            calls[node.target.rpartition(".")[0]] += 2
    pairs = []
    for node in graph.nodes:
        if node.op != "call_module" or not _is_plain(modules[node.target]):
            continue
        pair = _follow(node, modules)
        if pair is not None and all(calls[str(step.target)] < 2 for step in pair.nodes):
            pairs.append(pair)
    return pairs


def whole_sequences(module: nn.Module) -> set[nn.Module]:
    """The ``nn.Sequential`` parts whose own parts no one calls, or picks out, beside them."""
    tracer = _Tracer()
    try:
        tracer.trace(module)
    except Exception:  # then only what a sequence of sequences calls is known
        tracer.calls.clear()
    sequences = [part for part in module.modules() if type(part) is nn.Sequential]
    calls = {module: 1} | tracer.calls
    by_sequences: Counter[nn.Module] = Counter()
    for part in sequences:  # those outside come before those inside
        for inner in part:
            by_sequences[inner] += calls.get(part, 0)
        if not tracer.calls:
            calls |= {inner: by_sequences[inner] for inner in part if part in calls}
    return {
        part
        for part in sequences
        if part in calls and all(calls.get(inner) == by_sequences[inner] for inner in part)
    }


def _module_of(node: fx.Node, modules: dict[str, nn.Module]) -> nn.Module | None:
    return modules.get(str(node.target)) if node.op == "call_module" else None


def _is_plain(layer: nn.Module) -> bool:
    """Whether the layer is no more than its weights: not made from others, not normalised."""
    return (
        type(layer) in _LAYERS
        and getattr(layer, "groups", 1) == 1
        and isinstance(layer._parameters.get("weight"), nn.Parameter)
    )


def _follow(start: fx.Node, modules: dict[str, nn.Module]) -> Pair | None:
    source = modules[str(start.target)]
    nodes, is_flat = [start], isinstance(source, nn.Linear)
    while len(nodes[-1].users) == 1:
        (node,) = nodes[-1].users
        nodes.append(node)
        module = _module_of(node, modules)
        if module is not None and _is_plain(module):
            pair = Pair(source, module, nodes, modules)
            return pair if isinstance(module, nn.Linear) == is_flat and _fits(pair) else None
        kind = _kind(node, module)
        if kind is None or not _is_by_unit(node, module, source):
            return None
        is_flat = is_flat or kind == "flatten"
    return None


def _is_by_unit(node: fx.Node, module: nn.Module | None, source: nn.Module) -> bool:
    """Whether a step leaves the units of the first layer where they are, each by itself."""
    if len(node.args) == 0 or len(node.all_input_nodes) != 1:
        return False
    if isinstance(module, _NORMS):  # of another axis, or by the batch
        n_units = source.weight.shape[0]
        return module.num_features == n_units and module.running_mean is not None
    is_pool = isinstance(module, _POOLS) or node.target in _POOLING_FUNCTIONS
    return not (is_pool and isinstance(source, nn.Linear))  # it would pool the units


def _fits(pair: Pair) -> bool:
    """Whether the columns of the second layer lie unit by unit."""
    n_units, n_columns = pair.source.weight.shape[0], pair.target.weight.shape[1]
    if isinstance(pair.source, nn.Linear):  # flattening (samples, time, units) would mix them
        return n_units == n_columns
    return n_columns % n_units == 0


def _kind(node: fx.Node, module: nn.Module | None) -> str | None:
    """Whether a step flattens, is another one that is known, or None."""
    if isinstance(module, nn.Flatten):
        return "flatten" if (module.start_dim, module.end_dim) == (1, -1) else None
    if module is not None:
        return "step" if isinstance(module, (*_ELEMENTWISE, *_POOLS, *_NORMS)) else None
    if node.target in (torch.flatten, "flatten"):
        return "flatten" if node.args[1:] == (1,) and not node.kwargs else None
    known = _METHODS if node.op == "call_method" else _FUNCTIONS | _POOLING_FUNCTIONS
    return "step" if node.target in known else None


def _normalised(norm: nn.Module, values: Tensor) -> Tensor:
    scaled = (values - norm.running_mean) / torch.sqrt(norm.running_var + norm.eps)
    return scaled if norm.weight is None else scaled * norm.weight + norm.bias
