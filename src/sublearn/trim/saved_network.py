"""Trimmed networks in files: the graph as data, the weights as arrays, no code and no pickle.

A file holds the steps of the network as ``torch.fx`` sees them. It names modules of ``torch.nn``,
the sparse layers of this package, functions that PyTorch lists as functions of tensors, arithmetic
operators and methods of tensors; a file that names anything else is refused. So a network loads
where its class is unknown.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx, nn

from sublearn.io.bundle import Bundle, load_bundle, save_bundle
from sublearn.io.files import PathLike
from sublearn.trim.graph import trace
from sublearn.trim.sparse_layers import SparseConv, SparseEmbedding, SparseLinear, SparseStack
from sublearn.validation.values import show

__all__ = ["SparseNetwork", "load_network", "save_network"]

_SPARSE = {kind.__name__: kind for kind in (SparseConv, SparseEmbedding, SparseLinear, SparseStack)}
_OPERATORS = (
    "add", "sub", "mul", "truediv", "floordiv", "matmul", "neg", "getitem", "mod", "pow",
    "gt", "ge", "lt", "le", "eq", "ne", "and_", "or_", "xor", "invert",
)  # fmt: skip
_NAMESPACES = {
    "torch": torch,
    "torch.nn.functional": nn.functional,
    "operator": operator,
}


class SparseNetwork(fx.GraphModule):
    """A network from a file: its graph, with the layers it was saved with."""

    @staticmethod
    def _from_bundle(bundle: Bundle) -> SparseNetwork:
        return _network(bundle)

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
        If the network cannot be traced, or does something that cannot be kept as data.
    """
    if not isinstance(module, nn.Module):
        raise ValueError(f"save_network: module must be a torch.nn.Module, got {show(module)}")
    is_training = {part: part.training for part in module.modules()}
    try:
        network = trace(module.eval())
    except Exception as error:
        raise ValueError(
            f"save_network: module must be a network that torch.fx can trace, got "
            f"{type(module).__name__}: {error}"
        ) from error
    finally:  # the network is the caller's, who may train on
        for part, mode in is_training.items():
            part.training = mode
    arrays: dict[str, np.ndarray] = {}
    modules = dict(network.named_modules())
    parts: dict[str, Any] = {}
    for node in network.graph.nodes:
        if node.op == "call_module" and node.target not in parts:
            parts[node.target] = _describe(modules[node.target], node.target, arrays)
        if node.op == "get_attr":
            arrays[node.target] = _array(operator.attrgetter(node.target)(network))
    steps = [_step(node) for node in network.graph.nodes]
    save_bundle(
        path,
        class_name="SparseNetwork",
        params={},
        arrays=arrays,
        attributes={"steps": steps, "parts": parts},
    )


def load_network(path: PathLike) -> SparseNetwork:
    """Open a network saved by :func:`save_network`; its class need not be known.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    Module
        In evaluation mode.
    """
    return _network(load_bundle(path, class_name="SparseNetwork"))


# --- writing -------------------------------------------------------------------------------------


