"""Damaged copies of files, from a seed: saved models field by field, any file byte by byte.

As a script it attacks saved models and says what came of it::

    python tests/io/mutations.py FOLDER N_EACH SEED [CASE ...]

FOLDER has a file `CASE.sublearn` for each case of small_models.py. Only a `ValueError` may come of
loading and asking a damaged model. The process has a limit of memory.
"""

from __future__ import annotations

import copy
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["limit_memory", "mutated_bytes", "mutated_model"]

_NUMBERS = (0, 1, -1, 2, 3, 7, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1, 2**63, -(2**63), 10**30)
_FLOATS = (0.0, -1.0, 0.5, 1e-320, 1e308, -1e308, float("nan"), float("inf"), float("-inf"))
_VALUES = (
    *_NUMBERS,
    *_FLOATS,
    None,
    True,
    False,
    "",
    "x",
    "global",
    "U9",
    "UTC+",
    [],
    [[]],
    {},
    (),
)
_TYPES = ("?", "u1", "i1", "u2", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8")


def limit_memory(n_bytes: int) -> None:
    """From now on this process cannot take more than this beyond what it has.

    What it has may be terabytes: a sanitizer maps them at the start.
    """
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + n_bytes, most))


def mutated_bytes(raw: bytes, rng: np.random.Generator, words: tuple[bytes, ...] = ()) -> bytes:
    """A copy that is cut, or has bytes flipped, inserted, repeated or overwritten with words."""
    out = bytearray(raw)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(out) + 1))
        kind = int(rng.integers(6))
        if kind == 0:
            del out[at:]
        elif kind == 1 and at < len(out):
            out[at] ^= 1 << int(rng.integers(8))
        elif kind == 2:
            out[at:at] = rng.bytes(int(rng.integers(1, 5)))
        elif kind == 3:
            out[at:at] = out[at : at + int(rng.integers(1, 40))]
        elif kind == 4 and words:
            word = words[int(rng.integers(len(words)))]
            out[at : at + int(rng.integers(len(word) + 1))] = word
        else:
            del out[at : at + int(rng.integers(1, 20))]
    return bytes(out)


def mutated_model(bundle: Any, rng: np.random.Generator) -> dict[str, Any]:
    """Arguments of `save_bundle` for a model of which one to three parts are not what they were."""
    parts = {
        "class_name": bundle.class_name,
        "params": copy.deepcopy(bundle.params),
        "arrays": dict(bundle.arrays),
        "attributes": copy.deepcopy(bundle.attributes),
    }
    for _ in range(int(rng.integers(1, 4))):
        if rng.random() < 0.5 and parts["arrays"]:
            _change_array(parts["arrays"], rng)
        else:
            _change_value(parts["params" if rng.random() < 0.3 else "attributes"], rng)
    return parts


def _change_array(arrays: dict[str, np.ndarray], rng: np.random.Generator) -> None:
    name = _pick(sorted(arrays), rng)
    array, kind = arrays[name], int(rng.integers(8))
    if kind == 0:
        del arrays[name]
    elif kind == 1:
        with np.errstate(all="ignore"):
            arrays[name] = array.astype(_pick(_TYPES, rng))
    elif kind == 2:
        arrays[name] = np.concatenate([array, array[:1]]) if array.ndim else array
    elif kind == 3:
        arrays[name] = array[: int(rng.integers(max(len(array), 1)))] if array.ndim else array
    elif kind == 4:
        shapes = [array.shape[::-1], (*array.shape, 1), (array.size,), (0, 2**40), (1, array.size)]
        shape = _pick([s for s in shapes if np.prod(s, dtype=object) == array.size], rng)
        arrays[name] = array.reshape(shape)
    elif array.size:
        out = array.copy()
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values = _FLOATS if array.dtype.kind == "f" else _near(array)
            for _ in range(int(rng.integers(1, 4))):
                value = np.array(_pick(values, rng))
                out.reshape(-1)[int(rng.integers(out.size))] = value.astype(out.dtype)
        arrays[name] = out


def _near(array: np.ndarray) -> tuple[int, ...]:
    most = int(array.max())
    return (0, 1, -1, most, most + 1, most - 1, len(array), 10**4, 2**31 - 1, 2**62)


def _change_value(tree: Any, rng: np.random.Generator) -> None:
    """One entry of nested lists and dicts is replaced, removed, repeated or moved one on."""
    owner, key = _pick(list(_entries(tree)) or [(None, None)], rng)
    if owner is None:
        return
    kind = int(rng.integers(6))
    if kind == 0:
        del owner[key]
    elif kind == 1 and isinstance(owner, list):
        owner.insert(key, owner[key])
    elif kind == 2 and isinstance(owner[key], int):
        owner[key] += int(rng.integers(-1, 2))
    elif kind == 3 and isinstance(owner, dict):
        owner[f"{key}x"] = owner.pop(key)
    elif kind == 4:
        owner[key] = copy.deepcopy(owner[_pick(_keys(owner), rng)])
    else:
        owner[key] = copy.deepcopy(_pick(_VALUES, rng))


def _entries(tree: Any) -> Iterator[tuple[Any, Any]]:
    for key in _keys(tree):
        yield tree, key
        if isinstance(tree[key], (dict, list)) and key != "trace_":
            yield from _entries(tree[key])


def _keys(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return list(tree)
    return list(range(len(tree))) if isinstance(tree, list) else []


def _pick(values: Any, rng: np.random.Generator) -> Any:
    return values[int(rng.integers(len(values)))]


def attack(folder: Path, case: str, n: int, seed: int) -> dict[str, int]:
    """How often a damaged model was refused, refused questions, or answered."""
    from small_models import ask

    import sublearn
    from sublearn.errors import ModelFileError
    from sublearn.io import load_bundle, save_bundle

    source, target = folder / f"{case}.sublearn", folder / f"{case}.damaged"
    bundle, raw = load_bundle(source), source.read_bytes()
    counts = {"refused": 0, "asked": 0, "answered": 0}
    for i in range(n):
        rng = np.random.default_rng([seed, i])
        (folder / f"{case}.last").write_text(f"{seed} {i}")  # to find who ended the process
        target.unlink(missing_ok=True)  # maps of the last one stay as they are
        if i % 8 == 0:
            target.write_bytes(mutated_bytes(raw, rng))
        else:
            try:
                save_bundle(target, **mutated_model(bundle, rng))
            except (TypeError, ValueError):  # what no file can hold
                continue
        try:
            model = sublearn.load(target)
        except ModelFileError as error:
            if not str(error).startswith(f"{target}: "):
                raise AssertionError(f"the message must begin with the file, got {error}") from None
            counts["refused"] += 1
            continue
        try:
            ask(case, model)
            counts["answered"] += 1
        except ValueError:
            counts["asked"] += 1
        except BaseException:
            print(f"{case}: seed {seed}, mutation {i}", file=sys.stderr)
            raise
    return counts


if __name__ == "__main__":
    limit_memory(4 << 30)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    where, n_each, first_seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    found = {case: attack(where, case, n_each, first_seed) for case in sys.argv[4:]}
    print(json.dumps(found))
