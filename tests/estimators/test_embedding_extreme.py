"""EmbeddingExtremeClassifier: scikit-learn's contract, both layers learn, files."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from sublearn.embed import EmbeddingExtremeClassifier

embedding = partial(EmbeddingExtremeClassifier, random_state=0)


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


@pytest.mark.parametrize("rate", [1e19, 1e30, 1e37])
@pytest.mark.parametrize("loss", ["softmax", "triplet"])
def test_a_gradient_that_is_not_finite_ends_the_fit_with_the_last_good_model(rate, loss):
    X, y = texts()
    model = embedding(8, optimizer="sgd", loss=loss, learning_rate=rate, max_iter=20)
    with pytest.warns(ConvergenceWarning, match="not finite in epoch .* Lower learning"):
        model.fit(X, y)
    assert np.isfinite(model.weights_).all()
    assert np.isfinite(model.embeddings_).all()
