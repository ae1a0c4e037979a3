"""Functions with hostile arguments: graphs, projections, solvers, metrics, indices, text.

A new function is a line of `CALLS`: the function and arguments that it takes.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_targets import hostile_features, hostile_labels
from engine import Failure, Target
from mutate import CODE, INTEGERS

from sublearn import metrics
from sublearn.embed import ContextSearch, MIPSIndex, SkipGram
from sublearn.graph import FactorGraph, solve_map, sparse_table
from sublearn.hierarchy import (
    Taxonomy,
    hierarchy_support,
    leaf_reduce,
    project_hierarchy,
    project_hierarchy_gradient,
    root_map,
    tree_map,
    tree_reduce,
)
from sublearn.latent import check_identifiability, solve_boolean_quadratic, solve_max_cut
from sublearn.optim import lhac, linear_objective, minimise_linear, multinomial_objective
from sublearn.structured import ChainSVM, word_features

_rng = np.random.default_rng(1)
_X = np.round(_rng.normal(size=(12, 4)), 2)
_SIGNS = np.where(_X[:, 0] > 0, 1.0, -1.0)
_CODES = (_X[:, 0] > 0).astype(np.int64) + (_X[:, 1] > 0)
_SQUARE = _X[:4] @ _X[:4].T
_SETS = sp.csr_matrix((_rng.random((6, 4)) < 0.4).astype(np.int8))
_SCORES = np.round(_rng.random((6, 4)), 2)
_TREE = Taxonomy([-1, 0, 0, -1])


def _map(unary: Any, scopes: Any, table: Any, scale: Any, options: Any) -> None:
    graph = FactorGraph(unary=unary)
    graph.add_factors(scopes, table, scale)
    found = solve_map(graph, **options)
    graph.score(found.assignment)


def _interactions(domain: Any, pairs: Any, weights: Any) -> None:
    graph = FactorGraph(domain)
    graph.add_interactions(pairs, weights)
    solve_map(graph, max_iter=20, search_work=1e5)


def _sparse_table(values: Any, cells: Any, shape: Any, default: Any) -> None:
    graph = FactorGraph([2, 3])
    graph.add_factor([0, 1], sparse_table(values, cells=cells, shape=shape, default=default))
    solve_map(graph, max_iter=20)


def _projection(u: Any, phi: Any, slope: Any, tol: Any) -> None:
    for project in (project_hierarchy, hierarchy_support):
        project(u, _TREE, phi, tol=tol)
    for cut in (leaf_reduce, root_map):
        cut(u, _TREE, phi)
    project_hierarchy_gradient(u, _TREE, phi, slope)
    tree_map(u, _TREE, np.minimum, above=tol)
    tree_reduce(u, _TREE, np.maximum, np.minimum, lambda eta, phi, _: eta * phi, phi=phi, u=slope)


def _taxonomy(parents: Any, Y: Any) -> None:
    taxonomy = Taxonomy(parents)
    taxonomy.close(Y)
    taxonomy.is_consistent(Y)


def _lhac(target: Any, init: Any, l1: Any, options: Any) -> None:
    aim = np.asarray(target, dtype=np.float64)
    lhac(lambda x: (0.5 * float(((x - aim) ** 2).sum()), x - aim), init, l1, **options)


def _objective(X: Any, y: Any, weights: Any, at: Any) -> None:
    linear_objective(X, y, weights=weights)
    lhac(linear_objective(X, y), at, 0.1, max_iter=5)
    multinomial_objective(X, _CODES, 3)


def _minimise(X: Any, y: Any, l1: Any, weights: Any, init: Any, options: Any) -> None:
    found = minimise_linear(X, y, l1=l1, weights=weights, init=init, **options)
    if not np.isfinite(found.objective):
        raise Failure("objective of a solution is not finite")


def _quadratic(quadratic: Any, linear: Any, init: Any, options: Any) -> None:
    solve_boolean_quadratic(quadratic, linear=linear, init=init, **options)


def _index(rows: Any, more: Any, ids: Any, queries: Any, k: Any) -> None:
    index = MIPSIndex(2, max_iter=1, random_state=0).fit(_X)
    index.add(more)
    index.remove(ids)
    index.update([0], rows)
    index.search(queries, k=k)


def _metrics(y_true: Any, y_pred: Any, k: Any) -> None:
    metrics.precision_at_k(y_true, y_pred, k)
    metrics.ndcg_at_k(y_true, y_pred, k)
    metrics.psp_at_k(y_true, y_pred, metrics.propensities(y_true), k)
    metrics.f1_at_k(y_true, y_pred, k)
    metrics.macro_f1_at_k(y_true, y_pred, k)
    metrics.r_precision(y_true, y_pred)
    metrics.bootstrap_interval(metrics.r_precision, y_true, y_pred, n_resamples=2)


def _set_metrics(y_true: Any, y_pred: Any) -> None:
    for name in ("f1_samples", "f1_micro", "f1_macro", "hamming_loss", "jaccard_samples"):
        getattr(metrics, name)(y_true, y_pred)


def _calibration(y_true: Any, labels: Any, probabilities: Any, n_bins: Any) -> None:
    metrics.brier_score(y_true, labels, probabilities)
    metrics.reliability_curve(y_true, labels, probabilities, n_bins=n_bins)


def _chain(X: Any, y: Any, lengths: Any) -> None:
    ChainSVM(max_iter=2).fit(X, y, lengths=lengths).predict(X, lengths=lengths)


def _text(sentences: Any, words: Any) -> None:
    word_features(words)
    few = ContextSearch(n_candidates=2, n_probe=1)
    model = SkipGram(
        2, min_count=1, max_iter=1, subsample=None, n_jobs=1, search=few, random_state=0
    )
    model.fit(sentences).transform(words)


#: Arguments that are arrays are damaged as arrays; others are exchanged for something hostile.
CALLS: dict[str, tuple[Callable[..., None], dict[str, Any], int]] = {
    "map": (_map, {
        "unary": np.round(_rng.random((3, 2)), 2), "scopes": np.array([[0, 1], [1, 2]]),
        "table": np.eye(2), "scale": np.ones(2), "options": {"max_iter": 20, "search_work": 1e5},
    }, 8_000),
    "interactions": (_interactions, {
        "domain": np.array([2, 2, 2]), "pairs": np.array([[0, 1], [1, 2]]), "weights": np.ones(2),
    }, 8_000),
    "table": (_sparse_table, {
        "values": np.array([1.0, -2.0]), "cells": np.array([[0, 1], [1, 2]]), "shape": (2, 3),
        "default": 0.0,
    }, 8_000),
    "projection": (_projection, {
        "u": _SCORES, "phi": 0.5, "slope": np.ones((6, 4)), "tol": 1e-6,
    }, 8_000),
    "taxonomy": (_taxonomy, {"parents": np.array([-1, 0, 0, -1]), "Y": _SETS}, 8_000),
    "lhac": (_lhac, {
        "target": _X[0], "init": np.zeros(4), "l1": np.full(4, 0.1),
        "options": {"max_iter": 10, "active_set": False, "l2": 0.0, "bounds": (-1.0, 1.0)},
    }, 8_000),
    "objective": (_objective, {
        "X": _X, "y": _SIGNS, "weights": np.ones(12), "at": np.zeros(4),
    }, 8_000),
    "linear": (_minimise, {
        "X": _X, "y": _SIGNS, "l1": np.full(4, 0.1), "weights": np.ones(12), "init": np.zeros(5),
        "options": {"max_iter": 10, "solver": "newton", "fit_intercept": True, "l2": 0.1},
    }, 8_000),
    "quadratic": (_quadratic, {
        "quadratic": _SQUARE, "linear": np.ones(4), "init": None,
        "options": {"max_iter": 20, "n_rounds": 4, "rank": 2, "domain": "01"},
    }, 6_000),
    "identifiability": (check_identifiability, {
        "codes": np.eye(4)[[0, 1, 2, 3, 0]], "components": _X[:4], "fit_intercept": False,
    }, 3_000),
    "max-cut": (solve_max_cut, {"graph": np.ones((4, 4)) - np.eye(4)}, 3_000),
    "index": (_index, {
        "rows": _X[:1], "more": _X[:2], "ids": np.array([1, 2]), "queries": _X, "k": 3,
    }, 8_000),
    "metrics": (_metrics, {"y_true": _SETS, "y_pred": _SCORES, "k": 2}, 8_000),
    "set-metrics": (_set_metrics, {"y_true": _SETS, "y_pred": _SETS}, 8_000),
    "calibration": (_calibration, {
        "y_true": np.array([0, 1, 2]), "labels": np.array([[0, 1], [1, 2], [0, 1]]),
        "probabilities": np.array([[0.9, 0.1], [0.8, 0.2], [0.6, 0.3]]), "n_bins": 5,
    }, 8_000),
    "chain": (_chain, {
        "X": _X, "y": np.array(list("abcabcabcabc")), "lengths": np.array([5, 7]),
    }, 3_000),
    "text": (_text, {
        "sentences": ["the cat sat", "the dog ran on"] * 3, "words": ["cat", "dog"],
    }, 1_500),
}  # fmt: skip


def make_call(rng: random.Random, name: str) -> dict[str, Any]:
    arguments = dict(CALLS[name][1])
    for key in rng.sample(list(arguments), k=min(len(arguments), rng.choice((1, 1, 1, 2)))):
        arguments[key] = _hostile(rng, arguments[key])
    return arguments


def _hostile(rng: random.Random, value: Any) -> Any:
    if isinstance(value, dict):
        key = rng.choice(list(value))
        return value | {key: _scalar(rng)}
    if sp.issparse(value) or (isinstance(value, np.ndarray) and value.dtype.kind in "iU"):
        return _ids(rng, value) if rng.random() < 0.4 else hostile_labels(rng, value)
    if isinstance(value, np.ndarray):
        return hostile_features(rng, value)
    if isinstance(value, list):
        return rng.choice((_scalar(rng), [_scalar(rng)] * 2, [*value, _scalar(rng)], [value], []))
    return _scalar(rng)


def _ids(rng: random.Random, value: Any) -> Any:
    """Integers of which some are out of range."""
    if sp.issparse(value) or value.dtype.kind != "i":
        return hostile_labels(rng, value)
    out = value.copy()
    choices = [n for n in INTEGERS if abs(n) < 2**63]
    out.flat[rng.randrange(out.size)] = rng.choice(choices)
    return out


def _scalar(rng: random.Random) -> Any:
    return rng.choice((
        *INTEGERS, 0.0, -1.0, 0.5, 1e-320, 1e200, -1e308, np.nan, np.inf, -np.inf, None, True, "",
        "newton", "cd1", "lhac", "pm1", "nul\0", *CODE[:2], (), (1, 2), (2, 1), [], [1.0], {}, b"x",
        np.int8(3), np.float32(1e30), np.array(2), object(), "\udc80", "x" * 10**5, 1 + 2j,
    ))  # fmt: skip


def use_call(name: str, arguments: dict[str, Any], folder: Path) -> None:
    CALLS[name][0](**arguments)


TARGETS = [
    Target(f"call-{name}", "calls", functools.partial(make_call, name=name),
           functools.partial(use_call, name), cases)
    for name, (_, _, cases) in CALLS.items()
]  # fmt: skip


def preload() -> None:
    for function, arguments, _ in CALLS.values():
        function(**arguments)
