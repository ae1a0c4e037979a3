"""A small classifier made of the validation room alone keeps scikit-learn's contract."""

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

from sublearn.validation import (
    LabelKind,
    NonNegative,
    assert_rules_complete,
    check_features,
    check_params,
    decode_predictions,
    encode_labels,
)


class CentroidClassifier(ClassifierMixin, BaseEstimator):
    """Scores a label by the inner product with the mean of its rows, minus half its norm."""

    _rules = {"threshold": NonNegative(float)}  # noqa: RUF012

    def __init__(self, threshold=0.0):
        self.threshold = threshold

    def fit(self, X, y):
        check_params(self)
        X = check_features(self, X, reset=True)
        labels = encode_labels(y, X.shape[0], estimator_name=type(self).__name__)
        self.classes_, self._kind = labels.classes, labels.kind
        counts = np.maximum(labels.counts(), 1)
        self.means_ = labels.to_csr().T.astype(float) @ X.toarray() / counts[:, None]
        return self

    def decision_function(self, X):
        check_is_fitted(self)
        X = check_features(self, X, reset=False)
        scores = X @ self.means_.T - 0.5 * (self.means_**2).sum(axis=1)
        return scores[:, 1] - scores[:, 0] if self._kind is LabelKind.BINARY else scores

    def predict(self, X):
        scores = self.decision_function(X)
        if self._kind is LabelKind.BINARY:
            return self.classes_[(scores > self.threshold).astype(int)]
        if self._kind is LabelKind.MULTICLASS:
            return self.classes_[scores.argmax(axis=1)]
        return decode_predictions(self._kind, self.classes_, sp.csr_matrix(scores > self.threshold))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags


@parametrize_with_checks([CentroidClassifier()])
def test_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_has_a_rule_for_each_parameter():
    assert_rules_complete(CentroidClassifier())
