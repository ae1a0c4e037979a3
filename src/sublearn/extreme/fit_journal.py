"""A fit that survives being killed, and whose model need not fit in memory.

A journal is a folder beside the model's file. It holds the plan of the fit and one file per
finished chunk of labels, each written atomically and on the disk before it counts. A fit with the
same plan goes on where the journal ends; when all chunks are there they are turned into the model's
arrays, again on disk. A lock keeps a second fit away from the folder.

Each file of a chunk carries a digest of its arrays and of the plan. One that is damaged, or of
another fit, is solved again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

import sublearn
from sublearn.errors import ModelFileError
from sublearn.extreme.ppd_problem import Chunk, PPDProblem, Weighed
from sublearn.io.bundle import load_bundle, save_bundle
from sublearn.io.files import flush_folder, write_atomically
from sublearn.io.locks import hold_alone
from sublearn.io.state import pack_state
from sublearn.parts import MOST_PARTS, Join, Part
from sublearn.typing import JsonObject, PathLike, State
from sublearn.validation import as_seed
from sublearn.validation.values import is_int64

if TYPE_CHECKING:
    from numpy.typing import DTypeLike
    from sklearn.base import BaseEstimator

__all__ = [
    "FitJournal",
    "fingerprint",
    "is_journal_of",
    "make_plan",
    "open_journal",
    "refuse_unsavable",
    "write_part",
]

_PART_CLASS = "PPDSparseChunk"
_REMOVALS = 20
_PLAN = "plan.json"
_MOST_PLAN_BYTES = 2**20
_WINDOW = 2**24  # weights that are turned from label order to feature order at a time


def fingerprint(*arrays: np.ndarray | None) -> str:
    """A digest of the arrays: equal data, equal text."""
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        if array is None:
            digest.update(b"none")
            continue
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def refuse_unsavable(state: State) -> None:
    """Raise what saving this part of a model would raise, before a long fit and not after it."""
    arrays, attributes = pack_state(state)
    with tempfile.TemporaryDirectory() as folder:
        save_bundle(Path(folder) / "trial", class_name="trial", params={},
                    arrays=arrays, attributes=attributes)  # fmt: skip


def make_plan(
    estimator: BaseEstimator, data: Weighed, start: tuple[sp.csr_matrix, np.ndarray] | None
) -> JsonObject:
    """What the model depends on: equal plans, equal models."""
    X, labels, *weights = data
    seed = estimator.random_state
    parts = () if start is None else (start[0].indptr, start[0].indices, start[0].data)
    return {
        **{name: float(getattr(estimator, name)) for name in ("C", "l1", "tol", "prune")},
        "loss": estimator.loss,
        "search": (
            estimator.search if isinstance(estimator.search, str) else estimator.search.to_dict()
        ),
        "fit_intercept": "fixed" if estimator.fit_intercept == "fixed" else True,
        "max_iter": int(estimator.max_iter),
        "X": fingerprint(np.array(X.shape), X.indptr, X.indices, X.data),
        "y": fingerprint(labels.indptr, labels.rows),
        "weights": fingerprint(*weights),
        "start": fingerprint(*parts, start[1]) if start is not None else None,
        "seed": as_seed(int(seed)) if isinstance(seed, (int, np.integer)) else None,
        "sublearn": sublearn.__version__,
    }


@contextlib.contextmanager
def open_journal(
    model_path: PathLike, plan: JsonObject, seed: int, subject: str, asked: object = None
) -> Iterator[FitJournal]:
    """The journal of a fit, which no other fit has open; `subject` heads the refusal.

    `asked` may be a part, whose journal is open to the other parts as well, or that they be joined,
    for which there must be one.
    """
    if isinstance(asked, Part):
        yield FitJournal(model_path, plan, seed, n_parts=asked.n_parts)
        return
    if isinstance(asked, Join) and not Path(f"{os.fspath(model_path)}.parts", _PLAN).exists():
        raise ValueError(f"join_parts: every part must be there: none is beside {model_path}")
    with hold_alone(Path(f"{os.fspath(model_path)}.lock")) as is_ours:
        if not is_ours:
            raise ValueError(
                f"{subject} must not be the file of a fit that is still running, got {model_path}"
            )
        yield FitJournal(model_path, plan, seed)


class FitJournal:
    """The folder `<model_path>.parts` of one fit.

    The plan is what determines the model. Its `seed` may be None: a journal that exists then keeps
    its own, and a new one takes `seed`. Refuses the folder of a fit with another plan or without a
    readable one, and a `model_path` that is a folder; a disk that refuses does so before the fit.

    With `n_parts` the folder belongs to that many processes: what lies in it without a plan stays,
    as another process may have written it a moment ago.
    """

    def __init__(
        self, model_path: PathLike, plan: JsonObject, seed: int, n_parts: int | None = None
    ):
        if os.path.isdir(model_path):
            raise ValueError(f"model_path must be the name of a file, got a folder: {model_path}")
        self.model_path = model_path
        self.folder = Path(f"{os.fspath(model_path)}.parts")
        link = next((file for file in self.folder.glob("*") if file.is_symlink()), None)
        if link is not None:  # the file behind it would be replaced
            raise ModelFileError(f"{link}: a file of a journal must not be a link; remove it")
        self._finished: list[int] = []  # numbers of the blocks that parts begin with
        if n_parts is None:
            is_known = self._plan_file.exists()
            self.plan = self._resume(plan) if is_known else self._begin(plan, seed)
        else:
            self.plan = self._share(plan, n_parts)

    @property
    def _plan_file(self) -> Path:
        return self.folder / _PLAN

    def _begin(self, plan: JsonObject, seed: int) -> JsonObject:
        if plan["seed"] is None:
            plan = plan | {"seed": seed}
        self.folder.mkdir(parents=True, exist_ok=True)
        flush_folder(self.folder.parent)
        for left_over in self.folder.glob("part-*.safetensors"):
            left_over.unlink()  # a part without a plan may belong to any fit
        with write_atomically(self._plan_file) as stream:
            stream.write(json.dumps(plan, indent=1).encode())
        return plan

    def _share(self, plan: JsonObject, n_parts: int) -> JsonObject:
        """The plan, written by whichever process comes first; equal plans are equal bytes."""
        if plan["seed"] is None:
            raise ValueError(
                "random_state must be an integer, the same for all parts of a fit, got none"
            )
        has_plan = self._plan_file.exists()  # looked for first: it is written last
        cut = self.n_parts
        if cut is None and has_plan:
            raise ValueError(
                f"model_path must not have the unfinished parts of a fit in one process beside it: "
                f"{self.folder}; remove it to start again"
            )
        if cut not in (None, n_parts):
            raise ValueError(
                f"n_parts must be {cut}, as of the parts in {self.folder}, got {n_parts}"
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        flush_folder(self.folder.parent)
        for file, content in ((self._cut_file, {"n_parts": n_parts}), (self._plan_file, plan)):
            if not file.exists():
                with write_atomically(file) as stream:
                    stream.write(json.dumps(content, indent=1).encode())
        return self._resume(plan)

    @property
    def _cut_file(self) -> Path:
        return self.folder / "cut.json"

    @property
    def n_parts(self) -> int | None:
        """Into how many parts the fit was cut; None if it was not, or if that is unreadable."""
        try:
            text = self._cut_file.read_text(encoding="utf-8")[:_MOST_PLAN_BYTES]
            found = json.loads(text)["n_parts"]
        except (FileNotFoundError, KeyError, RecursionError, TypeError, ValueError):
            return None
        return found if is_int64(found) and 0 < found <= MOST_PARTS else None

    def _resume(self, plan: JsonObject) -> JsonObject:
        found = _load_plan(self.folder)
        seed = found.get("seed")
        if not is_int64(seed) or seed < 0:
            raise _no_plan(self.folder, f"seed must be an integer from 0 on, got {seed!r}")
        wanted = plan if plan["seed"] is not None else plan | {"seed": seed}
        known = _in_present_names(found)
        other = [name for name in sorted(wanted | known) if wanted.get(name) != known.get(name)]
        if other:
            raise ValueError(
                f"model_path must not have the unfinished parts of another fit beside it: "
                f"{self.folder} differs in {', '.join(other)}; remove it to start again"
            )
        return found

    def keep(self, first_block: int, chunk: Chunk) -> Chunk:
        """Write a finished chunk, and return it without its weights, which are in its file."""
        write_part(self.folder, self.plan, first_block, chunk)
        return self.count(first_block, chunk)

    def count(self, first_block: int, chunk: Chunk) -> Chunk:
        """Count a chunk that is in its file; returns it without its weights."""
        self._finished.append(first_block)
        return chunk.without_weights()

    def finished(
        self, problem: PPDProblem, blocks: range | None = None
    ) -> list[tuple[slice, Chunk]]:
        """The parts that were written before, however they were cut, without their weights.

        What is damaged, of other labels or solved by an earlier part as well is left out, and will
        be solved again. With `blocks` only parts that begin with one of them are read.
        """
        found: list[tuple[slice, Chunk]] = []
        end = 0
        written = [first for first in self._written() if blocks is None or first in blocks]
        for first_block in sorted(written):
            chunk = self._read(first_block, problem)
            part = problem.part(first_block, first_block)
            if chunk is None or part.start < end:
                continue
            part = slice(part.start, part.start + len(problem.solved_of(chunk)))
            if problem.is_answer(part, chunk):
                found.append((part, self.count(first_block, chunk)))
                end = part.stop
        return found

    def _written(self) -> list[int]:
        files = (file for file in self.folder.glob("part-*.safetensors") if file.is_file())
        numbers = (file.name.removeprefix("part-").removesuffix(".safetensors") for file in files)
        return [int(number) for number in numbers if number.isdecimal()]

    def _read(self, first_block: int, problem: PPDProblem) -> Chunk | None:
        try:
            chunk, seal = _open_part(self.folder, first_block)
        except (FileNotFoundError, TypeError, ValueError):
            return None
        is_whole = seal == _seal(self.plan, chunk)
        sizes = (problem.n_labels, problem.n_features, problem.dtype)
        return chunk if is_whole and chunk.is_sound(*sizes) else None

    def _each(self, others: list[Chunk]) -> Iterator[Chunk]:
        """All finished chunks, mapped one at a time: each map keeps a file open; then others."""
        for number in self._finished:
            yield _open_part(self.folder, number)[0]
        yield from others

    def gather_weights(self, chunks: list[Chunk], shape: tuple[int, int]) -> sp.csr_matrix:
        """The weights by feature, of shape (n_features, n_labels), mapped from disk.

        They are those of all finished chunks, and of `chunks` if they have any. Takes one pass over
        the chunks per `_WINDOW` weights and memory for one window.
        """
        n_features, _ = shape
        counts = np.zeros(n_features, dtype=np.int64)
        for chunk in self._each(chunks):
            counts += np.bincount(chunk.features, minlength=n_features)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        index_type = np.int32 if offsets[-1] < 2**31 else np.int64
        files = self.folder / "labels.bin", self.folder / "values.bin"
        with write_atomically(files[0]) as labels, write_atomically(files[1]) as values:
            for first, last in _windows(offsets):
                window = _window(self._each(chunks), first, last)
                labels.write(window[0].astype(index_type).data)
                values.write(window[1].data)
        csr = sp.csr_matrix(shape, dtype=chunks[0].values.dtype)
        csr.indptr, csr.indices = offsets.astype(index_type), _map(files[0], index_type)
        csr.data = _map(files[1], chunks[0].values.dtype)
        return csr

    def remove(self) -> None:
        """Delete the folder, once the model is saved.

        Another process may be writing a part for the second time, which is then in the way.
        """
        for _ in range(_REMOVALS):
            with contextlib.suppress(OSError):
                return shutil.rmtree(self.folder)
            time.sleep(0.1)
        shutil.rmtree(self.folder)


def _part_file(folder: Path, first_block: int) -> Path:
    return folder / f"part-{first_block:06d}.safetensors"


def write_part(folder: Path, plan: JsonObject, first_block: int, chunk: Chunk) -> None:
    """The file of a finished chunk, at once; any process that sees the folder may write it."""
    save_bundle(_part_file(folder, first_block), class_name=_PART_CLASS, params={},
                arrays=chunk.to_arrays(), attributes={"seal": _seal(plan, chunk)})  # fmt: skip


def _open_part(folder: Path, first_block: int) -> tuple[Chunk, object]:
    """What `write_part` wrote, mapped: the chunk, and its seal."""
    bundle = load_bundle(_part_file(folder, first_block), class_name=_PART_CLASS)
    return Chunk.from_arrays(bundle.arrays), bundle.attributes.get("seal")


def _seal(plan: JsonObject, chunk: Chunk) -> str:
    """A digest of a chunk and of the plan by which it was solved."""
    arrays = sorted(chunk.to_arrays().items())
    head = json.dumps([plan, [name for name, _ in arrays]], sort_keys=True).encode()
    return fingerprint(np.frombuffer(head, np.uint8), *(array for _, array in arrays))


def _load_plan(folder: Path) -> JsonObject:
    file = folder / "plan.json"
    if not file.is_file() or file.stat().st_size > _MOST_PLAN_BYTES:
        raise _no_plan(folder, f"a file of at most {_MOST_PLAN_BYTES} bytes is needed")
    try:
        return dict(json.loads(file.read_text(encoding="utf-8")))
    except (RecursionError, TypeError, ValueError) as error:
        raise _no_plan(folder, str(error)) from error


def _in_present_names(plan: JsonObject) -> JsonObject:
    """A plan of sublearn 0.1, which calls the intercept a bias, as one of today."""
    if "bias" not in plan:
        return plan
    others = {name: value for name, value in plan.items() if name != "bias"}
    return others | {"fit_intercept": True if plan["bias"] == "learned" else plan["bias"]}


def _no_plan(folder: Path, why: str) -> ModelFileError:
    return ModelFileError(
        f"{folder / 'plan.json'}: not the plan of a fit: {why}; remove the folder to start again"
    )


def is_journal_of(folder: Path, plan: JsonObject) -> bool:
    """Whether this process sees the folder of the journal with this plan."""
    try:
        return _load_plan(folder) == plan
    except (OSError, ValueError):
        return False


def _map(file: Path, dtype: DTypeLike) -> np.ndarray:
    """The numbers of a file, read-only: what is written through a map kills on a full disk."""
    if file.stat().st_size == 0:  # nothing to map, which the system refuses
        return np.empty(0, dtype=dtype)
    return np.memmap(file, dtype=dtype, mode="r")


def _windows(offsets: np.ndarray) -> Iterator[tuple[int, int]]:
    """Ranges of features with about `_WINDOW` weights each, in order."""
    first, n_features = 0, len(offsets) - 1
    while first < n_features:
        last = int(np.searchsorted(offsets, offsets[first] + _WINDOW, side="right")) - 1
        last = min(max(last, first + 1), n_features)
        yield first, last
        first = last


def _window(chunks: Iterator[Chunk], first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and values of the features `first` to `last - 1`, by feature, then by label."""
    features, labels, values = [], [], []
    for chunk in chunks:
        inside = (chunk.features >= first) & (chunk.features < last)
        features.append(chunk.features[inside])
        rows = np.repeat(np.arange(len(chunk.indptr) - 1), np.diff(chunk.indptr))
        labels.append(chunk.labels[rows[inside]])
        values.append(chunk.values[inside])
    all_labels = np.concatenate(labels)
    order = np.lexsort((all_labels, np.concatenate(features)))
    return all_labels[order], np.concatenate(values)[order]
