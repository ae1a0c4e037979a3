"""Saved models damaged in bytes, JSON and arrays: loaded, and asked if they load."""

from __future__ import annotations

import functools
import json
import os
import random
import shutil
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
from engine import Failure, Target, is_refusal
from mutate import (
    CANARY,
    CODE,
    INTEGERS,
    hostile_value,
    mutate_bytes,
    mutate_json,
    one_of,
    some,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))
import make_golden
from make_golden import GOLDEN, JOURNAL, answers_file, model_file

import sublearn

_DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "u1", "BOOL": "?"}
_DTYPES |= {"I8": "i1", "U16": "<u2", "I16": "<i2", "F16": "<f2", "U32": "<u4", "U64": "<u8"}


class Parts:
    """A saved model taken apart: `description`, `entries` of arrays (both JSON), their bytes."""

    def __init__(self, data: bytes):
        (length,) = struct.unpack("<Q", data[:8])
        self.entries = json.loads(data[8 : 8 + length])
        self.description = self.entries.pop("__metadata__")
        for key in ("params", "attributes"):
            self.description[key] = json.loads(self.description[key])
        body = data[8 + length :]
        self.bodies = {n: body[slice(*e["data_offsets"])] for n, e in self.entries.items()}

    def copy(self) -> Parts:
        other = object.__new__(Parts)
        other.entries = json.loads(json.dumps(self.entries))
        other.description = json.loads(json.dumps(self.description))
        other.bodies = dict(self.bodies)
        return other

    def packed(self) -> bytes:
        """One file again, with offsets that fit and arrays that lie on multiples of their size."""
        order = sorted(self.bodies, key=lambda name: -_size(self.entries[name]))
        at = 0
        for name in order:
            self.entries[name]["data_offsets"] = [at, at + len(self.bodies[name])]
            at += len(self.bodies[name])
        return self._file([self.bodies[name] for name in order], self.entries)

    def packed_with(self, entries: dict[str, Any]) -> bytes:
        """One file with entries that may lie."""
        return self._file(list(self.bodies.values()), entries)

    def _file(self, bodies: list[bytes], entries: dict[str, Any]) -> bytes:
        told = {k: v if isinstance(v, str) else json.dumps(v) for k, v in self.description.items()}
        head = json.dumps({"__metadata__": told, **entries}).encode("utf-8", "surrogatepass")
        head += b" " * (-len(head) % 8)
        return struct.pack("<Q", len(head)) + head + b"".join(bodies)

    def array(self, name: str) -> np.ndarray:
        return np.frombuffer(self.bodies[name], dtype=_DTYPES[self.entries[name]["dtype"]])

    def put(self, name: str, array: np.ndarray) -> None:
        code = next(c for c, d in _DTYPES.items() if np.dtype(d) == array.dtype)
        self.entries[name] = {"dtype": code, "shape": list(array.shape)}
        self.bodies[name] = array.tobytes()


def _size(entry: Any) -> int:
    return np.dtype(_DTYPES[entry["dtype"]]).itemsize


# --- damage --------------------------------------------------------------------------------------


def _entry(rng: random.Random, parts: Parts) -> None:
    """Some numbers of an array replaced: ids out of range, pointers that go back, NaN."""
    names = [name for name, body in parts.bodies.items() if body]
    if not names:
        return
    name = rng.choice(names)
    shape, values = parts.entries[name]["shape"], parts.array(name).copy()
    for _ in range(some(rng, 4)):
        at = rng.choice((0, len(values) - 1, rng.randrange(len(values))))
        values[at] = _number(rng, values, at)
    parts.put(name, values.reshape(shape))


def _number(rng: random.Random, values: np.ndarray, at: int) -> Any:
    if values.dtype.kind == "f":
        choices = (0.0, -1.0, 1e-30, 1e30, np.inf, -np.inf, np.nan, 65504.0)
        return values.dtype.type(rng.choice(choices))
    if values.dtype.kind == "b":
        return not values[at]
    info = np.iinfo(values.dtype)
    near = (len(values), len(values) - 1, int(values[at]) + 1, int(values[at]) - 1, 2_000_000_000)
    choices = (*near, *INTEGERS, info.max, info.min)
    return min(max(rng.choice(choices), info.min), info.max)


