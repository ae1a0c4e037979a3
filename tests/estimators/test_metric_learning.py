"""Losses of distances: gradients against NumPy, nearest proxies, files, older files."""

import pickle

import numpy as np
import pytest

import sublearn
from sublearn.embed import DenseExtremeClassifier, EmbeddingExtremeClassifier, LabelSearch
from sublearn.embed.distances import BlockLift, lifted_queries, lifted_rows
from sublearn.embed.layer_training import LabelRows, LayerTrainer
from sublearn.errors import ParameterError

METRICS = ("nca", "metric_triplet")


def distances(X, W):
    return -((X[:, None] - W) ** 2).sum(axis=2)


def rings(n=600, n_labels=6, seed=0):
    """Two of eight numbers say the label; the others are larger noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_labels, size=n)
    corners = 2 * np.stack([np.cos(np.arange(n_labels)), np.sin(np.arange(n_labels))], axis=1)
    X = np.hstack([corners[y] + 0.2 * rng.normal(size=(n, 2)), 3 * rng.normal(size=(n, 6))])
    return X.astype(np.float32), y


def recall_at_1(rows, y):
    scores = distances(rows, rows)
    np.fill_diagonal(scores, -np.inf)
    return np.mean(y[scores.argmax(axis=1)] == y)


@pytest.fixture
def points():
    rng = np.random.default_rng(1)
    return rng.normal(size=(9, 5)), rng.normal(size=(7, 5))


def test_lifted_inner_products_are_distances(points):
    X, W = points
    np.testing.assert_allclose(lifted_queries(X) @ lifted_rows(W).T, distances(X, W), atol=1e-12)
    for n_blocks in (1, 2, 5, 9):
        lift = BlockLift(5, n_blocks)
        rows, queries = lift.rows(lifted_rows(W)), lift.queries(lifted_queries(X))
        assert rows.shape[1] == lift.width
        np.testing.assert_allclose(queries @ rows.T, distances(X, W), atol=1e-12)
        np.testing.assert_allclose(lift.back(rows), lifted_rows(W))


@pytest.mark.parametrize("gradient", ["exact", "mips", "decomposed"])
@pytest.mark.parametrize("loss", METRICS)
def test_a_step_follows_the_gradient_of_the_distances(loss, gradient, points):
    X, W = points
    y = np.arange(9) % 7
    labels = LabelRows(np.arange(10), y.astype(np.int32))
    search = LabelSearch(2, 10**6, 10**6, min_gradient=0)
    trainer = LayerTrainer(
        lifted_rows(W), np.random.default_rng(0), loss=loss, gradient=gradient, search=search,
        n_threads=1,
    )  # fmt: skip
    settings = trainer.prepare(np.inf)
    losses, *_, slopes = trainer.layer.differentiate(
        trainer.inputs(lifted_queries(X)), labels, settings, 0
    )
    trainer.layer.move_rows(settings, 1.0)

    z = distances(X, W)
    if loss == "nca":
        share = np.exp(z - z.max(axis=1, keepdims=True))
        g = share / share.sum(axis=1, keepdims=True)
        value = np.log(np.exp(z).sum(axis=1)) - z[np.arange(9), y]
    else:
        violation = 1 + z - z[np.arange(9), y][:, None]
        g = (violation > 0).astype(float)
        g[np.arange(9), y] = 0
        value = (violation * g).sum(axis=1)
    g[np.arange(9), y] = g[np.arange(9), y] - 1 if loss == "nca" else -g.sum(axis=1)
    by_rows = 2 * (g.T @ X - g.sum(axis=0)[:, None] * W)
    by_features = 2 * (g @ W - g.sum(axis=1)[:, None] * X)
    np.testing.assert_allclose(losses, value, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(
        trainer.weights(), lifted_rows(W - by_rows / 9), rtol=1e-3, atol=1e-3
    )
    np.testing.assert_allclose(trainer.slopes(slopes, lifted_queries(X)), by_features, atol=1e-3)


@pytest.mark.parametrize("loss", METRICS)
def test_neighbours_in_the_learned_space_have_the_same_label(loss):
    X, y = rings()
    model = EmbeddingExtremeClassifier(
        2, loss=loss, max_iter=30, batch_size=32, random_state=0, search=LabelSearch(n_warm=0)
    )
    model.fit(X[:400], y[:400])
    assert recall_at_1(X[400:], y[400:]) < 0.6
    assert recall_at_1(model.embed(X[400:]), y[400:]) > 0.9


@pytest.mark.parametrize("loss", METRICS)
def test_the_nearest_proxy_is_the_answer(loss):
    X, y = rings()
    model = DenseExtremeClassifier(loss, random_state=0).fit(X, y)
    rows = (X - model.centre_) / model.scale_
    expected = distances(rows, model.proxies_)
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(model.predict(X), expected.argmax(axis=1))
    assert not hasattr(model, "coef_")
    assert not hasattr(DenseExtremeClassifier(random_state=0).fit(X, y), "proxies_")


def test_nca_is_no_other_name_of_softmax():
    X, y = rings()
    softmax, nca = (
        DenseExtremeClassifier(loss, random_state=0).fit(X, y) for loss in ("softmax", "nca")
    )
    assert softmax.scores_ == "inner_products"
    assert nca.scores_ == "distances"
    assert np.abs(softmax.decision_function(X) - nca.decision_function(X)).max() > 0.1


def test_a_metric_is_saved_loaded_and_goes_on(tmp_path):
    X, y = rings()
    model = EmbeddingExtremeClassifier(3, loss="nca", max_iter=3, random_state=0).fit(X, y)
    model.save(tmp_path / "metric")
    for other in (sublearn.load(tmp_path / "metric"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.decision_function(X), model.decision_function(X))
        np.testing.assert_array_equal(other.proxies_, model.proxies_)
        other.partial_fit(X, y)
        np.testing.assert_allclose(lifted_rows(other.proxies_), other.weights_, rtol=1e-5)


def test_nca_of_earlier_files_is_the_softmax_that_it_was(tmp_path):
    X, y = rings()
    model = DenseExtremeClassifier(random_state=0).fit(X, y)
    state = model._to_bundle()
    del state["scores_"]
    old = DenseExtremeClassifier("nca", random_state=0)
    old._restore(state)
    assert (old.loss, old.scores_) == ("softmax", "inner_products")
    np.testing.assert_array_equal(old.decision_function(X), model.decision_function(X))


def test_a_stream_keeps_its_kind_of_scores():
    X, y = rings()
    model = DenseExtremeClassifier("nca", random_state=0).partial_fit(X, y)
    with pytest.raises(ParameterError, match="loss must be one of distances in partial_fit"):
        model.set_params(loss="softmax").partial_fit(X, y)
