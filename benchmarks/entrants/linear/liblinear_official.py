"""liblinear's own package, solver 6 (l1-regularised logistic regression)."""

import numpy as np
import scipy.sparse as sp
from liblinear.liblinear import parameter, problem
from liblinear.liblinearutil import train

TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)


def fit(X, y, l1, tol):
    C = 1.0 / (l1 * len(y))
    model = train(problem(y, sp.csr_matrix(X), bias=-1), parameter(f"-s 6 -c {C} -e {tol} -q"))
    # The weights speak for the label that stands first.
    sign = 1.0 if model.get_labels()[0] == 1 else -1.0
    return sign * np.asarray(model.get_decfun(0)[0][: X.shape[1]])
