"""Estimators inside `cluster`: the models of one machine, to the last bit; what blocks may count
on, and refusals."""

import os

import dask
import dask.array as da
import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV

from sublearn import _core, distributed
from sublearn.distributed import cluster
from sublearn.distributed.shared_files import FileStore, SharedFolder
from sublearn.errors import ParameterError
from sublearn.execution import Hints, map_blocks, n_places_elsewhere
from sublearn.extreme import PPDSparseClassifier
from sublearn.forecast import LoadFeatures, LoadForecaster, LocalKernels
from sublearn.hierarchy import HierarchicalClassifier, HierarchicalMultilabelClassifier, Taxonomy
from sublearn.io import save_svmlight
from sublearn.linear import SparseLogisticRegression

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def assert_same(a, b):
    for left, right in ((a.model_.weights, b.model_.weights),):
        for name in ("data", "indices", "indptr"):
            assert getattr(left, name).tobytes() == getattr(right, name).tobytes()
    assert a.intercept_.tobytes() == b.intercept_.tobytes()
    assert (a.objective_, a.certificate_, a.n_iter_) == (b.objective_, b.certificate_, b.n_iter_)


# --- blocks ------------------------------------------------------------------------------------


def test_blocks_run_on_workers_in_order_and_are_counted_here(client, worker_pids):
    arrived = []
    big = np.arange(100_000)

    def do(k):
        return k, os.getpid(), int(big[k]), big.flags.writeable

    def take(result):
        arrived.append(result[0])
        return result

    with cluster(client) as blocks:
        assert n_places_elsewhere() == 2
        found = map_blocks(do, range(8), hints=Hints(lambda k: k, take))
        assert map_blocks(do, []) == []
        assert map_blocks(lambda _: os.getpid(), [0], stay_here=True) == [os.getpid()]
        assert len(list(blocks.store.path.glob("*.npy"))) == 1  # the array, once
        assert len(blocks.tasks) == 8
        folder = blocks.store.path
    assert n_places_elsewhere() == 0
    assert not folder.exists()
    assert [k for k, *_ in found] == [value for *_, value, _ in found] == list(range(8))
    assert sorted(arrived) == list(range(8))
    assert {pid for _, pid, *_ in found} <= set(worker_pids())
    assert not any(writeable for *_, writeable in found)  # mapped from the file


def test_an_array_that_changed_between_two_calls_is_seen_changed(client):
    values = np.zeros(50_000)
    with cluster(client):
        assert map_blocks(lambda k: values[k], [3]) == [0.0]
        values[3] = 7.0
        assert map_blocks(lambda k: values[k], [3]) == [7.0]


def test_arrays_keep_their_order_and_type(client):
    arrays = [np.asfortranarray(np.arange(40_000.0).reshape(200, 200)),
              np.arange(60_000, dtype=np.int32)[::2], np.ones((300, 300), dtype=bool)]  # fmt: skip

    def look(a):
        return a.dtype.name, a.ndim == 2 and a.flags.f_contiguous, a.sum().item()

    with cluster(client):
        assert map_blocks(look, arrays) == [look(a) for a in arrays]


def test_a_machine_that_does_not_see_the_folder_is_sent_the_files_once(client, tmp_path):
    values = np.arange(30_000)
    with cluster(client, directory=tmp_path) as blocks:
        token = blocks.store.folder.token
        blocks.store.folder = SharedFolder(str(tmp_path / "elsewhere"), token)
        assert map_blocks(lambda k: int(values[k]), [1, 2]) == [1, 2]
        copies = blocks.store.folder.copy
        names = sorted(file.name for file in copies.iterdir())
        assert names == [name for name in blocks.store.names() if not name.startswith(".")]
        for file in copies.iterdir():  # as on a machine that joins later
            file.unlink()
        assert map_blocks(lambda k: int(values[k]) + 1, [1, 2]) == [2, 3]
    assert list(tmp_path.iterdir()) == []


def test_errors_of_files_are_tried_again(client, tmp_path):
    def do(k):
        mark = tmp_path / str(k)
        if not mark.exists():
            mark.touch()
            raise OSError("the network was away")
        return k

    with cluster(client):
        assert map_blocks(do, range(3)) == [0, 1, 2]
    with cluster(client, retries=0), pytest.raises(OSError, match="away"):
        map_blocks(lambda k: do(k + 10), range(3))


def test_refuses_what_is_no_client():
    with pytest.raises(ParameterError, match=r"cluster: client must be a dask.distributed.Client"):
        cluster("tcp://localhost:8786").__enter__()


def test_refuses_a_directory_that_is_no_path(client):
    message = "directory must be a path or None, got 5"
    with pytest.raises(ParameterError, match=message), cluster(client, directory=5):
        pass


def test_refuses_retries_that_are_no_number(client):
    with pytest.raises(ParameterError, match="cluster: retries must be an integer"):
        cluster(client, retries=-1).__enter__()


