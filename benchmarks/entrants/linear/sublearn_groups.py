"""GroupLinearRegression and GroupLogisticRegression."""

from sublearn.linear import GroupLinearRegression, GroupLogisticRegression


def fit(train, task):
    kind = GroupLogisticRegression if train["is_logistic"] else GroupLinearRegression
    model = kind(
        float(train["l1"]), feature_groups=train["groups"], fit_intercept=False, **task.settings
    )
    return model.fit(train["X"], train["y"]).coef_
