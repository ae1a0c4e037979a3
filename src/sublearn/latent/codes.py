"""Binary codes of rows under given features: min over z in {0,1}^K of |x - W'z|^2, row by row.

With G = W W' and s = W x that is min z'Gz - 2 s'z. Few features are enumerated; with many, codes
improve by flips of one feature and of two until neither helps.
"""

from __future__ import annotations

import numpy as np

__all__ = ["all_patterns", "best_codes", "codes_by_enumeration", "improve_codes"]

_MOST_ENUMERATED = 14  # features: 16,384 patterns, a second for 10,000 rows
_CHUNK = 4_000_000  # numbers in a temporary array
_MAX_ROUNDS = 50


def all_patterns(n: int) -> np.ndarray:
    """The 2^n rows of zeros and ones; bit k of the row's number is entry k."""
    return ((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(np.float64)


def best_codes(scores: np.ndarray, gram: np.ndarray) -> np.ndarray:
    """Codes of rows with scores X W': exact for few features, else the best of two descents."""
    if len(gram) <= _MOST_ENUMERATED:
        return codes_by_enumeration(scores, gram)
    relaxed = np.linalg.lstsq(gram, scores.T, rcond=None)[0].T
    starts = [(relaxed > 0.5).astype(np.int8), np.zeros(scores.shape, dtype=np.int8)]
    found = [improve_codes(start, scores, gram) for start in starts]
    costs = [_costs(Z, scores, gram) for Z in found]
    return np.where((costs[0] <= costs[1])[:, None], found[0], found[1])


def codes_by_enumeration(scores: np.ndarray, gram: np.ndarray) -> np.ndarray:
    """The best of all 2^K patterns for each row; of equal ones that with the fewest features."""
    patterns = all_patterns(len(gram))
    patterns = patterns[np.argsort(patterns.sum(axis=1), kind="stable")]
    own = np.einsum("pk,kl,pl->p", patterns, gram, patterns, optimize=True)
    out = np.empty(scores.shape, dtype=np.int8)
    step = max(1, _CHUNK // len(patterns))
    for begin in range(0, len(scores), step):
        rows = slice(begin, begin + step)
        best = np.argmin(own - 2.0 * (scores[rows] @ patterns.T), axis=1)
        out[rows] = patterns[best]
    return out


def improve_codes(Z: np.ndarray, scores: np.ndarray, gram: np.ndarray) -> np.ndarray:
    """Codes that no flip of one or two features improves; `Z` is left as it is."""
    Z = Z.copy()
    slack = scores - Z @ gram  # s - G z, kept up to date
    rows = np.arange(len(Z))  # those that changed last
    for _ in range(_MAX_ROUNDS):
        _flip_singles(Z, slack, gram, rows)
        rows = rows[_flip_best_pair(Z, slack, gram, rows)]
        if len(rows) == 0:
            break
    return Z


def _costs(Z: np.ndarray, scores: np.ndarray, gram: np.ndarray) -> np.ndarray:
    codes = Z.astype(np.float64)
    return np.einsum("ik,ik->i", codes @ gram - 2.0 * scores, codes)


def _flip_singles(Z: np.ndarray, slack: np.ndarray, gram: np.ndarray, rows: np.ndarray) -> None:
    for _ in range(_MAX_ROUNDS):
        has_flipped = False
        for k in range(len(gram)):
            turn = 1.0 - 2.0 * Z[rows, k]
            change = gram[k, k] - 2.0 * turn * slack[rows, k]
            flips = np.flatnonzero(change < -1e-12 * gram[k, k])
            if len(flips) == 0:
                continue
            has_flipped = True
            which = rows[flips]
            Z[which, k] = 1 - Z[which, k]
            slack[which] -= turn[flips, None] * gram[k]
        if not has_flipped:
            return


def _flip_best_pair(
    Z: np.ndarray, slack: np.ndarray, gram: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    """Flip the pair that helps most in each row; says in which rows one did."""
    n_features = len(gram)
    if n_features < 2:
        return np.zeros(len(rows), dtype=bool)
    flipped = np.zeros(len(rows), dtype=bool)
    upper = np.triu_indices(n_features, 1)
    step = max(1, _CHUNK // len(upper[0]))
    least = -1e-12 * gram.diagonal().max()
    for begin in range(0, len(rows), step):
        which = rows[begin : begin + step]
        turn = 1.0 - 2.0 * Z[which]
        change = gram.diagonal() - 2.0 * turn * slack[which]
        joint = turn[:, upper[0]] * turn[:, upper[1]] * (2.0 * gram[upper])
        joint += change[:, upper[0]]
        joint += change[:, upper[1]]
        best = np.argmin(joint, axis=1)
        helps = joint[np.arange(len(which)), best] < least
        flipped[begin : begin + step] = helps
        for ends in (upper[0][best[helps]], upper[1][best[helps]]):
            target = which[helps]
            slack[target] -= turn[helps, ends][:, None] * gram[ends]
            Z[target, ends] = 1 - Z[target, ends]
    return flipped
