"""From `random_state` to the one integer that seeds the core's generators."""

from __future__ import annotations

import numpy as np

from sublearn.errors import ParameterError
from sublearn.validation.params import RandomState
from sublearn.validation.values import show

__all__ = ["as_seed"]


def as_seed(random_state: int | np.random.RandomState | np.random.Generator | None) -> int:
    """A seed in [0, 2**63): an integer as it is, a draw from a generator, fresh entropy for None.

    Drawing advances the generator, so two fits with one generator differ, as in scikit-learn.
    """
    if not RandomState().accepts(random_state):
        raise ParameterError(f"random_state must be {RandomState()}, got {show(random_state)}")
    if random_state is None:
        random_state = np.random.default_rng()
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63, dtype=np.int64))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**63, dtype=np.int64))
    return int(random_state)
