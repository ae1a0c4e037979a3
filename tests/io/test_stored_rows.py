"""Rows larger than memory: the arrays of the readers, the bits of a fit in memory, a memory that is
kept by the system, and stores that are truncated, changed or hostile."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import HashingVectorizer

from sublearn.errors import DataFileError, ParameterError
from sublearn.extreme import PPDSparseClassifier
from sublearn.io import (
    load_svmlight,
    load_xmc,
    open_rows,
    row_store,
    row_store_writer,
    save_svmlight,
    save_xmc,
    store_rows,
)
from sublearn.io.row_store_writer import as_bytes
from sublearn.validation import check_features

SMALL = "16MB"


def problem(n_rows=400, n_labels=30, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random(n_rows, 60, 0.2, "csr", random_state=rng, data_rvs=rng.standard_normal)
    X = sp.hstack([X[:, :7], np.ones((n_rows, 1)), X[:, 8:]], "csr")  # one that all rows have
    scores = X @ rng.normal(size=(60, n_labels))
    return sp.csr_matrix(X, dtype=np.float32), sp.csr_matrix(np.asarray(scores) > 1.5)


def content(matrix):
    """The bytes of the arrays; offsets may have another width."""
    indptr = matrix.indptr.astype(np.int64)
    return [matrix.data.tobytes(), matrix.indices.tobytes(), indptr.tobytes()]


@pytest.fixture
def many_ranges(monkeypatch):
    """Few entries at a time, in many files, as of a store much larger than the memory."""
    monkeypatch.setattr(row_store_writer, "_PER_ENTRY", 2**24 // 256)
    monkeypatch.setattr(row_store_writer, "_PER_TEXT_BYTE", 2**24 // 4096)


@pytest.fixture
def store(tmp_path):
    save_xmc(tmp_path / "rows.txt", *problem())
    store_rows(tmp_path / "rows.txt", tmp_path / "rows", memory=SMALL)
    return tmp_path / "rows"


# --- what is stored ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rows.txt", "rows.svm", "rows.txt.gz"])
def test_is_what_the_reader_gives_whatever_fits_into_memory(tmp_path, many_ranges, name):
    X, Y = problem()
    is_xmc = ".txt" in name
    (save_xmc if is_xmc else save_svmlight)(tmp_path / name, X, Y)
    whole = load_xmc(tmp_path / name) if is_xmc else load_svmlight(tmp_path / name, multilabel=True)
    rows = store_rows(tmp_path / name, tmp_path / "store", memory=SMALL)
    found, y = open_rows(tmp_path / "store")
    assert content(found) == content(whole.X)
    assert content(found.stored_columns) == content(whole.X.tocsc())
    labels = whole.Y.tocsc()
    assert (y.indptr.tolist(), y.rows.tolist()) == (labels.indptr.tolist(), labels.indices.tolist())
    assert (rows.shape, rows.n_labels) == (whole.X.shape, whole.Y.shape[1])
    assert not found.data.flags.writeable
    assert sorted(os.listdir(tmp_path)) == sorted([name, "store"])


def test_a_number_for_each_row(tmp_path):
    X, _ = problem()
    y = np.arange(X.shape[0]) % 3
    save_svmlight(tmp_path / "rows.svm", X, y)
    rows = store_rows(tmp_path / "rows.svm", tmp_path / "store", memory=SMALL, multilabel=False)
    assert rows.n_labels is None
    np.testing.assert_array_equal(rows.y, y)
    save_svmlight(tmp_path / "half.svm", X, y / 2)
    rows = store_rows(tmp_path / "half.svm", tmp_path / "half", memory=SMALL, multilabel=False)
    np.testing.assert_array_equal(rows.y, y / 2)


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
def test_tables_of_lists(tmp_path, ending):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is an extra")
    X, Y = problem()

    def lists(matrix, values):
        return pa.ListArray.from_arrays(pa.array(matrix.indptr, pa.int32()), pa.array(values))

    table = pa.table({"labels": lists(Y, Y.indices), "indices": lists(X, X.indices),
                      "values": lists(X, X.data)})  # fmt: skip
    path = tmp_path / f"rows{ending}"
    if ending == ".parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, path, row_group_size=90)
    else:
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table, max_chunksize=70)
    rows = store_rows(path, tmp_path / "store", memory=SMALL)
    assert content(rows.X) == content(X)
    assert rows.y.to_csr().nnz == Y.nnz
    with pa.ipc.new_file(tmp_path / "bad.arrow", table.schema.remove(0)) as file:
        file.write_table(table.drop_columns(["labels"]))
    with pytest.raises(DataFileError, match="must have the columns indices, values, labels"):
        store_rows(tmp_path / "bad.arrow", tmp_path / "other", memory=SMALL)


def test_texts_that_are_never_held_whole(tmp_path):
    words = HashingVectorizer(n_features=256, dtype=np.float32)
    texts = [f"word{k} word{k % 7} again" for k in range(90)]
    labels = np.eye(9, dtype=int)[np.arange(90) % 9]
    pairs = ((words.transform(texts[i : i + 20]), labels[i : i + 20]) for i in range(0, 90, 20))
    rows = store_rows(pairs, tmp_path / "store", memory=SMALL, n_features=256)
    whole = words.transform(texts)
    whole.sum_duplicates()
    whole.eliminate_zeros()
    assert content(rows.X) == content(whole)


# --- fits --------------------------------------------------------------------------------------


def test_a_fit_has_the_bits_of_one_in_memory_and_uses_the_stored_columns(store, tmp_path):
    X, y = open_rows(store)
    model = PPDSparseClassifier(random_state=0, model_path=tmp_path / "model")
    assert check_features(model, X, reset=True) is X
    data, labels = load_xmc(store.with_name("rows.txt"))
    alone = PPDSparseClassifier(random_state=0).fit(data, labels)
    model.fit(X, y)
    assert content(model.model_.weights) == content(alone.model_.weights)
    assert model.intercept_.tobytes() == alone.intercept_.tobytes()
    assert model.predict_top_k(X, k=3)[0].tolist() == alone.predict_top_k(data, k=3)[0].tolist()
    weights = np.linspace(0, 1, X.shape[0])
    alone.fit(data, labels, sample_weight=weights)
    model.fit(X, y, sample_weight=weights)
    assert content(model.model_.weights) == content(alone.model_.weights)


LIMITED = """
import resource, sys
import numpy as np, scipy.sparse as sp
from sublearn.io import store_rows

