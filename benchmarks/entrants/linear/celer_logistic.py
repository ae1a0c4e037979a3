"""celer's LogisticRegression, its proximal Newton solver."""

from celer import LogisticRegression


def fit(train, task):
    X, y, l1, tol = train["X"], train["y"], float(train["l1"]), task.settings["tol"]
    model = LogisticRegression(C=1.0 / (l1 * len(y)), tol=tol, fit_intercept=False, max_iter=100)
    return model.fit(X, y).coef_