def test_a_file_store_writes_equal_arrays_once(tmp_path):
    store, a = FileStore(tmp_path), np.arange(20_000.0)
    assert store.save_array(a, {}) == store.save_array(a.copy(), {})
    assert store.save_array(a, {}) != store.save_array(a.astype(np.float32), {})
    store.remove()
    assert list(tmp_path.iterdir()) == []


# --- estimators --------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"loss": "hinge", "search": "sparsified"}])
def test_ppd_sparse_by_labels_is_the_model_of_one_machine(client, labels, options):
    X, Y = labels
    seen = []
    alone = PPDSparseClassifier(random_state=0, **options).fit(X, Y)
    with cluster(client) as blocks:
        together = PPDSparseClassifier(
            random_state=0, callback=lambda e: seen.append(e.n_done), **options
        ).fit(X, Y)
        assert len(blocks.tasks) > 2
    assert_same(together, alone)
    assert seen[-1] == len(np.unique(Y.toarray(), axis=1).T)
    assert together.trace_["objective"][-1] == pytest.approx(alone.trace_["objective"][-1])


def test_ppd_sparse_with_weights_a_start_and_a_file(client, labels, tmp_path):
    X, Y = labels
    weights = np.random.default_rng(0).uniform(0.5, 2, X.shape[0])

    def fit(path):
        model = PPDSparseClassifier(
            random_state=0, warm_start=True, model_path=path, class_weight="balanced"
        ).fit(X, Y, sample_weight=weights)
        return model.set_params(l1=0.05).fit(X, Y, sample_weight=weights)

    alone = fit(None)
    with cluster(client):
        assert_same(fit(tmp_path / "model"), alone)
    assert os.listdir(tmp_path) == ["model"]


def taxonomy_rows():
    taxonomy = Taxonomy.from_paths(["a.x", "a.y", "b.z", "b.w", "c"])
    rng = np.random.default_rng(0)
    y = np.array(["a.x", "a.y", "b.z", "b.w", "c"])[rng.integers(5, size=200)]
    X = taxonomy.encode(y).toarray() + 0.4 * rng.normal(size=(200, taxonomy.n_labels))
    return taxonomy, sp.csr_matrix(X), y


def test_hiclass_by_nodes_and_hml_by_labels(client):
    taxonomy, X, y = taxonomy_rows()
    models = [HierarchicalClassifier(taxonomy),
              HierarchicalClassifier(taxonomy, estimator=SparseLogisticRegression(0.01)),
              HierarchicalMultilabelClassifier(taxonomy, l1=1e-2, random_state=0)]  # fmt: skip
    for model in models:
        targets = y if isinstance(model, HierarchicalClassifier) else [[name] for name in y]
        alone = model.fit(X, targets).predict(X)
        with cluster(client) as blocks:
            together = model.fit(X, targets).predict(X)
            assert len(blocks.tasks) >= 3
        assert list(together) == list(alone)


@pytest.mark.filterwarnings("ignore:.*values of l1 is the least:UserWarning")
def test_sparse_linear_models_by_outputs_and_folds(client):
    _, X, y = taxonomy_rows()
    model = SparseLogisticRegression("cv", l1s=4, cv=3)
    alone = model.fit(X, y).coef_.copy()
    with cluster(client) as blocks:
        together = model.fit(X, y)
        assert len(blocks.tasks) >= 3
    assert together.coef_.tobytes() == alone.tobytes()


def test_the_load_forecaster_by_series_and_hours(client):
    t = np.arange(7 * 8 * 6)
    y = 100 + 20 * np.sin(2 * np.pi * t / 8) + np.random.default_rng(0).normal(0, 1, len(t))
    features = LoadFeatures(lead_blocks=[4, 8], steps_per_day=8, profile_weeks=0)
    kernels = LocalKernels(n_components=20, relevance_rows=40)
    model = LoadForecaster(horizon=8, features=features, kernels=kernels, random_state=0)
    series = np.column_stack([y, 2 * y])
    alone = model.fit(series).predict()
    with cluster(client) as blocks:
        together = model.fit(series).predict()
        assert len(blocks.tasks) == 4
    assert np.asarray(together).tobytes() == np.asarray(alone).tobytes()


def test_grid_search_over_joblibs_dask_backend(client, labels):
    X, Y = labels[0], np.asarray(labels[1][:, :3].argmax(axis=1)).ravel()
    search = GridSearchCV(PPDSparseClassifier(random_state=0), {"l1": [0.05, 0.2]}, cv=2)
    alone = search.fit(X, Y).cv_results_["mean_test_score"]
    with joblib.parallel_config("dask", client=client):
        together = search.fit(X, Y).cv_results_["mean_test_score"]
    np.testing.assert_array_equal(together, alone)