def used():  # anonymous memory; pages of mapped files are not counted, as in RLIMIT_DATA
    lines = open("/proc/self/status").read().split("\\n")
    return next(int(line.split()[1]) for line in lines if line.startswith("VmData")) * 1024

def blocks():
    rng = np.random.default_rng(0)
    for _ in range(40):
        ids = rng.integers(0, 50_000, (5_000, 60), dtype=np.int32)
        ids.sort(axis=1)
        X = sp.csr_matrix((np.ones(ids.size, np.float32), ids.ravel(),
                           np.arange(0, ids.size + 1, 60)), shape=(5_000, 50_000))
        X.sum_duplicates()
        yield X, sp.csr_matrix((np.ones(5_000, np.int8), (np.arange(5_000), np.arange(5_000))))

next(blocks())
before = used()
resource.setrlimit(resource.RLIMIT_DATA, (before + int(sys.argv[2]),) * 2)
rows = store_rows(blocks(), sys.argv[1], memory=int(sys.argv[2]))
print(rows.nbytes)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA counts what it does on Linux")
def test_the_memory_that_is_given_is_kept_by_the_system(tmp_path):
    memory = 96 * 2**20
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "store"), str(memory)]
    one_thread = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    run = subprocess.run(command, capture_output=True, text=True, env=one_thread)
    assert (run.stderr, run.returncode) == ("", 0)
    assert int(run.stdout) > 1.9 * memory


# --- refusals ----------------------------------------------------------------------------------


def test_lines_are_counted_from_the_start_of_the_file(tmp_path, many_ranges):
    path = tmp_path / "rows.svm"
    save_svmlight(path, *problem())
    lines = path.read_text().splitlines()
    lines[311] += " 3:x"
    path.write_text("\n".join(lines))
    with pytest.raises(DataFileError, match=r"rows.svm, line 312"):
        store_rows(path, tmp_path / "store", memory=SMALL)
    assert os.listdir(tmp_path) == ["rows.svm"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2 3 2\n0 0:1\n", "2 rows are announced, got 1"),
        ("1 3 2\n0 0:1\n1 1:1\n", "1 rows are announced, got more"),
        ("1 3 2\n0 3:1\n", "line 2"),
        ("rows\n0 0:1\n", "the numbers of rows, features and labels"),
        ("1 3 9999999999\n0 0:1\n", "must be below 2"),
        ("0 3 2\n", "there must be rows"),
    ],
)
def test_refuses_what_the_reader_refuses(tmp_path, text, message):
    (tmp_path / "rows.txt").write_text(text)
    with pytest.raises(DataFileError, match=message):
        store_rows(tmp_path / "rows.txt", tmp_path / "store", memory=SMALL)


