"""PairwiseMultilabelSVM as an estimator: scikit-learn's contract, forms of labels, files."""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from label_problems import multilabel
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import hamming_loss
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import Normalizer

from sublearn import _core
from sublearn.errors import ParameterError
from sublearn.io import load_dataset
from sublearn.structured import PairwiseMultilabelSVM

DATA = Path(os.environ.get("SUBLEARN_DATA", "no data"))


def svm(**options):
    return PairwiseMultilabelSVM(**({"random_state": 0} | options))


def dependent(n_rows=200, seed=0):
    """Two labels of one topic, or two of the other; a noisy feature for each label."""
    rng = np.random.default_rng(seed)
    topic = rng.integers(0, 2, n_rows)
    Y = np.repeat(np.eye(2, dtype=int)[topic], 2, axis=1)
    return Y - 0.5 + rng.normal(size=(n_rows, 4)), Y


def test_labels_that_go_together_attract_and_those_that_do_not_repel():
    X, Y = dependent()
    V = svm(tol=1e-3, max_iter=1000).fit(X, Y).interactions_.toarray()
    assert V[0, 1] >= 0.0  # at the optimum the repulsions are enough for one of the two
    assert V[2, 3] > 0.05
    assert max(V[0, 2], V[0, 3], V[1, 2], V[1, 3]) < -0.005


def test_pairs_make_sets_that_occur():
    X, Y = dependent()
    fitted = svm().fit(X, Y)
    assert fitted.score(X, Y) > svm(pairs="none").fit(X, Y).score(X, Y)
    known = {tuple(y) for y in Y}
    assert {tuple(y) for y in fitted.predict(X)} <= known


def test_predictions_come_in_the_form_of_the_labels():
    X, Y = dependent()
    names = np.array(["a", "b", "c", "d"])
    lists = [names[y == 1].tolist() for y in Y]
    dense, sparse, listed = (svm().fit(X, y).predict(X) for y in (Y, sp.csc_matrix(Y), lists))
    assert isinstance(dense, np.ndarray)
    assert sp.issparse(sparse)
    np.testing.assert_array_equal(dense, sparse.toarray())
    assert listed == [names[y == 1].tolist() for y in dense]
    model = svm().fit(X, lists)
    assert model.score(X, lists) == svm().fit(X, Y).score(X, Y)
    with pytest.raises(ValueError, match="must be a list of label lists, as in fit"):
        model.score(X, Y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_model_does_not_depend_on_threads_or_index_width(dtype):
    X, Y = multilabel()
    X = X.astype(dtype)
    long = X.copy()
    long.indices, long.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    one = svm().fit(X, Y)
    assert one.coef_.dtype == one.interactions_.dtype == dtype
    for model in (svm(n_jobs=2).fit(X, Y), svm().fit(long, Y)):
        assert (model.coef_ != one.coef_).nnz == 0
        assert (model.interactions_ != one.interactions_).nnz == 0
        assert model.objective_ == one.objective_
        np.testing.assert_array_equal(model.predict(X), one.predict(X))


def test_rows_without_features_and_rows_without_labels_are_fine():
    X, Y = multilabel(n_rows=60, n_labels=6)
    X = sp.vstack([X, sp.csr_matrix((3, X.shape[1]))]).tocsr()
    Y = np.vstack([Y, np.zeros((3, 6), dtype=bool)])
    Y[:5] = True
    for fit_intercept in (True, False):
        model = svm(fit_intercept=fit_intercept, max_iter=300).fit(X, Y)
        assert model.certificate_ <= 0.01
        assert model.predict(X).shape == Y.shape


def test_one_label_alone():
    X, Y = multilabel(n_rows=50)
    model = svm().fit(X, [["only"] if y else [] for y in Y.any(axis=1)])
    assert model.interactions_.nnz == 0
    assert set(map(tuple, model.predict(X))) <= {(), ("only",)}


def test_too_few_passes_are_a_warning():
    X, Y = multilabel()
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        svm(max_iter=1, tol=1e-6).fit(X, Y)


def test_grid_search_chooses_a_penalty():
    X, Y = dependent()
    search = GridSearchCV(svm(), {"pair_penalty": [0.1, 10.0]}, cv=2).fit(X, Y)
    assert search.best_params_["pair_penalty"] in (0.1, 10.0)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("C", 0.0), ("pair_penalty", -1.0), ("pairs", "some"), ("tol", 0.0), ("max_iter", 0),
     ("evaluate_every", 0), ("fit_intercept", 2)],
)  # fmt: skip
def test_refuses_wrong_parameters(parameter, value):
    X, Y = dependent(20)
    with pytest.raises(ParameterError, match=f"PairwiseMultilabelSVM.{parameter} must be"):
        svm(**{parameter: value}).fit(X, Y)


def test_refuses_labels_from_which_nothing_can_be_learnt():
    X, Y = dependent(20)
    with pytest.raises(ValueError, match="must assign at least one label"):
        svm().fit(X, np.zeros_like(Y))
    with pytest.raises(ValueError, match="one row per sample"):
        svm().fit(X, Y[:-1])


def test_the_core_refuses_pairs_of_a_label_with_itself():
    diagonal = sp.identity(3, format="csr")
    with pytest.raises(ValueError, match="must not pair a label with itself"):
        _core.best_label_sets(
            np.zeros((1, 3)), diagonal.indptr.astype(np.int64), diagonal.indices.astype(np.int64),
            diagonal.data, 10, 1,
        )  # fmt: skip


@pytest.mark.skipif(not (DATA / "yeast").exists(), reason="needs SUBLEARN_DATA")
def test_pairs_help_on_genes_of_yeast():
    train, test = (
        load_dataset(DATA / "yeast" / f"yeast-{part}.arff.xz", labels=DATA / "yeast" / "yeast.xml")
        for part in ("train", "test")
    )
    X, X_test = (Normalizer().fit_transform(part.X) for part in (train, test))
    together, apart = (svm(pairs=pairs).fit(X, train.Y) for pairs in ("all", "none"))
    assert together.score(X_test, test.Y) > apart.score(X_test, test.Y) + 0.03
    losses = [hamming_loss(test.Y, model.predict(X_test)) for model in (together, apart)]
    assert losses[0] < losses[1] + 0.002