def test_columns_from_a_file_must_be_those_of_X():
    X = sp.csr_matrix(np.array([[1.0, 2.0], [0.0, 3.0]]))
    labels = (np.array([0, 1]), np.array([0], dtype=np.int32))
    data = ((X.indptr, X.indices, X.data), 2, labels, None, None)
    good = [np.array([0, 1, 3]), np.array([0, 0, 1], dtype=np.int32), np.array([1.0, 2.0, 3.0])]
    _core.ppd_problem(*data, good)
    for place, wrong in ((0, [0, 2, 1]), (0, [0, 3]), (1, [0, 0, 2]), (1, [-1, 0, 1]), (2, [1.0])):
        lists = [part.copy() for part in good]
        lists[place] = np.array(wrong, dtype=good[place].dtype)
        with pytest.raises(ValueError, match="list"):
            _core.ppd_problem(*data, lists)


# --- prediction --------------------------------------------------------------------------------


def test_predictions_by_blocks_are_those_of_one_call(client, labels, tmp_path):
    X, Y = labels
    model = PPDSparseClassifier(random_state=0).fit(X, Y)
    files = []
    for k in range(3):
        files.append(tmp_path / f"rows-{k}.svm")
        save_svmlight(files[-1], X[k::3], Y[k::3])
    with cluster(client) as blocks:
        ids, scores = distributed.predict(model, X, method="predict_top_k", k=3, rows_per_block=90)
        sets = distributed.predict(model, X, rows_per_block=150)
        n_tasks = len(blocks.tasks)
        shards = distributed.predict_files(
            model, files, tmp_path / "out", n_features=300, method="predict_top_k", k=2
        )
        shards[1].unlink()
        again = distributed.predict_files(
            model, files, tmp_path / "out", n_features=300, method="predict_top_k", k=2
        )
        assert len(blocks.tasks) == n_tasks + 3 + 1  # shards that exist are kept
    alone = model.predict_top_k(X, k=3)
    np.testing.assert_array_equal(ids, alone[0])
    np.testing.assert_array_equal(scores, alone[1])
    assert (sets != model.predict(X)).nnz == 0
    assert again == shards
    np.testing.assert_array_equal(
        np.load(shards[1])["values_0"], model.predict_top_k(X[1::3], k=2)[0]
    )


def test_chunks_of_a_dask_array_are_predicted_where_they_are(client, labels):
    X, Y = labels
    model = PPDSparseClassifier(random_state=0).fit(X, Y)
    parts = [X[:100], X[100:]]
    chunks = [
        da.from_delayed(dask.delayed(part), part.shape, dtype=X.dtype, meta=X[:0]) for part in parts
    ]
    rows = da.concatenate(chunks)
    ids, scores = distributed.predict(model, rows, method="predict_top_k", k=3)
    alone = model.predict_top_k(X, k=3)
    np.testing.assert_array_equal(ids, alone[0])
    np.testing.assert_array_equal(scores, alone[1])
    dense = da.from_array(X.toarray(), chunks=(90, -1))
    assert (distributed.predict(model, dense) != model.predict(X)).nnz == 0
    with pytest.raises(ParameterError, match="predict: X must have one block of columns"):
        distributed.predict(model, dense.rechunk((90, 150)))


def test_predict_refuses_what_a_model_lacks(labels):
    model = PPDSparseClassifier()
    with pytest.raises(ParameterError, match=r"predict: method must be one of PPDSparse"):
        distributed.predict(model, labels[0], method="transform")
    with pytest.raises(ParameterError, match="rows_per_block must be a positive integer"):
        distributed.predict(model, labels[0], rows_per_block=0)
    with pytest.raises(ParameterError, match="predict: X must have rows, got 5"):
        distributed.predict(model, 5)


@pytest.mark.filterwarnings("error:X does not have valid feature names")
def test_blocks_of_a_frame_keep_the_names_of_its_columns():
    frame = pytest.importorskip("pandas").DataFrame(np.eye(4), columns=list("abcd"))
    model = PPDSparseClassifier().fit(frame, [0, 1, 2, 3])
    found = distributed.predict(model, frame, rows_per_block=3)
    np.testing.assert_array_equal(found, model.predict(frame))


def test_shards_of_lists_of_labels_have_bounds(tmp_path):
    X = np.eye(4)
    model = PPDSparseClassifier(l1=0.001).fit(X, [["a"], ["b"], ["a", "b"], []])
    save_svmlight(tmp_path / "rows.svm", sp.csr_matrix(X), np.zeros(4))
    (shard,) = distributed.predict_files(
        model, tmp_path / "rows.svm", tmp_path / "out", n_features=4
    )
    with np.load(shard) as stored:
        parts = np.split(stored["values_0"], stored["values_1"][1:-1])
    expected = model.predict(X)
    assert sorted(map(len, expected)) != [len(expected[0])] * 4
    assert [part.tolist() for part in parts] == [list(labels) for labels in expected]
