"""solve_max_cut; settings are its parameters."""

from sublearn.latent import solve_max_cut


def fit(train, task):
    return solve_max_cut(train["graph"], random_state=task.seed, **task.settings)


def predict(found, test, task):
    import numpy as np

    return {
        "vectors": found.details.vectors,
        "side": found.side,
        "bound": np.float64(found.bound),
    }
