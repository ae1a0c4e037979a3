"""A model in shards: the weights of ranges of labels in files of their own.

A folder holds `shards.json`, which says where the ranges end, `head.sublearn`, the model without
its weights, and a file for each range. Each row asks every shard for its best labels, and the best
of these are the best of all: the answer is that of the model in one file, to the last bit.
"""

from __future__ import annotations

import copy
import json
import os
import secrets
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from sublearn.errors import ModelFileError
from sublearn.execution import map_blocks
from sublearn.extreme.linear_classifier import LinearLabelClassifier
from sublearn.extreme.linear_labels import LabelLists, LinearLabels
from sublearn.extreme.text_tagger import TextTagger
from sublearn.io.bundle import load_bundle, save_bundle
from sublearn.io.fields import check_fields
from sublearn.io.files import flush_folder, write_atomically
from sublearn.io.models import SHARDS
from sublearn.io.models import load as load_file
from sublearn.io.state import pack_state, unpack_state
from sublearn.typing import JsonObject, PathLike
from sublearn.validation import LabelKind
from sublearn.validation.values import is_int64, show

__all__ = ["ShardedLabels", "load_shards", "save_shards"]

_HEAD = "head.sublearn"
_SHARD_CLASS = "LabelShard"
_MOST_SHARDS = 10_000
_MOST_MANIFEST_BYTES = 2**20
_ROWS_PER_THREAD = 8  # from so many on threads share rows, below they share shards
_Model = TypeVar("_Model", LinearLabelClassifier, TextTagger)
_Answer = TypeVar("_Answer")


