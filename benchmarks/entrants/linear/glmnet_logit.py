"""python-glmnet's LogitNet. It needs a path: ten steps down to the weight that is asked for."""

import numpy as np
from glmnet import LogitNet

STEPS = 10


def fit(train, task):
    X, y, l1, tol = train["X"], train["y"], float(train["l1"]), task.settings["tol"]
    top = np.abs(X.T @ y).max() / (2 * len(y))
    path = np.geomspace(top, l1, STEPS)
    model = LogitNet(lambda_path=path, standardize=False, fit_intercept=False, n_splits=0, tol=tol)
    return model.fit(X, y).coef_path_[..., -1]