def _describe(part: nn.Module, name: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """The kind of a module and its settings; its tensors go to `arrays`."""
    for key, value in part.state_dict().items():
        arrays[f"{name}.{key}"] = _array(value)
    if isinstance(part, SparseStack):
        links = [_describe(layer, f"{name}.{k}", {}) for k, layer in enumerate(part.layers)]
        return {"kind": "SparseStack", "layers": links, "is_relu": part.is_relu}
    if type(part).__name__ in _SPARSE:
        keys: tuple[str, ...] = ("n_columns", "dtype_name")
        if isinstance(part, SparseConv):
            keys += ("kernel", "n_axes", "stride", "padding", "dilation", "groups", "n_inputs")
        settings = {key: _plain(getattr(part, key)) for key in keys}
        return {"kind": type(part).__name__, "settings": settings}
    kind = type(part)
    if getattr(nn, kind.__name__, None) is not kind:
        raise ValueError(
            f"save_network: module must be made of torch.nn modules, got {kind.__name__} ({name})"
        )
    try:
        what = {"kind": kind.__name__, "settings": _settings(part)}
        _refuse_loss(part, _build(what, _below(arrays, name)))
    except Exception as error:  # whatever the module says about settings that it does not tell
        raise ValueError(
            "save_network: module must be made of torch.nn modules that can be made again from "
            f"their settings and tensors, got {kind.__name__} ({name}): {error}"
        ) from error
    return what


def _refuse_loss(part: nn.Module, again: nn.Module) -> None:
    """A module that came out with other settings than it went in with."""
    for key, value in vars(again).items():
        if key.startswith("_") or key == "training" or key not in vars(part):
            continue
        given = vars(part)[key]
        try:
            is_same = _plain(value) == _plain(given)
        except ValueError:
            continue
        if not is_same:
            raise ValueError(f"{key} would be {value!r} instead of {given!r}")


def _settings(part: nn.Module) -> dict[str, Any]:
    """The arguments that make a module of PyTorch, as far as it keeps them."""
    keys: dict[str, None] = {}
    for kind in type(part).__mro__:
        parameters = inspect.signature(kind).parameters
        keys |= dict.fromkeys(parameters)
        if "kwargs" not in parameters:  # else the rest goes to the next class
            break
    found = {
        key: _plain(_setting(part, key))
        for key in keys
        if key not in ("device", "dtype") and hasattr(part, key)
    }
    if isinstance(part, nn.MultiheadAttention):
        found["bias"] = part.in_proj_bias is not None
        found["add_bias_kv"] = part.bias_k is not None
    if isinstance(part, nn.RNNBase):
        del found["mode"]
        if not part.proj_size:  # only LSTM takes it
            del found["proj_size"]
    if isinstance(part, nn.RNN):
        found["nonlinearity"] = part.nonlinearity
    return found


def _setting(part: nn.Module, key: str) -> Any:
    value = getattr(part, key)
    is_flag = isinstance(value, bool)
    return value is not None if key == "bias" and not is_flag else value


def _plain(value: Any) -> Any:
    if isinstance(value, (tuple, list, torch.Size)):
        return [_plain(item) for item in value]
    if isinstance(value, (bool, int, float, str)) or value is None:
        return value
    raise ValueError(f"a setting is no plain value but {value!r}")


def _array(value: Tensor) -> np.ndarray:
    if value.dtype is torch.bfloat16:
        raise ValueError(
            "save_network: module must have tensors of types that NumPy knows, got "
            f"{value.dtype}; module.float() has"
        )
    return value.detach().cpu().contiguous().numpy()


def _step(node: fx.Node) -> dict[str, Any]:
    target = _function_name(node.target) if node.op == "call_function" else str(node.target)
    return {
        "op": node.op,
        "name": node.name,
        "target": target,
        "args": _encode(node.args),
        "kwargs": {key: _encode(value) for key, value in node.kwargs.items()},
    }


def _function_name(function: Any) -> str:
    name = getattr(function, "__name__", "")
    if function in (getattr, _attribute):
        return "builtins:getattr"
    for space in ("torch.nn.functional", "torch", "operator"):
        if _lookup(space, name) is function:
            return f"{space}:{name}"
    raise ValueError(
        f"save_network: module must call functions of tensors only, got {name or function!r}"
    )


def _encode(value: Any) -> Any:
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
    raise ValueError(f"save_network: module must use plain values as arguments, got {value!r}")


# --- reading -------------------------------------------------------------------------------------


def _network(bundle: Bundle) -> SparseNetwork:
    root = nn.Module()
    attributes, arrays = bundle.attributes, bundle.arrays
    try:
        for name, what in attributes["parts"].items():
            _put(root, name, _build(what, _below(arrays, name)))
        graph = fx.Graph()
        nodes: dict[str, fx.Node] = {}
        for step in attributes["steps"]:
            if step["op"] == "get_attr":
                holder, leaf = _holder(root, step["target"])
                if not hasattr(holder, leaf):  # else it is a tensor of one of the parts
                    holder.register_buffer(leaf, _tensor(arrays[step["target"]]))
            nodes[step["name"]] = _add(graph, step, nodes)
        graph.lint()
        return SparseNetwork(root, graph).eval()
    except (KeyError, TypeError, AttributeError, RuntimeError, IndexError) as error:
        raise ValueError(f"{bundle.path}: does not hold a network ({error})") from error


def _add(graph: fx.Graph, step: Mapping[str, Any], nodes: dict[str, fx.Node]) -> fx.Node:
    op, target = step["op"], step["target"]
    if op == "call_function":
        space, name = target.split(":")
        target = _lookup(space, name)
        if target is None:
            raise ValueError(f"a network may not call {step['target']!r}")
    elif op == "call_method" and (target.startswith("_") or not hasattr(Tensor, target)):
        raise ValueError(f"a network may not call the method {target!r}")
    elif op not in ("placeholder", "get_attr", "call_module", "call_method", "output"):
        raise ValueError(f"a network has no step {op!r}")
    args = _decode(step["args"], nodes)
    kwargs = {key: _decode(value, nodes) for key, value in step["kwargs"].items()}
    return graph.create_node(op, target, args, kwargs, name=step["name"])


def _lookup(space: str, name: str) -> Callable[..., Any] | None:
    """A function that a network may call, or None."""
    if space == "operator":
        return getattr(operator, name) if name in _OPERATORS else None
    if space == "builtins":
        return _attribute if name == "getattr" else None
    if space not in _NAMESPACES:
        return None
    function = getattr(_NAMESPACES[space], name, None)
    return function if function in _tensor_functions() else None


def _attribute(tensor: Tensor, name: str) -> Any:
    """What `getattr` is in a network: nothing but what describes a tensor."""
    if name not in ("device", "dtype", "ndim", "shape"):
        raise ValueError(f"a network may not ask a tensor for {name!r}")
    return getattr(tensor, name)


def _tensor_functions() -> set[Any]:
    found = torch.overrides.get_overridable_functions()
    return {function for functions in found.values() for function in functions}


def _decode(value: Any, nodes: Mapping[str, fx.Node]) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "node":
        return nodes[content]
    if kind == "ellipsis":
        return ...
    if kind == "dtype":
        return _dtype(content)
    items = [_decode(item, nodes) for item in content]
    if kind == "slice":
        return slice(*items)
    return tuple(items) if kind == "tuple" else items


def _dtype(name: str) -> torch.dtype:
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"a network may not have the type {name!r}")
    return dtype


