"""From a solution of MixLasso's convex program to K functions to begin with; no truth is needed.

The program gives each row i a function theta_i = sum of w_z over the atoms z that hold row i. Rows
of one component have similar functions, shrunk and blurred. The paper takes the most frequent
bit patterns of the strongest atoms; here the K functions theta_i are chosen that together explain
the targets best, each row by its nearest. That looks at the targets and not at bits, and does not
depend on how many atoms are called strong.
"""

from __future__ import annotations

import numpy as np

from sublearn.latent.mix_program import Point

__all__ = ["covering_functions", "random_functions", "strongest_functions"]

_MOST_CANDIDATES = 400
_MOST_SWAPS = 5  # rounds


def covering_functions(
    point: Point, features: np.ndarray, targets: np.ndarray, n_components: int,
    rng: np.random.Generator | None = None,
) -> np.ndarray:  # fmt: skip
    """`n_components` of the rows' functions, chosen greedily and then by swaps.

    Parameters
    ----------
    point : Point
        Solution of the program.
    features, targets : ndarray
        Its rows.
    n_components : int
        Number of functions.
    rng : Generator, optional
        Use a random half of the atoms and of the rows, to have another start.

    Returns
    -------
    ndarray of shape (n_components, n_features)
    """
    functions = _functions_of_rows(point, features, rng)
    losses = (targets[:, None] - features @ functions.T) ** 2  # row by function
    cap = float(np.var(targets)) + 1e-300  # a row that nobody explains counts no more than this
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
