"""Arrays into every estimator: malformed sparse matrices, strange types, layouts and numbers.

A new estimator is a line of `FITS`; what predicts is taken from the golden models.
"""

from __future__ import annotations

import contextlib
import functools
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from engine import Failure, Target
from model_targets import GOLDEN, model_file, question
from mutate import some

import sublearn
from sublearn.forecast import LoadFeatures, LocalKernels
from sublearn.hierarchy import GroupWeights, Taxonomy
from sublearn.latent import MixtureSearch

sys.path.insert(0, str(Path(__file__).parents[1] / "estimators"))

from estimator_cases import CASES

# --- damage to arrays ----------------------------------------------------------------------------

_SPARSE = (sp.csr_matrix, sp.csc_matrix, sp.coo_matrix, sp.csr_array, sp.csc_array, sp.coo_array,
           sp.lil_matrix, sp.dok_matrix, sp.bsr_matrix)  # fmt: skip
_IDS = (-1, -5, 2**31 - 1, -(2**31), 2_000_000_000, 10**6)
_FLOATS = (np.nan, np.inf, -np.inf, 1e200, -1e200, 1e308, 1e39, 1e20, 1e-310, -0.0)


def malformed(rng: random.Random, matrix: Any) -> Any:
    """A compressed or coordinate matrix whose parts do not fit; SciPy does not look."""
    out = rng.choice(_SPARSE[:6])(matrix if sp.issparse(matrix) else np.atleast_2d(matrix))
    if out.format == "coo":
        name = rng.choice(("row", "col", "data"))
        part = np.array(getattr(out, name))
        part = part[:-1] if name == "data" else _with(rng, part, (*_IDS, max(matrix.shape)))
        out.data = part if name == "data" else out.data
        if name != "data":
            axis = 0 if name == "row" else 1
            ids = tuple(part if k == axis else np.array(c) for k, c in enumerate(out.coords))
            out.coords = ids
        return out
    name = rng.choice(("indices", "indptr", "indptr", "data"))
    part = np.array(getattr(out, name))
    if name == "data" or rng.random() < 0.2:
        part = rng.choice((part[:-1], part[:0], np.append(part, part[:1]), part[None]))
    else:
        for _ in range(some(rng, 3)):
            part = _with(rng, part, (*_IDS, *out.shape, out.nnz + 1, 0))
        if name == "indptr" and rng.random() < 0.3:
            part[-1] = rng.choice((0, -1, out.nnz + 1))
    if rng.random() < 0.2 and part.dtype.kind == "i":
        part = part.astype(rng.choice((np.int64, np.int16, np.uint32, np.float64)))
    setattr(out, name, part)
    return out


def _with(rng: random.Random, array: np.ndarray, choices: Any) -> np.ndarray:
    out = array.copy()
    if out.size:
        with np.errstate(all="ignore"):
            at = rng.choice((0, out.size - 1, rng.randrange(out.size)))
            out.flat[at] = np.array(rng.choice(choices)).astype(out.dtype)
    return out


def unaligned(rng: random.Random, array: np.ndarray) -> np.ndarray:
    room = np.empty(array.nbytes + 1, np.uint8)
    out = room[1:].view(array.dtype).reshape(array.shape)
    out[...] = array
    return out


def strange(rng: random.Random, array: np.ndarray) -> Any:
    """The same numbers in another layout or type; most of these are to be taken."""
    makers: tuple[Callable[[], Any], ...] = (
        lambda: unaligned(rng, array),
        lambda: array.astype(array.dtype.newbyteorder()),
        lambda: np.asfortranarray(array),
        lambda: np.repeat(array, 2, axis=0)[::2],
        lambda: array[::-1][::-1],
        lambda: array.astype(
            rng.choice((np.float32, np.float16, np.int8, np.uint64, np.longdouble))
        ),
        lambda: array.astype(rng.choice((np.complex64, object, str, bool))),
        lambda: np.broadcast_to(array[:1], array.shape),
        lambda: _read_only(array),
        lambda: np.ma.masked_array(array, mask=array == array.flat[0]),
        lambda: np.asmatrix(array) if array.ndim == 2 else array[:, None],
        lambda: array.tolist(),
        lambda: rng.choice(_SPARSE)(array) if array.ndim == 2 else array,
    )
    try:
        return rng.choice(makers)()
    except (TypeError, ValueError):  # NumPy knows no such form of these values
        return array.tolist()


def _read_only(array: np.ndarray) -> np.ndarray:
    out = array.copy()
    out.flags.writeable = False
    return out


