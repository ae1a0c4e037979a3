"""Seeded damage to bytes, text and JSON values; each function takes a random generator."""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

#: Set in the environment by code that came out of a file; nothing may ever run it.
CANARY = "SUBLEARN_FUZZ_CODE_RAN"
_CODE = f"__import__('os').environ.__setitem__('{CANARY}', '1')"
CODE = (
    _CODE,
    f"x, evil={_CODE}",
    f"a={_CODE}, inplace",
    f"x); {_CODE}; (",
    f"x\n{_CODE}\n",
    f"__import__('os').system('touch {CANARY}')",
    "__class__.__init__.__globals__",
    "../../../../etc/passwd",
)

INTEGERS = (
    0, 1, -1, 2, 7, 8, 127, 128, 255, 256, 65535, 65536, 2**31 - 1, 2**31, -(2**31), 2**32,
    2**40, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30,
)  # fmt: skip
NUMBERS = (
    *(b"%d" % n for n in INTEGERS),
    b"0.0", b"-0.0", b"1e-320", b"1e38", b"1e39", b"1e200", b"1e308", b"1e309", b"-1e309", b"nan",
    b"NaN", b"inf", b"-inf", b"Infinity", b"0x10", b"1_000", b"1e", b".", b"-", b"+1", b"1,5",
    b"9" * 400, b"0." + b"0" * 400 + b"1",
)  # fmt: skip
PIECES = (
    b"\0", b"\n", b"\r", b"\r\n", b"\n\n", b"\t", b" ", b"\x1f", b"\x0b", b"\xef\xbb\xbf", b"\xff",
    b"\xc3", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"\xf0\x9f\x98\x80", b"'", b'"', b'""', b"\\", b"#",
    b"%", b"?", b":", b",", b";", b"@", b"{", b"}", b"[", b"]", b"[" * 3000, b"{\"a\":" * 3000,
    b"(" * 2000, b"<" * 50, b"|", b"/", b"//", b"-" * 100, b"a" * 5000, b"1 " * 3000, b"\xd9\xa3",
)  # fmt: skip

_LONG = 2**16  # bytes of a text in which single words no longer matter
_TOKEN = re.compile(rb"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?|[A-Za-z_@]+|[^\sA-Za-z0-9]")


def some(rng: random.Random, most: int) -> int:
    """A small count more often than a large one."""
    return min(most, 1 + int(rng.expovariate(0.7)))


# --- bytes ---------------------------------------------------------------------------------------


