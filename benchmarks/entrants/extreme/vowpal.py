"""Vowpal Wabbit: a probabilistic label tree, or one-against-all.

It learns from a text file, in passes over the cache that it makes of it: writing the file is not
timed, reading it belongs to its call. It predicts one line of text per call; making the lines is
not timed, reading them is. One-against-all is `--oaa` where every training row has one label, else
`--multilabel_oaa`. It has one thread for learning whatever the limit, and one that reads.
"""

import math
import shutil

import numpy as np
from vowpalwabbit import Workspace

#: Four numbers of four bytes are kept for each place of the weight table: 4 GB at the most.
FEWEST_BITS, MOST_BITS = 18, 28


def prepare(train, task):
    X, Y = train["X"], train["Y"]
    counts = Y.getnnz(axis=1)
    is_single = bool((counts == 1).all())
    path = task.scratch / "train.vw"
    order = np.random.default_rng(task.seed).permutation(X.shape[0])
    first = 1 if is_single and not task.settings["tree"] else 0  # --oaa counts from 1
    with path.open("w") as file:
        for row in order[counts[order] > 0]:
            labels = Y.indices[Y.indptr[row] : Y.indptr[row + 1]] + first
            file.write(f"{','.join(map(str, labels))} {features_of(X, row)}\n")
    return {"path": path, "is_single": is_single, "shape": (X.shape[1], Y.shape[1])}


def prepare_test(test, task):
    return [features_of(test["X"], row) for row in range(test["X"].shape[0])]


def features_of(X, row):
    place = slice(X.indptr[row], X.indptr[row + 1])
    pairs = zip(X.indices[place].tolist(), X.data[place].tolist(), strict=True)
    return "| " + " ".join(f"{j}:{value:.6g}" for j, value in pairs)


def fit(train, task):
    n_features, n_labels = train["shape"]
    bits = math.ceil(math.log2(1.1 * n_features * n_labels))
    path, model = train["path"], task.scratch / "model.vw"
    learner = Workspace(
        f"{reduction(train, task)} --loss_function logistic -l {task.settings['rate']} "
        f"--passes {task.settings['passes']} --holdout_off --random_seed {task.seed} "
        f"-b {min(MOST_BITS, max(FEWEST_BITS, bits))} -d {path} --cache_file {path}.cache -k "
        f"-f {model} --quiet"
    )
    learner.finish()
    return {"path": model, "is_single": train["is_single"]}


def reduction(train, task):
    n_labels = train["shape"][1]
    if task.settings["tree"]:
        return f"--plt {n_labels} --kary_tree {task.settings['arity']}"
    if train["is_single"]:
        return f"--oaa {n_labels} --probabilities"
    return f"--multilabel_oaa {n_labels} --probabilities --link logistic"


def ready(model, task):
    more = f"--top_k {task.request['k']}" if task.settings["tree"] else ""
    return {**model, "learner": Workspace(f"-i {model['path']} -t --quiet {more}")}


def predict(model, lines, task):
    learner, k = model["learner"], task.request["k"]
    labels = np.full((len(lines), k), -1, dtype=np.int64)
    for row, line in enumerate(lines):
        found = learner.predict(line)
        if not task.settings["tree"]:
            scores = np.asarray(found)
            found = np.argsort(-scores, kind="stable")[:k]
        labels[row, : len(found)] = found[:k]
    return {"labels": labels}


def save(model, task, directory):
    shutil.copy(model["path"], directory)
