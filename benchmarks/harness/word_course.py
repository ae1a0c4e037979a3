"""Courses of word vectors: the exact objective (3.45) after so many CPU seconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from harness.timing import cpu_timed

__all__ = ["Point", "gensim_point", "sublearn_point"]

N_COMPONENTS, WINDOW, SUBSAMPLE = 100, 8, 1e-4
N_JUDGED = 400  # words with sums over all contexts


@dataclass(frozen=True)
class Point:
    """CPU seconds of a fit, and what it reached."""

    n_passes: int
    seconds: float
    objective: float
    n_words: int


def sublearn_point(
    sentences: Sequence[Sequence[str]], n_passes: int, seed: int, **search: Any
) -> tuple[Point, Any]:
    """A fit of so many passes after one of negative sampling, and the model."""
    from sublearn.embed import ContextSearch, SkipGram

    model = SkipGram(
        N_COMPONENTS - 1, window=WINDOW, subsample=SUBSAMPLE, max_iter=n_passes,
        search=ContextSearch(**search), random_state=seed,
    )  # fmt: skip
    _, seconds = cpu_timed(partial(model.fit, sentences))
    objective = model.exact_objective(N_JUDGED)[0]
    return Point(n_passes, seconds, objective, len(model.words_)), model


def gensim_point(
    sentences: Sequence[Sequence[str]], n_passes: int, seed: int, kind: str, judge: Any
) -> Point:
    """word2vec's algorithm in gensim, "hs" or "negative", on the pairs of a model of ours."""
    from gensim.models import Word2Vec

    def run() -> Any:
        return Word2Vec(
            sentences, sg=1, vector_size=N_COMPONENTS, window=WINDOW, min_count=judge.min_count,
            sample=SUBSAMPLE, hs=int(kind == "hs"), negative=0 if kind == "hs" else 5, workers=1,
            epochs=n_passes, seed=seed,
        )  # fmt: skip

    model, seconds = cpu_timed(run)
    losses = {"hs": _of_tree, "negative": _of_noise}[kind](model, judge)
    return Point(n_passes, seconds, _mean_loss(judge, losses), len(judge.words_))


def _mean_loss(judge: Any, losses: Callable[[int], np.ndarray]) -> float:
    """-log p(y | x), averaged over the pairs of the words that exact objectives are judged on."""
    pairs = judge._pairs
    share = pairs.totals / pairs.totals.sum()
    drawn = np.random.default_rng(0).choice(pairs.n_words, N_JUDGED, p=share)
    found = []
    for word in drawn:
        ids, counts = pairs.row(int(word))
        found.append(counts @ losses(int(word))[ids] / counts.sum())
    return float(np.mean(found))


def _of_noise(model: Any, judge: Any) -> Callable[[int], np.ndarray]:
    """Softmax of inner products and the log-frequencies of the noise, which they leave out."""
    place = [model.wv.key_to_index[word] for word in judge.words_]
    words, contexts = model.wv.vectors[place], model.syn1neg[place]
    bias = 0.75 * np.log(judge.word_counts_.astype(np.float64))

    def losses(word: int) -> np.ndarray:
        scores = contexts @ words[word] + bias
        top = scores.max()
        return np.asarray(np.log(np.exp(scores - top).sum()) + top - scores)

    return losses


def _of_tree(model: Any, judge: Any) -> Callable[[int], np.ndarray]:
    """Hierarchical softmax is a distribution over all words: products along a tree."""
    place = [model.wv.key_to_index[word] for word in judge.words_]
    codes = [model.wv.get_vecattr(int(p), "code") for p in place]
    points = [model.wv.get_vecattr(int(p), "point") for p in place]
    begin = np.concatenate([[0], np.cumsum([len(code) for code in codes])])
    signs, nodes = 1.0 - 2.0 * np.concatenate(codes), np.concatenate(points)

    def losses(word: int) -> np.ndarray:
        at_nodes = model.syn1 @ model.wv.vectors[place[word]]
        return np.add.reduceat(np.logaddexp(0.0, -signs * at_nodes[nodes]), begin[:-1])

    return losses
