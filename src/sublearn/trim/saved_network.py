"""Trimmed networks in files: the steps as data, the weights as arrays, no code and no pickle.

A file holds the steps of the network as ``torch.fx`` sees them. What it may name is on two closed
lists: layers and their settings in :mod:`sublearn.trim.network_layers`, functions and methods in
:mod:`sublearn.trim.network_ops`. A network loads where its class is unknown, and runs without a
line of source being made from it. What is saved is read back before it is written, by the same
functions, so that whatever `save_network` writes, `load_network` takes.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, fx, nn

from sublearn.errors import ModelFileError
from sublearn.io.bundle import Bundle, load_bundle, save_bundle
from sublearn.io.files import PathLike
from sublearn.trim.graph import trace
from sublearn.trim.network_layers import below, describe_layer, make_layer, tensors_of
from sublearn.trim.network_ops import name_of
from sublearn.trim.network_steps import StepNetwork, read_steps, refuse_path
from sublearn.validation.values import show

__all__ = ["SparseNetwork", "load_network", "save_network"]


class SparseNetwork(StepNetwork):
    """A network from a file: its steps, with the layers it was saved with.

    The first call with inputs of new shapes runs on shapes alone, and refuses steps that do not
    fit them or would take more than `max_bytes`.
    """

    _kind: ClassVar[str] = "row_scores"

    @staticmethod
    def _from_bundle(bundle: Bundle) -> SparseNetwork:
        try:
            return _network(bundle.attributes, bundle.arrays).eval()
        except (ValueError, RecursionError) as error:
            raise ModelFileError(f"{bundle.path}: {error}") from error

    def save(self, path: PathLike) -> None:
        """Write the network to another file."""
        save_network(self, path)


def save_network(module: nn.Module, path: PathLike) -> None:
    """Write a network, usually from :func:`to_sparse`, to one file.

    Parameters
    ----------
    module : Module
        A network that ``torch.fx`` can trace: its `forward` does not decide by the values of
        tensors.
    path : path
        Replaced atomically. :func:`load_network` and ``sublearn.load`` read it.

    Raises
    ------
    ValueError
        If the network cannot be traced, or has a layer, function or value that a file may not
        name.
    """
    if not isinstance(module, nn.Module):
        raise ValueError(f"save_network.module must be a torch.nn.Module, got {show(module)}")
    is_training = {part: part.training for part in module.modules()}
    try:
        graph = trace(module.eval())
    except Exception as error:
        raise ValueError(
            f"save_network.module must be a network that torch.fx can trace, got "
            f"{type(module).__name__}: {error}"
        ) from error
    finally:  # the network is the caller's, who may train on
        for part, mode in is_training.items():
            part.training = mode
    layers = {
        node.target: module.get_submodule(str(node.target))
        for node in graph.nodes
        if node.op == "call_module"
    }
    try:
        arrays = _arrays(graph, module, layers)
        attributes = {
            "steps": [_step(node) for node in graph.nodes],
            "parts": {name: describe_layer(part) for name, part in layers.items()},
        }
        again = _network(attributes, arrays)
        for name, part in layers.items():
            _refuse_loss(name, part, again.get_submodule(name))
    except ValueError as error:
        raise ValueError(
            f"save_network.module must be a network that a file can hold, got "
            f"{type(module).__name__}: {error}"
        ) from error
    save_bundle(path, class_name="SparseNetwork", params={}, arrays=arrays, attributes=attributes)


def load_network(path: PathLike) -> SparseNetwork:
    """Open a network saved by :func:`save_network`; its class need not be known.

    Parameters
    ----------
    path : path
        The file. It may come from a stranger: it can only name layers and functions of closed
        lists, and is refused where its parts do not fit together.

    Returns
    -------
    Module
        In evaluation mode.

    Raises
    ------
    ModelFileError
        If the file holds no network, or one that is not made as `save_network` makes it.
    """
    return SparseNetwork._from_bundle(load_bundle(path, class_name="SparseNetwork"))


# --- writing -------------------------------------------------------------------------------------


def _arrays(
    graph: fx.Graph, module: nn.Module, layers: Mapping[str, nn.Module]
) -> dict[str, np.ndarray]:
    """Tensors of the layers, and those that steps read beside them."""
    arrays = {
        f"{name}.{key}": _array(value)
        for name, part in layers.items()
        for key, value in part.state_dict().items()
    }
    for node in graph.nodes:
        if node.op == "get_attr":
            arrays[node.target] = _array(operator.attrgetter(node.target)(module))
    return arrays


def _array(value: Tensor) -> np.ndarray:
    if value.dtype is torch.bfloat16:
        raise ValueError(
            f"tensors must be of types that NumPy knows, got {value.dtype}; module.float() has"
        )
    return value.detach().cpu().contiguous().numpy()


def _refuse_loss(name: str, part: nn.Module, again: nn.Module) -> None:
    """A layer that came out with other settings than it went in with."""
    for key, value in vars(again).items():
        given = vars(part).get(key)
        is_setting = not key.startswith("_") and key not in ("training", "n_threads")
        if is_setting and isinstance(given, _PLAIN) and given != value:
            raise ValueError(f"parts.{name}: {key} would be {value!r} instead of {given!r}")


_PLAIN = (bool, int, float, str, tuple)


def _step(node: fx.Node) -> dict[str, object]:
    target = name_of(node.target) if node.op == "call_function" else str(node.target)
    return {
        "op": node.op,
        "name": node.name,
        "target": target,
        "args": _encode(node.args),
        "kwargs": {key: _encode(value) for key, value in node.kwargs.items()},
    }


def _encode(value: object) -> object:
    if isinstance(value, fx.Node):
        return {"node": value.name}
    if isinstance(value, (tuple, list)):
        return {"tuple" if isinstance(value, tuple) else "list": [_encode(item) for item in value]}
    if isinstance(value, slice):
        return {"slice": [_encode(part) for part in (value.start, value.stop, value.step)]}
    if value is Ellipsis:
        return {"ellipsis": True}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, (bool, int, float, str)) or value is None:
        return value
    raise ValueError(f"arguments must be plain values, got {value!r}")


# --- reading -------------------------------------------------------------------------------------


def _network(attributes: Mapping[str, object], arrays: Mapping[str, np.ndarray]) -> SparseNetwork:
    """A network from what a file holds; raises ValueError for what does not fit."""
    if set(attributes) != {"steps", "parts"} or not isinstance(attributes["parts"], dict):
        raise ValueError("a network must have steps and parts, got others")
    steps, what = read_steps(attributes["steps"]), attributes["parts"]
    called = {step.target for step in steps if step.op == "call_module"}
    if set(what) != called:
        odd = sorted(map(str, set(what) ^ called))
        raise ValueError(f"parts must be those that steps call, got {show(odd)} in one of them")
    _refuse_inside(called)
    owned = below(arrays, list(what))
    parts = {name: _named_layer(name, what[name], owned[name]) for name in what}
    read = {step.target for step in steps if step.op == "get_attr"}
    inside = {f"{name}.{key}" for name, part in parts.items() for key in part.state_dict()}
    constants = read - inside
    _refuse_inside(called | constants)
    if constants | inside != set(arrays):
        odd = sorted((constants | inside) ^ set(arrays))
        raise ValueError(f"arrays must be those that the network has, got {show(odd)}")
    read_alone = {name: arrays[name] for name in constants}
    return SparseNetwork(
        steps,
        {refuse_path(name): part for name, part in parts.items()},
        {refuse_path(name): tensor for name, tensor in tensors_of(read_alone).items()},
    )


def _named_layer(name: str, what: object, arrays: Mapping[str, np.ndarray]) -> nn.Module:
    """A layer; what it refuses is said to be of `name`."""
    try:
        return make_layer(what, arrays)
    except ValueError as error:
        raise ValueError(f"parts.{name}: {error}") from error


def _refuse_inside(names: set[str]) -> None:
    for name in names:
        path = name.split(".")
        if any(".".join(path[:end]) in names for end in range(1, len(path))):
            raise ValueError(f"parts must not be inside others that steps call, got {show(name)}")
