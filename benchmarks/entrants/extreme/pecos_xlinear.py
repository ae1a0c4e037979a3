"""PECOS XR-Linear, over a label tree or without one (one-vs-rest)."""

import shutil

import numpy as np
from pecos.utils import smat_util
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel


def fit(train, task):
    X, Y = train["X"], train["Y"]
    chain = None
    if task.settings["tree"]:
        embedding = LabelEmbeddingFactory.create(Y, X, method="pifa", threads=task.threads)
        chain = Indexer.gen(embedding, threads=task.threads, seed=task.seed)
    return XLinearModel.train(X, Y, C=chain, threads=task.threads)


def ready(model, task):
    """Its own form for prediction, about twenty times as fast as the trained object."""
    model.save(str(task.scratch / "model"))
    return XLinearModel.load(str(task.scratch / "model"), is_predict_only=True)


def predict(model, test, task):
    k = task.request["k"]
    scores = model.predict(test["X"], only_topk=k, threads=task.threads)
    return {"labels": ranked(smat_util.sorted_csr(scores), k)}


def ranked(scores, k):
    """Columns of each row in stored order, which is best first; -1 where a row has fewer."""
    labels = np.full((scores.shape[0], k), -1, dtype=np.int64)
    for row in range(scores.shape[0]):
        found = scores.indices[scores.indptr[row] : scores.indptr[row + 1]][:k]
        labels[row, : len(found)] = found
    return labels


def save(model, task, directory):
    shutil.copytree(task.scratch / "model", directory, dirs_exist_ok=True)
