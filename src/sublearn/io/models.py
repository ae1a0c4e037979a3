"""Saving and loading estimators: the classes a file may name, and what gives them `save`."""

from __future__ import annotations

import importlib
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sublearn.errors import ModelFileError
from sublearn.execution import one_at_a_time
from sublearn.io.bundle import Bundle, load_bundle, save_bundle
from sublearn.io.fields import Fields, Strings, check_fields, take_parts
from sublearn.io.state import pack_state, unpack_state
from sublearn.typing import PathLike, State
from sublearn.validation.params import Rule, SettingsOf, check_params
from sublearn.validation.settings import Settings

__all__ = [
    "MODELS",
    "SHARDS",
    "SavedModel",
    "load",
    "nested_state",
    "restore_nested",
    "storable_params",
]

#: Public class name to the room it is imported from. A file cannot make us import anything else.
MODELS = {
    "ChainSVM": "sublearn.structured",
    "DenseExtremeClassifier": "sublearn.embed",
    "EmbeddingExtremeClassifier": "sublearn.embed",
    "GroupLinearRegression": "sublearn.linear",
    "GroupLogisticRegression": "sublearn.linear",
    "HierarchicalClassifier": "sublearn.hierarchy",
    "HierarchicalMultilabelClassifier": "sublearn.hierarchy",
    "LabelReranker": "sublearn.extreme",
    "LatentFeatureLasso": "sublearn.latent",
    "LoadForecaster": "sublearn.forecast",
    "MIPSIndex": "sublearn.embed",
    "MixLassoRegressor": "sublearn.latent",
    "PDSparseClassifier": "sublearn.extreme",
    "PPDSparseClassifier": "sublearn.extreme",
    "PairwiseMultilabelSVM": "sublearn.structured",
    "SkipGram": "sublearn.embed",
    "SparseInverseCovariance": "sublearn.linear",
    "SparseLinearRegression": "sublearn.linear",
    "SparseLogisticRegression": "sublearn.linear",
    "SparseNetwork": "sublearn.trim",
    "StructuralSVM": "sublearn.structured",
    "TextTagger": "sublearn.extreme",
}

SHARDS = "shards.json"  # in a folder with a model in several files
_SHARDS_HOME = "sublearn.extreme.shards"
_CHANGING = {"fit", "partial_fit", "remove_labels", "calibrate", "update", "add", "remove", "tune"}
_NOT_STORED = {"callback", "model_path"}
_NOTE = "notes."  # heads the stored name of a note; no attribute has a dot in its name
# What a constructor, or NumPy, raises for values that are not what they should be.
_REFUSALS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)
_Model = TypeVar("_Model", bound="SavedModel")


def load(path: PathLike, *, mapped: bool = True) -> Any:
    """Open a model saved with its `save` method.

    Parameters
    ----------
    path : path
        The file; or the folder of a model in shards, or its `shards.json`.
    mapped : bool, default=True
        Whether the arrays of the model are views of the file, which the system reads when they are
        used and which processes share. The file must then not be changed in place. If False, they
        are read into memory.

    Returns
    -------
    estimator
        Fitted, of the class that was saved. Its arrays are read-only.

    Raises
    ------
    ModelFileError
        If the file is damaged, foreign, of a newer format, or names a class unknown here; if a
        parameter breaks the rule that `fit` applies, or fitted values do not belong together.
    """
    if Path(path).name == SHARDS or (Path(path) / SHARDS).is_file():
        return importlib.import_module(_SHARDS_HOME).load_shards(path, mapped=mapped)
    bundle = load_bundle(path, mapped=mapped)
    if bundle.class_name not in MODELS:
        import sublearn

        raise ModelFileError(
            f"{bundle.path}: holds a {bundle.class_name} saved by sublearn "
            f"{bundle.sublearn_version}, a class that sublearn {sublearn.__version__} does not know"
        )
    return _class_of(bundle.class_name)._from_bundle(bundle)


def _class_of(name: str) -> type[SavedModel]:
    return getattr(importlib.import_module(MODELS[name]), name)


