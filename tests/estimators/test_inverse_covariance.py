"""SparseInverseCovariance as an estimator: scikit-learn's contract, odd data, files."""

import numpy as np
import pytest
from sklearn.covariance import EmpiricalCovariance
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sublearn.errors import ParameterError
from sublearn.linear import SparseInverseCovariance

# --- problems --------------------------------------------------------------------------------


def chain(n=12):
    """A precision matrix that links neighbours."""
    return np.eye(n) * 1.5 - 0.6 * (np.eye(n, k=1) + np.eye(n, k=-1))


def rows_of_a_chain(n_rows=400, n=12, seed=0):
    rng = np.random.default_rng(seed)
    return rng.multivariate_normal(np.arange(n), np.linalg.inv(chain(n)), size=n_rows)


# --- distances -----------------------------------------------------------------------------------


def as_scikit_learn_has_it(model):
    rival = EmpiricalCovariance(store_precision=True)
    rival.covariance_, rival.precision_ = model.covariance_, model.precision_
    rival.location_, rival.n_features_in_ = model.location_, model.n_features_in_
    return rival


@pytest.mark.parametrize("covariance", ["data", "precomputed"])
def test_mahalanobis_distances_are_those_of_scikit_learn(covariance):
    X = rows_of_a_chain()
    fitted_to = X if covariance == "data" else np.cov(X, rowvar=False)
    model = SparseInverseCovariance(0.1, covariance=covariance).fit(fitted_to)
    expected = as_scikit_learn_has_it(model).mahalanobis(X)
    np.testing.assert_allclose(model.mahalanobis(X), expected, rtol=1e-10)
    assert (model.mahalanobis(model.location_[None]) == 0).all()
    with pytest.raises(ValueError, match="12 features"):
        model.mahalanobis(X[:, :5])


@pytest.mark.parametrize("norm", ["frobenius", "spectral"])
@pytest.mark.parametrize("scaling", [False, True])
@pytest.mark.parametrize("squared", [False, True])
def test_the_norm_of_the_error_is_that_of_scikit_learn(norm, scaling, squared):
    model = SparseInverseCovariance(0.1).fit(rows_of_a_chain())
    truth, options = np.linalg.inv(chain()), {"scaling": scaling, "squared": squared}
    expected = as_scikit_learn_has_it(model).error_norm(truth, norm, **options)
    assert model.error_norm(truth.tolist(), norm, **options) == pytest.approx(expected, rel=1e-12)
    assert model.error_norm(model.covariance_, norm, **options) == 0


def test_the_norm_of_the_error_refuses_what_is_no_matrix_of_its_size():
    model = SparseInverseCovariance(0.1)
    with pytest.raises(NotFittedError):
        model.error_norm(np.eye(12))
    model.fit(rows_of_a_chain())
    with pytest.raises(ParameterError, match=r"error_norm.comp_cov must be a matrix of shape"):
        model.error_norm(np.eye(3))
    with pytest.raises(ParameterError, match=r"error_norm.norm must be .*, got 'nuclear'"):
        model.error_norm(np.eye(12), norm="nuclear")


# --- what is estimated -------------------------------------------------------------------------


def test_finds_the_links_of_a_chain():
    X = rows_of_a_chain(n_rows=4000)
    model = SparseInverseCovariance(l1=0.1).fit(X)
    linked = np.abs(model.precision_) > 0.1
    np.testing.assert_array_equal(linked, chain() != 0)
    np.testing.assert_allclose(model.location_, np.arange(12), atol=0.2)


def test_the_covariance_of_the_data_may_be_passed_instead_of_the_data():
    X = rows_of_a_chain()
    S = np.cov(X, rowvar=False, bias=True)
    from_rows = SparseInverseCovariance(l1=0.1, tol=1e-8).fit(X)
    from_matrix = SparseInverseCovariance(l1=0.1, tol=1e-8, covariance="precomputed").fit(S)
    np.testing.assert_allclose(from_rows.precision_, from_matrix.precision_, atol=1e-6)
    assert (from_matrix.location_ == 0).all()


