"""A fit that survives being killed, and whose model need not fit in memory.

A journal is a folder beside the model's file. It holds the plan of the fit and one file per
finished chunk of labels, each written atomically. A fit with the same plan goes on where the
journal ends; when all chunks are there they are turned into the model's arrays, again on disk.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from sublearn.extreme.ppd_problem import Chunk
from sublearn.io.bundle import load_bundle, save_bundle
from sublearn.io.files import write_atomically

__all__ = ["FitJournal", "fingerprint"]

_PART_CLASS = "PPDSparseChunk"
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


class FitJournal:
    """The folder `<model_path>.parts` of one fit.

    Parameters
    ----------
    model_path : path
        Where the model will be saved.
    plan : dict of str to JSON values
        What determines the model. `seed` may be None: a journal that exists then keeps its own.

    Raises
    ------
    ValueError
        If the folder belongs to a fit with another plan.
    """

    def __init__(self, model_path: Any, plan: dict[str, Any]):
        self.folder = Path(f"{os.fspath(model_path)}.parts")
        self.plan = self._resume(plan) if self._plan_file.exists() else self._begin(plan)

    @property
    def _plan_file(self) -> Path:
        return self.folder / "plan.json"

    def _begin(self, plan: dict[str, Any]) -> dict[str, Any]:
        if plan["seed"] is None:
            plan = plan | {"seed": int(np.random.SeedSequence().generate_state(1, np.uint64)[0])}
        self.folder.mkdir(parents=True, exist_ok=True)
        with write_atomically(self._plan_file) as stream:
            stream.write(json.dumps(plan, indent=1).encode())
        return plan

    def _resume(self, plan: dict[str, Any]) -> dict[str, Any]:
        try:
            found = json.loads(self._plan_file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ValueError(f"{self._plan_file}: not the plan of a fit: {error}") from error
        wanted = plan if plan["seed"] is not None else plan | {"seed": found.get("seed")}
        other = [name for name in sorted(wanted | found) if wanted.get(name) != found.get(name)]
        if other:
            raise ValueError(
                f"model_path must not have the unfinished parts of another fit beside it: "
                f"{self.folder} differs in {', '.join(other)}; remove it to start again"
            )
        return found

    def _part(self, number: int) -> Path:
        return self.folder / f"part-{number:06d}.safetensors"

    def __contains__(self, number: int) -> bool:
        return self._part(number).exists()

    def write(self, number: int, chunk: Chunk) -> None:
        """Keep a finished chunk."""
        save_bundle(self._part(number), class_name=_PART_CLASS, params={},
                    arrays=chunk.to_arrays(), attributes={})  # fmt: skip

    def read(self, number: int) -> Chunk:
        """A chunk written before; its arrays are mapped, not read."""
        return Chunk.from_arrays(load_bundle(self._part(number), class_name=_PART_CLASS).arrays)

    def chunks(self) -> Iterator[Chunk]:
        """All chunks written so far."""
        for path in sorted(self.folder.glob("part-*.safetensors")):
            yield Chunk.from_arrays(load_bundle(path, class_name=_PART_CLASS).arrays)

    def gather_weights(self, chunks: list[Chunk], shape: tuple[int, int]) -> sp.csr_matrix:
        """The weights of the chunks by feature, of shape (n_features, n_labels), mapped from disk.

        Takes one pass over the chunks per `_WINDOW` weights and memory for one window.
        """
        n_features, _ = shape
        counts = np.zeros(n_features, dtype=np.int64)
        for chunk in chunks:
            counts += np.bincount(chunk.features, minlength=n_features)
        dtype = chunks[0].values.dtype
        offsets = np.concatenate([[0], np.cumsum(counts)])
        labels = self._map("labels", np.int32, offsets[-1])
        values = self._map("values", dtype, offsets[-1])
        first = 0
        while first < n_features:
            last = int(np.searchsorted(offsets, offsets[first] + _WINDOW, side="right")) - 1
            last = min(max(last, first + 1), n_features)
            window = slice(offsets[first], offsets[last])
            labels[window], values[window] = _window(chunks, first, last)
            first = last
        index_type = np.int32 if offsets[-1] < 2**31 else np.int64
        csr = sp.csr_matrix(shape, dtype=values.dtype)
        csr.indptr, csr.indices, csr.data = offsets.astype(index_type), labels, values
        if index_type is np.int64:
            csr.indices = labels.astype(np.int64)
        return csr

    def _map(self, name: str, dtype: Any, size: int) -> np.ndarray:
        if size == 0:
            return np.empty(0, dtype=dtype)
        return np.memmap(self.folder / f"{name}.mmap", dtype=dtype, mode="w+", shape=(int(size),))

    def remove(self) -> None:
        """Delete the folder, once the model is saved."""
        shutil.rmtree(self.folder)


def _window(chunks: list[Chunk], first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and values of the features `first` to `last - 1`, by feature, then by label."""
    features, labels, values = [], [], []
    for chunk in chunks:
        inside = (chunk.features >= first) & (chunk.features < last)
        features.append(chunk.features[inside])
        labels.append(np.repeat(chunk.labels, np.diff(chunk.indptr))[inside])
        values.append(chunk.values[inside])
    all_labels = np.concatenate(labels)
    order = np.lexsort((all_labels, np.concatenate(features)))
    return all_labels[order], np.concatenate(values)[order]
