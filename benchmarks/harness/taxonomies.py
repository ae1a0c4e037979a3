"""Real data with a taxonomy of labels, one label per row or several."""

from __future__ import annotations

import html
import json
import lzma
import re
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import TfidfVectorizer

from sublearn.hierarchy import Taxonomy
from sublearn.io import load_arff, load_hmc, load_xmc

__all__ = [
    "LOOKED_AT",
    "MULTILABEL",
    "SINGLE_LABEL",
    "TAXONOMIES",
    "Rows",
    "gnd",
    "load_rows",
    "rcv1_subtree",
    "stories",
]


@dataclass(frozen=True, eq=False)
class Rows:
    """A taxonomy, training rows and test rows; labels are closed indicator matrices."""

    taxonomy: Taxonomy
    X: Any
    Y: sp.csr_matrix
    X_test: Any
    Y_test: sp.csr_matrix

    def with_one_path(self) -> Rows:
        """The rows whose labels are one path to a leaf, as (2.3.1) asks."""
        keep, keep_test = (_has_one_path(self.taxonomy, Y) for Y in (self.Y, self.Y_test))
        return Rows(
            self.taxonomy,
            self.X[keep],
            self.Y[keep],
            self.X_test[keep_test],
            self.Y_test[keep_test],
        )

    def with_labels(self) -> Rows:
        """Without the test rows whose labels are all unknown to the training rows."""
        keep = np.flatnonzero(np.diff(self.Y_test.indptr))
        return Rows(self.taxonomy, self.X, self.Y, self.X_test[keep], self.Y_test[keep])

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The deepest label of each training and test row, by position."""
        return tuple(_deepest(self.taxonomy, Y) for Y in (self.Y, self.Y_test))  # type: ignore[return-value]


def _has_one_path(taxonomy: Taxonomy, Y: sp.csr_matrix) -> np.ndarray:
    """Whether a row has one leaf, and as many labels as the deepest of them has levels."""
    lowest = np.array([taxonomy.levels[own].max(initial=-1) for own in _lists(Y)])
    n_leaves = Y.astype(int) @ np.isin(np.arange(taxonomy.n_labels), taxonomy.leaves)
    return np.flatnonzero((np.diff(Y.indptr) == lowest + 1) & (n_leaves == 1))


def _deepest(taxonomy: Taxonomy, Y: sp.csr_matrix) -> np.ndarray:
    return np.array([own[taxonomy.levels[own].argmax()] for own in _lists(Y)])


def _lists(Y: sp.csr_matrix) -> list[np.ndarray]:
    return np.split(Y.indices, Y.indptr[1:-1])


def _split(X: Any, Y: sp.csr_matrix, taxonomy: Taxonomy, share: float = 0.7) -> Rows:
    order = np.random.default_rng(0).permutation(X.shape[0])
    n = int(share * len(order))
    return Rows(taxonomy, X[order[:n]], Y[order[:n]], X[order[n:]], Y[order[n:]])


def rcv1_dev(directory: Path) -> Rows:
    """News of Reuters, 70 % of them for training."""
    taxonomy = Taxonomy.from_rcv1(directory / "rcv1_dev" / "rcv1.taxonomy")
    with lzma.open(directory / "rcv1_dev" / "rcv1_dev.hierar.json.xz", "rt") as file:
        documents = [json.loads(line) for line in file]
    words = [" ".join(document["doc_token"]) for document in documents]
    X = TfidfVectorizer(sublinear_tf=True, min_df=2).fit_transform(words).tocsr()
    labels = [[path.split("--")[-1] for path in d["doc_label"]] for d in documents]
    return _split(X, taxonomy.encode(labels), taxonomy)


def rcv1_subtree(directory: Path, root: str, least: int = 5) -> tuple[Taxonomy, Any, np.ndarray]:
    """Stories with one leaf below `root`: the taxonomy below it, features, ends by position.

    Leaves with fewer than `least` of these stories are left out, and so are inner labels with one
    child, whose child takes their place: what section 2.3.3 of Tang 2016 calls trimming.
    """
    whole = rcv1_dev(directory)
    tree, top = whole.taxonomy, whole.taxonomy.position(root)
    X, Y = sp.vstack([whole.X, whole.X_test]).tocsr(), sp.vstack([whole.Y, whole.Y_test]).tocsr()
    below = np.flatnonzero(np.asarray(tree.ancestor_matrix[:, top].todense()).ravel())
    leaves = np.intersect1d(np.setdiff1d(below, [top]), tree.leaves)
    own = Y[:, leaves].toarray().astype(bool)
    chosen = own.sum(axis=1) == 1
    counts = own[chosen].sum(axis=0)
    kept, leaf_of = np.flatnonzero(counts >= least), own.argmax(axis=1)
    chosen &= np.isin(leaf_of, kept)
    paths = {int(t): _path(tree, int(t), top) for t in leaves[kept]}
    n_below = {t: len({p[i + 1] for p in paths.values() for i, s in enumerate(p[:-1]) if s == t})
               for path in paths.values() for t in path}  # fmt: skip
    short = {t: [s for s in path if s == t or n_below[s] > 1] for t, path in paths.items()}
    names = sorted({"/".join(str(tree.names[s]) for s in path) for path in short.values()})
    taxonomy = Taxonomy.from_paths(names, "/")
    name_of = {t: "/".join(str(tree.names[s]) for s in path) for t, path in short.items()}
    rows = np.flatnonzero(chosen)
    ends = np.array([taxonomy.position(name_of[int(leaves[leaf_of[i]])]) for i in rows])
    return taxonomy, X[rows], ends


def _path(tree: Taxonomy, t: int, top: int) -> list[int]:
    """From the child of `top` down to t."""
    path = [t]
    while int(tree._parents(path[0])[0]) != top:
        path.insert(0, int(tree._parents(path[0])[0]))
    return path


def cellcycle_fun(directory: Path) -> Rows:
    """Functions of yeast genes; training and validation rows are learned from."""
    folder = directory / "hmc_cellcycle_fun"
    parts = [load_hmc(folder / f"cellcycle_fun.{p}.arff.xz") for p in ("train", "valid", "test")]
    taxonomy = Taxonomy.from_edges(parts[0].taxonomy)
    X, X_test = _standard(np.vstack([parts[0].X, parts[1].X]), parts[2].X)
    Y = taxonomy.encode(parts[0].labels + parts[1].labels)
    return Rows(taxonomy, X, Y, X_test, taxonomy.encode(parts[2].labels))


def imclef07a(directory: Path) -> Rows:
    """X-ray images and their codes."""
    folder = directory / "hmc_imclef07a"
    train, test = (load_hmc(folder / f"imclef07a_{part}.arff.xz") for part in ("train", "test"))
    taxonomy = Taxonomy.from_edges(train.taxonomy)
    X, X_test = _standard(train.X, test.X)
    Y, Y_test = taxonomy.encode(train.labels), taxonomy.encode(test.labels)
    return Rows(taxonomy, X, Y, X_test, Y_test)


def _standard(X: np.ndarray, X_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Missing numbers at the mean; mean 0 and deviation 1."""
    mean = np.nanmean(X, axis=0)
    X, X_test = (np.where(np.isnan(part), mean, part) for part in (X, X_test))
    deviation = np.maximum(X.std(axis=0), 1e-12)
    return (X - mean) / deviation, (X_test - mean) / deviation


