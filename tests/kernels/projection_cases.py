"""Inputs that projections get wrong: ties, zeros, one element, huge scale, far below zero."""

import numpy as np
from hypothesis import strategies as st

DTYPES = [np.float32, np.float64]

VECTORS = {
    "one element": np.array([-3.0]),
    "all zero": np.zeros(4),
    "all equal": np.full(7, 2.5),
    "already inside": np.array([0.2, 0.3, 0.5]),
    "all far below": np.full(5, -1e6),
    "one far above": np.array([1.0, 2.0, 1e30, 3.0]),
    "huge and equal": np.full(3, 1e30),
    "both signs, huge": np.array([1e30, -1e30, 0.0]),
    "normal": np.random.default_rng(0).normal(size=50),
    "large scale": 1e6 * np.random.default_rng(1).normal(size=50),
    "small scale": 1e-6 * np.random.default_rng(2).normal(size=50),
    "long": np.random.default_rng(3).normal(size=3000),
}

RADII = [1e-3, 1.0, 1e3]


def vectors(max_size=12):
    """Lists of floats with many ties, around zero, around an offset, or at a huge scale."""
    tied = st.integers(-3, 3).map(float)
    any_size = st.floats(-10, 10, width=32, allow_subnormal=False)
    lists = st.lists(tied | any_size, min_size=1, max_size=max_size)
    scale = st.sampled_from([1.0, 1.0, 1e-6, 1e6, 1e25])
    offset = st.sampled_from([0.0, 0.0, -100.0, 1e4, 1e25])
    return st.builds(lambda v, s, o: np.array(v) * s + o, lists, scale, offset)


def projected(kernel, v, *args):
    """What the in-place kernel makes of a copy."""
    out = v.copy()
    kernel(out, *args)
    return out


def assert_close(actual, expected, scale, n):
    """Within rounding of `scale`; `n` is the length of the sums behind each entry."""
    eps = np.finfo(actual.dtype).eps
    np.testing.assert_allclose(actual, expected, rtol=8 * eps, atol=(8 + n * 1e-3) * eps * scale)
