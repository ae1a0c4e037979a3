"""Damaged data files of every format for every reader; only `DataFileError` may come of them.

As a script::

    python tests/io/attack_readers.py FOLDER N_EACH SEED [FORMAT ...]

The process has a limit of memory.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from mutations import limit_memory, mutated_bytes
from scipy import sparse

from sublearn.errors import DataFileError

__all__ = ["attack", "formats_in"]


class Format(NamedTuple):
    """A small valid file, how it is read, and what to write over parts of it."""

    name: str
    content: bytes
    read: Callable[[Path], Any]
    words: tuple[bytes, ...] = ()


_NUMBERS = (b"-1", b"1e999", b"nan", b"inf", b"99999999999999999999", b"2147483648", b":", b"\xff")


def _scipy_archive(matrix: Any) -> bytes:
    stream = io.BytesIO()
    sparse.save_npz(stream, matrix)
    return stream.getvalue()


def formats_in(folder: Path) -> dict[str, Format]:
    """All formats by name; writes some valid files into the folder."""
    from sublearn.embed.word_files import read_word_vectors
    from sublearn.graph import read_evidence, read_map, read_uai
    from sublearn.io import (
        load_arff,
        load_conll,
        load_hmc,
        load_label_names,
        load_npz,
        load_svmlight,
        load_texts,
        load_xmc,
        read_rcv1,
        read_skos,
        save_npz,
    )
    from sublearn.io.taxonomies import load_hmc_dataset
    from sublearn.kinds import load_files as forecasting

    eye = np.eye(3)
    save_npz(folder / "pair.npz", eye, np.eye(3, dtype=int), feature_names=["a", "b", "c"])
    save_npz(folder / "vector.npz", eye, np.array(["x", "y", "x"]))
    labels = folder / "labels.npz"
    sparse.save_npz(labels, sparse.csr_matrix(eye))
    arff = folder / "plain.arff"
    xmc = b"3 5 4\n0,2 0:0.5 3:0.5\n1 1:1.0\n 2:0.25 4:0.75\n"
    table = b"@relation r\n@attribute a numeric\n@attribute b {0,1}\n@data\n1.5,1\n{0 2.5}\n"
    arff.write_bytes(table)
    xml = b'<labels xmlns="m"><label name="b"><label name="a"/></label></labels>'
    hmc = b"@relation r\n@attribute s numeric\n@attribute c {u,v}\n" + (
        b"@attribute class hierarchical 1,1/2,3\n@data\n0.5,u,1/2@3\n?,v,1\n"
    )
    conllu = b"# x\n1\tthe\t_\tDET\n2-3\tan\t_\t_\n2\tdog\t_\tNOUN\n\n1\truns\t_\tVERB\n"
    turtle = b"@prefix s: <http://www.w3.org/2004/02/skos/core#> .\n" + (
        b"<u:a> a s:Concept .\n<u:b> a s:Concept ; s:broader <u:a> ; s:prefLabel 'b'@en .\n"
    )
    uai = b"MARKOV\n3\n2 2 3\n2\n2 0 1\n2 1 2\n\n4\n.1 .9 .2 .8\n6\n.2 .3 .4 .8 0 .1\n"
    vectors = b"2 3\nsea 0.5 1 -2\nsky 1e-3 4 5\n"
    binary = b"2 3\n" + b"".join(
        word + b" " + np.ones(3, dtype="<f4").tobytes() + b"\n" for word in (b"sea", b"sky")
    )
    series = b"time,load,temperature\n2020-01-01 00:00,1.5,3\n2020-01-01 01:00,,4\n"
    records = b'{"text": "a b", "labels": ["x", "y"]}\n{"text": "c", "labels": "x,y"}\n'
    found = [
        Format("xmc.txt", xmc, load_xmc, _NUMBERS),
        Format("svm", b"1 1:0.5 3:2\n-1 2:1 # x\n", load_svmlight, _NUMBERS),
        Format("lists.svm", b"0,2 1:1\n 2:1\n1 1:3\n", load_svmlight, _NUMBERS),
        Format("xmc.txt.gz", gzip.compress(xmc), load_xmc),
        Format("xmc.txt.xz", lzma.compress(xmc), load_xmc),
        Format("xmc.txt.bz2", bz2.compress(xmc), load_xmc),
        Format("arff", table, lambda p: load_arff(p, 1), (*_NUMBERS, b"{", b"}", b"?", b"'")),
        Format("labels.xml", xml, lambda p: load_arff(arff, p), (b"<", b"&x;", b"<!DOCTYPE", b">")),
        Format("hmc.arff", hmc, load_hmc, (*_NUMBERS, b"hierarchical", b"/", b"@", b"@data")),
        Format("hmc.dataset.arff", hmc.replace(b"?", b"2"), load_hmc_dataset, _NUMBERS),
        Format("rcv1", b"Root\tA\tB\nA\tC\n", read_rcv1, (b"\t", b"parent: ", b"None", b"\xff")),
        Format("rcv1.original", b"parent: Root child: A\nparent: A child: B\n", read_rcv1),
        Format("ttl", turtle, read_skos, (b"<", b"[" * 2000, b"(", b'"""', b";", b"@prefix", b".")),
        Format("conll", b"the DET\ndog NOUN\n\nruns VERB\n", load_conll, (b"\t", b" ", b"\xff")),
        Format("conllu", conllu, load_conll, (b"\t", b"\n", b"\xff", b"\xef\xbb\xbf")),
        Format("tsv", b"sea, sky\tA text\nland\tB\n", load_texts, (b"\t", b"\xff", b"\r")),
        Format("names", b"sea\tBaltic\nland\tB\n", load_label_names, (b"\t", b"\xff", b"\r")),
        Format("csv", b'labels,text\n"a,b","x"\nc,y\n', load_texts, (b'"', b",", b"\0", b"\xff")),
        Format("jsonl", records, load_texts, (b"[" * 5000, b"{", b"1" * 5000, b"NaN", b"\\ud800")),
        Format("npz", (folder / "pair.npz").read_bytes(), load_npz),
        Format("vector.npz", (folder / "vector.npz").read_bytes(), load_npz),
        Format("npz.gz", gzip.compress((folder / "pair.npz").read_bytes()), load_npz),
        *(
            Format(
                f"{kind}.npz", _scipy_archive(sparse.csr_matrix(eye).asformat(kind)), _with(labels)
            )
            for kind in ("csr", "csc", "bsr", "coo")
        ),
        Format("uai", uai, read_uai, (*_NUMBERS, b"BAYES", b"0", b"1000000000")),
        Format("evid", b"2 0 1 2 0\n", read_evidence, _NUMBERS),
        Format("map", b"MAP\n3 0 1 2\n", read_map, _NUMBERS),
        Format("vec", vectors, read_word_vectors, (*_NUMBERS, b"2000000000 2000000000")),
        Format("bin", binary, lambda p: read_word_vectors(p, binary=True), _NUMBERS),
        Format("loads.csv", series, lambda p: forecasting.read_loads(p, None), _NUMBERS),
        Format("dates", b"2020-12-25 x\n2021-01-01\n", forecasting.read_dates, (b"\xff", b"9999")),
    ]
    return {one.name: one for one in found}


def _with(labels: Path) -> Callable[[Path], Any]:
    from sublearn.io import load_npz

    return lambda path: load_npz(path, labels)


def attack(folder: Path, form: Format, n: int, seed: int) -> dict[str, int]:
    """How many damaged files were refused, and how many read."""
    path = folder / f"damaged.{form.name}"
    counts = {"refused": 0, "read": 0}
    for i in range(n):
        raw = mutated_bytes(form.content, np.random.default_rng([seed, i]), form.words)
        path.write_bytes(raw)
        try:
            form.read(path)
            counts["read"] += 1
        except DataFileError as error:
            if not str(error).startswith(str(folder)):  # or a file that belongs to it
                raise AssertionError(f"the message must begin with the file, got {error}") from None
            counts["refused"] += 1
        except BaseException:
            print(f"{form.name}: seed {seed}, mutation {i}: {raw!r}", file=sys.stderr)
            raise
    return counts


if __name__ == "__main__":
    limit_memory(4 << 30)
    warnings.simplefilter("ignore")
    where, n_each, first_seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    formats = formats_in(where)
    wanted = sys.argv[4:] or list(formats)
    print(json.dumps({name: attack(where, formats[name], n_each, first_seed) for name in wanted}))
