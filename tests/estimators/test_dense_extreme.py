"""DenseExtremeClassifier: scikit-learn's contract, ways to find candidates, odd input, files."""

import pickle
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import sublearn
from sublearn import _core
from sublearn.embed import DenseExtremeClassifier, LabelSearch
from sublearn.embed.class_means import nearest_means
from sublearn.embed.layer_training import LabelRows, LayerTrainer
from sublearn.embed.padding import padded
from sublearn.errors import ParameterError

GRADIENTS = ("exact", "sampled", "mips", "decomposed")
LOSSES = ("softmax", "margin", "triplet", "smoothed_margin")
dense = partial(DenseExtremeClassifier, random_state=0)


def identities(n_labels=300, n_rows=3000, dim=20, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_labels, dim))
    y = rng.integers(n_labels, size=n_rows)
    y[:n_labels] = np.arange(n_labels)
    return (centres[y] + 0.3 * rng.normal(size=(n_rows, dim))).astype(np.float32), y


def tags(n_labels=60, n_rows=800, dim=20, seed=0):
    """Rows are sums of the directions of one to three labels."""
    rng = np.random.default_rng(seed)
    Y = np.zeros((n_rows, n_labels), dtype=int)
    for row in Y:
        row[rng.choice(n_labels, rng.integers(1, 4), replace=False)] = 1
    X = Y @ rng.normal(size=(n_labels, dim)) + 0.1 * rng.normal(size=(n_rows, dim))
    return X.astype(np.float32), Y


# --- learning --------------------------------------------------------------------------------


