"""The benchmark's own solvers with dense oracles, compiled: bcfw, subgradient or soft-bcfw."""

import numpy as np
import scipy.sparse as sp
from judges.chains import sequences, viterbi
from judges.compiled import CompiledBcfw, CompiledSoftBcfw, CompiledSubgradient

#: A lap is taken when the seconds have grown by this.
GROWTH = 1.5
MAKE = {
    "bcfw": CompiledBcfw, "subgradient": CompiledSubgradient, "soft-bcfw": CompiledSoftBcfw
}  # fmt: skip


def prepare(train, task):
    settings = dict(task.settings)
    make = MAKE[settings.pop("method")]
    return make(train, train["X"].shape[1], int(train["y"].max()) + 1, **settings)


def solve(judge, task, keep):
    """Sequences in random order; the state is looked at whenever the time has grown by half."""
    rng = np.random.default_rng(task.seed)
    n, done, mark = judge.n, 0, task.limit / 200
    while keep.seconds < task.limit:
        for i in rng.permutation(n):
            judge.step(int(i))
            done += 1
            if keep.seconds >= min(mark, task.limit):
                mark = GROWTH * keep.seconds
                keep(judge, n_iter=done / n)
            if keep.seconds >= task.limit:
                return


def prepare_test(test, task):
    y = np.zeros(test["X"].shape[0], int)
    return sequences(test["X"], y, test["lengths"])


def _model(judge):
    return judge.average() if isinstance(judge, CompiledSubgradient) else judge.model


def predict(judge, test, task):
    model = _model(judge)
    if task.request["wants"] == "weights":
        return {"W": sp.csr_matrix(model.W), "T": model.T}
    return {"tags": np.concatenate([viterbi(model.scores(s), model.T)[0] for s in test])}


def figures(judge):
    return {"bound": judge.dual()} if isinstance(judge, CompiledBcfw) else {}