def test_blank_lines_after_the_last_row_are_none(tmp_path):
    (tmp_path / "rows.txt").write_text("2 3 2\n0 0:1\n\n\n \n")
    assert store_rows(tmp_path / "rows.txt", tmp_path / "store", memory=SMALL).shape == (2, 3)


def test_refuses_what_is_no_source(tmp_path):
    for source, message in (
        (5, "must be a file or an iterable of pairs"),
        ([5], r"must give pairs \(X, Y\), got 5"),
        ("rows.csv", "must be a file of sparse rows"),
        ([(np.eye(2), np.eye(3))], "Y must have 2 rows"),
    ):
        with pytest.raises(ValueError, match=message):
            store_rows(source, tmp_path / "store", memory=SMALL)
    with pytest.raises(ValueError, match=r"store_rows.Y must hold a finite number"):
        store_rows([(np.eye(2), np.eye(2))], tmp_path / "s", memory=SMALL, multilabel=False)


@pytest.mark.parametrize("memory", ["much", 5.5, "2XB", None, True])
def test_refuses_a_memory_that_is_no_size(tmp_path, memory):
    with pytest.raises(ParameterError, match=r"store_rows.memory must be bytes or a text such as"):
        store_rows([], tmp_path / "store", memory=memory)


def test_refuses_too_little_memory(tmp_path, many_ranges, monkeypatch):
    with pytest.raises(ParameterError, match="memory must be at least 16 MB, got 1000 bytes"):
        store_rows([], tmp_path / "store", memory=1000)
    save_xmc(tmp_path / "rows.txt", *problem())
    monkeypatch.setattr(row_store_writer, "_MOST_RANGES", 3)
    with pytest.raises(ParameterError, match=r"memory must be at least \d+MB for"):
        store_rows(tmp_path / "rows.txt", tmp_path / "store", memory=SMALL)
    wide = sp.csr_matrix(([1.0], ([0], [2**30])), shape=(1, 2**30 + 1))
    with pytest.raises(ParameterError, match="a number for each column"):
        store_rows([(wide, np.ones((1, 1)))], tmp_path / "store", memory=SMALL)


@pytest.mark.parametrize(
    ("text", "size"),
    [("2GB", 2**31), ("512 mb", 2**29), ("1.5G", 3 * 2**29), ("16777216", 2**24), (2**25, 2**25)],
)
def test_reads_sizes(text, size):
    assert as_bytes(text, "memory") == size


def test_refuses_larger_ids_than_were_announced(tmp_path):
    X, Y = problem()
    with pytest.raises(ValueError, match="ids must be below n_features = 10, got 59"):
        store_rows([(X, Y)], tmp_path / "store", memory=SMALL, n_features=10)
    with pytest.raises(ParameterError, match=r"store_rows.n_labels must be an integer"):
        store_rows([(X, Y)], tmp_path / "store", memory=SMALL, n_labels=-1)
    save_xmc(tmp_path / "rows.txt", X, Y)
    with pytest.raises(ParameterError, match="n_labels must be that of the file"):
        store_rows(tmp_path / "rows.txt", tmp_path / "store", memory=SMALL, n_labels=7)


def test_refuses_a_folder_that_is_there(store):
    with pytest.raises(ValueError, match=r"store_rows.folder must be new"):
        store_rows([], store, memory=SMALL)


# --- stores that are not what they were --------------------------------------------------------


def rewrite(path, change):
    data = bytearray(path.read_bytes())
    path.chmod(0o600)
    path.write_bytes(change(data))


def test_a_truncated_store_is_refused(store):
    rewrite(store / "rows.values.bin", lambda data: data[:-8])
    with pytest.raises(DataFileError, match=r"rows.values.bin: must have \d+ bytes, got \d+"):
        open_rows(store)