@pytest.mark.parametrize("gradient", GRADIENTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_learns_whatever_the_loss_and_the_gradient(loss, gradient):
    X, y = identities()
    model = dense(loss, gradient).fit(X, y)
    assert model.score(X, y) > 0.97


@pytest.mark.parametrize(("optimizer", "rate"), [("sgd", 200.0), ("adagrad", 0.5), ("adam", 0.05)])
def test_every_step_rule_lowers_the_loss(optimizer, rate):
    X, y = identities()
    model = dense(optimizer=optimizer, learning_rate=rate, search=LabelSearch(n_warm=0))
    for _ in range(10):  # `fit` begins where little is left to lower
        model.partial_fit(X, y)
    assert model.trace_["objective"][-1] < 0.2 * model.trace_["objective"][0]


@pytest.mark.parametrize("gradient", GRADIENTS)
def test_ranks_several_labels_per_sample(gradient):
    X, Y = tags()
    model = dense(gradient=gradient, max_iter=20).fit(X, Y)
    best = model.predict_top_k(X, k=1)[0][:, 0]
    assert Y[np.arange(len(Y)), best].mean() > 0.9
    predicted = model.predict(X)
    assert predicted.shape == Y.shape
    assert 0.5 < predicted.sum() / Y.sum() < 2


def test_labels_may_be_lists_or_sparse_and_give_one_model():
    X, Y = tags()
    from_dense = dense(max_iter=2).fit(X, Y)
    from_sparse = dense(max_iter=2).fit(X, sp.csr_matrix(Y))
    lists = [np.flatnonzero(row).tolist() for row in Y]
    from_lists = dense(max_iter=2).fit(X, lists)
    np.testing.assert_array_equal(from_dense.weights_, from_sparse.weights_)
    np.testing.assert_array_equal(from_dense.weights_, from_lists.weights_)
    assert isinstance(from_lists.predict(X[:3])[0], list)
    assert sp.issparse(from_sparse.predict(X[:3]))


# --- gradients against their definition --------------------------------------------------------


def trainer(X, y, gradient, loss="softmax", min_gradient=0.0):
    weights = np.random.default_rng(1).normal(size=(len(np.unique(y)), X.shape[1]))
    many = 10**6
    search = LabelSearch(3, many, many, many, min_gradient=min_gradient)
    options = {"loss": loss, "gradient": gradient, "search": search, "n_threads": 1}
    return weights, LayerTrainer(weights, np.random.default_rng(0), **options)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("gradient", ["exact", "mips", "sampled"])
def test_candidates_that_are_all_labels_give_the_exact_step(loss, gradient):
    """One SGD step moves W by -rate times the mean of g_ik x_i, with g from the full scores."""
    X, y = identities(n_labels=40, n_rows=50)
    weights, layer = trainer(X, y, gradient, loss)
    settings = layer.prepare(np.inf)
    expected = np.zeros_like(weights)
    for x, label in zip(X.astype(np.float64), y, strict=True):
        order = np.r_[label, np.delete(np.arange(40), label)]
        slopes = np.empty(40)
        _core.output_loss(loss, 1.0, (weights @ x)[order], 1, slopes)
        expected[order] += slopes[:, None] * x / len(X)
    labels = LabelRows(np.arange(51), y.astype(np.int32))
    layer.layer.differentiate(padded(X), labels, settings, 0)
    layer.layer.move_rows(settings, 1.0)
    np.testing.assert_allclose(layer.weights(), weights - expected, atol=1e-4)


@pytest.mark.parametrize("loss", ["softmax", "smoothed_margin"])
def test_blocks_find_what_matters(loss):
    """With all clusters and many candidates, only gradients below `min_gradient` are left out."""
    X, y = identities(n_labels=200, n_rows=200)
    _, layer = trainer(X, y, "decomposed", loss, min_gradient=1e-3)
    settings = (layer.prepare(np.inf), layer.settings("exact"))
    labels = LabelRows(np.arange(201), y.astype(np.int32))
    found, exact = (layer.mean_loss(padded(X), labels, one) for one in settings)
    assert found == pytest.approx(exact, rel=0.02)
    assert found <= exact + 1e-4


def test_gradients_of_features_are_finite_differences():
    X, y = identities(n_labels=30, n_rows=30)
    _, layer = trainer(X, y, "exact")
    labels = LabelRows(np.arange(31), y.astype(np.int32))
    settings = layer.settings("exact")

    def losses(rows):
        return layer.layer.differentiate(padded(rows), labels, settings, 0)

    slopes = losses(X)[4]
    step = np.zeros_like(X)
    step[:, 3] = 1e-2
    numeric = (losses(X + step)[0] - losses(X - step)[0]) / 2e-2
    np.testing.assert_allclose(slopes[:, 3], numeric, atol=2e-2)


# --- prediction --------------------------------------------------------------------------------


def test_prediction_through_the_index_has_the_recall_that_was_asked_for():
    X, y = identities(n_labels=2500, n_rows=6000)
    model = dense(max_iter=4, search=LabelSearch(recall=0.9)).fit(X, y)
    assert model.recall_ >= 0.9
    truth, _ = model.predict_top_k(X[:200], k=5, exact=True)
    found, scores = model.predict_top_k(X[:200], k=5)
    share = np.mean([len(np.intersect1d(a, b)) / 5 for a, b in zip(found, truth, strict=True)])
    assert share > 0.8
    assert (np.diff(scores, axis=1) <= 0).all()


def test_scores_are_weights_times_features():
    X, y = identities(n_labels=30, n_rows=300)
    model = dense(max_iter=2).fit(X, y)
    expected = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-3, atol=1e-2)
    labels, scores = model.predict_top_k(X, k=3)
    np.testing.assert_array_equal(labels[:, 0], model.predict(X))
    np.testing.assert_allclose(scores, -np.sort(-expected, axis=1)[:, :3], rtol=1e-3, atol=1e-2)


# --- scales and starts ---------------------------------------------------------------------------


@pytest.mark.parametrize(("factor", "shift"), [(10.0, 0.0), (1e-3, 0.0), (50.0, 1000.0)])
def test_the_scale_of_the_features_does_not_matter(factor, shift):
    X, y = identities(n_labels=400, n_rows=2400)
    moved = factor * X.astype(np.float64) + shift
    model, other = dense(max_iter=3).fit(X, y), dense(max_iter=3).fit(moved, y)
    assert model.score(X, y) > 0.99
    assert (other.predict(moved) == model.predict(X)).mean() > 0.99
    np.testing.assert_allclose(other.scale_, factor * model.scale_, rtol=1e-3)


