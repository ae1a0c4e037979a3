"""Kinds without a data file of their own: vectors to the nearest ones, words, graphs, networks."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import scipy.sparse as sp

from sublearn.io.files import Lines, open_binary, reading
from sublearn.kinds.base import Asked, Form, Kind, Lesson, Wish
from sublearn.kinds.judging import Judgement, mean
from sublearn.kinds.rows import read_dataset
from sublearn.typing import JsonObject, Matrix

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["FactorGraphs", "RowScores", "Vectors", "Words"]


_JUDGED = 10  # nearest rows that a search is to find


class RowScores(Kind):
    """Scores of a network."""

    name = "row_scores"
    gives = "scores of a network"
    data = "a network"


class FactorGraphs(Kind):
    """Labels of the variables of factor graphs."""

    name = "factor_graphs"
    gives = "labels of the variables of factor graphs"
    data = "factor graphs"


class _Nearest(Kind):
    """Kinds that answer with the nearest of what they hold, best first."""

    wishes: ClassVar[tuple[str, ...]] = ("k",)
    noun: ClassVar[str] = "label"

    def line(self, answer: JsonObject) -> str:
        """`name:score` pairs with tabs between."""
        pairs = zip(answer["labels"], answer["scores"], strict=True)
        return "\t".join(f"{name}:{value:.6g}" for name, value in pairs) + "\n"

    def header(self, model: BaseEstimator, wish: Wish) -> list[str]:
        """A column for the row, and two for each that is near."""
        columns = range(1, (wish.k or 5) + 1)
        return ["row", *(f"{what}_{i}" for i in columns for what in (self.noun, "score"))]

    def records(self, answer: JsonObject, i: int) -> Iterator[Sequence[object]]:
        """One record."""
        pairs = zip(answer["labels"], answer["scores"], strict=True)
        yield [i + 1, *(part for name, value in pairs for part in (name, f"{value:.6g}"))]

    def nothing(self, wish: Wish) -> JsonObject:
        """Nothing is near."""
        return {"labels": [], "scores": [], "empty": True}

    formats: ClassVar[tuple[str, ...]] = ("text", "jsonl", "csv")


class Vectors(_Nearest):
    """Rows to the rows of largest inner product with them."""

    name = "vectors"
    gives = "rows of largest inner product"
    data = "numbers"
    noun = "id"
    main_measure = f"recall@{_JUDGED}"
    form: ClassVar[tuple[str, ...]] = ("data_format", "zero_based", "labels")
    fit_form: ClassVar[tuple[str, ...]] = ("data_format", "zero_based", "labels")

    def lesson(self, estimator: BaseEstimator, path: Path, form: Form) -> Lesson:
        """Rows to search in."""
        X = _dense(path, form)
        return Lesson((X,), len(X), {}, {"rows": X.shape[0], "features": X.shape[1]})

    def figures(self, model: BaseEstimator, lesson: Lesson, seconds: float) -> JsonObject:
        """Sizes and seconds."""
        return lesson.figures | {"seconds": round(seconds, 3)}

    def finish(self, model: BaseEstimator, bits: int | None) -> BaseEstimator:
        """As it is: an index draws no bar."""
        return model

    def read(
        self, model: BaseEstimator, path: Path, form: Form, *, needs_truth: bool = False
    ) -> Asked:
        """Rows to search for."""
        X = _dense(path, form)
        return Asked(X, [], np.zeros(len(X), dtype=bool))

    def answers(
        self, model: BaseEstimator, items: Matrix | list[object], wish: Wish
    ) -> list[JsonObject]:
        """Numbers of the nearest rows, and their inner products."""
        ids, scores = model.search(items, min(wish.k or 5, int(model.n_rows_)))
        pairs = zip(ids.tolist(), scores.tolist(), strict=True)
        return [{"labels": found, "scores": values} for found, values in pairs]

    def judge(self, model: BaseEstimator, asked: Asked, options: JsonObject) -> Judgement:
        """How many of the nearest rows are found, and for how many inner products."""
        k, n_rows = min(_JUDGED, int(model.n_rows_)), int(model.n_rows_)
        ids, _ = model.search(asked.items, k)
        share = model.work_ / (len(asked) * n_rows)
        nearest, _ = model.search(asked.items, k, n_probe=None)
        hits = [len(np.intersect1d(a, b)) / k for a, b in zip(ids, nearest, strict=True)]
        measures = {
            self.main_measure: mean(np.array(hits)),
            "products": mean(np.full(len(asked), share), is_better_high=False),
        }
        return Judgement(f"{len(asked):,} queries, percent", {"rows": len(asked)}, measures)

    def cost(self, model: BaseEstimator, asked: Asked, seconds: float) -> float:
        """Seconds of the search for all queries: an index is built once and asked often."""
        start = time.perf_counter()
        model.search(asked.items, min(_JUDGED, int(model.n_rows_)))
        return time.perf_counter() - start


def _dense(path: Path, form: Form) -> np.ndarray:
    X = read_dataset(path, form, needs_labels=False).X
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float32)


class Words(_Nearest):
    """Words to the words whose vectors point the same way."""

    name = "words"
    gives = "vectors of words"
    data = "words"
    noun = "word"
    empty_means = "lines are not words of the model and have no answer"

    def lesson(self, estimator: BaseEstimator, path: Path, form: Form) -> Lesson:
        """The file itself, which the estimator reads line by line."""
        return Lesson((path,), 0)

    def figures(self, model: BaseEstimator, lesson: Lesson, seconds: float) -> JsonObject:
        """Words, pairs of them, and the objective."""
        return {
            "words": len(model.words_),
            "pairs": int(model.n_pairs_),
            "seconds": round(seconds, 3),
            "objective": round(float(model.objective_), 6),
            "passes": int(model.n_iter_),
        }

    def read(
        self, model: BaseEstimator, path: Path, form: Form, *, needs_truth: bool = False
    ) -> Asked:
        """Words, one on each line."""
        if needs_truth:
            raise self._cannot(model, "be judged")
        with open_binary(path) as stream:
            lines = Lines(stream)
            with reading(path, lines):
                words = [line.strip() for line in lines.texts()]
        is_unknown = np.array([word not in model.vocabulary_ for word in words], dtype=bool)
        return Asked(words, [], is_unknown)

    def answers(
        self, model: BaseEstimator, items: Matrix | list[object], wish: Wish
    ) -> list[JsonObject]:
        """The nearest words by the cosine of the angle between vectors, without the word itself."""
        k = min(wish.k or 5, len(model.words_) - 1)
        found: list[JsonObject] = []
        for word in items:
            if word not in model.vocabulary_:
                found.append(self.nothing(wish))
                continue
            words, cosines = model.most_similar(word, k)
            found.append({"labels": words.tolist(), "scores": cosines.tolist()})
        return found
