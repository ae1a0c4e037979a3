"""Data files of every reader, damaged as text, as archives and inside compressed files.

A new reader is a line of `READERS`: a name, the ending of its files, the function, and a few small
files that it reads.
"""

from __future__ import annotations

import bz2
import functools
import gzip
import io
import json
import lzma
import random
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from engine import Failure, Target
from model_targets import fresh_file, named_refusal
from mutate import INTEGERS, mutate_bytes, mutate_json, mutate_text, one_of, some

from sublearn.datasets import gefcom, rcv1, records
from sublearn.datasets.archives import members_of_tar, unpack
from sublearn.embed import read_word_vectors
from sublearn.embed.corpus import read_corpus
from sublearn.graph import read_cfn, read_evidence, read_map, read_uai, read_wcsp
from sublearn.hierarchy import Taxonomy
from sublearn.io import (
    load_arff,
    load_conll,
    load_label_names,
    load_npz,
    load_svmlight,
    load_texts,
    load_xmc,
    store_rows,
)
from sublearn.io.files import reading
from sublearn.io.taxonomies import load_hmc, load_hmc_dataset
from sublearn.kinds.load_files import read_dates, read_loads

# --- files that are read -------------------------------------------------------------------------

XMC = (b"3 5 4\n0,2 0:1.5 3:-2\n 1:1\n3 2:0.25 4:1e-3\n", b"1 1 1\n0 0:1\n")
SVM = (b"1 1:0.5 3:2 # note\n-1 2:1\n2 \n", b"0,3 1:1 2:2\n1 5:1.25e0\n", b"1.5 qid:1 1:2\n")
SETS = (b"0,3 1:1 2:2\n1 5:1.25e0\n 2:1\n",)
ARFF = (
    b"@relation r\n@attribute a numeric\n@attribute 'b c' real\n@attribute y {0,1}\n"
    b"@data\n0.5,2,1\n{1 3, 2 1}\n",
    b"% note\n@RELATION r\n@ATTRIBUTE x NUMERIC\n@ATTRIBUTE y {0, 1}\n@DATA\n1,0\n",
)
HMC = (
    b"@relation r\n@attribute size numeric\n@attribute k {a,b}\n"
    b"@attribute class hierarchical 1,1/2,3\n@data\n0.5,a,1/2@3\n1,b,1\n",
    b"@relation r\n@attribute s numeric\n@attribute class hierarchical root/G1,G1/G2\n@data\n"
    b"?,G2\n",
)
CONLL = (b"the DET\ndog NOUN\n\nruns VERB\n", b"# text\nthe\tx\tDET\n\ndog\ty\tNOUN\n")
CONLLU = (
    b"# sent_id = 1\n1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\t_\n2-3\tx\t_\t_\t_\t_\t_\t_\t_\t_\n"
    b"2\tdog\tdog\tNOUN\tNN\t_\t0\troot\t_\t_\n\n",
)
TSV = (b"sea,land\tThe Baltic coast\nnumbers\ta survey\tof data\n\n",)
NAMES = (b"sea\tThe Baltic\nland\tcoasts\tof it\n\n", b"p10\t\n")
CSV = (b'text,labels\n"a ""quoted"" text, long","sea,land"\nshort,numbers\n',)
JSONL = (b'{"text": "a survey", "labels": ["x", "y"]}\n{"text": "\\u00e4", "labels": "x,z"}\n',)
RCV1 = (
    b"Root\tC\tG\nC\tC1\tC2\nG\tG1\n",
    b"parent: None  child: Root  child-description: Root\n"
    b"parent: Root  child: C  child-description: corporate\n",
)
SKOS = (
    b"@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n@prefix e: <http://e.org/> .\n"
    b'e:a a skos:Concept ; skos:prefLabel "a"@en .\ne:b a skos:Concept ; skos:broader e:a .\n',
)
UAI = (
    b"MARKOV\n3\n2 2 3\n2\n2 0 1\n2 1 2\n\n4\n 0.1 0.9\n 1 0\n\n6\n 1 2 3\n 4 5 6\n",
    b"BAYES\n2\n2 2\n2\n1 0\n2 0 1\n2\n0.4 0.6\n4\n0.1 0.9 0.5 0.5\n",
)
WCSP = (
    b"p 3 3 4 10\n2 2 3\n1 0 0 1\n1 4\n2 0 1 1 2\n0 0 0\n1 1 10\n-2 0 1 0 1\n0 1 3\n2 1 0 0 -1\n",
    b"q 1 2 1 5\n2\n0 2 0\n",
)
CFN = (
    b'{problem: {name: "p", mustbe: "<10.5"}, variables: {"a": ["x", "y"], b: 3},\n'
    b'functions: {f: {scope: [a], costs: [1, 2.5]}, {scope: ["a" "b"], defaultcost: 0, '
    b'costs: ["x", 2, 11, y 0 1]}, g: {scope: [a], costs: f}}}\n',
    b'{"problem": {"mustbe": ">0"}, "variables": {"v": 2}, "functions": {"c": {"scope": [], '
    b'"costs": [3]}}}',
)
EVIDENCE = (b"1\n1 0 1\n", b"2 0 1 2 0\n", b"0\n")
MAP = (b"MAP\n3 0 1 2\n", b"MPE\n1\n3 0 1 1\n")
WORDS = (b"2 3\nthe 0.5 -1 2e-3\ndog 1 2 3\n",)
BINARY_WORDS = (b"2 2\nthe \0\0\0\x3f\0\0\x80\x3f\ndog \0\0\0\x40\0\0\xa0\x40\n",)
LOADS = (
    b"time,load,temp\n2020-01-01 00:00,1.5,3\n2020-01-01 01:00,,4\n2020-01-01 02:00,2,5\n",
    b"load\n1\n2.5\n3\n",
)
DATES = (b"date,name\n2008-12-25,Christmas\n2009-01-01 New Year\n",)
CORPUS = (b"the cat sat on the mat\nthe dog's \xc3\xa4rger\n\nnothing\n",)

