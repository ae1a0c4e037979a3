"""Records of libraries with the subjects that librarians gave them: German, English, Finnish.

Their sources are repositories of many small files, which are read from one archive and written as
tables of two columns, labels and text.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sklearn.utils import Bunch

from sublearn.datasets.archives import members_of_tar
from sublearn.datasets.download import Remote
from sublearn.datasets.shelf import Description, Shelf, check_choice
from sublearn.io import load_texts
from sublearn.io.files import reading, write_atomically
from sublearn.io.quickstart import load_quickstart
from sublearn.typing import PathLike

__all__ = ["DESCRIPTIONS", "fetch_gnd", "fetch_yso", "load_library_records"]

_GND = "sciknoworg/subject-indexing-dataset"
_GND_COMMIT = "18ba3c7ec3d2579b2612178e51e33313a5e6704e"
_YSO = "NatLibFi/Annif-corpora"
_YSO_COMMIT = "ce2469d59663032ca8ebbc4070bb0f8aab2fe8ce"
_ARCHIVE = "https://codeload.github.com/{}/tar.gz/{}"
_YSO_LANGUAGES = ("en", "fi")
_TEST_SHARE = 10  # one text of so many is for testing
DESCRIPTIONS = (
    Description(
        "gnd",
        "fetch_gnd",
        None,
        "titles and abstracts of the German national library of science and technology, German "
        "and English: 90,452 records for training, 19,949 for choosing, 27,998 for testing",
        "CC BY-SA 4.0",
        f"https://github.com/{_GND}",
        "first download",
    ),
    *(
        Description(
            f"yso-{language}",
            "fetch_yso",
            language,
            f"titles of Finnish libraries ({language}), each with concepts of the General Finnish "
            "Ontology; a few hundred texts of each concept",
            "CC0 (metadata of Finna)",
            f"https://github.com/{_YSO}",
            "first download",
        )
        for language in _YSO_LANGUAGES
    ),
)
_QUICKSTART = Description(
    "library-records",
    "load_library_records",
    None,
    "12,923 records for training and 1,978 for testing, 3,861 subject headings; comes with the "
    "package",
    "CC0 1.0 (metadata of Finna)",
    f"https://github.com/{_YSO}",
    "this library",
)


def load_library_records(*, subset: str = "train") -> Bunch:
    """Load the small set that comes with the package: English titles and subject headings.

    Parameters
    ----------
    subset : {"train", "test"}, default="train"
        Which part.

    Returns
    -------
    Bunch
        `X` (list of texts), `y` (list of lists of headings), `DESCR`, `licence`, `source`.

    Examples
    --------
    >>> from sublearn.datasets import load_library_records
    >>> records = load_library_records(subset="test")
    >>> len(records.X), records.licence
    (1978, 'CC0 1.0 (metadata of Finna)')
    """
    check_choice("load_library_records", "subset", subset, ("train", "test"))
    data = load_quickstart()
    texts = data.train_texts if subset == "train" else data.test_texts
    labels = data.train_labels if subset == "train" else data.test_labels
    return _QUICKSTART.bunch(X=texts, y=labels)


def fetch_gnd(
    *,
    subset: str = "train",
    data_home: PathLike | None = None,
    download_if_missing: bool = True,
    timeout: float = 60.0,
    verbose: bool = True,
) -> Bunch:
    """Load records with subjects of the Integrated Authority File (GND); download if need be.

    The archive of the whole repository is downloaded, read once (some minutes) and deleted.

    Parameters
    ----------
    subset : {"train", "dev", "test"}, default="train"
        Which part.
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
        `X` (list of texts: title and abstracts), `y` (list of lists of GND ids; empty where the
        source has none), `languages` (of each text), `label_names` (dict from id to name),
        `DESCR`, `licence`, `source`.

    Raises
    ------
    DownloadError
        If it cannot be had.
    """
    check_choice("fetch_gnd", "subset", subset, ("train", "dev", "test"))
    options = {
        "data_home": data_home, "download_if_missing": download_if_missing, "timeout": timeout,
        "verbose": verbose,
    }  # fmt: skip
    shelf = Shelf("fetch_gnd", "gnd", options)
    archive = Remote("repository.tar.gz", _ARCHIVE.format(_GND, _GND_COMMIT))
    names = ("train.tsv", "dev.tsv", "test.tsv", "names.tsv")
    files = shelf.derive(archive, names, _read_gnd)
    labels, texts, languages = [], [], []
    for own, text in zip(*_columns(files[f"{subset}.tsv"]), strict=True):
        language, _, text = text.partition(" ")
        languages.append(language)
        texts.append(text)
        labels.append(own)
    return DESCRIPTIONS[0].bunch(
        X=texts, y=labels, languages=languages, label_names=_names(files["names.tsv"])
    )


def _read_gnd(archive: Path, folder: Path) -> None:
    """Tables of ``ids TAB language text``, one for each part, and one of names."""
    rows: dict[str, list[tuple[list[str], str]]] = {"train": [], "dev": [], "test": []}
    names: dict[str, str] = {}
    root = "library-records-dataset/data/"
    wanted = members_of_tar(archive, lambda name: name.startswith(root) and ".json" in name)
    for path, content in wanted:
        parts = path.removeprefix(root).split("/")  # part, kind of record, language, file
        if len(parts) == 4 and parts[0] in rows:
            with reading(f"{archive}: {path}"):
                ids, text = _gnd_record(json.loads(content), names)
            rows[parts[0]].append((ids, f"{parts[2]} {text}"))
    for part, own in rows.items():
        _write(folder / f"{part}.tsv", own)
    _write(folder / "names.tsv", [([one], name) for one, name in sorted(names.items())])


def _gnd_record(record: Any, names: dict[str, str]) -> tuple[list[str], str]:
    """Ids and text of a record in JSON-LD; names that it states are noted."""
    graph = [node for node in record["@graph"] if isinstance(node, dict)]
    (own,) = (node for node in graph if "title" in node)
    ids = [one["@id"] for one in _several(own.get("dcterms:subject"))]
    for node in graph:
        if node["@id"] in ids and "sameAs" in node:
            names[node["@id"]] = " ".join(_several(node["sameAs"]))
    title, abstract = (" ".join(_several(own.get(key))) for key in ("title", "abstract"))
    return ids, f"{title} . {abstract}" if abstract else title


def _several(value: Any) -> list[Any]:
    """JSON-LD writes a list of one as the one."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def fetch_yso(
    language: str = "en",
    *,
    subset: str = "train",
    data_home: PathLike | None = None,
    download_if_missing: bool = True,
    timeout: float = 60.0,
    verbose: bool = True,
) -> Bunch:
    """Load titles with concepts of the General Finnish Ontology (YSO); download them if need be.

    The archive of the whole repository is downloaded, read once (some minutes) and deleted. A text
    that stands under several concepts gets all of them. One text of ten is for testing, chosen by
    its checksum, so that the parts are the same everywhere.

    Parameters
    ----------
    language : {"en", "fi"}, default="en"
        Of the records.
    subset : {"train", "test"}, default="train"
        Which part.
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
        `X` (list of texts), `y` (list of lists of ids such as ``p10``), `label_names` (dict from
        id to name), `DESCR`, `licence`, `source`. Sets of labels are incomplete, since a concept
        has a few hundred texts at most.

    Raises
    ------
    DownloadError
        If it cannot be had.
    """
    check_choice("fetch_yso", "language", language, _YSO_LANGUAGES)
    check_choice("fetch_yso", "subset", subset, ("train", "test"))
    options = {
        "data_home": data_home, "download_if_missing": download_if_missing, "timeout": timeout,
        "verbose": verbose,
    }  # fmt: skip
    shelf = Shelf("fetch_yso", f"yso-{language}", options)
    archive = Remote("repository.tar.gz", _ARCHIVE.format(_YSO, _YSO_COMMIT))
    files = shelf.derive(
        archive,
        ("train.tsv", "test.tsv", "names.tsv"),
        lambda path, folder: _read_yso(path, folder, f"subjects/yso-finna-{language}/"),
    )
    labels, texts = _columns(files[f"{subset}.tsv"])
    description = DESCRIPTIONS[1 + _YSO_LANGUAGES.index(language)]
    return description.bunch(X=texts, y=labels, label_names=_names(files["names.tsv"]))