def _length(rng: random.Random, parts: Parts) -> None:
    """An array longer, shorter, empty, of another shape or of another type, without a lie."""
    if not parts.bodies:
        return
    name = rng.choice(list(parts.bodies))
    values = parts.array(name).reshape(parts.entries[name]["shape"])
    flat = values.ravel()
    kind = rng.randrange(7)
    if kind == 0:
        values = flat[: rng.randrange(len(flat) + 1)]
    elif kind == 1:
        values = np.concatenate([flat, flat[: 1 + rng.randrange(len(flat))]]) if len(flat) else flat
    elif kind == 2:
        values = flat[:0]
    elif kind == 3:
        values = rng.choice((flat, values.T, flat[None], flat[:, None], values[None]))
    elif kind == 4:
        with np.errstate(all="ignore"):
            values = values.astype(_DTYPES[rng.choice(list(_DTYPES))])
    elif kind == 5 and values.ndim:
        values = values[:-1] if rng.random() < 0.5 else np.repeat(values, 2, axis=values.ndim - 1)
    else:
        values = np.zeros(rng.choice(((), (0, 5), (5, 0), (1, 1, 1))), values.dtype)
    parts.put(name, np.ascontiguousarray(values))


def _section(rng: random.Random, parts: Parts) -> None:
    """Arrays exchanged, gone, under another name, or from another model."""
    names = list(parts.bodies)
    if not names:
        return
    a, b = rng.choice(names), rng.choice(names)
    kind = rng.randrange(4)
    if kind == 0:
        for held in (parts.entries, parts.bodies):
            held[a], held[b] = held[b], held[a]
    elif kind == 1:
        del parts.entries[a], parts.bodies[a]
    elif kind == 2:
        new = rng.choice((a + "x", b + ".data", "x", "weights.indptr"))
        for held in (parts.entries, parts.bodies):
            held[new] = held.pop(a)
    else:
        other = seed_parts(rng.choice(list(GOLDEN)))
        taken = rng.choice(list(other.bodies) or [None])
        if taken is not None:
            parts.entries[a] = dict(other.entries[taken])
            parts.bodies[a] = other.bodies[taken]


def _told(rng: random.Random, parts: Parts) -> None:
    """The class's parameters or attributes, and seldom the rest of the description."""
    key = rng.choice(("params", "attributes", "attributes", "attributes"))
    if rng.random() < 0.08:
        key = rng.choice(("class", "format", "format_version", "sublearn_version"))
        classes = [name.split("-")[0] for name in GOLDEN]
        parts.description[key] = rng.choice((*classes, "", "2", "os.system", hostile_value(rng)))
        return
    if isinstance(parts.description.get("attributes"), dict) and rng.random() < 0.3:
        _code(rng, parts.description["attributes"].get("steps"))
    elif key in parts.description:
        parts.description[key] = mutate_json(rng, parts.description[key])


def _code(rng: random.Random, steps: Any) -> None:
    """Python in a name of a network's step, where a graph that is compiled would run it."""
    if not (isinstance(steps, list) and steps):
        return
    step = rng.choice(steps)
    if not isinstance(step, dict):
        return
    place = rng.choice(("target", "name", "kwargs"))
    if place == "kwargs" and isinstance(step.get("kwargs"), dict):
        step["kwargs"][rng.choice(CODE)] = False
    else:
        step[place] = rng.choice(CODE)


def _deep(rng: random.Random, parts: Parts) -> None:
    depth = rng.choice((900, 5000, 100_000))
    parts.description[rng.choice(("params", "attributes"))] = "[" * depth + "]" * depth


def _lie(rng: random.Random, parts: Parts) -> bytes:
    """Entries of arrays that do not fit their bytes."""
    parts.packed()
    return parts.packed_with(mutate_json(rng, parts.entries))


def _structured(rng: random.Random, parts: Parts) -> bytes:
    for _ in range(some(rng, 3)):
        steps = (_entry, _entry, _length, _section, _told, _told, _told)
        rng.choice(steps)(rng, parts)
    if rng.random() < 0.002:
        _deep(rng, parts)
    return _lie(rng, parts) if rng.random() < 0.08 else parts.packed()


