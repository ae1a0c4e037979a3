"""Algorithm 4 of the thesis, theorem 5 by simulation, and searches with few weights."""

import numpy as np
import pytest
from label_problems import multilabel
from sklearn.base import clone

import sublearn
from sublearn import _core
from sublearn.errors import ParameterError
from sublearn.extreme import PPDSparseClassifier, RandomSparsification

N_DRAWN = 400


def weights(n=300, seed=0):
    """Few large weights and many small ones, some of them zero."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < 0.2, 0.0, rng.normal(size=n) * rng.pareto(1.5, size=n) * 0.02)


def sparsified(w, count, *, is_drawn):
    return np.array([_core.sparsify_weights(w, count, is_drawn, 1, s) for s in range(N_DRAWN)])


@pytest.mark.parametrize("is_drawn", [True, False])
@pytest.mark.parametrize("delta", [0.5, 1.0, 2.0])
def test_theorem_5_holds_for_the_number_of_draws_that_it_gives(delta, is_drawn):
    w = weights()
    count = _core.n_draws(np.abs(w).sum(), delta)
    assert count == np.ceil(2 * np.abs(w).sum() ** 2 / delta**2)
    found = sparsified(w, count, is_drawn=is_drawn)
    kept = (found != 0).sum(axis=1)
    assert kept.mean() <= count  # (2.36), before it is bounded by that of the trivial solution
    rows = np.random.default_rng(2).uniform(-1, 1, size=(50, len(w)))
    exact, estimates = rows @ w, found @ rows.T
    spread = np.abs(w).sum() / np.sqrt(count)
    four_errors = 4 * spread / np.sqrt(N_DRAWN)
    assert np.abs(estimates.mean(axis=0) - exact).max() <= four_errors  # right on average
    assert np.sqrt(((estimates - exact) ** 2).mean(axis=0)).max() <= spread  # (2.38)
    assert spread <= delta / np.sqrt(2) * (1 + 1e-12)
    assert estimates.min(axis=1).mean() - exact.min() <= delta  # (2.37)
    chosen = exact[estimates.argmin(axis=1)]
    assert chosen.mean() <= exact.min() + 2 * delta  # (2.39)


def test_a_draw_adds_the_same_amount_wherever_it_falls():
    w = weights()
    found = _core.sparsify_weights(w, 7, True, 0, 0)
    step = np.abs(w).sum() / 7
    assert np.abs(found).sum() == pytest.approx(np.abs(w).sum())
    np.testing.assert_allclose(found / step, np.round(found / step), atol=1e-12)
    assert (np.sign(found[found != 0]) == np.sign(w[found != 0])).all()


def test_rounding_has_no_more_variance_than_draws():
    w = weights()
    rows = np.random.default_rng(3).uniform(-1, 1, size=(20, len(w)))
    spreads = [
        (sparsified(w, 40, is_drawn=kind) @ rows.T).std(axis=0).mean() for kind in (False, True)
    ]
    assert spreads[0] < spreads[1]


@pytest.mark.parametrize("scheme", ["draws", "rounding"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_searches_with_few_weights_find_the_same_model(scheme, dtype, loss):
    X, Y = multilabel()
    options = {"loss": loss, "tol": 1e-3, "max_iter": 500, "random_state": 0, "l1": 0.01}
    exact = PPDSparseClassifier(**options).fit(X.astype(dtype), Y)
    few = RandomSparsification(delta=5.0, kappa=3, scheme=scheme, n_between=2)
    model = PPDSparseClassifier(search=few, **options).fit(X.astype(dtype), Y)
    assert model.certificate_ <= 1e-3
    assert model.objective_ == pytest.approx(exact.objective_, rel=2e-3)
    assert model.n_iter_ > exact.n_iter_  # three samples enter at a time
    again = clone(model).fit(X.astype(dtype), Y)
    np.testing.assert_array_equal(again.coef_.data, model.coef_.data)


def test_a_small_delta_keeps_all_weights_and_changes_nothing():
    X, Y = multilabel()
    exact = PPDSparseClassifier(random_state=0).fit(X, Y)
    same = PPDSparseClassifier(random_state=0, search=RandomSparsification(delta=1e-6)).fit(X, Y)
    np.testing.assert_array_equal(same.coef_.toarray(), exact.coef_.toarray())
    assert same.trace_["work"][-1] == exact.trace_["work"][-1]


@pytest.mark.parametrize(
    ("field", "value", "must"),
    [
        ("delta", 0, "a positive number"),
        ("delta", np.inf, "a positive number"),
        ("kappa", 0, "a positive integer or None"),
        ("scheme", "alias", "'draws' or 'rounding'"),
        ("n_between", 1.5, "a positive integer"),
    ],
)
def test_refuses_a_setting_by_name(field, value, must):
    with pytest.raises(ParameterError, match=rf"^RandomSparsification\.{field} must be {must}"):
        RandomSparsification(**{field: value})


def test_a_saved_model_and_a_streamed_fit_know_their_settings(tmp_path):
    X, Y = multilabel(n_rows=60)
    search = RandomSparsification(delta=5.0, kappa=7)
    model = PPDSparseClassifier(search=search, random_state=0).fit(X, Y)
    model.save(tmp_path / "model")
    assert sublearn.load(tmp_path / "model").search == search
    streamed = clone(model).set_params(model_path=tmp_path / "streamed").fit(X, Y)
    np.testing.assert_array_equal(streamed.coef_.toarray(), model.coef_.toarray())
