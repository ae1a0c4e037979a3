"""Inner-product search: the same rows as a scan of all, whatever comes, goes and changes."""

import copy
import pickle
import sys
import threading
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import sublearn
from sublearn import _core
from sublearn.embed import MIPSIndex
from sublearn.embed.clustering import assign, spherical_kmeans, unit_rows

mips = partial(MIPSIndex, random_state=0)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def rows(rng):
    centres = rng.normal(size=(30, 21))
    near = centres[rng.integers(30, size=600)] + 0.3 * rng.normal(size=(600, 21))
    return (near * np.exp(0.5 * rng.normal(size=(600, 1)))).astype(np.float32)


@pytest.fixture
def queries(rng, rows):
    return rows[rng.choice(600, 40)] + 0.3 * rng.normal(size=(40, 21)).astype(np.float32)


def best(rows, queries, k):
    """The slow twin: all inner products, sorted."""
    scores = queries.astype(np.float64) @ rows.T.astype(np.float64)
    ids = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return ids, np.take_along_axis(scores, ids, 1)


def test_exact_search_is_a_scan_that_skips(rows, queries):
    index = mips(n_probe=None).fit(rows)
    ids, scores = index.search(queries, k=7)
    truth, products = best(rows, queries, 7)
    np.testing.assert_array_equal(ids, truth)
    np.testing.assert_allclose(scores, products, rtol=1e-5)
    assert index.work_ < len(queries) * (len(rows) + index.n_clusters_)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 60), st.booleans())
@example(637324, 40, 45, False)  # a product of -0.76 of vectors of length 6,000 and 6
def test_exact_search_on_any_shape(seed, dim, n_rows, has_zeros):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, dim)).astype(np.float32) * 10.0 ** rng.integers(-3, 4)
    queries = rng.normal(size=(5, dim)).astype(np.float32)
    if has_zeros:
        rows[::3] = 0
        queries[0] = 0
    k = int(rng.integers(1, n_rows + 1))
    _, scores = mips(n_probe=None).fit(rows).search(queries, k)
    lengths = [np.linalg.norm(vectors, axis=1).max() for vectors in (rows, queries)]
    rounding = 1e-6 * np.prod(lengths)  # of float32 grows with the lengths, not with the product
    np.testing.assert_allclose(scores, best(rows, queries, k)[1], rtol=1e-4, atol=rounding)


def test_rows_above_a_threshold_are_all_found(rows, queries):
    found = mips().fit(rows).search_above(queries, 12.0)
    scores = queries @ rows.T
    assert sum(len(ids) for ids, _ in found) > 10
    for (ids, values), row in zip(found, scores, strict=True):
        np.testing.assert_array_equal(np.sort(ids), np.flatnonzero(row > 12.0))
        assert (np.diff(values) <= 0).all()


def test_more_clusters_find_more(rows, queries):
    index = mips(40).fit(rows)
    recalls = [index.recall(queries, 10, n_probe=n) for n in (1, 4, 40)]
    assert recalls == sorted(recalls)
    assert recalls[0] > 0.3
    assert recalls[-1] == 1.0


def test_tuning_takes_the_fewest_clusters_of_a_recall(rows, queries):
    index = mips(40).fit(rows).tune(queries, k=10, recall=0.9)
    assert index.recall(queries, 10) >= 0.9
    assert index.n_probe_ == 1 or index.recall(queries, 10, n_probe=index.n_probe_ - 1) < 0.9


def test_one_query_is_a_row(rows, queries):
    index = mips().fit(rows)
    ids, scores = index.search(queries[0], k=3)
    assert ids.shape == scores.shape == (3,)
    np.testing.assert_array_equal(ids, index.search(queries[:1], k=3)[0][0])


def test_threads_and_batches_change_nothing(rows, queries):
    alone = mips(n_jobs=1).fit(rows)
    many = mips(n_jobs=4).fit(rows)
    ids, scores = alone.search(queries, 5)
    for found in (many.search(queries, 5), [np.stack(part) for part in zip(
        *(alone.search(query, 5) for query in queries), strict=True)]):  # fmt: skip
        np.testing.assert_array_equal(found[0], ids)
        np.testing.assert_array_equal(found[1], scores)


@pytest.mark.parametrize("k", [1, 7, 300, 600])
def test_exact_batches_are_the_same_to_the_last_bit_as_single_queries(rows, queries, k):
    index = mips(n_probe=None).fit(rows)
    ids, scores = index.search(queries, k)
    work = index.work_
    alone = [index.search(query, k) for query in queries]
    np.testing.assert_array_equal(ids, [part[0] for part in alone])
    np.testing.assert_array_equal(scores, [part[1] for part in alone])
    assert work <= len(queries) * (len(rows) + index.n_clusters_)


