"""The benchmark's own solvers with dense oracles: `method` is bcfw, subgradient or soft-bcfw."""

import numpy as np
from judges.bcfw import Bcfw
from judges.chains import sequences, viterbi
from judges.soft_bcfw import SoftBcfw
from judges.subgradient import Subgradient

MAKE = {"bcfw": Bcfw, "subgradient": Subgradient, "soft-bcfw": SoftBcfw}


def prepare(train, task):
    settings = dict(task.settings)
    make = MAKE[settings.pop("method")]
    data = sequences(train["X"], train["y"], train["lengths"])
    return make(data, train["X"].shape[1], task.n_labels, **settings)


def passes(judge, task):
    """Sequences in random order; the state after each visit may be looked at."""
    rng = np.random.default_rng(task.seed)
    n, done = len(judge.data), 0
    while True:
        for i in rng.permutation(n):
            judge.step(int(i))
            done += 1
            yield judge, done / n


def prepare_test(test, task):
    y = np.zeros(test["X"].shape[0], int)
    return sequences(test["X"], y, test["lengths"])


def _model(judge):
    return judge.average() if isinstance(judge, Subgradient) else judge.model


def predict(judge, test, task):
    model = _model(judge)
    return np.concatenate([viterbi(model.scores(s), model.T)[0] for s in test])


def weights(judge):
    model = _model(judge)
    return model.W, model.T


def bound(judge):
    return judge.dual() if isinstance(judge, Bcfw) else None
