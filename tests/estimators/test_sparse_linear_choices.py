"""What a fit may be told of: scorers, groups and offsets; grids that go on; paths as sequences."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.metrics import make_scorer, mean_absolute_error, roc_auc_score
from sklearn.model_selection import GroupKFold, KFold

from sublearn.extreme import PPDSparseClassifier
from sublearn.latent import LatentFeatureLasso
from sublearn.linear import (
    CrossValidation,
    SparseInverseCovariance,
    SparseLinearRegression,
    SparseLogisticRegression,
)
from sublearn.linear.selection import follow_grid

pytestmark = pytest.mark.filterwarnings("ignore:.*values of l1 is the least:UserWarning")


def rows(n_classes=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(90, 25))
    z = 2 * X[:, 0] - X[:, 1] + 0.5 * X[:, 2]
    if n_classes is None:
        return X, z + rng.normal(size=90)
    return X, np.digitize(z + rng.normal(size=90), np.linspace(-1, 1, n_classes - 1))


# --- the grid ------------------------------------------------------------------------------------


def test_a_grid_goes_on_while_its_end_is_the_best_and_no_further_than_as_far_again():
    asked = []

    def score(l1s):
        asked.append(len(l1s))
        return -np.abs(np.log(l1s / 0.03))[:, None]  # the best is 0.03

    l1s = np.geomspace(1.0, 0.1, 5)
    grid, scores = follow_grid(score, l1s, is_given=False)
    np.testing.assert_allclose(grid, np.geomspace(1.0, 0.01, 9))
    assert scores.shape == (9, 1)
    assert asked == [5, 2, 2]
    assert len(follow_grid(score, l1s, is_given=True)[0]) == 5
    assert len(follow_grid(score, np.array([1.0]), is_given=False)[0]) == 1
    grid, _ = follow_grid(lambda l1s: -l1s[:, None], l1s, is_given=False)
    assert len(grid) == 9  # and not for ever
    grid, _ = follow_grid(lambda l1s: l1s[:, None], l1s, is_given=False)
    assert len(grid) == 5


def test_scores_of_a_grid_that_went_on_are_those_of_a_grid_that_was_given():
    X = np.random.default_rng(0).normal(size=(90, 5))
    y = X.sum(axis=1) + 0.1 * np.random.default_rng(1).normal(size=90)
    found = SparseLinearRegression("cv", l1s=6, tol=1e-9).fit(X, y)
    assert 6 < len(found.l1_path_) <= 11
    judge = SparseLinearRegression("cv", l1s=found.l1_path_, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(found.cv_scores_, judge.cv_scores_, rtol=1e-5)
    assert found.l1_ == judge.l1_


# --- scorers and groups --------------------------------------------------------------------------


@pytest.mark.parametrize("scoring", ["roc_auc", make_scorer(roc_auc_score)])
def test_a_scorer_sees_held_out_rows_of_each_fold(scoring):
    X, y = rows(2)
    names = np.array(["no", "yes"])[y]
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    model = SparseLogisticRegression(
        "cv", cv=CrossValidation(folds, scoring=scoring), l1s=[0.2, 0.05, 0.01], tol=1e-9
    ).fit(X, names if scoring == "roc_auc" else y)
    for i, l1 in enumerate(model.l1_path_):
        for k, (train, test) in enumerate(folds):
            judge = SparseLogisticRegression(l1, tol=1e-9).fit(X[train], y[train])
            z = judge.decision_function(X[test])
            answers = z if scoring == "roc_auc" else judge.predict(X[test])
            score = roc_auc_score(y[test], answers)
            assert model.cv_scores_[i, k] == pytest.approx(score, abs=1e-6)


def test_a_scorer_gets_the_weights_of_rows_and_a_loss_of_its_own_chooses():
    X, y = rows()
    weights = np.random.default_rng(0).random(90) + 0.1
    folds = list(KFold(3).split(X))
    scorer = make_scorer(mean_absolute_error, greater_is_better=False)
    model = SparseLinearRegression(
        "cv", cv=CrossValidation(folds, scoring=scorer), l1s=[0.5, 0.1], tol=1e-9
    ).fit(X, y, weights)
    train, test = folds[1]
    judge = SparseLinearRegression(0.1, tol=1e-9).fit(X[train], y[train], weights[train])
    error = mean_absolute_error(y[test], judge.predict(X[test]), sample_weight=weights[test])
    assert model.cv_scores_[1, 1] == pytest.approx(-error, abs=1e-6)


class Recorded(GroupKFold):
    """Keeps the groups it was given."""

    def split(self, X, y=None, groups=None):
        self.groups = groups
        return super().split(X, y, groups)


@pytest.mark.parametrize("n_classes", [None, 2])
def test_rows_of_a_group_are_on_one_side(n_classes):
    X, y = rows(n_classes)
    groups = np.arange(90) // 9
    model = SparseLinearRegression if n_classes is None else SparseLogisticRegression
    folds = []

    def remember(estimator, X, y):
        folds.append(set(map(tuple, np.round(X, 9))))
        return 0.0

    settings = {"cv": CrossValidation(3, scoring=remember), "l1s": [0.5]}
    model("cv", **settings).fit(X, y, groups=groups)
    for g in range(10):
        members = set(map(tuple, np.round(X[groups == g], 9)))
        assert sorted(len(members & fold) for fold in folds) == [0, 0, 9]


@pytest.mark.parametrize("wrap", [lambda cv: cv, CrossValidation])
def test_a_splitter_gets_the_groups(wrap):
    X, y = rows()
    groups, splitter = np.arange(90) // 9, Recorded(3)
    SparseLinearRegression("cv", cv=wrap(splitter), l1s=[0.5]).fit(X, y, groups=groups)
    np.testing.assert_array_equal(splitter.groups, groups)


def test_refuses_groups_scorers_and_folds_that_cannot_be():
    X, y = rows(2)
    with pytest.raises(ValueError, match="groups must have one entry for each of 90 samples"):
        SparseLogisticRegression("cv").fit(X, y, groups=np.zeros(3))
    with pytest.raises(ValueError, match=r"cv must be at most the number of .* groups \(2\)"):
        SparseLogisticRegression("cv").fit(X, y, groups=np.arange(90) % 2)
    with pytest.raises(ValueError, match="scoring must be None, a scorer or one of"):
        CrossValidation(scoring="nonsense")
    with pytest.raises(ValueError, match="folds must be an integer of at least 2"):
        CrossValidation(1)
    with pytest.raises(ValueError, match="must have scoring=None where fit gets an offset"):
        SparseLogisticRegression("cv", cv=CrossValidation(scoring="roc_auc")).fit(
            X, y, offset=np.zeros(90)
        )


# --- offsets -------------------------------------------------------------------------------------


def judged(loss, X, y, offset, l1):
    """The least objective by a quasi-Newton method on positive and negative parts."""

    def objective(at):
        w = at[:5] - at[5:10]
        return loss(X @ w + at[10] + offset, y).mean() + l1 * at[:10].sum()

    bounds = [(0, None)] * 10 + [(None, None)]
    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000, "maxfun": 10**6}
    return minimize(objective, np.zeros(11), bounds=bounds, method="L-BFGS-B", options=options).fun


@pytest.mark.parametrize("solver", ["auto", "lhac", "cd1", "interior_point"])
def test_offsets_are_added_to_the_predictions_of_a_logistic_model(solver):
    X, y = rows(2)
    X, offset = X[:, :5], np.random.default_rng(3).normal(size=90)
    model = SparseLogisticRegression(0.02, solver=solver, tol=1e-8).fit(X, y, offset=offset)
    best = judged(lambda z, c: np.logaddexp(0, -(2 * c - 1) * z), X, y, offset, 0.02)
    assert model.certificate_ <= 1e-8
    assert model.objective_ == pytest.approx(best, rel=1e-6)
    without = SparseLogisticRegression(0.02, tol=1e-8).fit(X, y)
    assert abs(without.objective_ - model.objective_) > 1e-3


def test_an_exposure_of_counts_is_an_offset():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 5))
    exposure = rng.random(90) * 10 + 0.5
    y = rng.poisson(exposure * np.exp(0.5 * X[:, 0] - 1)).astype(float)
    model = SparseLinearRegression(0.05, loss="poisson", tol=1e-9).fit(
        X, y, offset=np.log(exposure)
    )
    # The same by rates under weights.
    rate = SparseLinearRegression(0.05 * 90 / exposure.sum(), loss="poisson", tol=1e-9)
    rate.fit(X, y / exposure, sample_weight=exposure)
    np.testing.assert_allclose(model.coef_, rate.coef_, atol=1e-4)
    assert model.intercept_ == pytest.approx(rate.intercept_, abs=1e-4)


def test_l1_is_chosen_by_losses_beside_the_offsets():
    X, y = rows()
    offset = 5 * np.random.default_rng(3).normal(size=90)
    folds = list(KFold(3).split(X))
    settings = {"cv": folds, "l1s": [0.5, 0.1, 0.02], "tol": 1e-9}
    beside = SparseLinearRegression("cv", **settings).fit(X, y + offset, offset=offset)
    plain = SparseLinearRegression("cv", **settings).fit(X, y)
    np.testing.assert_allclose(beside.cv_scores_, plain.cv_scores_, rtol=1e-6)
    np.testing.assert_allclose(beside.coef_, plain.coef_, atol=1e-6)


def test_refuses_offsets_that_are_none():
    X, y = rows(3)
    with pytest.raises(ValueError, match="offset must be 90 numbers, one for each sample"):
        SparseLogisticRegression().fit(X, y, offset=np.zeros(3))
    with pytest.raises(ValueError, match="offset must be finite"):
        SparseLogisticRegression().fit(X, y, offset=np.full(90, np.nan))
    with pytest.raises(ValueError, match="offset must be None for more than two classes"):
        SparseLogisticRegression(multinomial=True).fit(X, y, offset=np.zeros(90))


# --- full columns far from zero in a sparse matrix -----------------------------------------------


def test_sparse_rows_of_full_columns_far_from_zero_are_solved_as_dense_ones_are():
    rng = np.random.default_rng(0)
    X = 480 + 10 * rng.normal(size=(200, 30))
    y = np.where(X[:, 0] - X[:, 1] + 5 * rng.normal(size=200) > 0, 1, 0)
    dense = SparseLogisticRegression(0.05).fit(X, y)
    sparse = SparseLogisticRegression(0.05).fit(sp.csr_matrix(X), y)
    assert sparse.certificate_ <= 1e-6
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-12)
    assert sparse.trace_["work"][-1] == dense.trace_["work"][-1]


def test_sparse_rows_stay_sparse_where_most_entries_are_none():
    from sublearn.optim.scaling import column_offsets
    from sublearn.validation.design import Design, column_extremes

    full = 480 + np.random.default_rng(0).random((100, 1))
    rest = sp.random(100, 40, density=0.1, format="csc", random_state=0)
    X = sp.csc_matrix(sp.hstack([full, rest]))
    assert column_offsets(Design(X, *column_extremes(X))) is None


# --- covariance ----------------------------------------------------------------------------------


def test_the_extended_criterion_chooses_the_least_of_its_formula():
    rng = np.random.default_rng(0)
    chain = np.eye(8) * 2 - np.diag(np.ones(7), 1) - np.diag(np.ones(7), -1)
    X = rng.multivariate_normal(np.zeros(8), np.linalg.inv(chain), size=300)
    model = SparseInverseCovariance("ebic", tol=1e-8).fit(X)
    S = np.cov(X.T, bias=True)
    criteria = []
    for l1 in model.l1_path_:
        P = SparseInverseCovariance(float(l1), tol=1e-8).fit(X).precision_
        n_links = np.count_nonzero(np.triu(P, 1))
        fit = np.trace(S @ P) - np.linalg.slogdet(P)[1] + 8 * np.log(2 * np.pi)
        criteria.append(300 * fit + n_links * (np.log(300) + 2 * np.log(8)))
    np.testing.assert_allclose(-model.cv_scores_[:, 0], criteria, rtol=1e-4)
    assert model.l1_ == model.l1_path_[np.argmin(criteria)]
    by_folds = SparseInverseCovariance("cv").fit(X)
    assert np.count_nonzero(model.precision_) <= np.count_nonzero(by_folds.precision_)
    with pytest.raises(ValueError, match="'ebic' needs the rows"):
        SparseInverseCovariance("ebic", covariance="precomputed").fit(S)


# --- paths ---------------------------------------------------------------------------------------


def test_every_path_is_a_sequence_with_l1s_certificates_and_a_best():
    X, y = rows()
    _, codes = rows(3)
    paths = [
        SparseLinearRegression().fit_path(X, y, l1s=4),
        SparseLogisticRegression().fit_path(X, codes, l1s=4),
        PPDSparseClassifier(max_iter=1000).fit_path(X, codes, [0.5, 0.1, 0.05, 0.02]),
        LatentFeatureLasso(max_iter=3, random_state=0).fit_path(X, l1s=4),
    ]
    for path in paths:
        assert len(path) == len(path.l1s) == len(list(path)) == np.shape(path.certificates)[-1] == 4
        assert (np.diff(path.l1s) < 0).all()
        assert len(path[1:3]) == 2
        numbers = iter([1.0, 3.0, 2.0, 3.0])
        steps = list(path)
        assert type(path.best(lambda step, n=numbers: next(n))) is type(steps[1])
        with pytest.raises(IndexError):
            path[4]


@pytest.mark.parametrize("multinomial", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_models_of_a_path_are_fitted_models(n_classes, multinomial):
    X, y = rows(n_classes)
    base = SparseLogisticRegression(multinomial=multinomial, tol=1e-9)
    path = base.fit_path(X, y, [0.1, 0.02])
    for model, l1 in zip(path, path.l1s, strict=True):
        cold = SparseLogisticRegression(l1, multinomial=multinomial, tol=1e-9).fit(X, y)
        assert (model.l1, model.l1_) == (l1, l1)
        np.testing.assert_allclose(model.predict_proba(X), cold.predict_proba(X), atol=1e-3)
        assert model.objective_ == pytest.approx(cold.objective_, rel=1e-6)
        assert model.certificate_ <= 1e-9
    best = path.best(lambda model: model.score(X, y))
    assert best.score(X, y) == max(model.score(X, y) for model in path)