def test_inner_products_of_a_search_grow_like_the_root_of_the_rows(rng):
    work = []
    for n_rows in (2_000, 8_000, 32_000):
        index = mips(n_probe=8, max_iter=2).fit(rng.normal(size=(n_rows, 8)))
        index.search(rng.normal(size=(50, 8)), 5)
        work.append(index.work_ / 50)
    assert work[1] < 2.6 * work[0]
    assert work[2] < 2.6 * work[1]


def test_tuning_knows_the_recall_of_every_number_of_clusters(rows, queries):
    index = mips(60).fit(rows)
    index.remove(index._index.packed()[1][:40])  # some clusters are empty, some are small
    for k in (1, 10, 30):
        best = index.search(queries, k, n_probe=None)[0].astype(np.int32)
        found = index._found_by_clusters(index._queries(queries), best)
        truth = [index.recall(queries, k, n_probe=n) for n in range(1, 61)]
        np.testing.assert_allclose(found / best.size, truth)


def test_searches_see_a_change_of_many_rows_as_a_whole(monkeypatch, rng):
    monkeypatch.setattr("sublearn.embed.mips_index._BLOCK_OPERATIONS", 1.0)  # many blocks
    first = np.abs(rng.normal(size=(300, 4))).astype(np.float32)
    index = mips(10, n_probe=None).fit(first)
    everything, seen, is_over = np.arange(300), [], threading.Event()

    def write():
        for turn in range(60):
            index.update(everything, first * (2.0 + turn % 2))
        is_over.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not is_over.is_set():
        ids, scores = index.search(np.ones((2, 4)), 300)
        seen.append(scores[0] / first[ids[0]].sum(axis=1))
    writer.join()
    for ratios in seen:
        np.testing.assert_allclose(ratios, ratios[0], rtol=1e-4)


def test_a_change_that_is_cut_short_changes_nothing(monkeypatch, rows):
    monkeypatch.setattr("sublearn.embed.mips_index._BLOCK_OPERATIONS", 1.0)
    index = mips(20, n_probe=None).fit(rows)
    calls = iter([None] * 5)

    class Interrupted:
        def __getattr__(self, name):
            return getattr(core, name)

        def nearest(self, part):
            if next(calls, "end") == "end":
                raise KeyboardInterrupt
            return core.nearest(part)

    core = index._index
    index._index = Interrupted()
    for change in (lambda: index.update(np.arange(9), 2 * rows[:9]), lambda: index.add(rows[:9])):
        calls = iter([None] * 5)
        with pytest.raises(KeyboardInterrupt):
            change()
    index._index = core
    assert core.n_rows == 600
    np.testing.assert_array_equal(index.rows(np.arange(9)), rows[:9])


@pytest.mark.parametrize("dim", [16, 21])
def test_queries_in_any_form_find_the_same(rng, dim):
    rows = rng.normal(size=(200, dim)).astype(np.float32)
    index = mips(n_probe=None).fit(rows)
    queries = rng.normal(size=(6, dim)).astype(np.float32)
    forms = (queries.tolist(), np.asfortranarray(queries), queries.astype(np.float64))
    forms += (queries.astype(">f4"), np.repeat(queries, 2, axis=1)[:, ::2])
    for form in forms:
        np.testing.assert_array_equal(index.search(form, 5)[0], index.search(queries, 5)[0])
    with pytest.raises(ValueError, match="queries must have finite numbers, got NaN"):
        index.search(np.full((2, dim), np.nan, np.float32))


def test_the_clusters_looked_at_may_have_fewer_rows_than_asked_for(rows, queries):
    ids, _ = mips(100, n_probe=1).fit(rows).search(queries, k=200)
    assert (ids >= 0).all()
    assert all(len(np.unique(row)) == 200 for row in ids)


