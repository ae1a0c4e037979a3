"""What estimators over a taxonomy share: reading it, their linear models, and saved files."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from sublearn.fitting.labels import LabelClassifier
from sublearn.hierarchy.label_models import LabelModels, by_rows
from sublearn.hierarchy.path_arrays import as_path_array
from sublearn.hierarchy.taxonomy import Taxonomy, find_levels
from sublearn.io import fields
from sublearn.io.limits import check_expansion
from sublearn.io.models import nested_state, restore_nested, storable_params
from sublearn.io.taxonomies import NamedEdges
from sublearn.typing import LabelsLike, Matrix, MatrixLike, State
from sublearn.validation import Boolean, EncodedLabels, InstanceOf, OrNone, Rule, encode_labels
from sublearn.validation.design import check_new_rows

__all__ = [
    "TAXONOMY_RULE",
    "HasScores",
    "TaxonomyModel",
    "named_columns",
    "store_models",
    "take_models",
    "unfitted",
]

#: What `taxonomy` may be.
TAXONOMY_RULE = OrNone(InstanceOf(Taxonomy, NamedEdges))
_MOST_LEVELS = 1000  # of a taxonomy in a file


def named_columns(y: LabelsLike) -> list[str]:
    """Names of the columns of a frame of two or more; empty if there are none."""
    names = list(getattr(y, "columns", ()))
    are_names = len(names) > 1 and all(isinstance(name, str) for name in names)
    return names if are_names else []


class HasScores(Rule):
    """An estimator whose classes have scores, or None."""

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        if value is None:
            return True
        has_scores = hasattr(value, "predict_proba") or hasattr(value, "decision_function")
        return hasattr(value, "fit") and has_scores and not isinstance(value, type)

    def __str__(self) -> str:
        return "an estimator with fit and with predict_proba or decision_function, or None"


class TaxonomyModel(LabelClassifier, BaseEstimator):
    """An estimator with a parameter `taxonomy`, fitted as `taxonomy_`.

    `_linear` are the sparse linear models of labels; None if `estimator` learned in their place.
    """

    _kind: ClassVar[str] = "taxonomy_labels"

    taxonomy: Taxonomy | NamedEdges | None
    taxonomy_: Taxonomy
    ends_: np.ndarray
    _linear: LabelModels | None

    _STORED: ClassVar[tuple[str, ...]] = (*LabelClassifier._STORED, "ends_")

    def _read_labels(self, y: LabelsLike, n_samples: int) -> EncodedLabels:
        """Labels, and the taxonomy that they belong to."""
        name = type(self).__name__
        given = self._given_taxonomy(y)
        arranged = y if given is None else given.arrange(y, f"{name}: y")
        encoded = encode_labels(arranged, n_samples, estimator_name=name)
        self.taxonomy_ = given or Taxonomy.flat(encoded.classes.tolist())
        self.label_kind_ = encoded.kind.name
        return encoded

    def _given_taxonomy(self, y: LabelsLike) -> Taxonomy | None:
        """The taxonomy of the parameter, of paths, or of the names of columns, if there is one."""
        if isinstance(self.taxonomy, NamedEdges):
            return Taxonomy.from_edges(self.taxonomy)
        if self.taxonomy is not None:
            return self.taxonomy
        paths = as_path_array(y)
        if paths is not None:
            return Taxonomy.from_path_array(paths)
        names = named_columns(y)
        return Taxonomy.flat(names) if names else None

    # --- the model ---------------------------------------------------------------------------

    @property
    def coef_(self) -> sp.csr_matrix:
        """Weights of shape (n_labels, n_features)."""
        return self._weights.weights[:, : self.taxonomy_.n_labels].T

    @property
    def intercept_(self) -> np.ndarray:
        """Intercepts of shape (n_labels,)."""
        return self._weights.intercepts[: self.taxonomy_.n_labels]

    @property
    def _weights(self) -> LabelModels:
        check_is_fitted(self)
        if self._linear is None:
            raise AttributeError("a model with an estimator has no weights of its own")
        return self._linear

    def _check_new(self, X: MatrixLike) -> Matrix:
        """Rows to predict, as an array or a csr_matrix."""
        check_is_fitted(self)
        return by_rows(check_new_rows(self, X))

    # --- saving ------------------------------------------------------------------------------

    def _stored_params(self) -> State:
        params = storable_params(self)
        return params | {name: None for name in ("taxonomy", "estimator") if name in params}

    def _to_bundle(self) -> State:
        state, own = super()._to_bundle(), self.taxonomy_
        state |= {"taxonomy.indptr": own.indptr, "taxonomy.parents": own.indices}
        state |= {"taxonomy.names": own.names, "has_taxonomy": self.taxonomy is not None}
        if self._linear is not None:
            n, linear = own.n_labels, self._linear
            state |= {"weights": linear.weights[:, :n], "intercepts": linear.intercepts[:n]}
        return state

    def _fields(self) -> fields.Fields:
        weights = fields.Sparse("features", "labels", "csc", finite=True)
        return super()._fields() | {
            "taxonomy.indptr": fields.Offsets("labels", "edges"),
            "taxonomy.parents": fields.Integers("edges", high="labels"),
            "taxonomy.names": fields.Labels("labels"),
            "has_taxonomy": Boolean(),
            "weights": fields.OrAbsent(weights),
            "intercepts": fields.OrAbsent(fields.Floats("labels")),
            "ends_": fields.Integers("ends", high="labels"),
            "objective_": fields.OrAbsent(fields.Number()),  # not in files of earlier versions
        }

    def _restore(self, state: State) -> None:
        self._linear = None
        if "weights" in state:
            self._linear = LabelModels(state.pop("weights"), state.pop("intercepts"))
        indptr, parents = state.pop("taxonomy.indptr"), state.pop("taxonomy.parents")
        _refuse_long_chains(indptr, parents)
        lists = [parents[a:b].tolist() for a, b in pairwise(indptr)]
        self.taxonomy_ = Taxonomy(lists, state.pop("taxonomy.names").tolist())
        self.taxonomy = self.taxonomy_ if state.pop("has_taxonomy") else None
        super()._restore(state)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _refuse_long_chains(indptr: np.ndarray, parents: np.ndarray) -> None:
    """The ancestors of all labels are listed when first needed; those of a chain are many."""
    levels = find_levels(indptr, parents, _MOST_LEVELS)
    if levels is None:
        raise ValueError(f"taxonomy.parents must have at most {_MOST_LEVELS} levels and no cycle")
    check_expansion("taxonomy.parents", 12 * int(levels.sum()), indptr.nbytes + parents.nbytes)


def store_models(models: dict[int, BaseEstimator], prefix: str) -> State:
    """Fitted estimators of this library as parts of a saved model."""
    state: State = {f"{prefix}keys": np.array(sorted(models), dtype=np.int64)}
    for key in sorted(models):
        state |= nested_state(models[key], f"{prefix}{key}.")
    return state


def take_models(state: State, prefix: str) -> dict[int, BaseEstimator]:
    """Inverse of `store_models`; the models have been fitted to the state's features."""
    keys = state.pop(f"{prefix}keys", None)
    fields.check_fields({f"{prefix}keys": keys}, {f"{prefix}keys": fields.Integers(None, low=-1)})
    models = {key: restore_nested(state, f"{prefix}{key}.") for key in keys.tolist()}
    for key, model in models.items():
        n_features = getattr(model, "n_features_in_", None)
        if n_features != state["n_features_in_"] or not hasattr(model, "classes_"):
            raise ValueError(
                f"{prefix}{key}.class must be a classifier of {state['n_features_in_']} features, "
                f"got {type(model).__name__} of {n_features}"
            )
    return models


def unfitted(models: dict[int, BaseEstimator]) -> BaseEstimator | None:
    """The estimator that fitted ones were clones of, None if there are none."""
    return clone(next(iter(models.values()))) if models else None