def _build(what: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> nn.Module:
    kind = what["kind"]
    if kind == "SparseStack":
        layers = [
            _build(link, _below(arrays, f"layers.{k}")) for k, link in enumerate(what["layers"])
        ]
        return SparseStack(layers, what["is_relu"])
    settings = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in what["settings"].items()
    }
    if kind in _SPARSE:
        return _SPARSE[kind]._restore(settings, {k: _tensor(v) for k, v in arrays.items()})
    maker = getattr(nn, kind, None)
    if not (isinstance(maker, type) and issubclass(maker, nn.Module)):
        raise ValueError(f"a network may not have a module {kind!r}")
    part = maker(**settings)
    part.load_state_dict({key: _tensor(value) for key, value in arrays.items()}, assign=True)
    return part


def _below(arrays: Mapping[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    return {
        key[len(name) + 1 :]: value for key, value in arrays.items() if key.startswith(f"{name}.")
    }


def _put(root: nn.Module, name: str, part: nn.Module) -> None:
    holder, leaf = _holder(root, name)
    holder.add_module(leaf, part)


def _holder(root: nn.Module, name: str) -> tuple[nn.Module, str]:
    """The module that is to hold what `name` ends with; made where it is missing."""
    *path, leaf = name.split(".")
    for step in path:
        if not hasattr(root, step):
            root.add_module(step, nn.Module())
        root = getattr(root, step)
    return root, leaf


def _tensor(array: np.ndarray) -> Tensor:
    return torch.from_numpy(np.array(array))
