"""SparseLogisticRegression."""

from sublearn.linear import SparseLogisticRegression


def fit(train, task):
    model = SparseLogisticRegression(l1=float(train["l1"]), fit_intercept=False, **task.settings)
    return model.fit(train["X"], train["y"]).coef_
