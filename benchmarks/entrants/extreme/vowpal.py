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
    name = "plt" if task.settings["tree"] else "oaa" if train["is_single"] else "multilabel_oaa"
    arity = f"--kary_tree {task.settings['arity']}" if name == "plt" else ""
    learner = Workspace(
        f"--{name} {n_labels} {arity} --loss_function logistic -l {task.settings['rate']} "
        f"--passes {task.settings['passes']} --holdout_off --random_seed {task.seed} "
        f"-b {min(MOST_BITS, max(FEWEST_BITS, bits))} -d {path} --cache_file {path}.cache -k "
        f"-f {model} --quiet"
    )
    learner.finish()
    return {"path": model, "name": name, "n_labels": n_labels}


def ready(model, task):
    """The model anew, with what its file does not keep: how to answer.

    The last level of the tree is filled up with leaves that no label has and no row has trained;
    they come back among the best, so more leaves are asked for than labels.
    """
    answers = {
        "plt": f"--top_k {task.request['k'] + task.settings.get('arity', 0)}",
        "oaa": "--probabilities",
        "multilabel_oaa": "--probabilities --link logistic",
    }
    options = f"-t --quiet --loss_function logistic {answers[model['name']]}"
    return {**model, "learner": Workspace(f"-i {model['path']} {options}")}


def predict(model, lines, task):
    k, find = task.request["k"], best_of_tree if model["name"] == "plt" else best_of_all
    labels = np.full((len(lines), k), -1, dtype=np.int64)
    for row, line in enumerate(lines):
        found = find(model["learner"].predict(line), model["n_labels"])[:k]
        labels[row, : len(found)] = found
    return {"labels": labels}


def best_of_tree(found, n_labels):
    return [label for label in found if label < n_labels]


def best_of_all(scores, n_labels):
    # An example that it uses again keeps its former scores in front of the new ones.
    return np.argsort(-np.asarray(scores[-n_labels:]), kind="stable")


def save(model, task, directory):
    shutil.copy(model["path"], directory)
