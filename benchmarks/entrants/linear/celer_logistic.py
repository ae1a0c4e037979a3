"""celer's LogisticRegression, its proximal Newton solver."""

from celer import LogisticRegression

TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)


def fit(X, y, l1, tol):
    model = LogisticRegression(C=1.0 / (l1 * len(y)), tol=tol, fit_intercept=False, max_iter=100)
    return model.fit(X, y).coef_
