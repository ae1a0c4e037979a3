"""skglm's GroupLasso, and its proximal Newton solver for the logistic loss."""

import numpy as np
import scipy.sparse as sp
from skglm import GroupLasso
from skglm.datafits import LogisticGroup
from skglm.estimators import GeneralizedLinearEstimator
from skglm.penalties import WeightedGroupL2
from skglm.solvers import GroupProxNewton
from skglm.utils.data import grp_converter


def refuse(data, task):
    if data["is_logistic"] and sp.issparse(data["X"]):
        return "its solver of groups with the logistic loss takes no sparse matrix"
    return None


def fit(train, task):
    l1, tol = float(train["l1"]), task.settings["tol"]
    groups = [np.flatnonzero(train["groups"] == g).tolist() for g in np.unique(train["groups"])]
    weights = np.sqrt([len(group) for group in groups])
    if not train["is_logistic"]:
        model = GroupLasso(
            groups, alpha=l1, weights=weights, fit_intercept=False, tol=tol, max_iter=100,
            max_epochs=50_000,
        )  # fmt: skip
        return model.fit(train["X"], train["y"]).coef_
    starts, members = grp_converter(groups, train["X"].shape[1])
    model = GeneralizedLinearEstimator(
        LogisticGroup(starts, members), WeightedGroupL2(l1, weights, starts, members),
        GroupProxNewton(tol=tol, fit_intercept=False, max_iter=100),
    )  # fmt: skip
    return model.fit(train["X"], train["y"]).coef_
