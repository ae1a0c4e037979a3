"""A network that is a list of steps, run one by one: no source is made and nothing is compiled.

The steps are data, checked when they are read against the closed lists of
:mod:`sublearn.trim.network_ops` and :mod:`sublearn.trim.network_layers`. A call with inputs of new
shapes looks at each step's size before it runs, so that a network from a file cannot ask for more
memory than a limit. All shapes follow from those of the inputs, so one look at each is enough.
"""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from torch import Tensor, fx, nn

from sublearn.trim.network_ops import FUNCTIONS, METHODS, Ref, read_value
from sublearn.trim.network_sizes import most_of_call, most_of_layer, tensors_in
from sublearn.validation.values import show

__all__ = ["Step", "StepNetwork", "read_steps", "refuse_path"]

_MAX_STEPS = 65_536
_MAX_AXES = 64  # as in most functions of PyTorch
_MAX_NAME = 200
_MAX_PATH = 64
_MAX_SHAPES = 1024  # of inputs that are remembered as allowed
#: Bytes of tensors inside a call: so many, and so many times what inputs and weights take.
_FREE_BYTES, _MAX_GROWTH = 2**31, 64
_CALLS = ("call_module", "call_function", "call_method")
_VARIADIC = {
    "*": inspect.Parameter.VAR_POSITIONAL,
    "**": inspect.Parameter.VAR_KEYWORD,
    "": inspect.Parameter.POSITIONAL_OR_KEYWORD,
}


class Step(NamedTuple):
    """One step: what to call with what, and which earlier results are not needed after it."""

    op: str
    name: str
    target: str
    path: tuple[str, ...]  # of a layer or tensor inside the network
    args: tuple[object, ...]
    kwargs: dict[str, object]
    frees: tuple[int, ...]


# --- reading -------------------------------------------------------------------------------------


def read_steps(steps: object) -> tuple[Step, ...]:
    """Steps from their form in a file; raises ValueError for whatever is not on the lists."""
    if not isinstance(steps, list) or not 2 <= len(steps) <= _MAX_STEPS:
        got = len(steps) if isinstance(steps, list) else show(steps)
        raise ValueError(f"steps must be a list of 2 to {_MAX_STEPS} steps, got {got}")
    slots: dict[str, int] = {}
    found = []
    for slot, step in enumerate(steps):
        try:
            found.append(_read_step(step, slots))
        except ValueError as error:
            name = step.get("name") if isinstance(step, dict) else None
            raise ValueError(f"steps[{slot}] ({show(name)}): {error}") from error
        slots[found[-1].name] = slot
    ops = [step.op for step in found]
    n_inputs = ops.count("placeholder")
    if not n_inputs or "placeholder" in ops[n_inputs:] or ops.index("output") != len(ops) - 1:
        raise ValueError("steps must be inputs, calls and one output, in this order, got others")
    return _with_ends(found)


def _read_step(step: object, slots: Mapping[str, int]) -> Step:
    if not isinstance(step, dict) or set(step) != {"op", "name", "target", "args", "kwargs"}:
        raise ValueError(f"a step must have op, name, target, args and kwargs, got {show(step)}")
    op, name, target = step["op"], step["name"], step["target"]
    if op not in ("placeholder", "get_attr", *_CALLS, "output"):
        raise ValueError(f"a network may not have the step {show(op)}")
    _refuse_name(name)
    if name in slots:
        raise ValueError("name must be new, got that of an earlier step")
    if not isinstance(target, str):
        raise ValueError(f"target must be a string, got {show(target)}")
    path = refuse_path(target) if op in ("call_module", "get_attr") else ()
    args, kwargs = read_value(step["args"], slots, target), step["kwargs"]
    if not isinstance(args, tuple) or not isinstance(kwargs, dict):
        raise ValueError(f"args must be a tuple and kwargs be named, got {show(step['args'])}")
    kwargs = {key: read_value(value, slots, target) for key, value in kwargs.items()}
    _refuse_call(op, target, args, kwargs)
    return Step(op, name, target, path, args, kwargs, ())