def test_a_large_weight_leaves_the_diagonal():
    X = rows_of_a_chain()
    model = SparseInverseCovariance(l1=100.0).fit(X)
    np.testing.assert_allclose(model.precision_, np.diag(1 / X.var(axis=0)))
    assert model.n_blocks_ == 12
    assert model.certificate_ == 0
    assert model.n_iter_ == 0


def test_without_a_penalty_it_is_the_inverse():
    X = rows_of_a_chain()
    model = SparseInverseCovariance(l1=0.0, tol=1e-10).fit(X)
    inverse = np.linalg.inv(np.cov(X, rowvar=False, bias=True))
    np.testing.assert_allclose(model.precision_, inverse, rtol=1e-4, atol=1e-4)


def test_sparse_precision_holds_the_same_numbers():
    model = SparseInverseCovariance(l1=0.2).fit(rows_of_a_chain())
    assert (model.sparse_precision_.toarray() == model.precision_).all()
    assert model.sparse_precision_.nnz == model.trace_["nnz_primal"][-1]


def test_penalising_the_diagonal_shrinks_it():
    X = rows_of_a_chain()
    free = SparseInverseCovariance(l1=0.2).fit(X).precision_
    shrunk = SparseInverseCovariance(l1=0.2, penalise_diagonal=True).fit(X).precision_
    assert (shrunk.diagonal() < free.diagonal()).all()


def test_a_matrix_of_weights_keeps_entries_out():
    X = rows_of_a_chain()
    weights = np.full((12, 12), 0.01)
    weights[0, 1] = weights[1, 0] = 1e3
    model = SparseInverseCovariance(l1=weights).fit(X)
    assert model.precision_[0, 1] == 0
    assert model.precision_[1, 2] != 0


def test_one_feature_has_a_closed_form():
    X = np.array([[1.0], [2.0], [4.0]])
    model = SparseInverseCovariance(l1=0.3).fit(X)
    assert model.precision_ == pytest.approx(1 / X.var())


def test_two_perfectly_correlated_columns_work():
    x = np.random.default_rng(0).normal(size=(50, 1))
    model = SparseInverseCovariance(l1=0.1).fit(np.hstack([x, x, x]))
    assert np.linalg.eigvalsh(model.precision_)[0] > 0
    assert model.certificate_ <= 1e-4


def test_columns_of_wildly_different_scale_work():
    X = rows_of_a_chain() * np.logspace(-6, 6, 12)
    model = SparseInverseCovariance(l1=0.1).fit(X)
    assert np.isfinite(model.precision_).all()
    assert model.certificate_ <= 1e-4


def test_threads_do_not_change_the_model():
    rng = np.random.default_rng(1)
    X = np.hstack([rng.normal(size=(30, 5)) @ rng.normal(size=(5, 5)) for _ in range(6)])
    models = [SparseInverseCovariance(l1=0.9, n_jobs=n).fit(X) for n in (1, 2)]
    assert models[0].n_blocks_ > 1
    np.testing.assert_array_equal(models[0].precision_, models[1].precision_)


@pytest.mark.parametrize("solver", ["newton", "lhac"])
def test_the_trace_says_how_it_went(solver):
    model = SparseInverseCovariance(l1=0.05, solver=solver).fit(rows_of_a_chain())
    trace = model.trace_
    assert trace["certificate"][-1] == pytest.approx(model.certificate_, abs=1e-12)
    assert trace["objective"][-1] == pytest.approx(model.objective_)
    assert (np.diff(trace["seconds"]) >= 0).all()
    assert trace["work"][-1] > 0
    assert len(trace) == model.n_iter_ + 1 + (solver == "lhac")


# --- choosing l1 -------------------------------------------------------------------------------


def test_chooses_the_weight_by_held_out_likelihood():
    X = rows_of_a_chain(n_rows=100)
    model = SparseInverseCovariance(l1="cv", cv=KFold(4), l1s=6, tol=1e-6).fit(X)
    assert model.l1_ == model.l1_path_[np.argmax(model.cv_scores_.mean(axis=1))]
    assert model.cv_scores_.shape == (6, 4)
    train, test = next(iter(KFold(4).split(X)))
    single = SparseInverseCovariance(l1=model.l1_path_[3], tol=1e-6).fit(X[train])
    assert single.score(X[test]) == pytest.approx(model.cv_scores_[3, 0], abs=1e-3)