def misshapen(rng: random.Random, array: np.ndarray) -> Any:
    return rng.choice((
        array[:-1], array[:1], array[:0], array[..., :0], array[..., :1], array.ravel(),
        array[None],
        np.concatenate([array, array]), np.array(3.0), np.empty((0, 0)), None, "text", 5, [], [[]],
        [[1], [2, 3]], {"a": 1}, np.array([None, 1], object), array.astype("datetime64[s]")
        if array.dtype.kind in "iu" else array.T,
    ))  # fmt: skip


def hostile_features(rng: random.Random, X: np.ndarray) -> Any:
    kind = rng.random()
    if kind < 0.35 and X.ndim <= 2:
        return malformed(rng, X)
    if kind < 0.6:
        out = X
        for _ in range(some(rng, 3)):
            out = _with(rng, out, _FLOATS)
        return out if rng.random() < 0.6 else strange(rng, out)
    return strange(rng, X) if kind < 0.85 else misshapen(rng, X)


def hostile_labels(rng: random.Random, y: Any) -> Any:
    if sp.issparse(y):
        return malformed(rng, y) if rng.random() < 0.7 else misshapen(rng, y.toarray())
    array = np.asarray(y)
    if array.dtype.kind == "f":
        return hostile_features(rng, array) if rng.random() < 0.5 else _with(rng, array, _FLOATS)
    kind = rng.random()
    if kind < 0.3:
        return strange(rng, array)
    if kind < 0.6:
        return misshapen(rng, array)
    return rng.choice((
        np.full(len(array), 2**62), np.full(len(array), np.nan), np.arange(len(array)) * 10**15,
        ["\udc80"] * len(array), [b"bytes"] * len(array), [None] * len(array),
        [("a", "b")] * len(array), [[1, 1, 1]] * len(array), [[]] * len(array),
        [[-1]] * len(array), [{1: 2}] * len(array), [float("nan")] * len(array), array[::-1],
        np.array([2**63], dtype=np.uint64).repeat(len(array)), [["x" * 10**5]] * len(array),
    ))  # fmt: skip


# --- fits ----------------------------------------------------------------------------------------

_rng = np.random.default_rng(0)
_X = np.round(_rng.normal(size=(24, 5)), 2) * (_rng.random((24, 5)) < 0.7)
_CLASSES = np.argmax(_X[:, :3], axis=1)
_SETS = sp.csr_matrix((_rng.random((24, 4)) < 0.4).astype(np.int8))
_NUMBERS = np.round(_X @ [1.0, 0, -2, 0, 0.5] + 0.1 * _rng.normal(size=24), 2)
_TREE = Taxonomy.from_paths(["a.x", "a.y", "b"])
_LEAVES = np.array(["a.x", "a.y", "b"])[_CLASSES]
_LEAF_SETS = sp.csr_matrix((_rng.random((24, 5)) < 0.4).astype(np.int8))[:, :4]
_LOADS = 100 + 20 * (np.arange(84) % 2) + np.round(_rng.normal(size=84), 2)

_LAYER = {"max_iter": 1, "search": None}


def _make(name: str, **params: Any) -> Callable[[], Any]:
    return functools.partial(CASES[name].make, **{"max_iter": 5, "n_jobs": 1} | params)


_PPD = _make("PPDSparseClassifier", search="exact", prune=0.0)
_PD = _make("PDSparseClassifier", early_stopping=False)
_LOGISTIC = _make("SparseLogisticRegression")
_DENSE = _make("DenseExtremeClassifier", **_LAYER)
FITS: dict[str, tuple[Callable[[], Any], Any, Any, int]] = {
    "ppd": (_PPD, _X, _SETS, 8_000),
    "ppd-classes": (_PPD, _X, _CLASSES, 8_000),
    "pd": (_PD, _X, _SETS, 8_000),
    "logistic": (_LOGISTIC, _X, _CLASSES, 6_000),
    "logistic-sets": (_LOGISTIC, _X, _SETS, 4_000),
    "logistic-multinomial": (
        _make("SparseLogisticRegression", multinomial=True), _X, _CLASSES, 4_000,
    ),
    "linear": (_make("SparseLinearRegression", l1=0.1), _X, _NUMBERS, 8_000),
    "linear-groups": (
        _make("GroupLinearRegression", l1=0.1, feature_groups=None), _X, _NUMBERS, 8_000,
    ),
    "logistic-groups": (_make("GroupLogisticRegression"), _X, _CLASSES, 6_000),
    "covariance": (_make("SparseInverseCovariance", l1=0.1), _X, None, 6_000),
    "dense": (_DENSE, _X, _CLASSES, 4_000),
    "dense-sets": (_DENSE, _X, _SETS, 4_000),
    "embedding": (
        _make("EmbeddingExtremeClassifier", n_components=3, **_LAYER), sp.csr_matrix(_X), _SETS,
        4_000,
    ),
    "index": (_make("MIPSIndex", n_clusters=3, max_iter=2), _X, None, 8_000),
    "pairwise": (_make("PairwiseMultilabelSVM"), _X, _SETS, 4_000),
    "chain": (_make("ChainSVM"), [_X[:4], _X[4:9]], [list("abca"), list("abcab")], 3_000),
    "hiclass": (_make("HierarchicalClassifier", taxonomy=_TREE), _X, _LEAVES, 2_000),
    "hml": (
        _make("HierarchicalMultilabelClassifier", taxonomy=_TREE,
              group_weights=GroupWeights(max_iter=2)), _X, _LEAF_SETS, 1_500,
    ),
    "latent": (_make("LatentFeatureLasso", n_exchanges=1), _X, None, 1_500),
    "mixture": (
        _make("MixLassoRegressor", search=MixtureSearch(n_starts=1)), _X, _NUMBERS, 1_500,
    ),
    "forecast": (
        _make(
            "LoadForecaster", horizon=1, intervals=False,
            features=LoadFeatures([1, 2], [1], profile_weeks=1, steps_per_day=2),
            kernels=LocalKernels(1, n_components=5, relevance_rows=20),
        ), _LOADS, None, 600,
    ),
}  # fmt: skip


