"""Functions to begin with: roundings of MixLasso's solutions, and functions through few rows.

The program gives each row i a function theta_i = sum of w_z over the atoms z that hold row i. Rows
of one component have similar functions, shrunk and blurred. The K functions theta_i are chosen that
together explain the targets best, each row by its nearest: a look at the targets and not at bits,
which does not depend on how many atoms are called strong. `pattern_functions` is the rounding of
the paper: the strongest atoms, and for standard mixtures their most frequent bit patterns.

Curves of a variable cross and touch, and EM from blurred starts goes over from one to another at a
crossing. A function that is right is right on all its rows, however far, and enough random subsets
of r rows contain one of a single component: a share of K^(1-r) of them. Its rows are set aside,
and the others are a problem with one component less. (Four polynomials of degree 6 without noise,
100 to 400 rows: 17 of 18 mixtures are exact after 0.05 s, while EM from MixLasso's solutions and
from 40 random starts finds a third of them.)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sublearn.latent.mix_program import Point

__all__ = [
    "consensus_functions",
    "covering_functions",
    "has_few_features",
    "pattern_functions",
    "random_functions",
    "strongest_functions",
]

_MOST_CANDIDATES = 400
_MOST_SWAPS = 5  # rounds
_MOST_ATOMS = 9  # whose patterns are counted
_RIDGE = 1e-8  # of the mean diagonal: atoms may be dependent
_MOST_SUBSETS = 40_000
_MOST_HOPELESS = 100_000  # subsets to find one of a single component in: more are not tried
_PER_HIT = 3  # subsets, for each that one of a single component takes
_LEAST_SUBSETS = 200
_LOOKS = 100  # rows by which subsets are compared
_FINALISTS = 100
_FALLING = (30.0, 20.0, 10.0, 5.0, 3.0, 2.0, 1.0, 1.0)  # noise levels of the finalists' fits
_HELD = 3.0  # rows within so many noise levels belong to a function
_SEPARATE = 1e-9  # added to a square system that may be singular
_LEAST_VALUE = 1e-10  # of the largest singular value; the rest is rounding

# --- from a solution of the program ------------------------------------------------------------


def covering_functions(
    point: Point, features: np.ndarray, targets: np.ndarray, n_components: int,
    rng: np.random.Generator | None = None,
) -> np.ndarray:  # fmt: skip
    """`n_components` of the rows' functions, chosen greedily and then by swaps.

    With `rng` a random half of the atoms and of the rows is used, to have another start.
    """
    functions = _functions_of_rows(point, features, rng)
    losses = (targets[:, None] - features @ functions.T) ** 2  # row by function
    cap = float(np.var(targets)) + 1e-300  # what an unexplained row counts at most
    chosen: list[int] = []
    for _ in range(n_components):
        chosen.append(_best_addition(losses, chosen, cap))
    for _ in range(_MOST_SWAPS):
        before = list(chosen)
        for k in range(n_components):
            others = chosen[:k] + chosen[k + 1 :]
            chosen[k] = _best_addition(losses, others, cap)
        if chosen == before:
            break
    return functions[chosen]


def strongest_functions(point: Point, features: np.ndarray, n_components: int) -> np.ndarray:
    """Functions of the atoms with the largest coefficients; zeros if there are too few."""
    coef = point.coef(features)[:n_components]
    missing = n_components - len(coef)
    return np.vstack([coef, np.zeros((missing, features.shape[1]))])


def pattern_functions(
    point: Point, features: np.ndarray, targets: np.ndarray, n_components: int, is_general: bool
) -> Iterator[np.ndarray]:
    """Roundings of section 4.2.3 of the paper: the atoms of largest c, as if their c were 1.

    Of a generalised mixture the K largest are the assignments, and least squares gives the
    functions. A standard one takes the J most frequent patterns of the m largest, and the sums of
    functions that they stand for. The paper leaves m open: one rounding for each up to 9 that can
    have J patterns. Missing functions are zero.
    """
    least = int(np.ceil(np.log2(max(n_components, 2))))
    counts = range(least, max(least, _MOST_ATOMS) + 1)
    for m in [n_components] if is_general else counts:
        Z = point.atoms[:m].T
        functions = _least_squares(Z, features, targets)
        if not is_general:
            patterns, rows = np.unique(Z, axis=0, return_counts=True)
            functions = patterns[np.argsort(-rows, kind="stable")[:n_components]] @ functions
        missing = n_components - len(functions)
        yield np.vstack([functions, np.zeros((missing, features.shape[1]))])
        if m >= len(point.atoms):
            return


def _least_squares(Z: np.ndarray, features: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Functions of given assignments, all together."""
    (n_rows, m), r = Z.shape, features.shape[1]
    if m == 0:
        return np.zeros((0, r))
    design = (Z[:, :, None] * features[:, None, :]).reshape(n_rows, m * r)
    gram = design.T @ design
    gram.flat[:: m * r + 1] += _RIDGE * np.trace(gram) / (m * r) + np.finfo(float).tiny
    return np.asarray(np.linalg.solve(gram, design.T @ targets)).reshape(m, r)


def random_functions(
    features: np.ndarray, n_components: int, rng: np.random.Generator
) -> np.ndarray:
    """Of about unit size on the rows, all features alike: starts that owe nothing to the program.

    In few dimensions they find what its solutions agree to miss, such as which way two curves
    leave a crossing.
    """
    sizes = np.sqrt((features**2).mean(axis=0)) * np.sqrt(features.shape[1])
    sizes[sizes == 0] = np.inf
    return rng.normal(size=(n_components, features.shape[1])) / sizes


