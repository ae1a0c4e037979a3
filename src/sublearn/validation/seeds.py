"""From `random_state` to the one integer that seeds the core's generators."""

from __future__ import annotations

import numpy as np

from sublearn.validation.params import RandomState, check_argument

__all__ = ["as_seed"]


def as_seed(random_state: int | np.random.RandomState | np.random.Generator | None) -> int:
    """A seed in [0, 2**63): an integer as it is, a draw from a generator, fresh entropy for None.

    Drawing advances the generator, so two fits with one generator differ, as in scikit-learn.
    """
    check_argument("random_state", random_state, RandomState())
    if random_state is None:
        random_state = np.random.default_rng()
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63, dtype=np.int64))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**63, dtype=np.int64))
    return int(random_state)