def test_rows_change_come_and_go(rng, rows, queries):
    index = mips(20, n_probe=None).fit(rows)
    current = dict(enumerate(rows))
    for _ in range(5):
        ids = rng.choice(sorted(current), 50, replace=False)
        changed = rng.normal(size=(50, 21)).astype(np.float32) * 3
        index.update(ids, changed)
        current.update(zip(ids.tolist(), changed, strict=True))
        gone = rng.choice(sorted(current), 30, replace=False)
        index.remove(gone)
        for i in gone.tolist():
            del current[i]
        new = rng.normal(size=(20, 21)).astype(np.float32)
        current.update(zip(index.add(new).tolist(), new, strict=True))
        names = np.array(sorted(current))
        matrix = np.stack([current[i] for i in names])
        truth, _ = best(matrix, queries, 6)
        np.testing.assert_array_equal(index.search(queries, 6)[0], names[truth])
    assert index.n_rows_ == len(current)
    np.testing.assert_array_equal(index.ids(), names)
    np.testing.assert_array_equal(index.rows(names[:9]), matrix[:9])


def test_empty_clusters_are_not_looked_at(rows, queries):
    index = mips(20, n_probe=1).fit(rows)
    begin, ids = index._index.packed()[:2]
    index.remove(ids[: begin[15]])
    left = np.sort(ids[begin[15] :])
    found, _ = index.search(queries, 2)
    assert np.isin(found, left).all()
    truth, _ = best(rows[left], queries, 2)
    np.testing.assert_array_equal(index.search(queries, 2, n_probe=5)[0], left[truth])
    index.add(rows[ids[: begin[15]]])
    assert index.recall(queries, 5, n_probe=20) == 1.0


def test_a_saved_index_is_mapped_and_can_change(tmp_path, rng, rows, queries):
    index = mips(20, n_probe=2).fit(rows)
    index.save(tmp_path / "index")
    loaded = sublearn.load(tmp_path / "index")
    np.testing.assert_array_equal(loaded.search(queries, 5)[0], index.search(queries, 5)[0])
    value = 100 * queries[:1]
    loaded.update([3], value)
    assert loaded.search(queries[0], 1)[0] == 3
    again = sublearn.load(tmp_path / "index")  # the file was not written to
    np.testing.assert_array_equal(again.rows([3])[0], rows[3])


def test_balance_limits_the_clusters(rng):
    lopsided = np.vstack([np.ones((900, 4)) + 0.01 * rng.normal(size=(900, 4)), np.eye(4)])
    index = mips(10, balance=1.5).fit(lopsided)
    assert np.diff(index._index.packed()[0]).max() <= np.ceil(1.5 * 904 / 10)


def test_spherical_kmeans_finds_directions(rng):
    directions = unit_rows(rng.normal(size=(5, 12)).astype(np.float32))
    rows = directions[rng.integers(5, size=400)] * rng.uniform(0.1, 9, size=(400, 1))
    centres = spherical_kmeans(rows.astype(np.float32), 5, 20, np.random.default_rng(1))
    np.testing.assert_allclose(np.linalg.norm(centres, axis=1), 1, rtol=1e-5)
    labels, similarity = assign(unit_rows(rows.astype(np.float32)), centres)
    assert similarity.mean() > 0.9
    assert labels.max() < 5


