"""A small model of every kind that the page has a form for."""

import numpy as np

from sublearn.extreme import PPDSparseClassifier, TextTagger
from sublearn.forecast import LoadForecaster, LocalKernels
from sublearn.hierarchy import HierarchicalClassifier, Taxonomy
from sublearn.linear import SparseLinearRegression
from sublearn.structured import ChainSVM, PairwiseMultilabelSVM, word_features

URI = "http://www.example.org/onto/"
SUBJECTS = {
    "sea": ["sailing on the Baltic", "the Baltic coast", "ships along the coast", "a harbour"],
    "railways": ["history of railways", "steam trains and railways", "a railway station"],
    "statistics": ["survey statistics", "survey data of households", "statistics of harvests"],
    "music": ["a choir sings", "songs for choir and piano", "history of the piano"],
}
SENTENCES = [
    ("the dog runs in the park", "DET NOUN VERB ADP DET NOUN"),
    ("a cat sleeps", "DET NOUN VERB"),
    ("the old dog sleeps on a mat", "DET ADJ NOUN VERB ADP DET NOUN"),
    ("birds sing in the old park", "NOUN VERB ADP DET ADJ NOUN"),
]
TREE = [("life", "animal"), ("life", "plant"), ("animal", "bird"), ("animal", "fish"),
        ("plant", "tree"), ("plant", "herb")]  # fmt: skip

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 4))
KINDS = np.array(["bird", "fish", "tree", "herb"])[2 * (X[:, 0] > 0) + (X[:, 1] > 0)]


def texts():
    pairs = [(text, [URI + name]) for name, many in SUBJECTS.items() for text in many]
    documents, labels = zip(*(pairs * 2), strict=True)
    model = TextTagger(min_df=1).fit(list(documents), list(labels))
    return model.calibrate(list(documents), list(labels))


def digits():
    from sklearn.datasets import load_digits

    found = load_digits()
    return PPDSparseClassifier(random_state=0).fit(found.data / 16, found.target)


def sets():
    named = [["warm", "dry"] if x > 0 else ["cold"] for x in X[:, 0]]
    return PairwiseMultilabelSVM(random_state=0).fit(X, named)


def numbers():
    import pandas as pd

    frame = pd.DataFrame(X, columns=["rooms", "area", "age", "distance"])
    return SparseLinearRegression(l1=0.01).fit(frame, 3 * X[:, 1] - X[:, 2] + 10)


def words():
    model = ChainSVM(random_state=0).fit(
        [word_features(text.split()) for text, _ in SENTENCES],
        [tags.split() for _, tags in SENTENCES],
    )
    model.notes_ = {"token_columns": [], "n_columns": 1}
    return model


def loads():
    import pandas as pd

    hours = pd.date_range("2026-01-05", periods=24 * 14, freq="h")
    wave = 100 + 20 * np.sin(np.arange(len(hours)) * np.pi / 12) + rng.normal(size=len(hours))
    kernels = LocalKernels(1)
    return LoadForecaster(horizon=24, kernels=kernels, random_state=0).fit(
        pd.Series(wave, index=hours)
    )


MAKERS = {
    "texts": texts,
    "digits": digits,
    "taxonomy": lambda: HierarchicalClassifier(Taxonomy.from_edges(TREE)).fit(X, KINDS),
    "sets": sets,
    "numbers": numbers,
    "words": words,
    "loads": loads,
}


def save_all(folder):
    """The file of each, by name."""
    found = {}
    for name, make in MAKERS.items():
        model, path = make(), folder / f"{name}.model"
        model.save(path, notes=getattr(model, "notes_", None))
        found[name] = path
    return found