QRELS = (b"C11 2286 1\nCCAT 2286 1\nGCAT 2287 1\n",)
DAYS = (
    b"zone_id,year,month,day,h1\n1,2004,1,1" + b',"1,000",2.5' * 12 + b"\n20,2008,7,7" + b"," * 24,
)
GND = (
    b'{"@graph": [{"@id": "gnd:1", "sameAs": "a name"}, {"@id": "x", "title": "A title", '
    b'"abstract": ["One.", "Two."], "dcterms:subject": {"@id": "gnd:1"}}]}',
)


def _gnd(path: Path) -> None:
    with reading(path):
        records._gnd_record(json.loads(path.read_bytes()), {})


def _xmc(path: Path) -> None:
    check_finite(load_xmc(path).X.data)


def _svm(path: Path) -> None:
    check_finite(load_svmlight(path).X.data)


def _arff(path: Path) -> None:
    check_finite(load_arff(path, labels=1).X.data)


def _vectors(path: Path, binary: bool = False) -> None:
    check_finite(read_word_vectors(path, binary=binary)[1])


def _npz(path: Path) -> None:
    data = load_npz(path)
    check_finite(data.X.data)
    data.X.toarray()
    if np.ndim(data.Y) > 1 and not hasattr(data.Y, "tocsr"):
        raise Failure(f"labels of {np.ndim(data.Y)} dimensions were taken")
    for names, n in ((data.feature_names, data.X.shape[1]), (data.label_names, None)):
        if names is not None and (names.ndim != 1 or (n is not None and len(names) != n)):
            raise Failure("names of another number than columns were taken")


def _corpus(path: Path) -> None:
    read_corpus(f"SkipGram({path})", path, "words", True)  # who refuses is told by the caller


def check_finite(values: np.ndarray) -> None:
    if not np.isfinite(values).all():
        raise Failure("NaN or infinity was taken")


@dataclass(frozen=True)
class Reader:
    """How files of a kind end, what reads them, and some that are sound."""

    ending: str
    read: Callable[[Path], Any]
    seeds: tuple[bytes, ...]
    cases: int = 40_000


