"""Sets of the Extreme Classification Repository, as it serves them: bags of words."""

from __future__ import annotations

from dataclasses import dataclass

from sklearn.utils import Bunch

from sublearn.datasets.download import Remote
from sublearn.datasets.shelf import Description, Shelf, check_choice
from sublearn.io import load_xmc
from sublearn.typing import PathLike

__all__ = ["DESCRIPTIONS", "fetch_extreme"]

_PAGE = "http://manikvarma.org/downloads/XC/XMLRepository.html"
_DRIVE = "https://drive.usercontent.google.com/download?id={}&export=download&confirm=t"


@dataclass(frozen=True)
class _Set:
    key: str  # of the file at its host
    train: str
    test: str
    n_train: int
    n_test: int
    n_features: int
    n_labels: int

    @property
    def what(self) -> str:
        return (
            f"{self.n_train:,} rows for training and {self.n_test:,} for testing, "
            f"{self.n_features:,} words, {self.n_labels:,} labels"
        )


#: Keys and sizes are those that the repository states.
_SETS = {
    "eurlex-4k": _Set(
        "0B3lPMIHmG6vGU0VTR1pCejFpWjg&resourcekey=0-SurjZ4z_5Tr38jENzf2Iwg",
        "eurlex_train.txt", "eurlex_test.txt", 15_539, 3_809, 5_000, 3_993,
    ),
    "wiki10-31k": _Set(
        "0B3lPMIHmG6vGaDdOeGliWF9EOTA",
        "wiki10_train.txt", "wiki10_test.txt", 14_146, 6_616, 101_938, 30_938,
    ),
    "amazoncat-13k": _Set(
        "0B3lPMIHmG6vGa2tMbVJGdDNSMGc",
        "amazonCat_train.txt", "amazonCat_test.txt", 1_186_239, 306_782, 203_882, 13_330,
    ),
    "delicious-200k": _Set(
        "0B3lPMIHmG6vGR3lBWWYyVlhDLWM",
        "deliciousLarge_train.txt", "deliciousLarge_test.txt", 196_606, 100_095, 782_585, 205_443,
    ),
    "wikilshtc-325k": _Set(
        "0B3lPMIHmG6vGSHE1SWx4TVRva3c",
        "wikiLSHTC_train.txt", "wikiLSHTC_test.txt", 1_778_351, 587_084, 1_617_899, 325_056,
    ),
    "amazon-670k": _Set(
        "0B3lPMIHmG6vGdUJwRzltS1dvUVk",
        "amazon_train.txt", "amazon_test.txt", 490_449, 153_025, 135_909, 670_091,
    ),
}  # fmt: skip
DESCRIPTIONS = tuple(
    Description(
        name,
        "fetch_extreme",
        name,
        one.what,
        "none stated; cite the repository and the source of the set",
        _PAGE,
        "first download",
    )
    for name, one in _SETS.items()
)


def fetch_extreme(
    name: str,
    *,
    subset: str = "train",
    data_home: PathLike | None = None,
    download_if_missing: bool = True,
    timeout: float = 60.0,
    verbose: bool = True,
) -> Bunch:
    """Load a set of the Extreme Classification Repository; download it if it is not there.

    Parameters
    ----------
    name : {"eurlex-4k", "wiki10-31k", "amazoncat-13k", "delicious-200k", "wikilshtc-325k", \
"amazon-670k"}
        Which set.
    subset : {"train", "test"}, default="train"
        Which part. Both are downloaded together.
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
        `X` (CSR matrix of float32), `y` (CSR indicator matrix), `DESCR`, `licence`, `source`.

    Raises
    ------
    DownloadError
        If it cannot be had. The files lie at Google Drive, which may answer with a page that asks
        for a confirmation; the message says where to put the file then.
    """
    check_choice("fetch_extreme", "name", name, tuple(_SETS))
    check_choice("fetch_extreme", "subset", subset, ("train", "test"))
    options = {
        "data_home": data_home, "download_if_missing": download_if_missing, "timeout": timeout,
        "verbose": verbose,
    }  # fmt: skip
    one, shelf = _SETS[name], Shelf("fetch_extreme", name, options)
    files = shelf.unpack(
        Remote(f"{name}.zip", _DRIVE.format(one.key)),
        {"train.txt": (one.train, None), "test.txt": (one.test, None)},
    )
    X, y = load_xmc(files[f"{subset}.txt"])
    description = next(told for told in DESCRIPTIONS if told.name == name)
    return description.bunch(X=X, y=y)