def newsgroups(directory: Path) -> Rows:
    """Messages of 20 groups with dotted names, by date."""
    texts, groups = [], []
    for part in ("train", "test"):
        with lzma.open(directory / "20news" / f"20news_bydate_{part}.tsv.xz", "rt") as file:
            fields = [line.rstrip("\n").split("\t") for line in file]
        groups.append([row[0] for row in fields])
        texts.append([" ".join(row[2:]) for row in fields])
    taxonomy = Taxonomy.from_paths(groups[0])
    words = TfidfVectorizer(sublinear_tf=True, min_df=3, stop_words="english")
    X, X_test = words.fit_transform(texts[0]).tocsr(), words.transform(texts[1]).tocsr()
    return Rows(taxonomy, X, taxonomy.encode(groups[0]), X_test, taxonomy.encode(groups[1]))


def yso_en(directory: Path, n_labels: int = 400, n_rows: int = 10_000) -> Rows:
    """Library records with their most frequent subjects, under a taxonomy made by clustering.

    Subjects are clustered by the mean of their records, six to a group, and four groups to a top:
    two levels above the subjects, as far as a generated taxonomy can say.
    """
    train, test = (
        load_xmc(directory / "yso_en" / f"yso_en_{p}.xmc.txt.xz") for p in ("train", "test")
    )
    frequent = np.argsort(-np.bincount(train.Y.indices, minlength=train.Y.shape[1]), kind="stable")
    columns = np.sort(frequent[:n_labels])
    parts = []
    for data in (train, test):
        Y = data.Y[:, columns].astype(bool).tocsr()
        rows = np.flatnonzero(np.diff(Y.indptr) > 0)[:n_rows]
        parts.append((data.X[rows], Y[rows]))
    (X, Y), (X_test, Y_test) = parts
    centres = np.asarray((Y.T.astype(np.float64) @ X).toarray())
    centres /= np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-12)
    n_groups, n_tops = n_labels // 6, n_labels // 24
    groups = KMeans(n_groups, n_init=1, random_state=0).fit(centres)
    tops = KMeans(n_tops, n_init=1, random_state=0).fit(groups.cluster_centers_)
    taxonomy = Taxonomy([*[-1] * n_tops, *tops.labels_, *(n_tops + groups.labels_)])
    wide = []
    for own in (Y, Y_test):
        above = sp.csr_matrix((own.shape[0], n_tops + n_groups), dtype=bool)
        wide.append(sp.hstack([above, own]).tocsr())
    return Rows(taxonomy, X, taxonomy.close(wide[0]), X_test, taxonomy.close(wide[1]))


