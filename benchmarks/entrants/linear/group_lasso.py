"""group-lasso: accelerated proximal gradients, in the form of scikit-learn."""

import numpy as np
from group_lasso import GroupLasso, LogisticGroupLasso


def fit(train, task):
    options = {
        "groups": train["groups"], "group_reg": float(train["l1"]), "l1_reg": 0.0,
        "tol": task.settings["tol"], "n_iter": 10_000, "fit_intercept": False,
        "scale_reg": "group_size", "supress_warning": True,
    }  # fmt: skip
    if train["is_logistic"]:
        model = LogisticGroupLasso(**options).fit(train["X"], train["y"])
        weights = np.asarray(model.coef_)
        return (
            weights[:, 1] - weights[:, 0]
            if weights.ndim == 2 and weights.shape[1] == 2
            else weights
        )
    return GroupLasso(**options, frobenius_lipschitz=True).fit(train["X"], train["y"]).coef_
