"""python-crfsuite with any of its algorithms; features are named by their columns."""

import shutil

import numpy as np
import pycrfsuite


def items(part):
    """Sequences in CRFsuite's own form."""
    X = part["X"]
    names = np.array([str(j) for j in range(X.shape[1])], dtype=object)
    found, begin = [], 0
    for length in part["lengths"]:
        rows = []
        for row in range(begin, begin + length):
            cells = slice(X.indptr[row], X.indptr[row + 1])
            rows.append(
                dict(zip(names[X.indices[cells]], X.data[cells].astype(float), strict=True))
            )
        found.append(pycrfsuite.ItemSequence(rows))
        begin += length
    return found


def prepare(train, task):
    trainer = pycrfsuite.Trainer(verbose=False)
    begin = 0
    for sequence, length in zip(items(train), train["lengths"], strict=True):
        trainer.append(sequence, [str(y) for y in train["y"][begin : begin + length]])
        begin += length
    return trainer


def fit(trainer, task):
    settings = dict(task.settings)
    trainer.select(settings.pop("algorithm"))
    n_iter = settings.pop("n_iter")
    trainer.set_params({"max_iterations": n_iter, **settings})
    path = str(task.scratch / "crf.model")
    trainer.train(path)
    last = trainer.logparser.last_iteration or {}
    return {"path": path, "n_iter": int(last.get("num", n_iter)), "asked": n_iter}


def figures(model):
    return {"n_iter": model["n_iter"], "is_done": model["n_iter"] < model["asked"]}


def prepare_test(test, task):
    return items(test)


def predict(model, test, task):
    tagger = pycrfsuite.Tagger()
    tagger.open(model["path"])
    return {"tags": np.array([int(tag) for sequence in test for tag in tagger.tag(sequence)])}


def save(model, task, directory):
    shutil.copy(model["path"], directory)