#: The groups that the description of Reuters-21578 has its topics in; all others are commodities.
_REUTERS_GROUPS = {
    "economy": "bop trade cpi wpi jobs lei reserves money-supply gnp retail ipi cpu housing income "
    "inventories instal-debt money-fx interest",
    "currency": "dlr austdlr hk singdlr nzdlr can stg dmk yen sfr ffr bfr dfl lit dkr nkr skr "
    "mexpeso cruzado austral saudriyal rand rupiah ringgit escudo peseta drachma",
    "company": "acq earn",
    "energy": "crude nat-gas gas fuel heat jet naphtha propane pet-chem",
    "grain": "grain wheat corn barley oat rice rye sorghum",
    "oilseed": "oilseed soybean rapeseed sunseed groundnut cottonseed linseed castorseed "
    "copra-cake",
    "livestock": "livestock carcass hog pork-belly l-cattle f-cattle",
}


def reuters(directory: Path) -> Rows:
    """News of Reuters-21578, split as ModApte does; topics under the groups of its description."""
    group_of = {t: g for g, topics in _REUTERS_GROUPS.items() for t in topics.split()}
    texts: dict[str, list[str]] = {"TRAIN": [], "TEST": []}
    labels: dict[str, list[list[str]]] = {"TRAIN": [], "TEST": []}
    for part, topics, body in stories(directory):
        texts[part].append(body)
        labels[part].append([f"{group_of.get(t, 'commodity')}/{t}" for t in topics])
    known = [path for own in labels["TRAIN"] for path in own]
    taxonomy = Taxonomy.from_paths(known, "/")
    words = TfidfVectorizer(sublinear_tf=True, min_df=2)
    X, X_test = words.fit_transform(texts["TRAIN"]).tocsr(), words.transform(texts["TEST"]).tocsr()
    seen = [[path for path in own if path in set(known)] for own in labels["TEST"]]
    Y, Y_test = taxonomy.encode(labels["TRAIN"]), taxonomy.encode(seen)
    return Rows(taxonomy, X, Y, X_test, Y_test).with_labels()


def stories(directory: Path) -> Iterator[tuple[str, list[str], str]]:
    """Part of the split, topics and text of the stories of Reuters-21578 that have topics."""
    with tarfile.open(directory / "reuters21578" / "reuters21578.tar.xz") as archive:
        for member in archive:
            file = archive.extractfile(member)
            yield from _stories(file.read().decode("latin-1") if file else "")


def _stories(text: str) -> Iterator[tuple[str, list[str], str]]:
    """Part of the split, topics and text of the stories that have topics."""
    for head, story in re.findall(r"<REUTERS ([^>]*)>(.*?)</REUTERS>", text, re.DOTALL):
        part = re.search(r'LEWISSPLIT="(TRAIN|TEST)"', head)
        own = re.search(r"<TOPICS>(.*?)</TOPICS>", story)
        topics = re.findall(r"<D>(.*?)</D>", own[1]) if own else []
        if part and topics and 'TOPICS="YES"' in head:
            body = re.search(r"<TEXT.*</TEXT>", story, re.DOTALL)
            yield part[1], topics, html.unescape(re.sub(r"<[^>]*>", " ", body[0] if body else ""))