def means_of(X, y, n_labels):
    """Means with one row at 0 besides, as a loop."""
    return np.stack([X[y == k].sum(axis=0) / ((y == k).sum() + 1) for k in range(n_labels)])


def test_a_fit_begins_at_the_nearest_means():
    X, y = identities(n_labels=40, n_rows=200, dim=12)
    X = X / 5
    labels = LabelRows(np.arange(201), y.astype(np.int32))
    start = nearest_means(X, labels, 40, np.random.default_rng(0), has_intercept=True)
    means = means_of(X, y, 40)
    scale = start[:, -1].sum() / (-0.5 * (means**2).sum())
    np.testing.assert_allclose(start[:, :-1], scale * means, rtol=1e-3, atol=1e-5)
    distances = ((X[:, None] - means) ** 2).sum(axis=2)
    scores = X @ start[:, :-1].T + start[:, -1]
    np.testing.assert_array_equal(scores.argmax(axis=1), distances.argmin(axis=1))


def test_the_scale_of_the_start_is_the_best_for_rows_left_out():
    X, y = identities(n_labels=20, n_rows=120, dim=6)
    X = (X + 1.5 * np.random.default_rng(1).normal(size=X.shape)).astype(np.float32) / 5
    labels = LabelRows(np.arange(121), y.astype(np.int32))
    start = nearest_means(X, labels, 20, np.random.default_rng(0), has_intercept=True)
    scale = start[:, -1].sum() / (-0.5 * (means_of(X, y, 20) ** 2).sum())

    def loss(c):
        total = 0.0
        for i, (row, label) in enumerate(zip(X, y, strict=True)):
            means = means_of(X, y, 20)
            others = np.delete(np.arange(120), i)
            means[label] = means_of(X[others], y[others], 20)[label]
            z = c * (means @ row - 0.5 * (means**2).sum(axis=1))
            total += np.log(np.exp(z).sum()) - z[label]
        return total

    assert loss(scale) < min(loss(0.8 * scale), loss(1.25 * scale), loss(0.0))


def test_means_that_say_nothing_give_no_start():
    X = np.zeros((30, 4), np.float32)
    labels = LabelRows(np.arange(31), np.arange(30, dtype=np.int32) % 3)
    for has_intercept in (False, True):
        start = nearest_means(X, labels, 5, np.random.default_rng(0), has_intercept=has_intercept)
        np.testing.assert_array_equal(start, np.zeros((5, 4 + has_intercept)))


def test_rows_of_length_ten_with_few_samples_are_as_good_as_their_means():
    rng = np.random.default_rng(3)
    y = np.tile(np.arange(1000), 6)
    X = rng.normal(size=(1000, 32))[y] + 0.7 * rng.normal(size=(6000, 32))
    X *= 10 / np.linalg.norm(X, axis=1, keepdims=True)
    model = dense(max_iter=3).fit(X[:5000], y[:5000])
    means = np.stack([X[:5000][y[:5000] == k].mean(axis=0) for k in range(1000)])
    nearest = (X[5000:] @ means.T - 0.5 * (means**2).sum(axis=1)).argmax(axis=1)
    assert model.score(X[5000:], y[5000:]) >= (nearest == y[5000:]).mean() - 0.005


@pytest.mark.parametrize("optimizer", ["sgd", "adagrad", "adam"])
def test_a_strong_pull_keeps_the_start_and_a_weak_one_does_not(optimizer):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 6)).astype(np.float32), rng.integers(8, size=400)
    start, near, far = (
        dense(optimizer=optimizer, l2=l2, learning_rate=rate, gradient="exact").fit(X, y).weights_
        for l2, rate in ((0.0, 1e-9), (1e6, 1.0), (1e-6, 1.0))
    )
    assert np.abs(near - start).max() < 1e-3 < 0.05 < np.abs(far - start).max()


