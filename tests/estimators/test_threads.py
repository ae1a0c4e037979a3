"""One object, many threads: changes take turns, searches go on beside them, nothing is torn."""

import copy
import pickle
import threading
import time

import numpy as np
import pytest
from sklearn.base import clone

import sublearn
from sublearn.embed import (
    DenseExtremeClassifier,
    EmbeddingExtremeClassifier,
    LabelSearch,
    MIPSIndex,
    SkipGram,
)
from sublearn.errors import ParameterError
from sublearn.extreme import PPDSparseClassifier
from sublearn.trace import Solution, Status, Trace

N_THREADS = 16
SECONDS = 1.0


def run_all(*tasks, seconds=SECONDS):
    """Each task again and again on threads of its own, with a generator; raises what one raised."""
    errors, end = [], time.monotonic() + seconds

    def work(task, seed):
        rng = np.random.default_rng(seed)
        try:
            while time.monotonic() < end and not errors:
                task(rng)
        except BaseException as error:
            errors.append(error)

    threads = [
        threading.Thread(target=work, args=(tasks[i % len(tasks)], i)) for i in range(N_THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.fixture
def index():
    return MIPSIndex(random_state=0).fit(np.random.default_rng(0).normal(size=(400, 20)))


def test_an_index_is_searched_beside_changes(index):
    def search(rng):
        queries = rng.normal(size=(4, 20)).astype(np.float32)
        ids, scores = index.search(queries, 5, n_probe=None if rng.random() < 0.5 else 3)
        assert (ids >= 0).all()
        assert (np.diff(scores, axis=1) <= 0).all()
        index.search_above(queries, 2.0)

    def change(rng):
        ids = index.add(rng.normal(size=(10, 20)))
        rows = rng.normal(size=(5, 20)).astype(np.float32)
        index.update(ids[:5], rows)
        np.testing.assert_array_equal(index.rows(ids[:5]), rows)
        index.remove(ids)

    def copy_it(rng):
        again = pickle.loads(pickle.dumps(index))
        assert again.n_rows_ >= 400

    run_all(search, change, search, copy_it)
    np.testing.assert_array_equal(index.ids(), np.arange(400))
    assert index.n_rows_ == 400


def test_rows_added_by_many_threads_have_ids_of_their_own(index):
    found = []
    run_all(lambda rng: found.append(index.add(rng.normal(size=(3, 20)))), seconds=0.3)
    ids = np.concatenate(found)
    assert len(np.unique(ids)) == len(ids)
    assert index.n_rows_ == 400 + len(ids)


def test_a_search_for_more_rows_than_are_left_is_refused(index):
    index.remove(np.arange(399))
    with pytest.raises(ParameterError, match="k must be an integer from 1 to the 1 rows"):
        index.search(np.ones(20), 2)


FEW = LabelSearch(n_candidates=5)
LAYERS = {
    "dense": DenseExtremeClassifier(max_iter=1, random_state=0, search=FEW),
    "embedding": EmbeddingExtremeClassifier(8, max_iter=1, random_state=0, search=FEW),
}


@pytest.mark.parametrize("kind", LAYERS)
def test_partial_fits_from_many_threads_come_one_after_another(kind):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 10)).astype(np.float32), rng.integers(30, size=60)
    model = clone(LAYERS[kind]).partial_fit(X, y, classes=np.arange(30))
    calls = []

    def learn(rng):
        model.partial_fit(X, y)
        calls.append(1)

    run_all(learn, lambda rng: model.predict(X))
    assert model.n_iter_ == len(model.trace_) == len(calls) + 1
    assert np.isfinite(model.weights_).all()


def test_word_vectors_learn_from_many_threads():
    words = np.array([f"w{i}" for i in range(20)])
    texts = [words[row].tolist() for row in np.random.default_rng(0).integers(20, size=(50, 6))]
    model = SkipGram(n_components=4, min_count=1, max_iter=1, subsample=None, random_state=0).fit(
        texts
    )
    run_all(lambda rng: model.partial_fit(texts), lambda rng: model.transform([["w1"]]))
    assert np.isfinite(model.vectors_).all()


def test_labels_come_and_go_from_many_threads():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6))
    model = PPDSparseClassifier(random_state=0).fit(X, [[f"c{k % 3}"] for k in range(30)])

    def add_and_remove(rng):
        name = f"t{threading.get_ident()}"
        model.partial_fit(X, [[name] if k % 2 else ["c0"] for k in range(30)])
        model.remove_labels([name])

    run_all(add_and_remove)
    assert model.classes_.tolist() == ["c0", "c1", "c2"]
    assert model.coef_.shape == (3, 6)


def test_locks_are_no_part_of_copies_and_files(index, tmp_path):
    index.save(tmp_path / "index.sublearn")
    others = [copy.copy(index), copy.deepcopy(index), pickle.loads(pickle.dumps(index))]
    for other in [*others, sublearn.load(tmp_path / "index.sublearn")]:
        assert len(other.add(np.ones((2, 20)))) == 2
    assert not hasattr(clone(index), "n_rows_")


@pytest.mark.parametrize(("objective", "certificate"), [(1.0, np.nan), (np.nan, 0.1), (np.inf, 0)])
def test_figures_that_say_nothing_are_refused(objective, certificate):
    with pytest.raises(FloatingPointError, match="the objective must be finite, got"):
        Solution(Status.CONVERGED, objective, certificate, 1, Trace({}))
