"""Files that claim what they do not hold, do not fit together, or are no such file at all."""

import gzip
import io
import json
import os
import struct
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import attack_readers
import numpy as np
import pytest
from attack_readers import formats_in
from mutations import limit_memory
from small_models import CHANGED, SMALL_MODELS, ask

import sublearn
from sublearn.embed.word_files import read_word_vectors
from sublearn.errors import DataFileError, ModelFileError
from sublearn.io import (
    ReadLimits,
    load_bundle,
    load_conll,
    load_hmc,
    load_npz,
    load_svmlight,
    load_texts,
    load_xmc,
    read_rcv1,
    read_skos,
    save_bundle,
)

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder with a small saved model of every kind."""
    folder = tmp_path_factory.mktemp("models")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some fits are too small to converge
        for case, make in SMALL_MODELS.items():
            make().save(folder / f"{case}.sublearn")
    return folder


@pytest.fixture
def little_memory():
    """What a file may cost beyond what the process has: taking more is a MemoryError."""
    if not Path("/proc/self/statm").exists():  # no way to tell, on systems other than Linux
        yield
        return
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_AS)
    limit_memory(1 << 30)
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)


def changed(source, target, change):
    """A copy of a saved model after `change(params, arrays, attributes)`."""
    bundle = load_bundle(source)
    parts = dict(bundle.params), dict(bundle.arrays), json.loads(json.dumps(bundle.attributes))
    change(*parts)
    names = ("params", "arrays", "attributes")
    save_bundle(target, class_name=bundle.class_name, **dict(zip(names, parts, strict=True)))
    return target


def refuses_model(path, message):
    with pytest.raises(ModelFileError, match=message) as found:
        sublearn.load(path)
    assert str(found.value).startswith(f"{path}: ")


# --- saved models --------------------------------------------------------------------------------


def test_every_class_that_can_be_saved_is_among_the_small_models(models):
    named = {load_bundle(path).class_name for path in models.glob("*.sublearn")}
    assert named | {"SparseNetwork"} == set(sublearn.io.models.MODELS)


@pytest.mark.parametrize("case", CHANGED)
def test_a_model_that_is_as_it_was_saved_answers_as_before(models, tmp_path, case):
    first = sublearn.load(models / f"{case}.sublearn")
    first.save(tmp_path / "again")
    assert repr(ask(case, sublearn.load(tmp_path / "again"))) == repr(ask(case, first))


LIES = {
    "no hashes": (
        "TextTagger hashing",
        lambda p, a, o: p.update(n_hashes=0),
        r"TextTagger\.n_hashes must be an integer in \[1, ",
    ),
    "another number of hashes": (
        "TextTagger hashing",
        lambda p, a, o: p.update(n_hashes=1025),
        r"classifier\.class must rank labels of 1025 features, got PPDSparseClassifier of 1024",
    ),
    "a parameter of a nested model": (
        "TextTagger",
        lambda p, a, o: o["classifier.params"].update(l1=-1),
        r"classifier\.PPDSparseClassifier\.l1 must be",
    ),
    "a nested class that is none": (
        "TextTagger",
        lambda p, a, o: o.update({"classifier.class": "os.system"}),
        r"classifier\.class must name a model with parameters, got 'os\.system'",
    ),
    "a bias longer than the classes": (
        "PPDSparseClassifier",
        lambda p, a, o: a.update(bias=np.zeros(41)),
        r"bias must have an entry for each of 40 classes_",
    ),
    "a bias that is no number": (
        "PPDSparseClassifier",
        lambda p, a, o: a.update(bias=np.full(40, np.nan)),
        "bias must be finite",
    ),
    "an intercept too many": (
        "SparseLogisticRegression",
        lambda p, a, o: a.update(intercept_=np.zeros(5)),
        r"intercept_ must have shape",
    ),
    "names of another number of features": (
        "PPDSparseClassifier",
        lambda p, a, o: o.update(n_features_in_=19),
        r"weights_offsets must have shape \(20,\), that is \(features\+1,\), got \(21,\)",
    ),
    "offsets that leave the entries": (
        "SparseLogisticRegression",
        lambda p, a, o: a.update(
            {"weights.indptr": np.array([0, 2_000_000_000, 0, 0, 0], dtype=np.int32)}
        ),
        r"weights\.indptr must",
    ),
    "ids that were never given out": (
        "MIPSIndex",
        lambda p, a, o: o.update(n_ids=2**31),
        "n_ids must need at most",
    ),
    "a string type that fills the memory": (
        "SparseLogisticRegression of two",
        lambda p, a, o: o["__stored__"]["classes_"].update(dtype="U99999999"),
        r"classes_\.dtype must need at most 67108864 bytes of memory",
    ),
    "a shape that is no list of sizes": (
        "SparseLogisticRegression",
        lambda p, a, o: o["__stored__"]["weights"].update(shape=[True, -9]),
        r"weights\.shape must be a list of sizes, got \[True, -9\]",
    ),
    "more rows than there are offsets": (
        "SparseLogisticRegression",
        lambda p, a, o: o["__stored__"]["weights"].update(shape=[2**40, 20]),
        r"weights\.shape must fit indptr",
    ),
    "a template of a billion nodes": (
        "StructuralSVM",
        lambda p, a, o: o.update(arities=[10**9]),
        r"arities\[0\] must be an integer in \[1, 4\]",
    ),
    "a step that no clock has": (
        "LoadForecaster",
        lambda p, a, o: o["history.clock"].update(step=0),
        r"history\.clock\.step must be an integer in \[1, 1440\], got 0",
    ),
    "a horizon that no memory holds": (
        "LoadForecaster",
        lambda p, a, o: p.update(horizon=2**40),
        r"LoadForecaster\.horizon must be an integer in",
    ),
    "blocks that do not lead to the horizon": (
        "LoadForecaster",
        lambda p, a, o: p.update(horizon=4),
        "blocks_ must lead to the horizon 4",
    ),
    "a node that nothing leads to": (
        "HierarchicalClassifier",
        lambda p, a, o: o["nodes"].reverse(),
        "nodes must come parents first",
    ),
    "a field that nobody knows": (
        "SparseLinearRegression",
        lambda p, a, o: o.update(evil_=1),
        "evil_ must not be there",
    ),
    "a field that is missing": (
        "SparseLinearRegression",
        lambda p, a, o: o.pop("n_iter_"),
        "n_iter_ must be there",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_refuses_a_model_with(models, tmp_path, little_memory, lie):
    case, change, message = LIES[lie]
    refuses_model(changed(models / f"{case}.sublearn", tmp_path / "m", change), message)


def test_refuses_weights_whose_full_matrix_no_memory_holds(models, tmp_path, little_memory):
    def change(params, arrays, attributes):
        attributes["n_features_in_"] = 2**40
        attributes["__stored__"]["weights"]["shape"] = [4, 2**40]

    path = changed(models / "SparseLogisticRegression.sublearn", tmp_path / "m", change)
    refuses_model(path, "weights must have at most 2147483648 cells")


def with_header(path, header):
    raw = json.dumps(header).encode() if isinstance(header, dict) else header
    path.write_bytes(struct.pack("<Q", len(raw)) + raw)
    return path


def test_refuses_a_header_that_is_nested_deeply(tmp_path):
    refuses_model(with_header(tmp_path / "m", b"[" * 100_000 + b"]" * 100_000), "at most 64 deep")
    inside = {"params": "[" * 5000 + "]" * 5000, "attributes": "{}"}
    metadata = {"format": "sublearn", "format_version": "1", "sublearn_version": "1", "class": "X"}
    path = with_header(tmp_path / "m", {"__metadata__": metadata | inside})
    refuses_model(path, "the model's params are damaged: .* at most 64 deep")


def test_brackets_inside_of_names_do_not_count_as_nesting(tmp_path):
    name = "[" * 500 + '"\\{'
    save_bundle(tmp_path / "m", class_name="X", params={name: 1}, arrays={}, attributes={})
    assert load_bundle(tmp_path / "m").params == {name: 1}


@pytest.mark.parametrize(
    ("shape", "offsets"),
    [
        ([2**40], [0, 0]),
        ([0, 2**62], [0, 0]),
        ([0, 2**80], [0, 0]),
        ([True], [0, 8]),
        ([-1, -1], [0, 8]),
        ([1.0], [0, 8]),
        ([1] * 40, [0, 8]),
        ("1", [0, 8]),
        ([1], [0, 8, 8]),
    ],
)
def test_refuses_an_array_of_an_impossible_shape(tmp_path, little_memory, shape, offsets):
    metadata = {
        "format": "sublearn",
        "format_version": "1",
        "sublearn_version": "1",
        "class": "X",
        "params": "{}",
        "attributes": "{}",
    }
    entry = {"dtype": "F64", "shape": shape, "data_offsets": offsets}
    path = with_header(tmp_path / "m", {"__metadata__": metadata, "a": entry})
    with path.open("ab") as stream:
        stream.write(bytes(max(offsets)))
    refuses_model(path, "array 'a'")


# --- data files ----------------------------------------------------------------------------------


def refuses_data(read, path, message):
    with pytest.raises(DataFileError, match=message) as found:
        read(path)
    assert str(found.value).startswith(str(path))


def pair(path, **changes):
    parts = {
        "X.data": np.ones(2),
        "X.indices": np.zeros(2, dtype=np.int32),
        "X.indptr": np.array([0, 1, 2], dtype=np.int32),
        "X.shape": np.array([2, 3]),
        "Y": np.zeros(2),
    }
    np.savez_compressed(path, **(parts | changes))
    return path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X.indptr": np.array([0, 2_000_000_000, 0])}, r"X\.indptr must"),
        ({"X.indices": np.array([0, 3])}, r"X\.indices must"),
        ({"X.data": np.array([1.0, np.nan])}, "X must be finite, got NaN or infinity"),
        ({"X.data": np.array([1.0, np.inf])}, "X must be finite, got NaN or infinity"),
        ({"X.shape": np.array([2**40, 3])}, "shape must be two sizes of at most"),
        ({"X.shape": np.array([7, 3])}, "shape must fit indptr"),
        ({"X.shape": np.array([2, -3])}, "shape must be two sizes"),
        ({"Y": np.array([["a"], ["b"]])}, "Y must be a vector of numbers or strings"),
        ({"Y": np.zeros(2, dtype=complex)}, "must hold the numbers or strings"),
        ({"feature_names": np.array(["a"])}, "feature_names must have 3 entries"),
        ({"label_names": np.array(["a"])}, "label_names must have 0 entries"),
    ],
)
def test_refuses_a_pair_of_matrices_with(tmp_path, little_memory, changes, message):
    refuses_data(load_npz, pair(tmp_path / "a.npz", **changes), message)


def archive(path, header, n_bytes=0, compress_type=zipfile.ZIP_DEFLATED, names=("X.data.npy",)):
    with zipfile.ZipFile(path, "w", compress_type) as file:
        for name in names:
            stream = io.BytesIO()
            np.lib.format.write_array_header_1_0(stream, header)
            file.writestr(name, stream.getvalue() + bytes(n_bytes))
    return path


def test_refuses_an_archive_that_claims_more_than_it_holds(tmp_path, little_memory):
    header = {"shape": (2**40,), "fortran_order": False, "descr": "<f8"}
    refuses_data(load_npz, archive(tmp_path / "a.npz", header), "X.data.npy must hold the numbers")
    header = {"shape": (0, 2**62), "fortran_order": False, "descr": "<f8"}
    refuses_data(load_npz, archive(tmp_path / "a.npz", header), "not a readable|is needed")


@pytest.mark.parametrize("text", [b"{'shape': (3", b"[" * 9000, b"{'a': 1}", b"\xff\0", b""])
def test_refuses_an_array_whose_header_is_none(tmp_path, text):
    content = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
        file.writestr("X.data.npy", content)
    refuses_data(load_npz, tmp_path / "a.npz", "the header of an array cannot be read")


def test_refuses_archives_that_are_bombs_or_have_parts_that_no_array_has(tmp_path, little_memory):
    header = {"shape": (10,), "fortran_order": False, "descr": "|u1"}
    path = tmp_path / "a.npz"
    for names, message in [
        (("folder/X.npy",), "must hold arrays, got 'folder/X.npy'"),
        (("X.txt",), "must hold arrays, got 'X.txt'"),
    ]:
        refuses_data(load_npz, archive(path, header, 10, names=names), message)
    refuses_data(
        load_npz, archive(path, header, 10, zipfile.ZIP_LZMA), "must be stored or deflated"
    )
    large = {"shape": (100 << 20,), "fortran_order": False, "descr": "|u1"}
    refuses_data(load_npz, archive(path, large, 100 << 20), r"limits\.max_ratio")


def test_refuses_an_archive_with_a_name_twice(tmp_path):
    header = {"shape": (1,), "fortran_order": False, "descr": "|u1"}
    with pytest.warns(UserWarning, match="Duplicate name"):
        archive(tmp_path / "a.npz", header, 1, names=("X.npy", "X.npy"))
    refuses_data(load_npz, tmp_path / "a.npz", "a name appears twice")


def test_a_line_without_an_end_cannot_take_the_memory(tmp_path, little_memory):
    path = tmp_path / "bomb.svm.gz"
    with gzip.open(path, "wb", compresslevel=1) as stream:
        for _ in range(100):
            stream.write(b"0" * (1 << 20))
    refuses_data(load_svmlight, path, r"limits\.max_ratio")
    small = ReadLimits(max_line_bytes=1 << 20, max_ratio=10_000)
    refuses_data(
        lambda p: load_svmlight(p, limits=small), path, r"line 1: .*limits\.max_line_bytes"
    )
    refuses_data(lambda p: load_texts(p, limits=small), path, r":1: .*limits\.max_line_bytes")
    refuses_data(lambda p: load_conll(p, limits=small), path, r":1: .*limits\.max_line_bytes")
    few = ReadLimits(max_bytes=1 << 20)
    refuses_data(lambda p: load_xmc(p, limits=few), path, r"limits\.max_bytes")


def test_limits_allow_what_they_say(tmp_path):
    path = tmp_path / "zeros.txt.gz"
    path.write_bytes(gzip.compress(b"1 1 1\n0 0:1" + b" " * (80 << 20)))
    refuses_data(load_xmc, path, r"limits\.max_ratio")
    X, _ = load_xmc(path, limits=ReadLimits(max_ratio=2000))
    assert X.toarray().tolist() == [[1.0]]


@pytest.mark.parametrize("name", ["max_bytes", "max_ratio", "max_line_bytes"])
@pytest.mark.parametrize("value", [0, -1, 2.5, None, True])
def test_refuses_a_limit_that_is_not_a_positive_integer(name, value):
    with pytest.raises(ValueError, match=rf"ReadLimits\.{name} must be a positive integer"):
        ReadLimits(**{name: value})


@pytest.mark.parametrize(
    ("read", "content", "message"),
    [
        (load_texts, b'{"text": ' + b"[" * 100_000, r"\.jsonl:1: must be a JSON object"),
        (load_hmc, b"@attribute c hierarchical\n@data\n", "must be `hierarchical` and a list"),
        (load_hmc, b"@attribute c hierarchical\xff\n", ":1: must be UTF-8, got invalid start byte"),
        (read_rcv1, b"a\tb\nc\t\xff\n", ":2: must be UTF-8, got invalid start byte"),
        (read_rcv1, b"a\tb\nc\n", ":2: a line must be"),
        (read_skos, b"@prefix s <x> .", "must be a vocabulary in Turtle: BadSyntax"),
        (read_skos, b"<u:a> <u:b> " + b"[<u:b> " * 3000, "must be a vocabulary in Turtle"),
        (read_word_vectors, b"2000000000 1000000000\na 1", "the sizes must fit the file"),
        (read_word_vectors, b"1 2\na 1 inf\n", "must be finite, got NaN or infinity for word 1"),
        (read_word_vectors, b"1 2\na nan 1\n", "must be finite, got NaN or infinity for word 1"),
        (read_word_vectors, b"1 1\na 1e39\n", "must be finite, got NaN or infinity for word 1"),
    ],
)
def test_refuses_a_data_file(tmp_path, little_memory, read, content, message):
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    refuses_data(read, path, message)


def test_a_table_of_nominal_values_cannot_take_the_memory(tmp_path, little_memory):
    values = ",".join(map(str, range(20_000)))
    head = f"@attribute v {{{values}}}\n@attribute c hierarchical a,a/b\n@data\n"
    path = tmp_path / "a.arff"
    path.write_text(head + "1,a\n" * 2000)
    refuses_data(load_hmc, path, "the table must need at most")


@pytest.mark.parametrize("name", sorted(["svm", "npz", "arff", "tsv", "vec", "uai", "loads.csv"]))
def test_a_missing_file_stays_a_missing_file(tmp_path, name):
    with pytest.raises(FileNotFoundError):
        formats_in(tmp_path)[name].read(tmp_path / f"none.{name}")


# --- many of them --------------------------------------------------------------------------------


def run(script, *arguments):
    """The counts that a script prints; it is a process of its own, since it may die."""
    found = subprocess.run(
        [sys.executable, str(HERE / script), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert found.returncode == 0, f"ended with {found.returncode}: {found.stderr[-2000:]}"
    return json.loads(found.stdout)


def test_only_refusals_come_of_damaged_models(models):
    counts = run("mutations.py", models, 40, 1, *SMALL_MODELS)
    assert counts.keys() == SMALL_MODELS.keys()
    assert all(found["refused"] > 10 for found in counts.values()), counts


def test_only_refusals_come_of_damaged_data_files(tmp_path):
    counts = run("attack_readers.py", tmp_path, 60, 1)
    assert counts.keys() == attack_readers.formats_in(tmp_path).keys()
    assert all(found["refused"] > 0 for found in counts.values()), counts