@functools.cache
def seed_bytes(name: str) -> bytes:
    return model_file(name).read_bytes()


@functools.cache
def seed_parts(name: str) -> Parts:
    return Parts(seed_bytes(name))


def mutate_model(rng: random.Random, name: str) -> bytes:
    return one_of(
        rng,
        (0.15, lambda: mutate_bytes(rng, seed_bytes(name), [seed_bytes(name)])),
        (0.85, lambda: _structured(rng, seed_parts(name).copy())),
    )


# --- use -----------------------------------------------------------------------------------------


@functools.cache
def question(name: str) -> np.ndarray:
    with np.load(answers_file(name)) as stored:
        return stored["X"]


def use_model(name: str, data: bytes, folder: Path) -> None:
    path = fresh_file(folder, "m.sublearn", data)
    try:
        model = named_refusal(path, sublearn.load, path)
        kind = type(model).__name__
        asked = name if name.split("-")[0] == kind else kind
        if kind == "SparseNetwork":
            run_network(model, question(asked))
        else:
            GOLDEN[asked].ask(model, {"X": question(asked)})
    finally:
        refuse_code(folder)


def run_network(model: Any, X: np.ndarray) -> None:
    """Whatever a network gives is right, a number or a mapping too, unlike for a golden one."""
    import torch

    with torch.no_grad():
        model(torch.from_numpy(X))


def fresh_file(folder: Path, name: str, data: bytes) -> Path:
    """A new file under an old name: the one before may still be mapped."""
    path = folder / name
    path.unlink(missing_ok=True)
    path.write_bytes(data)
    return path


def named_refusal(path: Path, function: Any, *arguments: Any, **options: Any) -> Any:
    """Call a reader; its refusal must say which file it is about."""
    try:
        return function(*arguments, **options)
    except Exception as error:
        if is_refusal(error) and str(path) not in str(error):
            message = f"{type(error).__name__} without the file's name"
            raise Failure(message).with_traceback(error.__traceback__) from None
        raise


def refuse_code(folder: Path) -> None:
    for trace in (folder / CANARY, Path(CANARY)):
        if trace.exists():
            trace.unlink()
            raise Failure("code from the file was run")
    if os.environ.pop(CANARY, None):
        raise Failure("code from the file was run")


# --- the folder of an unfinished fit --------------------------------------------------------------


_PART = next(JOURNAL.glob("part-*"))


def mutate_journal(rng: random.Random) -> bytes:
    """A plan or a part; which of them it is shows in the first byte."""
    if rng.random() < 0.2:
        plan = (JOURNAL / "plan.json").read_bytes()
        if rng.random() < 0.5:
            return mutate_bytes(rng, plan, [plan])
        return json.dumps(mutate_json(rng, json.loads(plan))).encode("utf-8", "surrogatepass")
    part = _PART.read_bytes()
    if rng.random() < 0.2:
        return mutate_bytes(rng, part, [part])
    return _structured(rng, Parts(part))


def use_journal(data: bytes, folder: Path) -> None:
    parts = folder / "m.parts"
    shutil.rmtree(parts, ignore_errors=True)
    shutil.copytree(JOURNAL, parts)
    is_plan = data[:1] in b"{[" or data[8:9] != b"{"
    (parts / ("plan.json" if is_plan else _PART.name)).write_bytes(data)
    make_golden.journal_fit(folder / "m")


def _target(name: str) -> Target:
    return Target(
        f"model-{name}",
        "files",
        functools.partial(mutate_model, name=name),
        functools.partial(use_model, name),
        _CASES.get(name.split("-")[0], 12_000),
    )


#: Fewer of those that take milliseconds each.
_CASES = {
    "LoadForecaster": 4_000,
    "SparseNetwork": 10_000,
    "HierarchicalMultilabelClassifier": 8_000,
}

TARGETS = [_target(name) for name in GOLDEN]
TARGETS.append(Target("journal", "files", mutate_journal, use_journal, 4_000))


def preload() -> None:
    """Import and use everything once, so that forked workers begin at once."""
    for name in GOLDEN:
        GOLDEN[name].ask(sublearn.load(model_file(name)), {"X": question(name)})
