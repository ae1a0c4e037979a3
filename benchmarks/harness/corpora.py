"""Sentences for word vectors: news, the Brown corpus, and generated ones of any vocabulary."""

from __future__ import annotations

import html
import lzma
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

__all__ = ["analogies", "generated_corpus", "real_corpus"]

_BODY = re.compile(r"<BODY>(.*?)</BODY>", re.DOTALL)
_WORD = re.compile(r"[a-z0-9_\u0080-\uffff](?:[a-z0-9_'\u0080-\uffff]*[a-z0-9_\u0080-\uffff])?")


def real_corpus(directory: Path) -> list[list[str]]:
    """The messages of 20news, the sentences of brown, the articles of reuters21578, in words."""
    texts = [*_news(directory), *_brown(directory), *_reuters(directory)]
    return [words for text in texts if (words := _WORD.findall(text.lower()))]


def _news(directory: Path) -> Iterator[str]:
    for part in ("train", "test"):
        with lzma.open(directory / "20news" / f"20news_bydate_{part}.tsv.xz", "rt") as file:
            for line in file:
                yield line.rstrip("\n").split("\t", 3)[3]


def _brown(directory: Path) -> Iterator[str]:
    words: list[str] = []
    with lzma.open(directory / "brown" / "brown.conll.xz", "rt") as file:
        for line in file:
            if line.startswith("# file") or not line.strip():
                if words:
                    yield " ".join(words)
                words = []
            else:
                words.append(line.split("\t")[0])


def _reuters(directory: Path) -> Iterator[str]:
    with tarfile.open(directory / "reuters21578" / "reuters21578.tar.xz") as archive:
        for member in archive:
            file = archive.extractfile(member) if member.name.endswith(".sgm") else None
            if file is not None:
                for body in _BODY.findall(file.read().decode("latin-1")):
                    yield " ".join(html.unescape(body).split())


def analogies(directory: Path) -> list[tuple[str, str, str, str]]:
    """Questions of word2vec: a is to b as c is to d, in small letters."""
    with lzma.open(directory / "word_analogy" / "questions-words.txt.xz", "rt") as file:
        lines = [line.lower().split() for line in file if not line.startswith(":")]
    return [(a, b, c, d) for a, b, c, d in lines]


def generated_corpus(
    n_words: int, n_tokens: int, seed: int, n_topics: int = 500, length: int = 20
) -> list[list[str]]:
    """Sentences about topics. Word frequencies follow Zipf's law over `n_words` words, each seen.

    A word has a topic; four of five words of a sentence are drawn from its topic, the others from
    all words.
    """
    rng = np.random.default_rng(seed)
    frequencies = 1.0 / (np.arange(n_words) + 10.0)
    topic_of = rng.integers(n_topics, size=n_words)
    order = np.argsort(topic_of, kind="stable")
    begin = np.searchsorted(topic_of[order], np.arange(n_topics + 1))
    all_sums = np.cumsum(frequencies)
    sums = np.concatenate([[0.0], np.cumsum(frequencies[order])])
    n_sentences = n_tokens // length
    topics = rng.integers(n_topics, size=(n_sentences, 1))
    low, high = sums[begin[topics]], sums[begin[topics + 1]]
    drawn = low + (high - low) * rng.random((n_sentences, length))
    ids = order[np.minimum(np.searchsorted(sums, drawn, side="right") - 1, n_words - 1)]
    is_any = rng.random((n_sentences, length)) < 0.2
    ids[is_any] = np.searchsorted(all_sums, rng.random(is_any.sum()) * all_sums[-1])
    places = rng.permutation(ids.size)[: 2 * n_words]  # so that no word is missing
    ids.ravel()[places] = np.tile(np.arange(n_words), 2)
    names = np.array([f"w{i}" for i in range(n_words)], dtype=object)
    return names[ids].tolist()