def _functions_of_rows(
    point: Point, features: np.ndarray, rng: np.random.Generator | None
) -> np.ndarray:
    atoms, coef = point.atoms, point.coef(features)
    if rng is not None and len(atoms) > 2:
        used = rng.permutation(len(atoms))[: (len(atoms) + 1) // 2]
        atoms, coef = atoms[used], coef[used]
    functions = np.unique(atoms.T @ coef, axis=0)
    if rng is not None and len(functions) > 4:
        functions = functions[rng.permutation(len(functions))[: (len(functions) + 1) // 2]]
    return functions[:: max(1, -(-len(functions) // _MOST_CANDIDATES))]


def _best_addition(losses: np.ndarray, others: list[int], cap: float) -> int:
    now = np.minimum(losses[:, others].min(axis=1), cap) if others else np.full(len(losses), cap)
    return int(np.minimum(losses, now[:, None]).sum(axis=0).argmin())


# --- through few rows --------------------------------------------------------------------------


def has_few_features(features: np.ndarray, n_components: int) -> bool:
    """Whether a subset of rows of a single component is likely to be met."""
    n_rows, rank = features.shape
    is_likely = n_components ** (rank - 1.0) <= _MOST_HOPELESS and n_rows > 2 * rank
    return is_likely and bool(features.any())


def consensus_functions(
    features: np.ndarray, targets: np.ndarray, n_components: int, noise: float,
    rng: np.random.Generator,
) -> np.ndarray:  # fmt: skip
    """One function after the other, each the one that explains most of the rows left.

    `noise` is the size of residuals that do not matter, in units of the targets' root mean square.
    """
    basis, back = _orthogonal(features)
    level = max(noise * float(np.sqrt(np.mean(targets**2))), float(np.finfo(float).tiny) ** 0.25)
    left = np.arange(len(targets))
    found = []
    for n_open in range(n_components, 0, -1):
        if len(left) <= basis.shape[1]:
            left = np.arange(len(targets))
        weights = _most_agreed(basis[left], targets[left], n_open, level, rng)
        found.append(back @ weights)
        left = left[np.abs(targets[left] - basis[left] @ weights) > _HELD * level]
    return np.array(found)


def _orthogonal(features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns of unit size that span the features, and the map from their weights to the features'.

    A kernel's features next to an intercept may be dependent, and monomials nearly so.
    """
    U, values, Vt = np.linalg.svd(features, full_matrices=False)
    kept = values > _LEAST_VALUE * values[0] if len(values) else values > 0
    size = np.sqrt(len(features))
    return U[:, kept] * size, Vt[kept].T * (size / values[kept])


def _most_agreed(
    rows: np.ndarray, targets: np.ndarray, n_components: int, level: float,
    rng: np.random.Generator,
) -> np.ndarray:  # fmt: skip
    rank = rows.shape[1]
    n_subsets = int(
        min(_PER_HIT * float(n_components) ** (rank - 1) + _LEAST_SUBSETS, _MOST_SUBSETS)
    )
    subsets = _subsets(len(rows), rank, n_subsets, rng)
    systems = rows[subsets] + _SEPARATE * np.eye(rank)
    candidates = np.linalg.solve(systems, targets[subsets][:, :, None])[:, :, 0]
    look = rng.permutation(len(rows))[:_LOOKS]
    costs = _costs(rows[look], targets[look], candidates, 10 * level)
    finalists = candidates[np.argsort(costs, kind="stable")[:_FINALISTS]]
    for factor in _FALLING:
        finalists = _reweighted(rows, targets, finalists, factor * level)
    return finalists[int(np.argmin(_costs(rows, targets, finalists, level)))]


def _subsets(n_rows: int, size: int, n_subsets: int, rng: np.random.Generator) -> np.ndarray:
    """Distinct rows in each."""
    if n_rows <= 64:
        return rng.random((n_subsets, n_rows)).argpartition(size - 1, axis=1)[:, :size]
    drawn = rng.integers(n_rows, size=(n_subsets, size))
    ordered = np.sort(drawn, axis=1)
    return drawn[(ordered[:, 1:] > ordered[:, :-1]).all(axis=1)]


def _costs(rows: np.ndarray, targets: np.ndarray, weights: np.ndarray, level: float) -> np.ndarray:
    """Sum of log(level^2 + residual^2): rows of others count little, however far they are."""
    return np.log((targets[:, None] - rows @ weights.T) ** 2 + level**2).sum(axis=0)


def _reweighted(
    rows: np.ndarray, targets: np.ndarray, weights: np.ndarray, level: float
) -> np.ndarray:
    """A step of weighted least squares on these costs, for each function."""
    trust = 1.0 / ((targets[:, None] - rows @ weights.T) ** 2 + level**2)
    products = (rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
    rank = rows.shape[1]
    grams = (trust.T @ products).reshape(-1, rank, rank)
    lift = 1e-12 * np.trace(grams, axis1=1, axis2=2)[:, None, None] * np.eye(rank)
    moments = trust.T @ (rows * targets[:, None])
    return np.linalg.solve(grams + lift, moments[:, :, None])[:, :, 0]