def _stored(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store_rows(path, f"{folder}/rows", memory="16MB")


READERS = {
    "xmc": Reader(".xmc.txt", _xmc, XMC),
    "stored-xmc": Reader(".xmc.txt", _stored, XMC, 2_000),
    "stored-svmlight": Reader(".svm", _stored, SETS, 2_000),
    "svmlight": Reader(".svm", _svm, SVM),
    "svmlight-sets": Reader(".svm", lambda path: load_svmlight(path, multilabel=True), SETS),
    "arff": Reader(".arff", _arff, ARFF),
    "hmc": Reader(".arff", load_hmc, HMC),
    "hmc-dataset": Reader(".arff", load_hmc_dataset, HMC),
    "hmc-taxonomy": Reader(".arff", Taxonomy.from_hmc, HMC, 20_000),
    "rcv1": Reader(".txt", Taxonomy.from_rcv1, RCV1),
    "skos": Reader(".ttl", Taxonomy.from_skos, SKOS, 6_000),
    "conll": Reader(".conll", load_conll, CONLL),
    "conllu": Reader(".conllu", load_conll, CONLLU),
    "names": Reader(".tsv", load_label_names, NAMES),
    "tsv": Reader(".tsv", load_texts, TSV),
    "csv": Reader(".csv", load_texts, CSV),
    "jsonl": Reader(".jsonl", load_texts, JSONL),
    "uai": Reader(".uai", read_uai, UAI),
    "uai-log": Reader(".uai", lambda path: read_uai(path, tables="log"), UAI),
    "wcsp": Reader(".wcsp", read_wcsp, WCSP),
    "cfn": Reader(".cfn", read_cfn, CFN),
    "evidence": Reader(".evid", read_evidence, EVIDENCE),
    "map": Reader(".map", read_map, MAP),
    "word-vectors": Reader(".txt", _vectors, WORDS),
    "word-vectors-binary": Reader(".bin", functools.partial(_vectors, binary=True), BINARY_WORDS),
    "loads": Reader(".csv", lambda path: read_loads(path, None), LOADS, 10_000),
    "dates": Reader(".csv", read_dates, DATES),
    "corpus": Reader(".txt", _corpus, CORPUS),
    "qrels": Reader(".txt", lambda path: rcv1._topics(path, np.array([2286, 2287])), QRELS, 10_000),
    "days": Reader(".csv", lambda path: gefcom._hours(path, 20, 0), DAYS, 10_000),
    "gnd": Reader(".json", _gnd, GND, 10_000),
}


def mutate_file(rng: random.Random, reader: Reader) -> bytes:
    if reader.ending == ".json" and rng.random() < 0.5:
        return json.dumps(mutate_json(rng, json.loads(reader.seeds[0]))).encode()
    if reader.ending == ".jsonl" and rng.random() < 0.5:
        lines_of_file = [json.loads(line) for line in reader.seeds[0].splitlines()]
        changed = mutate_json(rng, lines_of_file)
        lines = changed if isinstance(changed, list) else [changed]
        return "\n".join(map(json.dumps, lines)).encode()
    return mutate_text(rng, reader.seeds)


def use_file(reader: Reader, data: bytes, folder: Path, ending: str = "") -> None:
    path = fresh_file(folder, "f" + reader.ending + ending, data)
    named_refusal(path, reader.read, path)


# --- compressed files ----------------------------------------------------------------------------

COMPRESSIONS = {".gz": functools.partial(gzip.compress, mtime=0), ".bz2": bz2.compress}
COMPRESSIONS[".xz"] = lzma.compress
_BOMB = 2**26  # bytes of zeros in one stream, of which a bomb has many
_COMPRESSED_READERS = ("xmc", "svmlight", "uai", "conll", "jsonl", "arff", "corpus", "loads")


@functools.cache
def _bomb_stream(ending: str) -> bytes:
    return COMPRESSIONS[ending](bytes(_BOMB))


def mutate_compressed(rng: random.Random) -> bytes:
    """Damage before, after or around the compression; the first byte says which reader is meant."""
    name = rng.randrange(len(_COMPRESSED_READERS))
    ending = rng.choice(list(COMPRESSIONS))
    reader = READERS[_COMPRESSED_READERS[name]]
    compress = COMPRESSIONS[ending]
    if rng.random() < 0.0005:
        data = _bomb_stream(ending) * 64
    else:
        data = one_of(
            rng,
            (0.3, lambda: compress(mutate_file(rng, reader))),
            (0.6, lambda: mutate_bytes(rng, compress(rng.choice(reader.seeds)), PACKED)),
            (0.1, lambda: compress(reader.seeds[0]) + mutate_bytes(rng, PACKED[0], PACKED)),
        )
    return bytes([name, list(COMPRESSIONS).index(ending)]) + data


PACKED = [compress(XMC[0]) for compress in COMPRESSIONS.values()]


def use_compressed(data: bytes, folder: Path) -> None:
    if len(data) < 2:
        return
    reader = READERS[_COMPRESSED_READERS[data[0] % len(_COMPRESSED_READERS)]]
    use_file(reader, data[2:], folder, list(COMPRESSIONS)[data[1] % len(COMPRESSIONS)])


# --- archives of data sets ------------------------------------------------------------------------


def _zipped() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("set/a.txt", b"some text " * 20)
        archive.writestr("b.txt", b"")
    return out.getvalue()


def _tarred() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in ("top/a.txt", "top/" + "long" * 40 + ".txt"):
            entry = tarfile.TarInfo(name)
            entry.size = 200
            archive.addfile(entry, io.BytesIO(b"some text " * 20))
    return out.getvalue()


def _unzip(path: Path) -> None:
    for name in ("a.txt", "record.json"):
        (path.parent / name).unlink(missing_ok=True)
    unpack(path, {"a.txt": ("a.txt", None)})


def _untar(path: Path) -> None:
    for _ in members_of_tar(path, lambda name: True):
        pass


ZIP, TAR = _zipped(), _tarred()


def mutate_zip(rng: random.Random) -> bytes:
    return mutate_bytes(rng, ZIP, [ZIP])


def mutate_tar(rng: random.Random) -> bytes:
    if rng.random() < 0.8:
        return gzip.compress(mutate_bytes(rng, TAR, [TAR]), mtime=0)
    packed = gzip.compress(TAR, mtime=0)
    return mutate_bytes(rng, packed, [packed])


# --- .npz ----------------------------------------------------------------------------------------

_PAIR: dict[str, np.ndarray] = {
    "X.data": np.array([1.0, 2.0, 3.0], np.float32),
    "X.indices": np.array([0, 2, 1], np.int32),
    "X.indptr": np.array([0, 2, 3], np.int32),
    "X.shape": np.array([2, 3]),
    "Y": np.array([1, 0]),
    "feature_names": np.array(["a", "b", "c"]),
}
_PAIR_OF_SETS = {k: v for k, v in _PAIR.items() if k != "Y"} | {
    "Y.data": np.ones(2, np.int8), "Y.indices": np.array([1, 0], np.int32),
    "Y.indptr": np.array([0, 1, 2], np.int32), "Y.shape": np.array([2, 2]),
    "label_names": np.array(["p", "q"]),
}  # fmt: skip
_SCIPY = {"format": np.array(b"csr"), "data": np.ones(2), "indices": np.array([0, 1], np.int32),
          "indptr": np.array([0, 1, 2], np.int32), "shape": np.array([2, 2])}  # fmt: skip


def mutate_npz(rng: random.Random) -> bytes:
    arrays = dict(rng.choice((_PAIR, _PAIR_OF_SETS, _SCIPY)))
    if rng.random() < 0.9:
        for _ in range(some(rng, 3)):
            _change_array(rng, arrays)
    data = _archive(rng, arrays)
    return mutate_bytes(rng, data, [data]) if rng.random() < 0.3 else data


def _change_array(rng: random.Random, arrays: dict[str, np.ndarray]) -> None:
    name = rng.choice(list(arrays))
    values = arrays[name]
    kind = rng.randrange(8)
    if kind <= 2 and values.size and values.dtype.kind in "if":
        values = values.copy()
        info = np.iinfo(values.dtype) if values.dtype.kind == "i" else None
        number = rng.choice((*INTEGERS, len(values)) if info else (np.nan, np.inf, 1e200, -0.0))
        values.flat[rng.randrange(values.size)] = (
            min(max(number, info.min), info.max) if info else number
        )
    elif kind == 3:
        values = values[: rng.randrange(len(values) + 1)] if values.ndim else values
    elif kind == 4:
        values = np.concatenate([values, values]) if values.ndim else values
    elif kind == 5:
        values = rng.choice((values[None], values.astype(str), values.astype("S4"), values.T))
    elif kind == 6:
        del arrays[name]
        return
    else:
        values = arrays[rng.choice(list(arrays))]
    arrays[name] = values


def _archive(rng: random.Random, arrays: dict[str, np.ndarray]) -> bytes:
    """As NumPy writes it, sometimes with a header that lies about its array."""
    out = io.BytesIO()
    kind = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED))
    with zipfile.ZipFile(out, "w", kind) as archive:
        for name, values in arrays.items():
            body = io.BytesIO()
            np.lib.format.write_array(body, np.asarray(values), allow_pickle=False)
            content = body.getvalue()
            if rng.random() < 0.1:
                old = str(values.shape).encode()
                new = b"(%d,)" % rng.choice(INTEGERS)
                content = content.replace(old, new.ljust(len(old)), 1)
            elif rng.random() < 0.05:
                content = mutate_bytes(rng, content, [content])
            archive.writestr(name + ".npy", content)
    return out.getvalue()


_NPZ = Reader(".npz", _npz, ())


def _target(name: str, reader: Reader) -> Target:
    make = functools.partial(mutate_file, reader=reader)
    return Target(f"read-{name}", "files", make, functools.partial(use_file, reader), reader.cases)


TARGETS = [_target(name, reader) for name, reader in READERS.items()]
TARGETS.append(Target("read-compressed", "files", mutate_compressed, use_compressed, 40_000))
TARGETS.append(Target("read-npz", "files", mutate_npz, functools.partial(use_file, _NPZ), 30_000))

for _name, _make, _reader in (
    ("zip", mutate_zip, Reader(".zip", _unzip, (ZIP,))),
    ("tar", mutate_tar, Reader(".tar.gz", _untar, (TAR,))),
):
    use = functools.partial(use_file, _reader)
    TARGETS.append(Target(f"read-{_name}", "files", _make, use, 10_000))


def preload() -> None:
    """Read every sound file, so that forked workers have imported what that needs."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        for reader in READERS.values():
            for seed in reader.seeds[:1]:
                use_file(reader, seed, Path(folder))
    for ending in COMPRESSIONS:
        _bomb_stream(ending)
