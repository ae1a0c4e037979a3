"""graphical_lasso of scikit-learn; settings "tol" and "enet_tol" are its own."""

import warnings

from sklearn.covariance import graphical_lasso


def fit(train, task):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return graphical_lasso(train["S"], float(train["l1"]), max_iter=1000, **task.settings)[1]


def predict(precision, test, task):
    return {"precision": precision}
