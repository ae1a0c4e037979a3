"""Slow and obvious versions of the kernels, the judges of their tests.

The projections are computed in exact rational arithmetic, so a disagreement is the kernel's error
at any scale.
"""

from fractions import Fraction

import numpy as np


def top_k_by_sorting(scores, k, candidates=None):
    """Sort everything: NaN last, then by falling score, then by rising id."""
    ids = np.arange(len(scores)) if candidates is None else np.asarray(candidates)
    values = scores[ids]
    missing = np.isnan(values)
    order = np.lexsort((ids, -np.where(missing, 0, values), missing))[:k]
    return ids[order], values[order]


def exactly(v):
    return [Fraction(float(value)) for value in v]


def to_floats(fractions):
    return np.array([float(value) for value in fractions])


def positive_part(v, theta):
    return [max(value - theta, Fraction(0)) for value in v]


def root_of_decreasing(f, breakpoints):
    """Root of a decreasing function that is linear between and beyond its breakpoints."""
    points = sorted(set(breakpoints))
    points = [points[0] - 1, *points, points[-1] + 1]
    right = next((i for i, p in enumerate(points) if i > 0 and f(p) <= 0), len(points) - 1)
    if f(points[0]) <= 0:
        right = 1
    left_value, right_value = f(points[right - 1]), f(points[right])
    slope = (right_value - left_value) / (points[right] - points[right - 1])
    return points[right] - right_value / slope


def project_simplex_exactly(v, radius):
    """Shift by the theta with sum(max(v - theta, 0)) = radius."""
    v, radius = exactly(v), Fraction(radius)
    theta = root_of_decreasing(lambda theta: sum(positive_part(v, theta)) - radius, v)
    return to_floats(positive_part(v, theta))


def project_bisimplex_exactly(b, c, cap):
    """Without the cap x = (b - theta)_+ and y = (c + theta)_+ of equal sums; then mind the cap."""
    exact_b, exact_c = exactly(b), exactly(c)
    if max(exact_b) + max(exact_c) <= 0:
        return np.zeros(len(b)), np.zeros(len(c))

    def difference(theta):
        return sum(positive_part(exact_b, theta)) - sum(positive_part(exact_c, -theta))

    theta = root_of_decreasing(difference, exact_b + [-value for value in exact_c])
    x, y = positive_part(exact_b, theta), positive_part(exact_c, -theta)
    if sum(x) <= cap:
        return to_floats(x), to_floats(y)
    return project_simplex_exactly(b, cap), project_simplex_exactly(c, cap)


class SplitGenerator:
    """xoshiro256** seeded by splitmix64, as published, plus the rule that derives a stream."""

    _mask = 2**64 - 1

    def __init__(self, seed, stream):
        first = self._splitmix64(seed)
        seed = self._splitmix64(first ^ (stream * 0xD1342543DE82EF95 & self._mask))
        golden_ratio = 0x9E3779B97F4A7C15
        self._state = [self._splitmix64(seed + i * golden_ratio & self._mask) for i in range(4)]

    def _splitmix64(self, state):
        z = state + 0x9E3779B97F4A7C15 & self._mask
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & self._mask
        z = (z ^ z >> 27) * 0x94D049BB133111EB & self._mask
        return z ^ z >> 31

    def _rotate(self, x, by):
        return (x << by | x >> 64 - by) & self._mask

    def bits(self):
        s = self._state
        result = self._rotate(s[1] * 5 & self._mask, 7) * 9 & self._mask
        t = s[1] << 17 & self._mask
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = self._rotate(s[3], 45)
        return result

    def uniform(self):
        return (self.bits() >> 11) / 2**53

    def permutation(self, n):
        items = list(range(n))
        for i in range(n, 1, -1):
            j = (self.bits() >> 32) * i >> 32
            items[i - 1], items[j] = items[j], items[i - 1]
        return items
