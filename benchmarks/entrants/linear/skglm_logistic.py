"""skglm's SparseLogisticRegression; compiles in every process, which the cold start shows."""

from skglm import SparseLogisticRegression

TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)


def fit(X, y, l1, tol):
    model = SparseLogisticRegression(
        alpha=l1, fit_intercept=False, tol=tol, max_iter=50, max_epochs=50_000
    )
    return model.fit(X, y).coef_