class SavedModel:
    """Gives an estimator `save`; its class must be listed in `MODELS`.

    A subclass says in `_to_bundle` which fitted values prediction needs, and in `_fields` what they
    must be when they come back: nothing else about a file is known then. The default `_restore`
    sets them as attributes again; override it if they are parts of another object.

    Methods that change an estimator wait for each other if several threads call them.
    """

    notes_: State

    #: Which question the model answers, a name of `sublearn.kinds`: "row_labels", "loads" ...
    _kind: ClassVar[str]
    #: Names of parameters in files of earlier versions, and their names now, None if they are gone.
    #: "search.n_probe" is the field `n_probe` of the settings `search`.
    _FORMER_PARAMS: ClassVar[dict[str, str | None]] = {}
    #: For parameters, by their names now: values in files of earlier versions, and the values now.
    _FORMER_VALUES: ClassVar[dict[str, dict[object, object]]] = {}
    #: What a parameter may be; the same rules hold in `fit` and for files.
    _rules: ClassVar[Mapping[str, Rule]] = {}

    def __init_subclass__(cls, **options: object) -> None:
        for name in _CHANGING & set(vars(cls)):
            if not callable(vars(cls)[name]):
                continue  # there for some classifiers only, and takes its turn itself
            setattr(cls, name, one_at_a_time(vars(cls)[name]))
        super().__init_subclass__(**options)

    @one_at_a_time
    def save(self, path: PathLike, *, notes: Mapping[str, object] | None = None) -> None:
        """Write the fitted model to one file for `sublearn.load`.

        Parameters
        ----------
        path : path
            Replaced atomically; a failure leaves an old file as it was.
        notes : mapping of str to arrays, sparse matrices or JSON values, optional
            What a user of the file must know beside the model, for instance how the features were
            prepared. A loaded model has them as `notes_`, and keeps them when saved again without
            `notes`.

        Notes
        -----
        Parameters are stored too, with some exceptions. `callback` is a function and is left out,
        and so is `model_path`, which belongs to one machine. A `random_state` that is a generator
        object is stored as None, since its state after fitting would not make another fit repeat
        this one; integers are kept. An array, such as a `class_weight`, comes back as a list, and
        a mapping of any kind as a dict.
        """
        check_is_fitted(self)
        self._check_is_listed()
        notes = getattr(self, "notes_", {}) if notes is None else notes
        noted = {f"{_NOTE}{name}": value for name, value in notes.items()}
        arrays, attributes = pack_state(self._to_bundle() | noted)
        save_bundle(
            path,
            class_name=type(self).__name__,
            params=self._stored_params(),
            arrays=arrays,
            attributes=attributes,
        )

    def _check_is_listed(self) -> None:
        """A file that no one could load is refused while the model is still at hand."""
        cls = type(self)
        home = MODELS.get(cls.__name__)
        if home is None or not f"{cls.__module__}.".startswith(f"{home}."):
            raise TypeError(
                f"{cls.__name__}.save needs a class that sublearn.load knows, "
                f"got {cls.__module__}.{cls.__qualname__}"
            )

    def _stored_params(self) -> State:
        """Constructor parameters as JSON values; override it if one of them is an estimator."""
        return storable_params(self)

    def _to_bundle(self) -> State:
        """Fitted values by attribute name: arrays, string arrays, CSR/CSC matrices, JSON values."""
        raise NotImplementedError(f"{type(self).__name__}._to_bundle is missing")

    def _fields(self) -> Fields:
        """What each value of `_to_bundle` must be, by name; parameters are known and checked."""
        raise NotImplementedError(f"{type(self).__name__}._fields is missing")

    def _check_params(self) -> None:
        """Refuse parameters as `fit` does; override it if rules for each of them say too little."""
        check_params(self)

    def _restore(self, state: State) -> None:
        """Inverse of `_to_bundle` on an estimator that has its parameters only.

        The state has passed `_fields`.
        """
        for name, value in state.items():
            setattr(self, name, value)

    @classmethod
    def _current_params(cls, stored: Mapping[str, object]) -> dict[str, object]:
        """Parameters from a file, of this version or an earlier one, as the constructor takes them.

        Override it where names and values alone do not tell.
        """
        params: dict[str, object] = {}
        groups: dict[str, dict[str, object]] = {}
        for former, value in _with_patience(stored).items():
            name = cls._FORMER_PARAMS.get(former, former)
            if name is None:
                continue
            value = _current_value(cls._FORMER_VALUES.get(name, {}), value)
            owner, _, field = name.partition(".")
            if field:
                groups.setdefault(owner, {})[field] = value
            else:
                params[name] = value
        for owner, fields in groups.items():
            given = params.get(owner)
            params[owner] = {**given, **fields} if isinstance(given, Mapping) else fields
        for name, rule in cls._rules.items():
            if isinstance(rule, SettingsOf) and name in params:
                params[name] = rule.restored(params[name])
        return params

    @classmethod
    def _from_bundle(cls: type[_Model], bundle: Bundle) -> _Model:
        if bundle.class_name != cls.__name__:
            raise ModelFileError(
                f"{bundle.path}: a saved {cls.__name__} is needed, got a {bundle.class_name}"
            )
        try:
            state = unpack_state(bundle.arrays, bundle.attributes)
            notes = take_parts(state, _NOTE)
            model = _make(cls, bundle.params, state)
            if notes:
                _check_notes(notes, model)
                model.notes_ = notes
        except _REFUSALS as error:
            raise ModelFileError(
                f"{bundle.path}: {_said(error)} ({cls.__name__} saved by sublearn "
                f"{bundle.sublearn_version})"
            ) from error
        return model


