"""celer's GroupLasso."""

import numpy as np
from celer import GroupLasso


def refuse(data, task):
    return "it has no logistic loss of groups" if data["is_logistic"] else None


def fit(train, task):
    groups = [np.flatnonzero(train["groups"] == g).tolist() for g in np.unique(train["groups"])]
    model = GroupLasso(
        groups, alpha=float(train["l1"]), weights=np.sqrt([len(group) for group in groups]),
        tol=task.settings["tol"], fit_intercept=False, max_iter=100,
    )  # fmt: skip
    return model.fit(train["X"], train["y"]).coef_
