"""Latent-variable models as convex problems, and the Boolean quadratic problems inside them."""

from sublearn.latent.boolean_quadratic import BooleanQuadraticSolution, solve_boolean_quadratic
from sublearn.latent.feature_path import LatentFeaturePath
from sublearn.latent.latent_feature_lasso import LatentFeatureLasso
from sublearn.latent.max_cut import MaxCutSolution, solve_max_cut
from sublearn.latent.mix_lasso import MixLassoRegressor

__all__ = [
    "BooleanQuadraticSolution",
    "LatentFeatureLasso",
    "LatentFeaturePath",
    "MaxCutSolution",
    "MixLassoRegressor",
    "solve_boolean_quadratic",
    "solve_max_cut",
]