def _make(cls: type[_Model], params: Mapping[str, object], state: State) -> _Model:
    """A fitted model of parts that nothing is known about yet."""
    model = cls(**cls._current_params(params))
    model._check_params()
    check_fields(state, model._fields())
    model._restore(state)
    return model


def _with_patience(stored: Mapping[str, object]) -> dict[str, object]:
    """`early_stopping` was True or False, and its patience a parameter of its own."""
    params = dict(stored)
    patience = params.pop("n_iter_no_change", None)
    if patience is not None and params.get("early_stopping") is True:
        params["early_stopping"] = patience
    return params


def _current_value(former: Mapping[object, object], value: object) -> object:
    return former.get(value, value) if isinstance(value, Hashable) else value


def _said(error: Exception) -> str:
    if isinstance(error, KeyError):  # a field that is there only in some models
        return f"{error.args[0]} must be there, got no such field"
    return str(error) or type(error).__name__


def _check_notes(notes: Mapping[str, object], model: object) -> None:
    """Names of columns are used beside the model; other notes are their reader's business."""
    if notes.get("feature_names") is not None:
        sizes = {"features": int(getattr(model, "n_features_in_", 0))}
        names = {"notes.feature_names": notes["feature_names"]}
        check_fields(names, {"notes.feature_names": Strings("features")}, sizes)


def nested_state(model: object, prefix: str) -> State:
    """A fitted model as a part of another one's state, each name headed by `prefix`."""
    if not isinstance(model, SavedModel):
        raise TypeError(
            f"a classifier of this library is needed to be saved, got {type(model).__name__}"
        )
    model._check_is_listed()
    own = {"class": type(model).__name__, "params": model._stored_params()}
    return {f"{prefix}{name}": value for name, value in (own | model._to_bundle()).items()}


def restore_nested(state: State, prefix: str) -> Any:
    """Inverse of `nested_state`: takes the parts out of `state` and makes the model of them."""
    parts = take_parts(state, prefix)
    name, params = parts.pop("class", None), parts.pop("params", None)
    cls = _class_of(name) if isinstance(name, str) and name in MODELS else None
    if cls is None or not issubclass(cls, SavedModel) or not isinstance(params, Mapping):
        raise ValueError(f"{prefix}class must name a model with parameters, got {name!r}")
    try:
        return _make(cls, params, parts)
    except _REFUSALS as error:
        raise ValueError(f"{prefix}{_said(error)}") from error


def storable_params(model: BaseEstimator) -> State:
    """Constructor parameters without those that no file can hold."""
    params = model.get_params(deep=False)
    return {name: _storable(value) for name, value in params.items() if name not in _NOT_STORED}


def _storable(value: object) -> object:
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        return None
    if isinstance(value, np.ndarray) or (hasattr(value, "__array__") and hasattr(value, "__len__")):
        return np.asarray(value).tolist()  # also a column of a data frame
    if isinstance(value, Settings):
        return value.to_dict()
    return dict(value) if isinstance(value, Mapping) else value