@pytest.mark.parametrize("n_queries", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("n_rows", [1, 7, 8, 9, 33])
def test_inner_products(rng, n_queries, n_rows):
    rows = rng.normal(size=(n_rows, 48)).astype(np.float32)
    queries = rng.normal(size=(n_queries, 48)).astype(np.float32)
    out = np.empty((n_queries, n_rows), np.float32)
    _core.inner_products(rows, queries, out)
    np.testing.assert_allclose(out, queries @ rows.T, rtol=1e-4, atol=1e-5)


# --- rows of 8-bit numbers -----------------------------------------------------------------------


def test_rounded_rows_are_the_nearest_multiples_of_their_scale(rng):
    rows = rng.normal(size=(9, 32)).astype(np.float32)
    rows[4] = 0.0
    levels, scales = _core.quantise_rows(rows)
    np.testing.assert_allclose(scales, np.abs(rows).max(axis=1) / 127, rtol=1e-6)
    safe = np.where(scales > 0, scales, 1)[:, None]
    np.testing.assert_array_equal(levels, np.rint(rows / safe))
    assert np.abs(scales[:, None] * levels - rows).max() <= scales.max() * 0.5001


def test_rounded_rows_are_searched_exactly(rows, queries):
    index = mips(n_probe=None, storage="int8").fit(rows)
    kept = index.rows(range(600))
    truth, products = best(kept, queries, 7)
    ids, scores = index.search(queries, k=7)
    np.testing.assert_array_equal(ids, truth)
    np.testing.assert_allclose(scores, products, rtol=1e-5)
    assert index.work_ < len(queries) * (len(rows) + index.n_clusters_)
    above, _ = index.search_above(queries[:1], float(scores[0, 3]))[0]
    np.testing.assert_array_equal(above, ids[0, :3])


def test_scores_of_rounded_rows_are_as_near_as_the_docs_say(rows, queries):
    index = mips(storage="int8").fit(rows)
    error = np.abs(queries @ index.rows(range(600)).T - queries @ rows.T)
    scales = np.abs(rows).max(axis=1) / 127
    allowed = scales[None, :] * np.abs(queries).sum(axis=1)[:, None] / 2
    assert (error <= allowed * 1.001 + 1e-6).all()


def test_rounded_rows_change_come_and_go(rng, rows, queries):
    index = mips(20, n_probe=None, storage="int8").fit(rows)
    changed = 3 * rng.normal(size=(50, 21)).astype(np.float32)
    index.update(range(50), changed)
    index.remove(range(100, 130))
    new = index.add(changed[:5])
    np.testing.assert_array_equal(index.rows(new), index.rows(range(5)))
    truth, _ = best(index.rows(index.ids()), queries, 6)
    np.testing.assert_array_equal(index.search(queries, 6)[0], index.ids()[truth])


def test_a_saved_index_of_rounded_rows_takes_a_quarter(tmp_path, rng, queries):
    rows = rng.normal(size=(3000, 64)).astype(np.float32)
    sizes = {}
    for storage in ("float32", "int8"):
        index = mips(20, storage=storage).fit(rows)
        index.save(tmp_path / storage)
        sizes[storage] = (tmp_path / storage).stat().st_size
        loaded = sublearn.load(tmp_path / storage)
        asked = rows[:30]
        for found, again in zip(index.search(asked, 5), loaded.search(asked, 5), strict=True):
            np.testing.assert_array_equal(found, again)
        loaded.update([3], rows[:1])
        np.testing.assert_array_equal(loaded.rows([3]), index.rows([0]))
    assert sizes["int8"] < 0.35 * sizes["float32"]


@pytest.mark.parametrize("n_queries", [1, 2, 4, 5])
def test_inner_products_of_rounded_rows_are_those_of_numpy(rng, n_queries):
    rows = rng.normal(size=(33, 48)).astype(np.float32)
    index = mips(1, n_probe=1, storage="int8").fit(rows)
    queries = rng.normal(size=(n_queries, 48)).astype(np.float32)
    ids, scores = index.search(queries, 33)
    products = queries @ index.rows(range(33)).T
    np.testing.assert_allclose(scores, np.take_along_axis(products, ids, 1), rtol=1e-4, atol=1e-5)


# --- the back end of faiss -----------------------------------------------------------------------


@pytest.fixture
def faiss():
    return pytest.importorskip("faiss", reason="faiss is not installed: pip install faiss-cpu")


def test_faiss_searches_the_same_clusters(faiss, rows, queries):
    ours, theirs = (mips(20, n_probe=3, backend=b).fit(rows) for b in ("sublearn", "faiss"))
    for n_probe in (3, None):
        found = [index.search(queries, 7, n_probe=n_probe) for index in (ours, theirs)]
        np.testing.assert_array_equal(found[0][0], found[1][0])
        np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-5)
    assert theirs.work_ == len(queries) * (600 + 20)
    for a, b in zip(*(i.search_above(queries, 12.0) for i in (ours, theirs)), strict=True):
        np.testing.assert_array_equal(a[0], b[0])
    assert theirs.tune(queries, recall=0.9).n_probe_ == ours.tune(queries, recall=0.9).n_probe_


def test_rows_of_faiss_change_and_are_saved(faiss, tmp_path, rng, rows, queries):
    before = faiss.omp_get_max_threads()
    index = mips(20, n_probe=None, backend="faiss", n_jobs=1).fit(rows)
    index.update([3, 5], 50 * queries[:2])
    index.remove([7, 8])
    (new,) = index.add(100 * queries[2:3])
    assert (new, index.n_rows_) == (600, 599)
    assert index.search(queries[:3], 1)[0][:, 0].tolist() == [3, 5, 600]
    np.testing.assert_array_equal(index.ids(), np.delete(np.arange(601), [7, 8]))
    np.testing.assert_array_equal(index.rows([3, 9]), [50 * queries[0], rows[9]])
    index.save(tmp_path / "index")
    loaded = sublearn.load(tmp_path / "index")
    assert loaded.backend == "faiss"
    np.testing.assert_array_equal(loaded.search(queries, 5)[0], index.search(queries, 5)[0])
    with pytest.raises(ValueError, match="ids must be rows of the index, got 7"):
        loaded.remove([7])
    with pytest.raises(ValueError, match=r"MIPSIndex\.rows: ids must be rows of the index, got 7"):
        loaded.rows([3, 7])
    assert faiss.omp_get_max_threads() == before