def test_labels_that_no_search_finds_count_with_score_0_in_the_sum():
    rng = np.random.default_rng(0)
    weights, X = rng.normal(size=(500, 16)), rng.normal(size=(20, 16))
    labels = LabelRows(np.arange(21), rng.integers(500, size=20).astype(np.int32))
    trainer = LayerTrainer(
        weights.astype(np.float32), np.random.default_rng(0), loss="softmax", gradient="mips",
        search=LabelSearch(n_candidates=12, min_gradient=0), n_threads=1,
    )  # fmt: skip
    rows = padded(X.astype(np.float32))
    settings = trainer.prepare(np.inf)
    losses, samples, ids, values, _ = trainer.layer.differentiate(rows, labels, settings, 0)
    scores = X @ weights.T
    for i, label in enumerate(labels.ids):
        found = ids[samples == i]
        assert len(found) <= 13
        total = np.exp(scores[i, found]).sum() + 500 - len(found)
        np.testing.assert_allclose(losses[i], np.log(total) - scores[i, label], rtol=1e-4)
        shares = np.exp(scores[i, found]) / total - (found == label)
        np.testing.assert_allclose(values[samples == i], shares, rtol=1e-3, atol=1e-6)


def test_a_stream_goes_on_in_the_scale_of_its_first_rows(tmp_path):
    X, y = identities(n_labels=50, n_rows=2000)
    model = dense(batch_size=64).partial_fit(100 * X[:500] + 7, y[:500], classes=np.arange(50))
    centre, scale = model.centre_, model.scale_
    model.save(tmp_path / "model")
    for other in (model, sublearn.load(tmp_path / "model")):
        for _ in range(3):
            other.partial_fit(100 * X + 7, y)
        np.testing.assert_array_equal(other.centre_, centre)
        assert other.scale_ == scale
        assert other.score(100 * X + 7, y) > 0.95


# --- the course of a fit -------------------------------------------------------------------------


def test_streams_go_on_where_they_were():
    X, y = identities(n_labels=50, n_rows=2000)
    model = dense(batch_size=64)
    for part in np.array_split(np.arange(2000), 10):
        model.partial_fit(X[part], y[part], classes=np.arange(50))
    assert model.n_iter_ == 10
    assert model.score(X, y) > 0.95


def test_a_stream_refuses_a_label_that_was_not_announced():
    X, y = identities(n_labels=30, n_rows=300)
    model = dense().partial_fit(X, y)
    with pytest.raises(ValueError, match="partial_fit: y must have labels of classes_, got 99"):
        model.partial_fit(X[:3], [1, 2, 99])


def test_early_stopping_ends_before_the_limit():
    X, y = identities()
    model = dense(max_iter=100, early_stopping=2).fit(X, y)
    assert model.n_iter_ < 100
    assert model.trace_["held_out"][-1] > 0.9


def test_a_stream_follows_early_stopping(tmp_path):
    X, y = identities(n_labels=30, n_rows=300)
    model = dense(max_iter=2, early_stopping=True).fit(X, y)
    model.save(tmp_path / "model")
    for other in (model, sublearn.load(tmp_path / "model")):
        other.partial_fit(X, y)
        assert np.isnan(other.trace_["held_out"]).tolist() == [False, False, True]


def test_a_model_that_has_predicted_through_its_index_is_pickled():
    X, y = identities(n_labels=2000, n_rows=2000, dim=8)
    model = dense(max_iter=1).fit(X, y)
    expected = model.predict_top_k(X[:20], k=3)[0]
    other = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(other.predict_top_k(X[:20], k=3)[0], expected)


def test_a_gradient_that_is_not_finite_ends_the_fit_with_the_last_good_model():
    rng = np.random.default_rng(0)  # nothing to learn: steps go on
    X, y = rng.normal(size=(600, 20)).astype(np.float32), rng.integers(30, size=600)
    model = dense(
        optimizer="sgd", learning_rate=3e37, batch_size=4, max_iter=20, loss="triplet",
        fit_intercept=False,
    )  # fmt: skip
    with pytest.warns(ConvergenceWarning, match="not finite in epoch .* Lower learning"):
        model.fit(X, y)
    assert np.isfinite(model.weights_).all()