def enron(directory: Path) -> Rows:
    """Messages of a company; labels such as B.B12 have their kind above them."""
    folder = directory / "enron"
    parts = [
        load_arff(folder / f"enron-{p}.arff.xz", folder / "enron.xml") for p in ("train", "test")
    ]
    names = [str(name) for name in parts[0].label_names]
    taxonomy = Taxonomy.from_paths(names)
    place = [taxonomy.position(name) for name in names]
    closed = []
    for data in parts:
        Y = sp.coo_matrix(data.Y)
        at = (np.ones(Y.nnz, bool), (Y.row, np.array(place)[Y.col]))
        closed.append(taxonomy.close(sp.csr_matrix(at, shape=(Y.shape[0], taxonomy.n_labels))))
    X, X_test = (sp.csr_matrix(data.X) for data in parts)
    return Rows(taxonomy, X, closed[0], X_test, closed[1])


def gnd(directory: Path, scheme: str, n_rows: int, n_test: int = 4000) -> Rows:
    """Library records under the codes of a classification, whose prefixes are the taxonomy.

    `scheme` is "bk" (44.93 under 44.9 under 44: every record at a leaf) or "ddc" (621.3 under 621
    under 62 under 6, to four digits: records at inner labels as well).
    """
    cut = _bk_path if scheme == "bk" else _ddc_path
    mark = re.compile(rf"\(classificationName={scheme}(?:, id=\d+)?\)([0-9.]+)")
    texts, labels = [], []
    for part, most in (("train", n_rows), ("dev", n_test)):
        texts.append([])
        labels.append([])
        with lzma.open(directory / "gnd" / f"gnd_{part}.tsv.xz", "rt") as file:
            for line in file:
                _, _, codes, text = line.rstrip("\n").split("\t", 3)
                own = sorted({path for code in mark.findall(codes) if (path := cut(code))})
                if own and len(texts[-1]) < most:
                    texts[-1].append(text)
                    labels[-1].append(own)
    known = {path for own in labels[0] for path in own}
    taxonomy = Taxonomy.from_paths(sorted(known), "/")
    words = TfidfVectorizer(sublinear_tf=True, min_df=3, max_df=0.5)
    X, X_test = words.fit_transform(texts[0]).tocsr(), words.transform(texts[1]).tocsr()
    seen = [[path for path in own if path in known] for own in labels[1]]
    Y, Y_test = taxonomy.encode(labels[0]), taxonomy.encode(seen)
    return Rows(taxonomy, X, Y, X_test, Y_test).with_labels()


def _bk_path(code: str) -> str:
    return f"{code[:2]}/{code[:4]}/{code[:5]}" if re.fullmatch(r"\d\d\.\d\d", code) else ""


def _ddc_path(code: str) -> str:
    """Digits that matter, four at most: 620 is 6/62, 621.3 is 6/62/621/6213."""
    digits = code.replace(".", "")[:4].rstrip("0") if re.match(r"\d{3}", code) else ""
    return "/".join(digits[: n + 1] for n in range(len(digits)))


MULTILABEL: Mapping[str, Callable[[Path], Rows]] = {
    "rcv1_dev": rcv1_dev,
    "hmc_cellcycle_fun": cellcycle_fun,
    "yso_en": yso_en,
}
SINGLE_LABEL: Mapping[str, Callable[[Path], Rows]] = {
    "rcv1_dev": lambda directory: rcv1_dev(directory).with_one_path(),
    "hmc_imclef07a": imclef07a,
    "hmc_cellcycle_fun": lambda directory: cellcycle_fun(directory).with_one_path(),
    "20news": newsgroups,
}

#: Eight taxonomies, and which of them were looked at while methods were tuned on their test rows.
TAXONOMIES: Mapping[str, Callable[[Path], Rows]] = {
    "rcv1_dev": rcv1_dev,
    "20news": newsgroups,
    "hmc_imclef07a": imclef07a,
    "gnd_bk": lambda directory: gnd(directory, "bk", 5000),
    "hmc_cellcycle_fun": cellcycle_fun,
    "yso_en": yso_en,
    "reuters": reuters,
    "enron": enron,
}
LOOKED_AT = ("rcv1_dev", "20news", "hmc_imclef07a", "gnd_bk")


def load_rows(directory: Path, name: str, is_single: bool) -> Rows:
    """A data set by name."""
    return (SINGLE_LABEL if is_single else MULTILABEL)[name](directory)