def test_a_missing_faiss_is_named(monkeypatch, rows):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ValueError, match=r"backend must be 'sublearn' where faiss is missing"):
        mips(backend="faiss").fit(rows)


def test_kmeans_of_many_rows_takes_batches(rng):
    directions = unit_rows(rng.normal(size=(4, 10)).astype(np.float32))
    rows = directions[rng.integers(4, size=2000)] + 0.05 * rng.normal(size=(2000, 10))
    centres = spherical_kmeans(rows.astype(np.float32), 8, 12, np.random.default_rng(2))
    _, similarity = assign(unit_rows(rows.astype(np.float32)), centres)
    assert similarity.min() > 0.8


@pytest.mark.parametrize("setting", [{}, {"storage": "int8"}, {"backend": "faiss"}])
def test_pickles_and_copies_are_indices_of_their_own(rows, queries, setting):
    if "backend" in setting:
        pytest.importorskip("faiss")
    index = mips(20, **setting).fit(rows)
    index.tune(queries, 5, np.float32(0.9))
    index.remove([7])
    for other in (pickle.loads(pickle.dumps(index)), copy.deepcopy(index)):
        assert (other.n_rows_, other.n_probe_) == (599, index.n_probe_)
        np.testing.assert_array_equal(other.search(queries, 5)[0], index.search(queries, 5)[0])
        assert other.add(rows[:1]) == [600]
    assert index.n_rows_ == 599
    assert clone(index).get_params() == pickle.loads(pickle.dumps(clone(index))).get_params()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda i, X: mips(0).fit(X), r"MIPSIndex\.n_clusters must be"),
        (lambda i, X: mips(601).fit(X), "at most the number of rows, 600, got 601"),
        (lambda i, X: mips(storage="int4").fit(X), r"MIPSIndex\.storage must be"),
        (
            lambda i, X: mips(storage="int8", backend="faiss").fit(X),
            'storage must be "float32" with backend="faiss", got "int8"',
        ),
        (lambda i, X: mips().fit(X[:0]), "must be a matrix with at least one row"),
        (lambda i, X: mips().fit(X * np.nan), "X must have finite numbers, got NaN"),
        (lambda i, X: mips().fit(X[:, :0]), "got no columns"),
        (lambda i, X: mips().fit("rows"), "X must be a dense matrix of real numbers"),
        (lambda i, X: mips().fit(1j * X), "X must be a dense matrix of real numbers"),
        (lambda i, X: i.search(sp.csr_matrix(X)), "queries must be a dense .* <Compressed"),
        (lambda i, X: i.search(X * np.float64(1e60)), "got NaN or infinity in float32"),
        (lambda i, X: i.recall(X[:0]), r"21 columns and at least one row, got shape \(0, 21\)"),
        (lambda i, X: i.tune(X[:0]), r"21 columns and at least one row, got shape \(0, 21\)"),
        (lambda i, X: i.rows([600]), r"MIPSIndex\.rows: ids must be rows of the index, got 600"),
        (lambda i, X: i.search(X, k=601), "k must be an integer from 1 to the 600 rows"),
        (lambda i, X: i.search(X, k=0), "k must be an integer from 1"),
        (lambda i, X: i.search(X[:, :5]), "queries must be a matrix with 21 columns"),
        (lambda i, X: i.search(X, n_probe=0), "n_probe must be"),
        (lambda i, X: i.search_above(X, np.nan), "threshold must be a number, got nan"),
        (lambda i, X: i.tune(X, recall=2), r"recall must be a number in \(0, 1\], got 2"),
        (lambda i, X: i.update([600], X[:1]), "ids must be rows of the index, got 600"),
        (lambda i, X: i.update([1, 1], X[:2]), "ids must differ, got 1 twice"),
        (lambda i, X: i.update([1], X[:2]), "a row for each of 1 ids, got 2"),
        (lambda i, X: i.remove([-1]), r"ids must be in 0 \.\. "),
        (lambda i, X: i.remove([0.5]), "ids must be integers"),
        (lambda i, X: i.add(X[:, :2]), "rows must be a matrix with 21 columns"),
    ],
)
def test_bad_input_is_named(rows, call, message):
    index = mips().fit(rows)
    with pytest.raises(ValueError, match=message):
        call(index, rows)
