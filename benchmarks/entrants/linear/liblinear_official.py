"""liblinear's own package, solver 6 (l1-regularised logistic regression)."""

import numpy as np
import scipy.sparse as sp
from liblinear import liblinearutil
from liblinear.liblinear import parameter, problem


def fit(train, task):
    X, y, l1, tol = train["X"], train["y"], float(train["l1"]), task.settings["tol"]
    C = 1.0 / (l1 * len(y))
    rows, how = problem(y, sp.csr_matrix(X), bias=-1), parameter(f"-s 6 -c {C} -e {tol} -q")
    model = liblinearutil.train(rows, how)
    # The weights speak for the label that stands first.
    sign = 1.0 if model.get_labels()[0] == 1 else -1.0
    return sign * np.asarray(model.get_decfun(0)[0][: X.shape[1]])