def _read_yso(archive: Path, folder: Path, root: str) -> None:
    """Tables of ``ids TAB text``; a file has a concept in its first line and a text in others."""
    names: dict[str, str] = {}
    ids_of: dict[str, list[str]] = {}
    for path, content in members_of_tar(archive, lambda name: name.startswith(root)):
        if not path.endswith(".txt"):
            continue
        with reading(f"{archive}: {path}"):
            head, *texts = content.decode("utf-8").splitlines()
            address, _, name = head.partition(" ")
        concept = address.rpartition("/")[2]
        names[concept] = name
        for text in texts:
            text = " ".join(text.split())
            if text and text != name and concept not in ids_of.setdefault(text, []):
                ids_of[text].append(concept)
    parts: dict[str, list[tuple[list[str], str]]] = {"train": [], "test": []}
    for text, ids in ids_of.items():
        is_test = zlib.crc32(text.encode()) % _TEST_SHARE == 0
        parts["test" if is_test else "train"].append((ids, text))
    for part, rows in parts.items():
        _write(folder / f"{part}.tsv", rows)
    _write(folder / "names.tsv", [([one], name) for one, name in sorted(names.items())])


# --- tables --------------------------------------------------------------------------------------


def _write(path: Path, rows: Iterable[tuple[list[str], str]]) -> None:
    with write_atomically(path) as stream:
        for labels, text in rows:
            ids = "|".join(" ".join(one.replace("|", " ").split()) for one in labels)
            stream.write(f"{ids}\t{' '.join(text.split())}\n".encode())


def _columns(path: Path) -> tuple[list[list[str]], list[str]]:
    texts, labels = load_texts(path, separator="|")
    return labels, texts


def _names(path: Path) -> Mapping[str, str]:
    labels, texts = _columns(path)
    return {one[0]: name for one, name in zip(labels, texts, strict=True)}
