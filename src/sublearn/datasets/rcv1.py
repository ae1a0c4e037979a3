"""Reuters Corpus Volume 1 with its tree of topics."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch

from sublearn.datasets.download import Remote
from sublearn.datasets.shelf import Description, Shelf, check_choice
from sublearn.errors import DataFileError
from sublearn.hierarchy import Taxonomy
from sublearn.io import load_svmlight
from sublearn.io.files import Lines, open_binary, reading
from sublearn.typing import PathLike

__all__ = ["DESCRIPTIONS", "fetch_rcv1"]

_HOST = "https://ndownloader.figshare.com/files/"
#: Addresses and sums are those that scikit-learn publishes for the same files.
_VECTORS = {
    "train": (
        Remote(
            "lyrl2004_vectors_train.dat.gz", f"{_HOST}5976057",
            "5468f656d0ba7a83afc7ad44841cf9a53048a5c083eedc005dcdb5cc768924ae",
        ),
    ),
    "test": (
        Remote(
            "lyrl2004_vectors_test_pt0.dat.gz", f"{_HOST}5976069",
            "ed40f7e418d10484091b059703eeb95ae3199fe042891dcec4be6696b9968374",
        ),
        Remote(
            "lyrl2004_vectors_test_pt1.dat.gz", f"{_HOST}5976066",
            "87700668ae45d45d5ca1ef6ae9bd81ab0f5ec88cc95dcef9ae7838f727a13aa6",
        ),
        Remote(
            "lyrl2004_vectors_test_pt2.dat.gz", f"{_HOST}5976063",
            "48143ac703cbe33299f7ae9f4995db49a258690f60e5debbff8995c34841c7f5",
        ),
        Remote(
            "lyrl2004_vectors_test_pt3.dat.gz", f"{_HOST}5976060",
            "dfcb0d658311481523c6e6ca0c3f5a3e1d3d12cde5d7a8ce629a9006ec7dbb39",
        ),
    ),
}  # fmt: skip
_TOPICS = Remote(
    "rcv1v2.topics.qrels.gz", f"{_HOST}5976048",
    "2a98e5e5d8b770bded93afc8930d88299474317fe14181aee1466cc754d0d1c1",
)  # fmt: skip
_TREE = Remote(
    "rcv1.topics.hier.orig",
    "https://jmlr.csail.mit.edu/papers/volume5/lewis04a/a02-orig-topics-hierarchy/"
    "rcv1.topics.hier.orig",
)
_N_FEATURES = 47_236
DESCRIPTIONS = (
    Description(
        "rcv1",
        "fetch_rcv1",
        None,
        "Reuters stories of a year: 23,149 for training and 781,265 for testing, 47,236 words, "
        "103 topics in a tree",
        "none stated for the vectors; the stories themselves are licensed for research",
        "https://www.jmlr.org/papers/volume5/lewis04a/lyrl2004_rcv1v2_README.htm",
        "scikit-learn; the tree: first download",
    ),
)


def fetch_rcv1(
    *,
    subset: str = "train",
    data_home: PathLike | None = None,
    download_if_missing: bool = True,
    timeout: float = 60.0,
    verbose: bool = True,
) -> Bunch:
    """Load the stories of Reuters as word vectors, their topics, and the tree of these.

    Parameters
    ----------
    subset : {"train", "test"}, default="train"
        Which part; only its files are downloaded, if they are not there.
    data_home : path, optional
        Folder of the cache; by default :func:`sublearn.datasets.data_home`.
    download_if_missing : bool, default=True
        Whether to download it; if False, a set that is not there is an error.
    timeout : float, default=60
        Seconds without an answer, or with hardly a byte, after which a server is given up.
    verbose : bool, default=True
        Whether to draw a progress bar.

    Returns
    -------
    Bunch
        `X` (CSR matrix of float32, rows of length 1), `y` (CSR indicator matrix in the order of
        `label_names`), `label_names`, `sample_ids`, `taxonomy`
        (:class:`sublearn.hierarchy.Taxonomy`), `DESCR`, `licence`, `source`.

    Raises
    ------
    DownloadError
        If it cannot be had.
    """
    check_choice("fetch_rcv1", "subset", subset, tuple(_VECTORS))
    options = {
        "data_home": data_home, "download_if_missing": download_if_missing, "timeout": timeout,
        "verbose": verbose,
    }  # fmt: skip
    shelf = Shelf("fetch_rcv1", "rcv1", options)
    parts = [_vectors(shelf.obtain(remote)) for remote in _VECTORS[subset]]
    ids = np.concatenate([own for _, own in parts])
    y, names = _topics(shelf.obtain(_TOPICS), ids)
    return DESCRIPTIONS[0].bunch(
        X=sp.vstack([X for X, _ in parts], format="csr"),
        y=y,
        label_names=names,
        sample_ids=ids,
        taxonomy=Taxonomy.from_rcv1(shelf.obtain(_TREE)),
    )


def _vectors(path: Path) -> tuple[sp.csr_matrix, np.ndarray]:
    """Rows of a file and the numbers of their stories, which stand where labels usually do."""
    X, ids = load_svmlight(path, n_features=_N_FEATURES, multilabel=False)
    return X, np.asarray(ids).astype(np.int64)


def _topics(path: Path, ids: np.ndarray) -> tuple[sp.csr_matrix, np.ndarray]:
    """Topics of these stories; a line is ``topic story 1``."""
    row_of = {int(number): i for i, number in enumerate(ids)}
    with open_binary(path) as stream:
        lines = Lines(stream)
        with reading(path, lines):
            pairs = list(_pairs(lines.texts()))
    names, columns = np.unique([topic for topic, _ in pairs], return_inverse=True)
    rows = np.array([row_of.get(story, -1) for _, story in pairs], dtype=np.int64)
    missing = len(ids) - len(np.unique(rows[rows >= 0]))
    if missing:
        raise DataFileError(f"{path}: every story must have a topic, got {missing} without")
    entries = (np.ones(len(pairs), np.int8)[rows >= 0], (rows[rows >= 0], columns[rows >= 0]))
    return sp.csr_matrix(entries, shape=(len(ids), len(names))), names


def _pairs(lines: Iterable[str]) -> Iterable[tuple[str, int]]:
    for line in lines:
        topic, story, _ = line.split()
        yield topic, int(story)