# --- odd input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"l2": -1.0}, "DenseExtremeClassifier.l2 must be a non-negative number, got -1"),
        ({"learning_rate": "fast"}, "learning_rate must be 'auto' or a positive number"),
        ({"loss": "hinge"}, "DenseExtremeClassifier.loss must be 'softmax', 'nca'"),
        (
            {"search": {}},
            "DenseExtremeClassifier.search must be an instance of LabelSearch or None, got {}",
        ),
        ({"early_stopping": 0}, "early_stopping must be True or False or a positive integer"),
    ],
)
def test_refuses_parameters_that_mean_nothing(options, message):
    X, y = identities(n_labels=3, n_rows=30)
    with pytest.raises(ParameterError, match=message):
        dense(**options).fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_blocks": 0}, "LabelSearch.n_blocks must be a positive integer, got 0"),
        ({"recall": 1.5}, r"LabelSearch.recall must be a number in \(0, 1\], got 1.5"),
        ({"n_warm": -1}, "LabelSearch.n_warm must be"),
    ],
)
def test_refuses_settings_that_mean_nothing(options, message):
    with pytest.raises(ParameterError, match=message):
        LabelSearch(**options)


@pytest.mark.parametrize(
    ("stored", "current"),
    [
        (
            {"tau": 0.1, "mu": 2.0, "n_probe": 7, "schedule": "inverse"},
            {"search": LabelSearch(n_probe=7, min_gradient=0.1, smoothing=2.0)},
        ),
        ({"early_stopping": True, "n_iter_no_change": 5}, {"early_stopping": 5}),
        ({"early_stopping": False, "n_iter_no_change": 5}, {"early_stopping": False}),
        ({"early_stopping": True}, {"early_stopping": True}),
    ],
)
def test_files_of_earlier_versions_are_translated(stored, current):
    assert DenseExtremeClassifier._current_params(stored) == current


def test_zero_rows_more_blocks_than_columns_and_more_candidates_than_labels_work():
    X, y = identities(n_labels=5, n_rows=60, dim=7)
    X[:10] = 0
    search = LabelSearch(n_blocks=50, n_candidates=10**6, n_probe=99, n_sampled=10**6)
    assert np.isfinite(dense(search=search).fit(X, y).weights_).all()


def test_rows_that_all_have_the_only_label_get_it():
    model = dense(max_iter=1).fit([[1.0, 2.0]], [["a"]])
    assert model.predict([[1.0, 2.0]]) == [["a"]]


def test_score_refuses_other_numbers_of_lists():
    X, _ = identities(n_labels=3, n_rows=6)
    model = dense(max_iter=1).fit(X, [["a"], ["b"]] * 3)
    with pytest.raises(ValueError, match=r"y must have one row per sample \(6\), got 1"):
        model.score(X, [["a"]])


def test_refuses_numbers_that_float32_cannot_hold():
    X, y = identities(n_labels=3, n_rows=30)
    with pytest.raises(ValueError, match="X must be at most 1e\\+15 in size in float32"):
        dense().fit(X.astype(np.float64) * 1e300, y)


@pytest.mark.parametrize("loss", [*LOSSES, "nca"])
def test_the_exact_objective_is_the_mean_over_all_labels(loss, tmp_path):
    X, y = identities(n_labels=60, n_rows=400)
    model = dense(loss, max_iter=2).fit(X, y)
    expected = np.mean([
        _core.output_loss(loss, 1.0, np.r_[z[k], np.delete(z, k)].astype(float), 1, np.empty(60))
        for z, k in zip(model.decision_function(X), y, strict=True)
    ])  # fmt: skip
    assert model.exact_objective(X, y) == pytest.approx(expected, rel=1e-4, abs=1e-5)
    assert model.exact_objective(X, y) == pytest.approx(model.objective_, rel=1e-4, abs=1e-5)
    model.save(tmp_path / "model")
    assert sublearn.load(tmp_path / "model").exact_objective(X, y) == model.exact_objective(X, y)
    with pytest.raises(ValueError, match="exact_objective: y must have labels of classes_, got 99"):
        model.exact_objective(X[:2], [1, 99])
