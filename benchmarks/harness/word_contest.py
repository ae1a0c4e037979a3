"""Word vectors of several libraries, judged by one objective at no less time for the rivals."""

from __future__ import annotations

import copy
import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from harness.bench import Bench
from harness.corpora import analogies, generated_corpus, real_corpus
from harness.table import Cell, Figures
from harness.timing import cpu_timed

__all__ = ["EVERY", "LARGE", "MIDDLE", "generated_contest", "real_contest"]


@dataclass(frozen=True)
class Size:
    """Of a generated corpus."""

    n_words: int
    n_tokens: int


EVERY = 8  # text of the real corpora
LARGE, MIDDLE, TINY = Size(450_000, 1_500_000), Size(45_000, 150_000), Size(500, 5_000)
N_JUDGED = 500  # words with exact sums over all contexts
N_COMPONENTS = 100
WINDOW, SUBSAMPLE, N_NEGATIVE = 5, 1e-4, 5
RIVALS = ("gensim", "fasttext")
COLUMNS = {
    "method": "",
    "words": ",d",
    "pairs": ",d",
    "passes": "d",
    "CPU s": ".1f<",
    "objective": ".3f<",
    "standard error": ".3f",
    "analogies right, %": ".1f>",
}

Sentences = Sequence[Sequence[str]]
Questions = Sequence[tuple[str, str, str, str]]


@dataclass(frozen=True)
class Trained:
    """Vectors of words and contexts, in the order of `words`, and what they took."""

    words: Sequence[str]
    vectors: np.ndarray
    contexts: np.ndarray
    n_passes: int
    seconds: float


def real_contest(bench: Bench) -> Figures:
    """News and the Brown corpus; words seen five times."""
    sentences = real_corpus(bench.data)[:: bench.size(EVERY, 400)]
    return contest(bench, sentences, 5, analogies(bench.data), RIVALS)


def generated_contest(bench: Bench, size: Size) -> Figures:
    """Very many words, each seen at least twice."""
    size = bench.size(size, TINY)
    sentences = generated_corpus(size.n_words, size.n_tokens, bench.seed)
    return contest(bench, sentences, 1, [], RIVALS[:1], max_iter=1, n_sampled=256)


def contest(
    bench: Bench,
    sentences: Sentences,
    min_count: int,
    questions: Questions,
    rivals: Sequence[str],
    *,
    max_iter: int = 5,
    n_sampled: int = 1024,
) -> Figures:
    """Ours first; the others get passes until they had as much time."""
    from sublearn.embed import ContextSearch, SkipGram

    bench.say(f"{sum(map(len, sentences)):,} tokens")
    rows: list[list[Cell]] = []
    seconds, judge = 0.0, None
    for partition in ("sampled", "search"):
        search = ContextSearch(partition, n_sampled=n_sampled, n_negative=N_NEGATIVE)
        model = SkipGram(
            N_COMPONENTS - 1,  # the bias is the hundredth
            window=WINDOW, min_count=min_count, subsample=SUBSAMPLE, max_iter=max_iter,
            search=search, random_state=bench.seed,
        )  # fmt: skip
        _, spent = cpu_timed(partial(model.fit, sentences))
        rows.append(_row(f"sublearn, {partition}", model.n_iter_, spent, model, questions))
        if judge is None:
            seconds, judge = spent, model
    for name in rivals:
        train = {"gensim": _gensim, "fasttext": _fasttext}[name]
        try:
            trained = train(sentences, min_count, bench.seed, seconds)
        except ImportError:
            rows.append([name, None, None, None, "not installed", None, None, None])
        else:
            rows += _judged(name, trained, judge, questions)
    return Figures(COLUMNS, rows)


def _row(name: str, n_passes: int, spent: float, model: Any, questions: Questions) -> list[Cell]:
    objective, error = model.exact_objective(N_JUDGED)
    accuracy = 100 * model.analogy_accuracy(questions)[0] if questions else None
    return [name, len(model.words_), model.n_pairs_, n_passes, spent, objective, error, accuracy]


def _judged(name: str, trained: Trained, judge: Any, questions: Questions) -> list[list[Cell]]:
    """The vectors as they are, and with the noise that negative sampling left out."""
    model = copy.copy(judge)
    place = {word: i for i, word in enumerate(trained.words)}
    order = np.array([place[word] for word in judge.words_])
    model.vectors_, model.context_vectors_ = trained.vectors[order], trained.contexts[order]
    model._forget_queries()
    noise = np.power(judge.word_counts_.astype(np.float64), 0.75)
    rows = []
    for title, bias in (("", 0 * noise), (", noise put back", np.log(noise / noise.sum()))):
        model.context_bias_ = bias.astype(np.float32)
        asked = [] if title else questions
        rows.append(_row(name + title, trained.n_passes, trained.seconds, model, asked))
    return rows


def _passes(run: Callable[[Sentences, int], object], sentences: Sentences, seconds: float) -> int:
    """How many passes take at least these seconds, from the time of one on some sentences."""
    part = sentences[:: max(1, len(sentences) // max(1000, len(sentences) // 20))]
    _, spent = cpu_timed(partial(run, part, 1))
    one = spent * sum(map(len, sentences)) / sum(map(len, part))
    return max(1, math.ceil(1.1 * seconds / one))


def _gensim(sentences: Sentences, min_count: int, seed: int, seconds: float) -> Trained:
    from gensim.models import Word2Vec

    def run(part: Sentences, n_passes: int) -> Any:
        return Word2Vec(
            part, sg=1, vector_size=N_COMPONENTS, window=WINDOW, min_count=min_count,
            sample=SUBSAMPLE, negative=N_NEGATIVE, workers=1, epochs=n_passes, seed=seed,
        )  # fmt: skip

    n_passes = _passes(run, sentences, seconds)
    model, spent = cpu_timed(partial(run, sentences, n_passes))
    return Trained(model.wv.index_to_key, model.wv.vectors, model.syn1neg, n_passes, spent)


def _fasttext(sentences: Sentences, min_count: int, seed: int, seconds: float) -> Trained:
    import fasttext

    def run(part: Sentences, n_passes: int) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "corpus"
            path.write_text("\n".join(" ".join(sentence) for sentence in part))
            return fasttext.train_unsupervised(
                str(path), "skipgram", dim=N_COMPONENTS, ws=WINDOW, minCount=min_count,
                neg=N_NEGATIVE, t=SUBSAMPLE, epoch=n_passes, thread=1, maxn=0, verbose=0,
            )  # fmt: skip

    n_passes = _passes(run, sentences, seconds)
    model, spent = cpu_timed(partial(run, sentences, n_passes))
    words = model.get_words()
    vectors = np.asarray(model.get_input_matrix(), dtype=np.float32)[: len(words)]
    contexts = np.asarray(model.get_output_matrix(), dtype=np.float32)[: len(words)]
    return Trained(words, vectors, contexts, n_passes, spent)
