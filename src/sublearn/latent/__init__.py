"""Latent-variable models as convex problems, and the Boolean quadratic problems inside them."""

from sublearn.latent.boolean_quadratic import BooleanQuadraticSolution, solve_boolean_quadratic
from sublearn.latent.identifiability import Identifiability, check_identifiability
from sublearn.latent.lasso_problem import LatentFeaturePath
from sublearn.latent.latent_feature_lasso import LatentFeatureLasso
from sublearn.latent.max_cut import MaxCutSolution, solve_max_cut
from sublearn.latent.mix_features import Kernel
from sublearn.latent.mix_gate import Gate
from sublearn.latent.mix_lasso import MixLassoRegressor
from sublearn.latent.mix_refinement import MixtureSearch

__all__ = [
    "BooleanQuadraticSolution",
    "Gate",
    "Identifiability",
    "Kernel",
    "LatentFeatureLasso",
    "LatentFeaturePath",
    "MaxCutSolution",
    "MixLassoRegressor",
    "MixtureSearch",
    "check_identifiability",
    "solve_boolean_quadratic",
    "solve_max_cut",
]
