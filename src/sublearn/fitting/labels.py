"""What classifiers of labels in any form share: forms, scores and the best labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags

from sublearn.fitting.model import FittedModel
from sublearn.io.fields import Fields, Labels, OrAbsent, Strings
from sublearn.metrics.exact_labels import share_right
from sublearn.typing import LabelsLike, MatrixLike, WeightsLike
from sublearn.validation import EncodedLabels, LabelKind, OneOf, Positive, check_argument

if TYPE_CHECKING:
    from sublearn.validation.labels import DecodedLabels

__all__ = ["LabelClassifier", "as_k", "best_labels"]


def as_k(k: int, n_labels: int) -> int:
    """`k` of `predict_top_k`, or all labels if there are fewer."""
    check_argument("predict_top_k.k", k, Positive(int))
    return min(int(k), n_labels)


def best_labels(
    classes: np.ndarray, scores: np.ndarray, k: int, values: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The `k` labels of largest score of each row, best first, and their scores, or `values`."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, : as_k(k, scores.shape[1])]
    values = scores if values is None else values
    return classes[order], np.take_along_axis(values, order, axis=1)


class LabelClassifier(FittedModel, ClassifierMixin):
    """A classifier that takes labels in any form, and gives them back in the same one."""

    classes_: np.ndarray
    label_kind_: str
    label_names_: np.ndarray  # only if labels came as a data frame with string column names
    predict: Callable[[MatrixLike], DecodedLabels]

    _STORED: ClassVar[tuple[str, ...]] = ("classes_", "label_kind_", "label_names_")

    def _keep_labels(self, labels: EncodedLabels) -> None:
        self.classes_, self.label_kind_ = labels.classes, labels.kind.name
        self.__dict__.pop("label_names_", None)
        if labels.names is not None:
            self.label_names_ = labels.names

    @property
    def _label_kind(self) -> LabelKind:
        return LabelKind[self.label_kind_]

    def score(
        self, X: MatrixLike, y: LabelsLike, sample_weight: WeightsLike | None = None
    ) -> float:
        """Accuracy; with several labels per sample, the share of samples with exactly their labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        y : array-like, sparse matrix, or list of label lists
            True labels, in the form given to `fit`.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of the samples.

        Returns
        -------
        float
        """
        predicted = self.predict(X)
        return share_right(self._label_kind, self.classes_, y, predicted, sample_weight)

    def _fields(self) -> Fields:
        return super()._fields() | {
            "classes_": Labels("classes"),
            "label_kind_": OneOf(*LabelKind.__members__),
            "label_names_": OrAbsent(Strings("classes")),
        }

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