def test_a_flipped_bit_is_refused_where_it_is_looked_for(store):
    def flip(data):
        data[2] ^= 1
        return data

    rewrite(store / "columns.values.bin", flip)
    with pytest.raises(DataFileError, match=r"columns.values.bin: content must be what"):
        open_rows(store)
    open_rows(store, verify=False)  # harmless: another number


def test_a_store_that_changes_while_it_is_open_is_refused(store):
    rows = open_rows(store)
    path = store / "rows.indices.bin"
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data[::-1])
    for name in ("X", "y"):
        with pytest.raises(DataFileError, match="was changed while it was open"):
            getattr(rows, name)


def set_ids(values):
    def change(data):
        ids = np.frombuffer(data, np.int32).copy()
        ids[: len(values)] = values
        return ids.tobytes()

    return change


@pytest.mark.parametrize("name", ["rows.indices", "columns.rows", "labels.rows"])
@pytest.mark.parametrize("values", [[-1], [2**30], [5, 5], [5, 4]])
def test_ids_that_lie_are_refused_without_their_digests(store, name, values):
    rewrite(store / f"{name}.bin", set_ids(values))
    with pytest.raises(DataFileError):
        open_rows(store, verify=False)


def set_offsets(kind, place, value):
    def change(data):
        offsets = np.frombuffer(data, kind).copy()
        offsets[place] = value
        return offsets.tobytes()

    return change


@pytest.mark.parametrize(
    ("name", "kind"),
    [("rows.indptr", np.int32), ("columns.indptr", np.int64), ("labels.indptr", np.int64)],
)
@pytest.mark.parametrize(("place", "value"), [(0, 1), (1, 2**30), (-1, 0), (3, -5)])
def test_offsets_that_lie_are_refused(store, name, kind, place, value):
    rewrite(store / f"{name}.bin", set_offsets(kind, place, value))
    with pytest.raises(DataFileError):
        open_rows(store, verify=False)


@pytest.mark.parametrize("value", [np.nan, np.inf, 3e38])
def test_values_that_cannot_be_computed_with_are_refused(store, value):
    rewrite(store / "rows.values.bin", set_offsets(np.float32, 0, value))
    with pytest.raises(DataFileError, match="numbers of at most"):
        open_rows(store, verify=False)


def test_columns_of_other_rows_are_refused(store):
    indptr = np.fromfile(store / "columns.indptr.bin", np.int64)
    at = int(np.flatnonzero(np.diff(indptr) > 1)[3])
    rewrite(store / "columns.indptr.bin", set_offsets(np.int64, at + 1, indptr[at + 1] - 1))
    with pytest.raises(DataFileError):
        open_rows(store, verify=False)


@pytest.mark.parametrize(
    "change",
    [
        lambda about: about.update(format="other"),
        lambda about: about.update(version=2),
        lambda about: about.update(shape=[-1, 4]),
        lambda about: about.update(shape=[2**40, 4]),
        lambda about: about.update(shape="ab"),
        lambda about: about.update(n_labels="many"),
        lambda about: about.update(dtype="float16"),
        lambda about: about["arrays"].pop("rows.values"),
        lambda about: about["arrays"].update({"../x": {"length": 1, "digest": ""}}),
        lambda about: about["arrays"]["rows.indptr"].update(length=3),
        lambda about: about["arrays"]["rows.indptr"].update(length="3"),
        lambda about: about["arrays"]["rows.indptr"].update(digest=None),
        lambda about: about.pop("shape"),
    ],
)
def test_a_description_that_lies_is_refused(store, change):
    path = store / row_store.MANIFEST
    about = json.loads(path.read_text())
    change(about)
    path.write_text(json.dumps(about))
    with pytest.raises(DataFileError, match=r"does not describe rows|must have"):
        open_rows(store)


@pytest.mark.parametrize("text", ["", "[" * 50_000, "[]", "5", "\x00", " " * 2**17])
def test_what_is_no_description_is_refused(store, text):
    (store / row_store.MANIFEST).write_text(text)
    with pytest.raises(DataFileError):
        open_rows(store)


def test_links_and_other_folders_are_refused(store, tmp_path):
    with pytest.raises(DataFileError, match="a folder that store_rows wrote is needed"):
        open_rows(tmp_path)
    file = store / "rows.values.bin"
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataFileError, match="a plain file is needed"):
        open_rows(store)