def _flip(rng: random.Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    for _ in range(some(rng, 8)):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _overwrite(rng: random.Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    at = rng.randrange(len(data))
    length = rng.choice((1, 2, 4, 8))
    value = rng.choice(INTEGERS) & (256**length - 1)
    data[at : at + length] = value.to_bytes(length, rng.choice(("little", "big")))


def _cut(rng: random.Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    del data[rng.randrange(len(data)) :]


def _drop(rng: random.Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    at = rng.randrange(len(data))
    del data[at : at + some(rng, 64)]


def _repeat(rng: random.Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    at = rng.randrange(len(data))
    part = bytes(data[at : at + rng.randrange(1, 40)])
    data[at:at] = part * rng.choice((1, 1, 2, 10, 100))


def _insert(rng: random.Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.choice(PIECES)


def _splice(rng: random.Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    other = rng.choice(seeds)
    if other:
        data[rng.randrange(len(data)) :] = other[rng.randrange(len(other)) :]


def _swap(rng: random.Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    a, b = sorted(rng.randrange(len(data)) for _ in range(2))
    data[:] = data[b:] + data[a:b] + data[:a]


_BYTES = (_flip, _overwrite, _cut, _drop, _repeat, _insert, _splice, _swap)


def mutate_bytes(rng: random.Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    """One to four changes anywhere."""
    out = bytearray(data)
    for _ in range(some(rng, 4)):
        if out:
            rng.choice(_BYTES)(rng, out, seeds)
    return bytes(out)


# --- text ----------------------------------------------------------------------------------------


def _token(rng: random.Random, text: bytes) -> bytes:
    """One word, number or sign replaced by another of the text, or by something hostile."""
    found = list(_TOKEN.finditer(text)) if len(text) <= _LONG else []
    if not found:
        return text
    old = rng.choice(found)
    pools = (NUMBERS, PIECES, [rng.choice(found).group()], (b"",))
    new = rng.choice(rng.choice(pools))
    return text[: old.start()] + new + text[old.end() :]


def _lines(rng: random.Random, text: bytes) -> bytes:
    """A line repeated, removed, moved, emptied or cut."""
    lines = text.split(b"\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.randrange(5)
    if kind == 0:
        lines[i:i] = [lines[j]] * rng.choice((1, 2, 30))
    elif kind == 1:
        del lines[i]
    elif kind == 2:
        lines[i], lines[j] = lines[j], lines[i]
    elif kind == 3:
        lines[i] = b""
    else:
        lines[i] = lines[i][: rng.randrange(len(lines[i]) + 1)]
    return b"\n".join(lines)


def mutate_text(rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """A seed with changes to words, lines or bytes."""
    text = rng.choice(seeds)
    for _ in range(some(rng, 5)):
        kind = rng.random()
        if kind < 0.55:
            text = _token(rng, text)
        elif kind < 0.8:
            text = _lines(rng, text)
        else:
            text = mutate_bytes(rng, text, seeds)
    return text


# --- JSON values ---------------------------------------------------------------------------------


def hostile_value(rng: random.Random) -> Any:
    """A value that nobody expects there."""
    pick = rng.random()
    if pick < 0.35:
        return rng.choice(INTEGERS)
    if pick < 0.5:
        return rng.choice((0.0, -0.5, 0.5, 1e-320, 1e38, 1e200, 1e308, -1e308))
    if pick < 0.6:
        return rng.choice((None, True, False, "", "x", "\udc80", "0", "nan"))
    if pick < 0.7:
        return rng.choice(CODE)
    if pick < 0.8:
        return {"__float__": rng.choice(("nan", "inf", "-inf", "x", ""))}
    if pick < 0.9:
        return rng.choice(([], {}, [0], [-1, 2**40], {"a": 1}, [[]], ["a", "b"]))
    return rng.choice((
        {"__tuple__": [1, 2]}, {"__tuple__": 3}, {"__mapping__": [[1, 2]]}, {"__mapping__": 1},
        {"__mapping__": [[[], 1]]}, nested(50), nested(150),
    ))  # fmt: skip


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


def mutate_json(rng: random.Random, value: Any) -> Any:
    """A copy in which one place is another value, gone, doubled, or under another name."""
    out = copy.deepcopy(value)
    places = _places(out)
    if not places:
        return hostile_value(rng)
    holder, key = rng.choice(places)
    kind = rng.random()
    if kind < 0.6:
        holder[key] = _near(rng, holder[key]) if rng.random() < 0.4 else hostile_value(rng)
    elif kind < 0.75:
        del holder[key]
    elif kind < 0.85:
        other, its = rng.choice(places)
        holder[key] = copy.deepcopy(other[its])
    elif isinstance(holder, dict):
        new = rng.choice((*CODE, "x", "", "__class__", str(rng.choice(list(holder)))))
        holder[new] = holder.pop(key)
    else:
        holder[key:key] = [copy.deepcopy(holder[key])] * rng.choice((1, 2, 50))
    return out


def _near(rng: random.Random, value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + rng.choice((-2, -1, 1, 2, 1000)) if rng.random() < 0.6 else -value
    if isinstance(value, float):
        return rng.choice((-value, value * 1e10, 0.0, value / 3))
    if isinstance(value, str):
        return rng.choice((value + "x", value[:-1], value.upper(), rng.choice(CODE)))
    if isinstance(value, list):
        return value[:-1] if rng.random() < 0.5 else value + value
    return hostile_value(rng)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a tree of JSON, as its holder and its key there."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        holder = waiting.pop()
        if isinstance(holder, dict):
            keys: Sequence[Any] = list(holder)
        elif isinstance(holder, list):
            keys = range(len(holder))
        else:
            continue
        found += [(holder, key) for key in keys]
        waiting += [holder[key] for key in keys]
    return found


def one_of(rng: random.Random, *choices: tuple[float, Callable[[], Any]]) -> Any:
    """Call one of several functions, each as often as its weight says."""
    weights = [weight for weight, _ in choices]
    return rng.choices([function for _, function in choices], weights)[0]()