class ShardedLabels(LinearLabels):
    """Linear models of ranges of labels as one of all labels."""

    def __init__(self, shards: Sequence[LinearLabels], bias: np.ndarray):
        self.shards, self.bias = list(shards), bias
        self._starts = np.cumsum([0, *(shard.n_labels for shard in self.shards)])
        bias.flags.writeable = False

    def __reduce__(self) -> tuple[type[LinearLabels], tuple[Any, np.ndarray]]:
        return ShardedLabels, (self.shards, self.bias)

    @property
    def lists(self) -> LabelLists:
        """All weights in memory, for a file."""
        return LabelLists.of(self.weights)

    @property
    def weights(self) -> sp.csr_matrix:
        """Weights of shape (n_features, n_labels); a new matrix each time."""
        return sp.hstack([shard.weights for shard in self.shards], format="csr")

    @property
    def work(self) -> int:
        """Weights and scores that `top_k` has read so far."""
        return sum(shard.work for shard in self.shards)

    def compress(self, bits: int, prune: float) -> ShardedLabels:
        """Each shard with its own scales."""
        shards = [shard.compress(bits, prune) for shard in self.shards]
        return ShardedLabels(shards, np.concatenate([shard.bias for shard in shards]))

    def top_k(
        self, X: sp.csr_matrix, k: int, n_threads: int, effort: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Ids and scores of the `k` best labels of each row, best first, ties by lower id.

        The `k` best of all are among the `k` best of each shard. Shards are in the order of ids and
        their answers as well, so that a stable sort keeps the rule for ties.
        """
        found = self._ask(
            lambda shard, n: shard.top_k(X, min(k, shard.n_labels), n, effort), X, n_threads
        )
        ids = np.hstack(
            [part + start for (part, _), start in zip(found, self._starts, strict=False)]
        )
        scores = np.hstack([part for _, part in found])
        best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(ids, best, 1), np.take_along_axis(scores, best, 1)

    def scores(self, X: sp.csr_matrix, n_threads: int) -> np.ndarray:
        """Scores of all labels, dense, of shape (n_samples, n_labels)."""
        return np.hstack(self._ask(lambda shard, n: shard.scores(X, n), X, n_threads))

    def above(self, X: sp.csr_matrix, threshold: float, n_threads: int) -> sp.csr_matrix:
        """Boolean matrix of the labels that score above `threshold`."""
        found = self._ask(lambda shard, n: shard.above(X, threshold, n), X, n_threads)
        return sp.hstack(found, format="csr")

    def _ask(
        self, ask: Callable[[LinearLabels, int], _Answer], X: sp.csr_matrix, n_threads: int
    ) -> list[_Answer]:
        """All shards: one after the other with all threads, or side by side if rows are few."""
        if X.shape[0] >= _ROWS_PER_THREAD * n_threads:
            return [ask(shard, n_threads) for shard in self.shards]
        return map_blocks(lambda shard: ask(shard, 1), self.shards, n_threads, stay_here=True)


# --- writing -----------------------------------------------------------------------------------


def save_shards(model: LinearLabelClassifier | TextTagger, folder: PathLike, n_shards: int) -> None:
    """Write a fitted model with its labels cut into shards of about equal size.

    Parameters
    ----------
    model : PPDSparseClassifier, PDSparseClassifier, or TextTagger around one
        With more than two labels. Compress it before, where that is wanted: shards then hold
        the same integers and scales.
    folder : path
        A new folder. It appears at once when it is complete.
    n_shards : int
        Into how many files, at most one for each label.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from sublearn.extreme import PPDSparseClassifier
    >>> model = PPDSparseClassifier(random_state=0).fit(np.eye(4), list("abcd"))
    >>> folder = f"{tempfile.mkdtemp()}/letters"
    >>> save_shards(model, folder, 2)
    >>> load_shards(folder).predict(np.eye(4)).tolist()
    ['a', 'b', 'c', 'd']
    """
    labels = _linear_part(model, "save_shards.model").model_
    if not is_int64(n_shards) or not 1 <= n_shards <= min(_MOST_SHARDS, labels.n_labels):
        raise ValueError(
            f"save_shards.n_shards must be an integer in 1..{min(_MOST_SHARDS, labels.n_labels)}, "
            f"got {show(n_shards)}"
        )
    target = Path(folder)
    if os.path.lexists(target):
        raise ValueError(f"save_shards.folder must be new, got {target}")
    part = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    part.mkdir(parents=True)
    try:
        lists = labels.lists
        ends = _ends(lists, labels.n_labels, n_shards)
        for number, (first, last) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            _write_shard(part, number, lists, labels.bias, first, last)
        none = LabelLists(np.zeros_like(lists.offsets), lists.labels[:0], lists.values[:0],
                          lists.scales)  # fmt: skip
        _with_labels(model, LinearLabels(none, labels.bias)).save(part / _HEAD)
        about = {"format": "sublearn shards", "version": 1, "ends": ends}
        with write_atomically(part / SHARDS) as stream:
            stream.write(json.dumps(about).encode())
        os.rename(part, target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    flush_folder(target.parent)


def _linear_part(model: object, subject: str) -> LinearLabelClassifier:
    """The classifier whose weights are cut."""
    inner = model.__dict__.get("classifier_") if isinstance(model, TextTagger) else model
    if not isinstance(inner, LinearLabelClassifier) or "model_" not in inner.__dict__:
        raise ValueError(
            f"{subject} must be a fitted linear classifier of this library, or a TextTagger around "
            f"one, got {show(model)}"
        )
    if inner._label_kind is LabelKind.BINARY:
        raise ValueError(f"{subject} must have a score for each label, got one score for two")
    return inner


def _with_labels(model: _Model, labels: LinearLabels) -> _Model:
    """The same model with other weights."""
    out = copy.copy(model)
    if isinstance(out, TextTagger):
        out.classifier_ = _with_labels(out.classifier_, labels)
    else:
        out.model_ = labels
    return out


def _ends(lists: LabelLists, n_labels: int, n_shards: int) -> list[int]:
    """Where ranges of labels end that have about the same number of weights and biases."""
    sizes = 1 + np.bincount(lists.labels, minlength=n_labels)
    before = np.cumsum(sizes)
    ends = np.searchsorted(before, before[-1] * np.arange(1, n_shards) / n_shards) + 1
    ranks = np.arange(1, n_shards)  # no shard is empty
    ends = np.maximum.accumulate(ends - ranks) + ranks
    return [*np.clip(ends, ranks, n_labels - n_shards + ranks).tolist(), n_labels]


def _write_shard(
    folder: Path, number: int, lists: LabelLists, bias: np.ndarray, first: int, last: int
) -> None:
    is_ours = (lists.labels >= first) & (lists.labels < last)
    offsets = np.concatenate([[0], np.cumsum(is_ours, dtype=np.int64)])[lists.offsets]
    part = LabelLists(
        offsets.astype(lists.offsets.dtype), lists.labels[is_ours] - lists.labels.dtype.type(first),
        lists.values[is_ours], lists.scales,
    )  # fmt: skip
    arrays, attributes = pack_state(LinearLabels(part, bias[first:last].copy()).to_state())
    save_bundle(_shard_file(folder, number), class_name=_SHARD_CLASS, params={}, arrays=arrays,
                attributes=attributes | {"first": first, "last": last})  # fmt: skip


def _shard_file(folder: Path, number: int) -> Path:
    return folder / f"shard-{number:05d}.sublearn"


# --- reading -----------------------------------------------------------------------------------


def load_shards(folder: PathLike, *, mapped: bool = True) -> Any:
    """Open a model that `save_shards` wrote; `sublearn.load` of the folder does the same.

    Parameters
    ----------
    folder : path
        The folder, or its `shards.json`.
    mapped : bool, default=True
        As in `sublearn.load`: lists are read, and checked, when a row needs them.

    Returns
    -------
    estimator
        Of the class that was saved, with the same answers.

    Raises
    ------
    ModelFileError
        If a file is missing, damaged, foreign, or of another model.
    """
    home = Path(folder)
    home = home.parent if home.name == SHARDS else home
    ends = _read_ends(home / SHARDS)
    model = load_file(home / _HEAD, mapped=mapped)
    try:
        head = _linear_part(model, "the head of shards").model_
    except ValueError as error:
        raise ModelFileError(f"{home / _HEAD}: {error}") from None
    if ends[-1] != head.n_labels:
        raise ModelFileError(
            f"{home / SHARDS}: ends must end at {head.n_labels} labels, got {ends[-1]}"
        )
    shards = [
        _read_shard(_shard_file(home, number), first, last, head, mapped)
        for number, (first, last) in enumerate(zip([0, *ends[:-1]], ends, strict=True))
    ]
    return _with_labels(model, ShardedLabels(shards, head.bias))


def _read_ends(path: Path) -> list[int]:
    if not path.is_file() or path.stat().st_size > _MOST_MANIFEST_BYTES:
        raise ModelFileError(f"{path}: the description of a model in shards is needed, got none")
    try:
        about: JsonObject = json.loads(path.read_text(encoding="utf-8"))
        ends = about["ends"]
        if (about["format"], about["version"]) != ("sublearn shards", 1):
            raise ValueError("another format or version")
        if not isinstance(ends, list) or not 1 <= len(ends) <= _MOST_SHARDS:
            raise ValueError(f"ends must be a list of 1 to {_MOST_SHARDS} numbers")
        if not all(is_int64(end) for end in ends) or sorted({0, *ends}) != [0, *ends]:
            raise ValueError("ends must be increasing integers from 1 on")
    except (KeyError, RecursionError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path}: does not describe a model in shards: {error}") from None
    return ends


def _read_shard(
    path: Path, first: int, last: int, head: LinearLabels, mapped: bool
) -> LinearLabels:
    """A shard that belongs to a head: the same features, and the biases of its labels."""
    try:
        bundle = load_bundle(path, class_name=_SHARD_CLASS, mapped=mapped)
    except FileNotFoundError:
        raise ModelFileError(f"{path}: every shard must be there, got none") from None
    try:
        state = unpack_state(bundle.arrays, bundle.attributes)
        place = (state.pop("first", None), state.pop("last", None))
        if place != (first, last):
            raise ValueError(f"labels must be {first} to {last}, got {place}")
        sizes = {"features": head.lists.n_features, "scores": last - first}
        check_fields(state, LinearLabels.FIELDS, sizes)
        shard = LinearLabels.from_state(state)
        if shard.bias.tobytes() != head.bias[first:last].tobytes():
            raise ValueError("biases must be those of the head, got those of another model")
    except (LookupError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path}: {error}") from error
    return shard
