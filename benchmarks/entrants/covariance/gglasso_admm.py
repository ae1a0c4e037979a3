"""ADMM of gglasso, block by block as it recommends; settings "tol" and "rtol" are its own."""

import numpy as np
from gglasso.solver.single_admm_solver import block_SGL


def fit(train, task):
    S, tol = train["S"], task.settings["tol"]
    # block_SGL asks for a start; the identity is what its own problem class takes.
    found = block_SGL(
        S, float(train["l1"]), np.eye(len(S)), tol=tol, rtol=tol, max_iter=20000, verbose=False
    )
    return found["Theta"]


def predict(precision, test, task):
    return {"precision": precision}
