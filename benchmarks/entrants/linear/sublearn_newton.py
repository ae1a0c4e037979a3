"""SparseLogisticRegression with its default solver."""

from sublearn.linear import SparseLogisticRegression

TOLERANCES = (1e-1, 1e-2, 3e-3, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
SOLVER = "newton"


def fit(X, y, l1, tol):
    model = SparseLogisticRegression(l1=l1, tol=tol, fit_intercept=False, solver=SOLVER)
    return model.fit(X, y).coef_