def _refuse_call(op: str, target: str, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
    if op in ("placeholder", "get_attr", "output"):
        limits = {"placeholder": (0, 1), "get_attr": (0, 0), "output": (1, 1)}[op]
        if kwargs or not limits[0] <= len(args) <= limits[1]:
            raise ValueError(f"args must be {limits[0]} to {limits[1]} values, got {len(args)}")
        if op == "placeholder":
            _refuse_name(target.removeprefix("*").removeprefix("*"))
            if _slots(args):
                raise ValueError("args must be the value of an input that is left out, got a step")
        return
    if not _slots((args, kwargs)):
        raise ValueError("args must have the result of an earlier step, got none")
    if op == "call_module":
        for key in kwargs:
            _refuse_name(key)
        return
    known = FUNCTIONS if op == "call_function" else METHODS
    if target not in known:
        kind = op.removeprefix("call_")
        raise ValueError(
            f"a network in a file may not call the {kind} {show(target)}; write it with functions "
            "of sublearn.trim.network_ops, or call it outside of the network"
        )
    known[target].check(len(args), kwargs)
    if op == "call_method" and not (args and isinstance(args[0], Ref)):
        raise ValueError("args must begin with the result of an earlier step")


def _refuse_name(name: object) -> None:
    is_name = isinstance(name, str) and len(name) <= _MAX_NAME and name.isidentifier()
    if not is_name or keyword.iskeyword(str(name)) or str(name).startswith("__"):
        raise ValueError(f"names must be plain names of variables, got {show(name)}")


def refuse_path(path: object) -> tuple[str, ...]:
    """The parts of a dotted name of a layer or tensor; only ever keys, never attributes."""
    parts = path.split(".") if isinstance(path, str) and path.isprintable() else [""]
    is_long = len(parts) > _MAX_PATH or max(map(len, parts)) > _MAX_NAME
    if is_long or any(not part or part.startswith("__") for part in parts):
        raise ValueError(f"names of parts must be dotted names, got {show(path)}")
    return tuple(parts)


def _slots(value: object) -> list[int]:
    """Of all earlier steps that an argument names."""
    if isinstance(value, Ref):
        return [value.slot]
    if isinstance(value, slice):
        value = (value.start, value.stop, value.step)
    if isinstance(value, dict):
        value = (*value.values(),)
    items = value if isinstance(value, (tuple, list)) else ()
    return [slot for item in items for slot in _slots(item)]


def _with_ends(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Each step told whose last reader it is; a result that no step reads is dropped at once."""
    last = list(range(len(steps)))
    for slot, step in enumerate(steps):
        for read in _slots((step.args, step.kwargs)):
            last[read] = slot
    frees: list[list[int]] = [[] for _ in steps]
    for slot, reader in enumerate(last):
        frees[reader].append(slot)
    frees[-1] = []  # of the output, with which all ends
    return tuple(step._replace(frees=tuple(ends)) for step, ends in zip(steps, frees, strict=True))


def _signature(steps: Sequence[Step]) -> inspect.Signature:
    parameters = []
    for step in steps:
        if step.op == "placeholder":
            kind = _VARIADIC["*" * step.target.count("*")]
            default = step.args[0] if step.args else inspect.Parameter.empty
            parameters.append(inspect.Parameter(step.target.lstrip("*"), kind, default=default))
    return inspect.Signature(parameters)


# --- running -------------------------------------------------------------------------------------


class StepNetwork(nn.Module):
    """Runs steps over layers and tensors that it holds under the names of the file."""

    #: Bytes that the tensors inside a call may take together; None is 2 GiB and 64 times what
    #: inputs and weights take.
    max_bytes: int | None = None

    def __init__(
        self,
        steps: tuple[Step, ...],
        parts: Mapping[tuple[str, ...], nn.Module],
        constants: Mapping[tuple[str, ...], Tensor],
    ):
        super().__init__()
        for path, part in parts.items():
            self._holder(path)._modules[path[-1]] = part
        for path, value in constants.items():
            self._holder(path)._buffers[path[-1]] = value
        self._steps = steps
        self._signature = _signature(steps)
        kinds = {parameter.kind for parameter in self._signature.parameters.values()}
        is_plain = kinds == {inspect.Parameter.POSITIONAL_OR_KEYWORD}
        self._n_plain = len(self._signature.parameters) if is_plain else None
        self._prepare()

    def _holder(self, path: tuple[str, ...]) -> nn.Module:
        """The module that is to hold what `path` ends with; made where it is missing."""
        holder: nn.Module = self
        for name in path[:-1]:
            holder = holder._modules.setdefault(name, nn.Module())
        return holder

    def __getstate__(self) -> dict[str, object]:
        return {k: v for k, v in self.__dict__.items() if k not in ("_plan", "_allowed")}

    def __setstate__(self, state: dict[str, object]) -> None:
        super().__setstate__(state)
        self._prepare()

    def _prepare(self) -> None:
        self._plan = _plan(self._steps, _tensor_of)
        self._allowed: set[object] = set()  # shapes of inputs

    @property
    def inputs(self) -> tuple[Step, ...]:
        """The steps that are inputs."""
        return self._steps[: len(self._signature.parameters)]

    def forward(self, *inputs: object, **named: object) -> object:
        """The output for inputs as the network that was saved took them.

        Raises
        ------
        ValueError
            At the first call with inputs of these shapes, if a step cannot take what it gets, or
            tensors would take more than `max_bytes`.
        RuntimeError, IndexError
            By PyTorch, at a later call, if a step cannot take the values, such as an id outside of
            a table.
        """
        if named or len(inputs) != self._n_plain:
            bound = self._signature.bind(*inputs, **named)
            bound.apply_defaults()
            inputs = tuple(bound.arguments.values())
        shapes = (self.max_bytes, *[_shape_of(value) for value in inputs])
        if shapes in self._allowed:
            return self._run(self._plan, inputs)
        for value in inputs:
            if isinstance(value, fx.Proxy):
                return self._traced(inputs, value.tracer)
        out = self._run_checked(inputs)
        if len(self._allowed) >= _MAX_SHAPES:
            self._allowed.clear()
        self._allowed.add(shapes)
        return out

    def _run(
        self, plan: list[Run], inputs: Sequence[object], sizes: _Sizes | None = None
    ) -> object:
        """What the last step of a plan returns; `sizes` is told of each step's result."""
        values = [*inputs, *[None] * (len(plan) - len(inputs))]
        for slot in range(len(inputs), len(plan)):
            run, frees = plan[slot]
            values[slot] = run(self, values)
            if sizes is not None:
                sizes.keep(slot, values[slot], frees)
            for end in frees:
                values[end] = None
        return values[-1]

    def _traced(self, inputs: Sequence[object], tracer: fx.Tracer) -> object:
        """The output as ``torch.fx`` records it, where nothing is computed."""
        owner = tracer.path_of_module(self)

        def tensor(network: StepNetwork, path: tuple[str, ...]) -> fx.Proxy:
            name = ".".join((owner, *path) if owner else path)
            return tracer.create_proxy("get_attr", name, (), {})

        return self._run(_plan(self._steps, tensor), inputs)

    def _run_checked(self, inputs: Sequence[object]) -> object:
        """The output, if each step can take its inputs and takes no more than `max_bytes`."""
        limit = self.max_bytes
        if limit is None:
            tensors = [*inputs, *self.parameters(), *self.buffers()]
            limit = _FREE_BYTES + _MAX_GROWTH * _n_bytes(tensors)
        sizes = _Sizes(limit)
        try:
            return self._run(_plan(self._steps, _tensor_of, sizes), inputs, sizes)
        except Exception as error:  # of PyTorch, which has many
            name = self._steps[len(inputs) + sizes.n_steps].name
            raise ValueError(
                f"{type(self).__name__}: inputs must be such that step {name!r} can take them, "
                f"got some that it cannot: {error}"
            ) from error


#: A step ready to run on a network and all results so far, and the results to be dropped then.
Run = tuple[Callable[[StepNetwork, list[object]], object], tuple[int, ...]]
#: Finds a tensor of a network by its path.
FindTensor = Callable[[StepNetwork, tuple[str, ...]], Tensor]


def _plan(steps: Sequence[Step], tensor: FindTensor, sizes: _Sizes | None = None) -> list[Run]:
    """Steps ready to run; `sizes` sees each step before it runs."""
    return [(_runner(step, tensor, sizes), step.frees) for step in steps]


def _runner(
    step: Step, tensor: FindTensor, sizes: _Sizes | None
) -> Callable[[StepNetwork, list[object]], object]:
    args, kwargs, path, name = step.args, step.kwargs, step.path, step.target
    if step.op == "get_attr":
        return lambda network, values: tensor(network, path)
    if step.op in ("placeholder", "output"):
        return lambda network, values: _fill(args[0], values)
    function = FUNCTIONS[name].function if step.op == "call_function" else None
    if args and isinstance(args[0], Ref) and not _slots((args[1:], kwargs)) and sizes is None:
        first, rest = args[0].slot, args[1:]  # as most are, so it is made quick
        if function is not None:
            return lambda network, values: function(values[first], *rest, **kwargs)
        if step.op == "call_method":
            return lambda network, values: _method(values[first], name)(*rest, **kwargs)
        return lambda network, values: _part_of(network, path)(values[first], *rest, **kwargs)

    def run(network: StepNetwork, values: list[object]) -> object:
        given = [_fill(value, values) for value in args]
        named = {key: _fill(value, values) for key, value in kwargs.items()}
        if sizes is not None:
            sizes.check(network, step, given, named)
        if function is not None:
            return function(*given, **named)
        if step.op == "call_method":
            return _method(given[0], name)(*given[1:], **named)
        return _part_of(network, path)(*given, **named)

    return run


def _part_of(network: nn.Module, path: tuple[str, ...]) -> nn.Module:
    for name in path:
        network = network._modules[name]
    return network


def _tensor_of(network: nn.Module, path: tuple[str, ...]) -> Tensor:
    return getattr(_part_of(network, path[:-1]), path[-1])


class _Sizes:
    """Refuses a step that would take too many bytes before it runs."""

    def __init__(self, limit: int):
        self.limit, self.n_steps = limit, 0
        self._kept: dict[int, int] = {}
        self._n_kept = 0

    def check(
        self, network: StepNetwork, step: Step, given: Sequence[object], named: dict[str, object]
    ) -> None:
        """Raise ValueError if a step's result, with what is kept, may take more than the limit."""
        if step.op == "call_module":
            most = most_of_layer(_part_of(network, step.path), given, named)
        else:
            most = most_of_call(step.op, step.target, given, named)
        widths = [tensor.element_size() for tensor in tensors_in([*given, named])]
        n_bytes = self._n_kept + most * max(widths, default=1)
        if n_bytes > self.limit:
            raise ValueError(
                f"its tensors might take {n_bytes:,} bytes, more than max_bytes ({self.limit:,})"
            )

    def keep(self, slot: int, out: object, frees: Sequence[int]) -> None:
        """Count the result of a step until the step that reads it last."""
        if any(tensor.ndim > _MAX_AXES for tensor in tensors_in(out)):
            raise ValueError(f"tensors must have at most {_MAX_AXES} axes")
        self._kept[slot] = _n_bytes(out)
        self._n_kept += self._kept[slot] - sum(self._kept.pop(end, 0) for end in frees)
        self.n_steps += 1


def _method(receiver: object, name: str) -> Callable[..., object]:
    if not isinstance(receiver, (Tensor, fx.Proxy)):
        raise TypeError(f"{name} must be called on a tensor, got {type(receiver).__name__}")
    return getattr(receiver, name)


def _fill(value: object, values: list[object]) -> object:
    """An argument with results in the place of their names."""
    if isinstance(value, Ref):
        return values[value.slot]
    if isinstance(value, (tuple, list)):
        items = [_fill(item, values) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, slice):
        return slice(*[_fill(item, values) for item in (value.start, value.stop, value.step)])
    return value


def _shape_of(value: object) -> object:
    """What the shapes inside a call depend on."""
    if isinstance(value, Tensor):
        return value.shape, value.dtype
    if isinstance(value, (tuple, list)):
        return type(value), *map(_shape_of, value)
    if isinstance(value, dict):
        return dict, *((key, _shape_of(item)) for key, item in value.items())
    return (type(value), value) if isinstance(value, (int, float, str)) else type(value)


def _n_bytes(values: object) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors_in(values))
