"""skglm's SparseLogisticRegression; compiles in every process, which the cold start shows."""

from skglm import SparseLogisticRegression


def fit(train, task):
    X, y, l1, tol = train["X"], train["y"], float(train["l1"]), task.settings["tol"]
    model = SparseLogisticRegression(
        alpha=l1, fit_intercept=False, tol=tol, max_iter=50, max_epochs=50_000
    )
    return model.fit(X, y).coef_