def test_chooses_the_largest_weight_within_a_standard_error():
    X = rows_of_a_chain(n_rows=100)
    best, simple = (SparseInverseCovariance(l1, cv=4, l1s=8).fit(X) for l1 in ("cv", "cv_1se"))
    means = best.cv_scores_.mean(axis=1)
    error = best.cv_scores_[means.argmax()].std(ddof=1) / 2
    assert simple.l1_ == best.l1_path_[means >= means.max() - error].max()
    assert simple.l1_ > best.l1_


@pytest.mark.filterwarnings("ignore:.*values of l1 is the least:UserWarning")
def test_tries_the_weights_that_are_given():
    model = SparseInverseCovariance("cv", l1s=[0.1, 0.4, 0.2]).fit(rows_of_a_chain(n_rows=60))
    assert model.l1_path_.tolist() == [0.4, 0.2, 0.1]
    assert not hasattr(model.set_params(l1=0.1).fit(rows_of_a_chain()), "l1_path_")


def test_unrelated_columns_can_be_cross_validated():
    X = np.vstack([np.eye(4), -np.eye(4)])
    model = SparseInverseCovariance(l1="cv", cv=[(range(8), range(8))]).fit(X)
    assert model.n_blocks_ == 4


# --- scikit-learn and files --------------------------------------------------------------------


def test_the_score_is_the_mean_log_likelihood():
    X = rows_of_a_chain()
    model = SparseInverseCovariance(l1=0.1).fit(X)
    deviation = X - model.location_
    distances = np.einsum("ij,jk,ik->i", deviation, model.precision_, deviation)
    log_det = np.linalg.slogdet(model.precision_)[1]
    density = 0.5 * (log_det - distances - 12 * np.log(2 * np.pi))
    assert model.score(X) == pytest.approx(density.mean())


def test_works_in_a_grid_search_and_a_pipeline():
    X = rows_of_a_chain(n_rows=100)
    search = GridSearchCV(SparseInverseCovariance(), {"l1": [0.05, 0.5]}, cv=3).fit(X)
    assert search.best_params_ == {"l1": 0.05}
    make_pipeline(StandardScaler(), SparseInverseCovariance()).fit(X).score(X)


def test_asks_to_be_fitted_first():
    for ask in (lambda m: m.sparse_precision_, lambda m: m.n_blocks_):
        with pytest.raises(NotFittedError):
            ask(SparseInverseCovariance())


# --- stopping ----------------------------------------------------------------------------------


def test_a_callback_stops_the_fit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 150)) @ rng.normal(size=(150, 150))
    model = SparseInverseCovariance(l1=1.0, tol=1e-14, callback=lambda event: True)
    with pytest.warns(ConvergenceWarning, match="asked to stop"):
        model.fit(X)
    assert np.linalg.eigvalsh(model.precision_)[0] > 0


