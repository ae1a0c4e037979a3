"""Instances of the competitions in probabilistic inference (UAI), as factor graphs."""

from __future__ import annotations

from sklearn.utils import Bunch

from sublearn.datasets.download import Remote
from sublearn.datasets.shelf import Description, Shelf, check_choice
from sublearn.graph import read_uai
from sublearn.typing import PathLike

__all__ = ["DESCRIPTIONS", "fetch_uai"]

_REPOSITORY = "dechterlab/uai-competitions"
_COMMIT = "f13ae36507f4d4a91ae7b20d44ac11765b208450"
_RAW = f"https://raw.githubusercontent.com/{_REPOSITORY}/{_COMMIT}/"
_SMALL, _FOLDING = "UAI-2008/MPE/protein/", "UAI-2012/mpe/ProteinFolding/uai/"
_OBJECTS = "UAI-2012/mpe/ObjectDetection/uai/"
#: Name, to path and SHA-256 of the instance itself, where an own copy told it.
_KNOWN = {
    "pdb1etl": (_SMALL, "908c5f331e8e0689fc53b124e3e2b4c6d403d8e2c7814ed682763c33505e5620"),
    "pdb2erl": (_SMALL, "46efde0591039cdecbdee55e6356e5614b8253f823b784df3d7590bc9e73c2ad"),
    "pdb1mjc": (_SMALL, "ec14f219ccfa2597c6b8b2076ca39e8740fcae0c62807b08af5515963081cb42"),
    "pdb1ctj": (_SMALL, "b805c036cdc87a8bcf2fceb6fdb8c256f306b4ea6740a8f54784a7fbfc676eae"),
    "pdb1i24": (_FOLDING, "163b1da6f23aa851c64f7d4d79bdbd4645f602e80e8f6a2106b932751762929d"),
    "pdb1kwh": (_FOLDING, "f99e416a20454b4e219725a1ee99ee965eaab2daa1413e466b7bdb8396f07a56"),
    "pdb1d2e": (_FOLDING, "656a84b05772e61387917ed52d3facd175b657ea22348c7128f14124b35957c9"),
    "deer_rescaled_0034.K10": (
        _OBJECTS, "e9c0e5e14a0f00209573ef427c50f26855de1b9b22af56a35660e85d404d6e5d",
    ),
    "deer_rescaled_0034.K15": (
        _OBJECTS, "a3ff13573da1e3151d729e71f056406f288a0709d86238c213cba5a125d5a286",
    ),
}  # fmt: skip
_FURTHER = {
    _FOLDING: ("pdb1b25", "pdb1fmj", "pdb1iqc", "pdb1jmx", "pdb1kgn", "pdb1m3y", "pdb1qks"),
    _OBJECTS: tuple(
        f"{name}.K{k}"
        for name in ("deer_rescaled_0294", "deer_rescaled_1002", "deer_rescaled_1003",
                     "deer_rescaled_3009", "giraffe_rescaled_0200", "giraffe_rescaled_3016",
                     "giraffe_rescaled_5004", "giraffe_rescaled_5009")
        for k in (10, 15)
    ),
}  # fmt: skip
_INSTANCES: dict[str, tuple[str, str | None]] = {
    **_KNOWN,
    **{name: (folder, None) for folder, names in _FURTHER.items() for name in names},
}
DESCRIPTIONS = (
    Description(
        "uai",
        "fetch_uai",
        "pdb1etl",
        f"{len(_INSTANCES)} networks to find the most probable assignment of: side chains of "
        "proteins (9 to some 1,300 variables of up to 81 values) and parts of objects in pictures "
        "(60 variables, all pairs)",
        "MIT",
        f"https://github.com/{_REPOSITORY}",
        f"this library for {len(_KNOWN)}, first download for {len(_INSTANCES) - len(_KNOWN)}",
    ),
)


def fetch_uai(
    name: str,
    *,
    data_home: PathLike | None = None,
    download_if_missing: bool = True,
    timeout: float = 60.0,
    verbose: bool = True,
) -> Bunch:
    """Load an instance of the UAI competitions; download it if it is not there.

    Parameters
    ----------
    name : str
        Which one: ``pdb1etl``, ``pdb2erl``, ``pdb1mjc``, ``pdb1ctj`` (small proteins);
        ``pdb1i24``, ``pdb1kwh``, ``pdb1d2e`` and others (large ones);
        ``deer_rescaled_0034.K10`` and others (pictures). A wrong name shows them all.
    data_home : path, optional
        Folder of the cache; by default :func:`sublearn.datasets.data_home`.
    download_if_missing : bool, default=True
        Whether to download it; if False, an instance that is not there is an error.
    timeout : float, default=60
        Seconds without an answer, or with hardly a byte, after which a server is given up.
    verbose : bool, default=True
        Whether to draw a progress bar.

    Returns
    -------
    Bunch
        `graph` (:class:`sublearn.graph.FactorGraph`, for :func:`sublearn.graph.solve_map`),
        `path` of the file, `DESCR`, `licence`, `source`.

    Raises
    ------
    DownloadError
        If it cannot be had.
    """
    check_choice("fetch_uai", "name", name, tuple(_INSTANCES))
    options = {
        "data_home": data_home, "download_if_missing": download_if_missing, "timeout": timeout,
        "verbose": verbose,
    }  # fmt: skip
    shelf = Shelf("fetch_uai", "uai", options)
    folder, digest = _INSTANCES[name]
    own = f"{name}.uai"
    if folder == _FOLDING:  # the only ones that are packed
        archive = Remote(f"{own}.zip", f"{_RAW}{folder}{own}.zip")
        path = shelf.unpack(archive, {own: (own, digest)})[own]
    else:
        there = f"{name}.F100.model.uai" if folder == _OBJECTS else own
        path = shelf.obtain(Remote(own, f"{_RAW}{folder}{there}", digest))
    return DESCRIPTIONS[0].bunch(graph=read_uai(path), path=path)
