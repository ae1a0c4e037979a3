"""python-crfsuite with any of its algorithms; features are named by their columns."""

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


def fit(trainer, task, n_iter):
    settings = {k: v for k, v in task.settings.items() if k != "first"}
    algorithm = settings.pop("algorithm")
    trainer.select(algorithm)
    trainer.set_params({"max_iterations": n_iter, **settings})
    path = str(task.scratch / "crf.model")
    trainer.train(path)
    last = trainer.logparser.last_iteration or {}
    reached = int(last.get("num", n_iter))
    return path, reached, reached < n_iter


def prepare_test(test, task):
    return items(test)


def predict(path, test, task):
    tagger = pycrfsuite.Tagger()
    tagger.open(path)
    return [int(tag) for sequence in test for tag in tagger.tag(sequence)]


def save(path, to):
    with open(path, "rb") as source, open(to, "wb") as target:
        target.write(source.read())
