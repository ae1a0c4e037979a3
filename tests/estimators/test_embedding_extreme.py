"""EmbeddingExtremeClassifier: scikit-learn's contract, both layers learn, files."""

import pickle
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

import sublearn
from sublearn.embed import EmbeddingExtremeClassifier
from sublearn.validation import assert_rules_complete

embedding = partial(EmbeddingExtremeClassifier, random_state=0)


@parametrize_with_checks([embedding(10, max_iter=30, learning_rate=0.3)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def texts(n_topics=40, n_rows=1500, seed=0):
    """Each topic has four words of its own; a text has two of them, and two of 100 others."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_topics, size=n_rows)
    own = 4 * y[:, None] + rng.permuted(np.tile(np.arange(4), (n_rows, 1)), axis=1)[:, :2]
    other = 4 * n_topics + rng.integers(100, size=(n_rows, 2))
    words = np.hstack([own, other])
    shape = (n_rows, 4 * n_topics + 100)
    X = sp.csr_matrix((np.ones(words.size), words.ravel(), np.arange(0, words.size + 1, 4)), shape)
    X.sum_duplicates()
    return X, y


@pytest.mark.parametrize("gradient", ["exact", "sampled", "mips", "decomposed"])
def test_learns_end_to_end(gradient):
    X, y = texts()
    model = embedding(20, gradient=gradient).fit(X, y)
    assert model.score(X, y) > 0.97


def test_words_of_one_topic_are_near_each_other():
    X, y = texts()
    words = embedding(20).fit(X, y).embeddings_[:160]
    words = words / np.linalg.norm(words, axis=1, keepdims=True)
    cosines = words @ words.T
    same = np.arange(160)[:, None] // 4 == np.arange(160) // 4
    assert cosines[same].mean() > cosines[~same].mean() + 0.5


def test_a_document_is_the_sum_of_its_words():
    X, y = texts()
    model = embedding(20, max_iter=1).fit(X, y)
    np.testing.assert_allclose(model.embed(X[:5]), X[:5] @ model.embeddings_, atol=1e-5)


def test_the_model_does_not_depend_on_the_threads():
    X, y = texts(n_rows=600)
    one, three = (embedding(20, max_iter=3, n_jobs=n).fit(X, y) for n in (1, 3))
    np.testing.assert_array_equal(one.weights_, three.weights_)
    np.testing.assert_array_equal(one.embeddings_, three.embeddings_)


def test_a_loaded_model_predicts_the_same_and_goes_on(tmp_path):
    X, y = texts(n_rows=600)
    model = embedding(20, max_iter=2).fit(X, y)
    model.save(tmp_path / "model")
    for other in (sublearn.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.decision_function(X), model.decision_function(X))
        other.partial_fit(X, y)
        assert other.n_iter_ == 3


def test_every_parameter_has_a_rule():
    assert_rules_complete(embedding())


@pytest.mark.parametrize("rate", [1e19, 1e30, 1e37])
@pytest.mark.parametrize("loss", ["softmax", "triplet"])
def test_a_gradient_that_is_not_finite_ends_the_fit_with_the_last_good_model(rate, loss):
    X, y = texts()
    model = embedding(8, optimizer="sgd", loss=loss, learning_rate=rate, max_iter=20)
    with pytest.warns(ConvergenceWarning, match="not finite in epoch .* Lower learning"):
        model.fit(X, y)
    assert np.isfinite(model.weights_).all()
    assert np.isfinite(model.embeddings_).all()
