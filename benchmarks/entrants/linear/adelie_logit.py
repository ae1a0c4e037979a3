"""adelie's grpnet with a binomial response. It needs a path: ten steps down to the last weight."""

import adelie as ad
import numpy as np
import scipy.sparse as sp

STEPS = 10


def fit(train, task):
    X, y, l1, tol = train["X"], train["y"], float(train["l1"]), task.settings["tol"]
    design = ad.matrix.sparse(X, method="naive") if sp.issparse(X) else ad.matrix.dense(X)
    top = np.abs(X.T @ y).max() / (2 * len(y))
    state = ad.grpnet(
        X=design,
        glm=ad.glm.binomial(y=(y > 0).astype(np.float64), dtype=np.float64),
        lmda_path=np.geomspace(top, l1, STEPS),
        intercept=False,
        tol=tol,
        irls_tol=tol,
        adev_tol=1.0,
        ddev_tol=0.0,
        early_exit=False,
        progress_bar=False,
    )
    return state.betas[-1].toarray()