@pytest.mark.parametrize("solver", ["newton", "lhac"])
def test_warns_where_the_limit_of_iterations_came_first(solver):
    model = SparseInverseCovariance(l1=0.01, tol=1e-13, max_iter=1, solver=solver)
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        model.fit(rows_of_a_chain(n_rows=10, n=40))
    assert model.n_iter_ == 1


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"l1": -1.0},
            "l1 must be a non-negative number, a matrix of them, 'cv', 'cv_1se' or 'ebic', got -1",
        ),
        ({"l1": "best"}, "l1 must be a non-negative number"),
        ({"l1": np.nan}, "l1 must be a non-negative number"),
        ({"l1": np.ones((2, 2))}, "must be a number or a matrix of shape"),
        ({"l1": -np.ones((12, 12))}, "finite numbers that are not negative"),
        ({"l1": np.triu(np.ones((12, 12)))}, "must be a symmetric matrix"),
        ({"l1": [["a"]]}, "l1 must be numbers"),
        ({"solver": "glasso"}, "solver must be 'auto', 'newton' or 'lhac'"),
        ({"covariance": "given"}, "covariance must be 'data' or 'precomputed'"),
        ({"tol": 0}, "tol must be a positive number"),
        ({"cv": 1}, "cv must be an integer of at least 2"),
        ({"l1s": 0}, "l1s must be a positive integer or an array of positive numbers, got 0"),
        ({"l1": "cv", "l1s": [0.1, 0.0]}, "l1s must be positive numbers"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_refuses_parameters_out_of_range(params, message):
    with pytest.raises(ParameterError, match=message.replace("(", r"\(")):
        SparseInverseCovariance(**params).fit(rows_of_a_chain())


@pytest.mark.parametrize(
    ("S", "message"),
    [
        (np.ones((2, 3)), "square covariance matrix"),
        (np.array([[1.0, 0.5], [0.2, 1.0]]), "must be symmetric"),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "must be positive semidefinite"),
        (np.array([[1.0, 0.0], [0.0, -1.0]]), "variance -1 of variable 1"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "NaN"),
        (np.array([[0.0, 0.0], [0.0, 1.0]]), "variable 0 with variance 0"),
    ],
)
def test_refuses_what_is_no_covariance_matrix(S, message):
    with pytest.raises(ValueError, match=message):
        SparseInverseCovariance(covariance="precomputed").fit(S)


def test_refuses_a_singular_covariance_without_a_penalty():
    X = np.random.default_rng(0).normal(size=(5, 10))
    with pytest.raises(ValueError, match="l1 must be positive where the covariance"):
        SparseInverseCovariance(l1=0.0).fit(X)


def test_refuses_to_cross_validate_a_covariance_matrix():
    with pytest.raises(ParameterError, match="needs the rows"):
        SparseInverseCovariance("cv", covariance="precomputed").fit(np.eye(3))


def test_refuses_a_constant_column_unless_the_diagonal_is_penalised():
    X = rows_of_a_chain()
    X[:, 4] = 0.1
    with pytest.raises(ValueError, match="variable 4 with variance 0"):
        SparseInverseCovariance().fit(X)
    model = SparseInverseCovariance(l1=0.5, penalise_diagonal=True).fit(X)
    assert model.precision_[4, 4] == pytest.approx(2.0)


def test_refuses_numbers_whose_squares_overflow():
    with pytest.raises(ValueError, match="finite covariance"):
        SparseInverseCovariance().fit(np.array([[1e200, 1.0], [-1e200, 2.0]]))


def test_refuses_one_row():
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        SparseInverseCovariance().fit(np.ones((1, 3)))


def test_folds_and_parameters_of_earlier_files_are_translated():
    former = {"path_length": 7, "path_end": 0.02, "l1": "cv"}
    assert SparseInverseCovariance._current_params(former) == {"l1s": 7, "l1": "cv"}
    model = SparseInverseCovariance("cv", cv=3, l1s=4).fit(rows_of_a_chain())
    state = model._to_bundle()
    state["cv_results_.l1"], state["cv_results_.scores"] = (
        state.pop(name) for name in ("l1_path_", "cv_scores_")
    )
    state["cv_results_.mean_score"] = model.cv_scores_.mean(axis=1)
    other = SparseInverseCovariance("cv")
    other._restore(state)
    np.testing.assert_array_equal(other.l1_path_, model.l1_path_)
    np.testing.assert_array_equal(other.cv_scores_, model.cv_scores_)


def test_refuses_variances_whose_inverse_is_no_number():
    X = np.random.default_rng(0).normal(size=(40, 3)) * 1e-160
    with pytest.raises(ValueError, match="X must have variances of at least 1e-300"):
        SparseInverseCovariance(0.1).fit(X)


def test_zero_weights_between_copies_of_a_column_end_in_a_warning():
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[:, 1] = X[:, 0]
    l1 = np.full((3, 3), 0.1)
    l1[0, 1] = l1[1, 0] = 0.0
    with pytest.warns(ConvergenceWarning, match="certificate inf"):
        SparseInverseCovariance(l1).fit(X)
