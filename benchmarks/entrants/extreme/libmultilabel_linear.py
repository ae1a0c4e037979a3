"""LibMultiLabel's linear models: one-vs-rest, or a label tree."""

import pickle

import numpy as np
import psutil
from libmultilabel import linear


def fit(train, task):
    # It starts one thread per physical core and has no option for that but this count.
    psutil.cpu_count = lambda logical=True: task.threads
    train_model = linear.train_tree if task.settings["tree"] else linear.train_1vsrest
    return train_model(train["Y"], train["X"], options="", verbose=False)


def predict(model, test, task):
    scores = np.asarray(linear.predict_values(model, test["X"]))
    k = min(task.request["k"], scores.shape[1])
    return {"labels": np.argsort(-scores, axis=1, kind="stable")[:, :k]}


def save(model, task, directory):
    (directory / "model.pickle").write_bytes(pickle.dumps(model))
