"""The benchmark of latent features: its recipes, its judges, and rivals that can find something."""

import latent
import numpy as np
import pytest
from judges.binary_factors import METHODS, fit_features, repeated


def planted():
    split = latent.recipe(60, 25, 3, 0.0, 25, seed=0)
    return split.train["X"], split.truth


@pytest.mark.parametrize("method", list(METHODS))
def test_a_rival_finds_three_dense_features(method):
    X, truth = planted()
    n_looks = 1500 if method == "gibbs" else 30  # it looks at the clock for each row
    rng, left = np.random.default_rng(0), iter(range(n_looks))
    Z = repeated(method, X, 3, rng, lambda: next(left, None) is None)
    found = {"Z": Z, "W": fit_features(X, Z), "b": np.zeros(25)}
    figures = latent.judge_features(truth, found)
    # mean field often stays away from the best codes, the others reach them
    assert figures["rmse"] < (0.6 if method == "variational" else 1e-6) * X.std()


def test_mean_field_keeps_features_on_wide_data():
    """Where each feature has many entries, a wrong noise level lets every one vanish."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(50, 5)) @ rng.random((5, 800)) + 0.1 * rng.random((50, 800))
    Z = repeated("variational", X, 5, rng, iter([False] * 30 + [True] * 9).__next__)
    assert np.sqrt(np.square(X - Z @ fit_features(X, Z)).mean()) < 0.5 * X.std()


def test_too_many_features_are_refused_by_the_exhaustive_search():
    with pytest.raises(ValueError, match="too many"):
        METHODS["exhaustive"](np.eye(40), 30, None, None)


def test_the_judge_counts_wrong_bits_whatever_the_order():
    _, truth = planted()
    Z = truth["Z"][:, ::-1].astype(float)
    assert latent.hamming(Z, truth["Z"].astype(float)) == 0
    Z[0] = 1 - Z[0]
    assert latent.hamming(Z, truth["Z"].astype(float)) == pytest.approx(3 / truth["Z"].size)


def test_a_patch_of_a_recipe_has_as_many_pixels_as_asked_for():
    W = latent.recipe(20, 900, 14, 0.1, 49, seed=1).truth["W"]
    np.testing.assert_array_equal((W != 0).sum(axis=1), 49)


def test_the_judge_of_cuts_computes_cut_and_relaxation():
    graph = latent.torus(3, 4, seed=0)
    y = np.where(np.arange(12) % 2, 1.0, -1.0)
    answer = {"vectors": y[:, None], "side": (y > 0).astype(int), "bound": 100.0}
    figures = latent.judge_cut({"graph": graph}, answer)
    weights = graph.toarray()
    expected = 0.5 * weights[y[:, None] != y[None, :]].sum()
    assert figures["cut"] == pytest.approx(expected)
    assert figures["relaxed"] == pytest.approx(expected)


def test_stages_of_a_fit_get_better_one_after_the_other():
    X, truth = planted()
    found = {name: latent.judge_features(truth, {"Z": Z, "W": W, "b": np.zeros(25)})["rmse"]
             for name, (Z, W, _) in latent.stages(X, 3, 0).items()}  # fmt: skip
    for name in ("algorithm 1", "with span atoms"):
        assert found[f"{name}: convex stage alone"] > found[f"{name}: rounded"]  # it shrinks
        assert found[f"{name}: refined"] < 1e-9


def test_features_of_wide_data_are_told_in_the_columns_of_the_data():
    split = latent.recipe(12, 36, 2, 0.0, 9, seed=0)
    rows = latent.shown(split.train["X"], 2, 0, split.truth)
    refined = next(row for row in rows if row[0] == "with span atoms: refined")
    assert refined[2:5] == pytest.approx([0.0, 0.0, 0.0], abs=1e-9)
