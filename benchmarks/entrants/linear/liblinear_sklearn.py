"""scikit-learn's LogisticRegression on liblinear."""

import numpy as np
from sklearn.linear_model import LogisticRegression

TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)


def fit(X, y, l1, tol):
    C = 1.0 / (l1 * len(y))
    model = LogisticRegression(
        l1_ratio=1.0, solver="liblinear", C=C, fit_intercept=False, tol=tol, max_iter=10_000
    )
    return np.asarray(model.fit(X, y).coef_)
