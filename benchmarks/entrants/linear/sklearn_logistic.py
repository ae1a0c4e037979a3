"""scikit-learn's LogisticRegression with any of its solvers."""

from sklearn.linear_model import LogisticRegression


def fit(train, task):
    C = 1.0 / (float(train["l1"]) * len(train["y"]))
    model = LogisticRegression(
        l1_ratio=1.0, C=C, fit_intercept=False, max_iter=10_000, **task.settings
    )
    return model.fit(train["X"], train["y"]).coef_
