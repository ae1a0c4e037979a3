"""What estimators over a taxonomy share: reading it, their linear models, and saved files."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from sublearn.fitting.model import FittedModel
from sublearn.hierarchy.label_models import LabelModels
from sublearn.hierarchy.taxonomy import Taxonomy
from sublearn.io.fields import (
    Floats,
    Integers,
    Labels,
    Number,
    Offsets,
    OrAbsent,
    Sparse,
    check_fields,
)
from sublearn.io.limits import check_expansion
from sublearn.io.models import nested_state, restore_nested, storable_params
from sublearn.validation import (
    Boolean,
    EncodedLabels,
    LabelKind,
    OneOf,
    encode_labels,
)
from sublearn.validation.design import check_new_rows

__all__ = ["TaxonomyModel", "store_models", "take_models", "unfitted"]

_MOST_LEVELS = 1000  # of a taxonomy in a file


class TaxonomyModel(FittedModel, BaseEstimator):
    """An estimator with a parameter `taxonomy`, fitted as `taxonomy_`.

    `_linear` are the sparse linear models of labels; None if `estimator` learned in their place.
    """

    taxonomy: Taxonomy | None
    taxonomy_: Taxonomy
    label_kind_: str
    _linear: LabelModels | None

    _STORED: ClassVar[tuple[str, ...]] = ("classes_", "ends_", "label_kind_")

    def _read_labels(self, y: Any, n_samples: int) -> EncodedLabels:
        """Labels, and the taxonomy that they belong to."""
        name = type(self).__name__
        y = y if self.taxonomy is None else self.taxonomy.arrange(y, who=name)
        encoded = encode_labels(y, n_samples, estimator_name=name)
        self.taxonomy_ = self.taxonomy or Taxonomy.flat(encoded.classes.tolist())
        self.label_kind_ = encoded.kind.name
        return encoded

    @property
    def _kind(self) -> LabelKind:
        return LabelKind[self.label_kind_]

    # --- the model ---------------------------------------------------------------------------

    @property
    def coef_(self) -> sp.csr_matrix:
        """Weights of shape (n_labels, n_features)."""
        return self._weights.weights.T

    @property
    def intercept_(self) -> np.ndarray:
        """Intercepts of shape (n_labels,)."""
        return self._weights.intercepts

    @property
    def _weights(self) -> LabelModels:
        check_is_fitted(self)
        if self._linear is None:
            raise AttributeError("a model with an estimator has no weights of its own")
        return self._linear

    def _check_new(self, X: Any) -> Any:
        """Rows to predict, as an array or a csr_matrix."""
        check_is_fitted(self)
        X = check_new_rows(self, X)
        return X.tocsr() if sp.issparse(X) else X

    # --- saving ------------------------------------------------------------------------------

    def _stored_params(self) -> dict[str, Any]:
        params = storable_params(self)
        return params | {name: None for name in ("taxonomy", "estimator") if name in params}

    def _to_bundle(self) -> dict[str, Any]:
        state, own = super()._to_bundle(), self.taxonomy_
        state |= {"taxonomy.indptr": own.indptr, "taxonomy.parents": own.indices}
        state |= {"taxonomy.names": own.names, "has_taxonomy": self.taxonomy is not None}
        if self._linear is not None:
            linear = self._linear
            state |= {"weights": linear.weights, "intercepts": linear.intercepts}
        return state

    def _fields(self) -> Any:
        return super()._fields() | {
            "taxonomy.indptr": Offsets("labels", "edges"),
            "taxonomy.parents": Integers("edges", high="labels"),
            "taxonomy.names": Labels("labels"),
            "has_taxonomy": Boolean(),
            "label_kind_": OneOf(*LabelKind.__members__),
            "weights": OrAbsent(Sparse("features", "labels", "csc", finite=True)),
            "intercepts": OrAbsent(Floats("labels")),
            "classes_": Labels("classes"),
            "ends_": Integers("ends", high="labels"),
            "objective_": OrAbsent(Number()),  # models that earlier versions wrote have none
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self._linear = None
        if "weights" in state:
            self._linear = LabelModels(state.pop("weights"), state.pop("intercepts"))
        indptr, parents = state.pop("taxonomy.indptr"), state.pop("taxonomy.parents")
        names = state.pop("taxonomy.names")
        lists = [parents[a:b].tolist() for a, b in itertools.pairwise(indptr)]
        _refuse_long_chains(indptr, parents)
        self.taxonomy_ = Taxonomy(lists, names.tolist())
        self.taxonomy = self.taxonomy_ if state.pop("has_taxonomy") else None
        super()._restore(state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _refuse_long_chains(indptr: np.ndarray, parents: np.ndarray) -> None:
    """The ancestors of all labels are listed when first needed; those of a chain are many."""
    children = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    levels = np.zeros(len(indptr) - 1, dtype=np.int64)
    for _ in range(_MOST_LEVELS):
        before = levels.copy()
        np.maximum.at(levels, children, before[parents] + 1)
        if np.array_equal(levels, before):
            break
    else:
        raise ValueError(f"taxonomy.parents must have at most {_MOST_LEVELS} levels and no cycle")
    check_expansion("taxonomy.parents", 12 * int(levels.sum()), indptr.nbytes + parents.nbytes)


def store_models(models: dict[int, Any], prefix: str) -> dict[str, Any]:
    """Fitted estimators of this library as parts of a saved model."""
    state: dict[str, Any] = {f"{prefix}keys": np.array(sorted(models), dtype=np.int64)}
    for key in sorted(models):
        state |= nested_state(models[key], f"{prefix}{key}.")
    return state


def take_models(state: dict[str, Any], prefix: str) -> dict[int, Any]:
    """Inverse of `store_models`; the models have been fitted to the state's features."""
    keys = state.pop(f"{prefix}keys", None)
    check_fields({f"{prefix}keys": keys}, {f"{prefix}keys": Integers(None, low=-1)})
    models = {key: restore_nested(state, f"{prefix}{key}.") for key in keys.tolist()}
    for key, model in models.items():
        n_features = getattr(model, "n_features_in_", None)
        if n_features != state["n_features_in_"] or not hasattr(model, "classes_"):
            raise ValueError(
                f"{prefix}{key}.class must be a classifier of {state['n_features_in_']} features, "
                f"got {type(model).__name__} of {n_features}"
            )
    return models


def unfitted(models: dict[int, Any]) -> Any:
    """The estimator that fitted ones were clones of, None if there are none."""
    return clone(next(iter(models.values()))) if models else None
