"""sublearn from raw text: a tagger by words, and LabelReranker with some of its sources.

Words are counted within `fit`, with the settings that the rivals' rows were made with.
"""

import itertools

import numpy as np
from harness.raw_records import unpack
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from sublearn.extreme import LabelReranker, PPDSparseClassifier, TextTagger


def read(arrays):
    found = {"texts": unpack("text", arrays)}
    if "Y" in arrays:
        Y = arrays["Y"]
        found["labels"] = [Y.indices[a:b].tolist() for a, b in itertools.pairwise(Y.indptr)]
        found["titles"] = dict(enumerate(unpack("title", arrays)))
    return found


def prepare_test(test, task):
    return read(test)


def tagger(task, **options):
    learner = PPDSparseClassifier(n_jobs=task.threads, random_state=task.seed)
    return TextTagger(learner, decision="above_zero", min_df=2, **options)


def dense_words(texts, n_components, seed):
    words = TfidfVectorizer(sublinear_tf=True, min_df=2, dtype=np.float32)
    svd = TruncatedSVD(n_components, random_state=seed).fit(words.fit_transform(texts))
    return lambda asked: svd.transform(words.transform(asked))


def fit(train, task):
    settings = dict(task.settings)
    texts, labels = train["texts"], train["labels"]
    if settings.pop("is_single", False):
        size = settings.pop("svd", None)
        embed = None if size is None else dense_words(texts, size, task.seed)
        return tagger(task, analyzer="word", embedder=embed).fit(texts, labels)
    names = train["titles"] if settings.pop("titles", True) else None
    taggers = [tagger(task, analyzer="word")]
    if settings.pop("characters", False):
        taggers.append(tagger(task, analyzer="char_wb"))
    model = LabelReranker(taggers, n_jobs=task.threads, random_state=task.seed, **settings)
    return model.fit(texts, labels, label_names=names)


def predict(model, test, task):
    found = test["texts"] if "texts" in test else unpack("text", test)
    return {"labels": model.predict_top_k(found, k=task.request["k"])[0].astype(np.int64)}


def save(model, task, directory):
    if getattr(model, "embedder", None) is None:
        model.save(directory / "model.sublearn")