def make_fit(rng: random.Random, name: str) -> dict[str, Any]:
    """Arguments of a fit, of which at least one is hostile."""
    _, X, y, _ = FITS[name]
    case = {"X": X, "y": y, "weight": None, "asked": _X}
    which = rng.random()
    if which < 0.6 or y is None:
        case["X"] = _hostile_rows(rng, X)
    elif which < 0.95:
        case["y"] = _hostile_rows(rng, y) if isinstance(y, list) else hostile_labels(rng, y)
    else:
        case["weight"] = hostile_labels(rng, np.ones(len(_X)))
    return case


def _hostile_rows(rng: random.Random, X: Any) -> Any:
    if isinstance(X, list):
        at = rng.randrange(len(X))
        rows = X[at] if isinstance(X[at], np.ndarray) else np.array(X[at])
        new = hostile_features(rng, rows) if rows.dtype.kind == "f" else hostile_labels(rng, rows)
        return [new if i == at else part for i, part in enumerate(X)]
    return hostile_features(rng, X.toarray() if sp.issparse(X) else X)


def use_fit(name: str, case: dict[str, Any], folder: Path) -> None:
    maker, *_ = FITS[name]
    model = maker()
    arguments = (case["X"],) if case["y"] is None else (case["X"], case["y"])
    options = {} if case["weight"] is None else {"sample_weight": case["weight"]}
    if options and not _takes_weights(type(model)):
        return
    model.fit(*arguments, **options)
    check_certificate(model)


@functools.cache
def _takes_weights(kind: type) -> bool:
    return "sample_weight" in kind.fit.__code__.co_varnames  # type: ignore[attr-defined]


def check_certificate(model: Any) -> None:
    """What a fit says of itself is finite."""
    for name in ("objective_", "certificate_"):
        value = getattr(model, name, None)
        if value is not None and not np.all(np.isfinite(np.asarray(value, dtype=float))):
            raise Failure(f"{name} of a fit is {value}")


# --- predictions ---------------------------------------------------------------------------------


@functools.cache
def fitted(name: str) -> Any:
    return sublearn.load(model_file(name))


def make_question(rng: random.Random, name: str) -> Any:
    X = question(name)
    return hostile_features(rng, X) if X.dtype.kind in "fi" else hostile_labels(rng, X)


def use_question(name: str, X: Any, folder: Path) -> None:
    model = fitted(name)
    if name.startswith("MIPSIndex"):
        model.search(X, k=3)
    elif name == "LoadForecaster":
        model.predict(y=X)
    elif name == "SparseInverseCovariance":
        model.score(X)
    elif hasattr(model, "predict_top_k"):
        model.predict_top_k(X, k=2)
    elif hasattr(model, "predict"):
        model.predict(X)
    else:
        model.transform(X)


#: Networks take tensors of PyTorch, which checks them.
_ASKED = [name for name in GOLDEN if not name.startswith("SparseNetwork")]

TARGETS = [
    Target(f"fit-{name}", "arrays", functools.partial(make_fit, name=name),
           functools.partial(use_fit, name), FITS[name][3])
    for name in FITS
] + [
    Target(f"predict-{name}", "arrays", functools.partial(make_question, name=name),
           functools.partial(use_question, name), 600 if name == "LoadForecaster" else 3_000)
    for name in _ASKED
]  # fmt: skip


def preload() -> None:
    for maker, X, y, _ in FITS.values():
        with contextlib.suppress(ValueError):  # some take no sets of labels
            maker().fit(*((X,) if y is None else (X, y)))
    for name in _ASKED:
        fitted(name)
