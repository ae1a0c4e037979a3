"""Sequences to tags."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sublearn.io import load_conll
from sublearn.io.files import plain_name
from sublearn.io.prepared import notes_of
from sublearn.kinds.base import Asked, Field, Form, Kind, Lesson, Refused, Wish, label_weights
from sublearn.kinds.judging import Judgement, mean, quotient
from sublearn.kinds.weights import spread_of
from sublearn.typing import JsonObject, Matrix

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from sublearn.io import Tokens

__all__ = ["SequenceTags"]

_COLUMNS, _N_COLUMNS = "token_columns", "n_columns"  # notes: how the file of tokens was read
_AT_ONCE = 1000  # sequences of a question, between two looks at whether it is still wanted


@dataclass(frozen=True)
class _Features:
    """A sequence as features, not as words."""

    features: object


class SequenceTags(Kind):
    """Tags of the positions of sequences, such as the words of sentences."""

    name = "sequence_tags"
    gives = "tags of sequences"
    data = "a model of sequences (chain)"
    fit_form: ClassVar[tuple[str, ...]] = ("token_columns",)
    formats: ClassVar[tuple[str, ...]] = ("text", "jsonl", "csv")
    main_measure = "token_accuracy"
    has_labels = True
    items_field = "sequences"

    # --- fitting -----------------------------------------------------------------------------

    def lesson(self, estimator: BaseEstimator, path: Path, form: Form) -> Lesson:
        """Features of words, and tags."""
        from sublearn.structured import word_features

        columns = _parse_columns(form.token_columns)
        tokens, tags = load_conll(path, columns=columns)
        notes = {_COLUMNS: columns or [], _N_COLUMNS: len(tokens[0][0])}
        figures = {"sequences": len(tokens), "tokens": sum(map(len, tokens))}
        features = [word_features(sequence) for sequence in tokens]
        return Lesson((features, tags), len(tokens), notes, figures)

    def figures(self, model: BaseEstimator, lesson: Lesson, seconds: float) -> JsonObject:
        """With tags, features and weights."""
        found = lesson.figures | {
            "tags": len(model.classes_),
            "features": model.n_features_in_,
            "seconds": round(seconds, 3),
            "n_iter": model.n_iter_,
            "certificate": float(model.certificate_),
            "weights_not_zero": int(model.coef_.nnz),
        }
        if model.held_out_accuracy_ is not None:
            found["held_out_accuracy"] = float(model.held_out_accuracy_)
        return found

    def items_of_lesson(self, lesson: Lesson) -> Matrix | list[object]:
        """Sequences whose features are there already."""
        return [_Features(one) for one in lesson.arguments[0]]

    def finish(self, model: BaseEstimator, bits: int | None) -> BaseEstimator:
        """Silent, and on as many threads as whoever loads it says."""
        return model.set_params(verbose=0, n_jobs=None)

    # --- asking ------------------------------------------------------------------------------

    def check_wish(self, model: BaseEstimator, wish: Wish) -> None:
        """Tags are not ranked."""
        for name in wish.given():
            raise Refused(f"--{name}", f"is not for {self.data}")

    def check_form(self, model: BaseEstimator, form: Form) -> None:
        """Files are read as the training file was; a model of other features reads none."""
        for name in form.given():
            raise Refused(f"--{name.replace('_', '-')}", f"is not for {self.data}")
        if not _is_of_tokens(model):
            raise Refused(
                "MODEL",
                "must be from `sublearn fit chain`, got a ChainSVM saved in Python; use "
                "sublearn.load there",
            )

    def read(
        self, model: BaseEstimator, path: Path, form: Form, *, needs_truth: bool = False
    ) -> Asked:
        """Sequences of tokens, each a list of columns."""
        tokens, tags = _read_tokens(model, path, has_tags=needs_truth)
        return Asked(tokens, tags, np.zeros(len(tokens), dtype=bool))

    def answers(
        self, model: BaseEstimator, items: Matrix | list[object], wish: Wish
    ) -> list[JsonObject]:
        """Tokens and tags of each sequence."""
        tags = self._tags(model, items)
        return [
            {"tokens": [one[0] for one in tokens], "tags": found, "columns": tokens}
            for tokens, found in zip(items, tags, strict=True)
        ]

    @staticmethod
    def _tags(model: BaseEstimator, items: Iterable[Any]) -> list[list[object]]:
        from sublearn.structured import word_features

        features = [
            one.features if isinstance(one, _Features) else word_features(one) for one in items
        ]
        return [list(one) for one in model.predict(features)]

    def as_json(self, answer: JsonObject) -> JsonObject:
        """Tokens and tags."""
        return {"tokens": answer["tokens"], "tags": answer["tags"]}

    def line(self, answer: JsonObject) -> str:
        """A line for each token, its tag the last column, and a blank line after."""
        pairs = zip(answer["columns"], answer["tags"], strict=True)
        return "".join("\t".join([*token, str(tag)]) + "\n" for token, tag in pairs) + "\n"

    def header(self, model: BaseEstimator, wish: Wish) -> list[str]:
        """The sequence, the position in it, the token and its tag."""
        return ["sequence", "position", "token", "tag"]

    def records(self, answer: JsonObject, i: int) -> Iterator[Sequence[object]]:
        """One record for each token."""
        pairs = zip(answer["tokens"], answer["tags"], strict=True)
        for j, (token, tag) in enumerate(pairs):
            yield [i + 1, j + 1, token, tag]

    # --- judging, describing -----------------------------------------------------------------

    def judge(self, model: BaseEstimator, asked: Asked, options: JsonObject) -> Judgement:
        """Shares of tokens and of whole sequences that are right, and of unknown tags."""
        truth: list[list[str]] = list(asked.truth)
        found = self._tags(model, asked.items)
        right = np.array(
            [
                sum(a == b for a, b in zip(*pair, strict=True))
                for pair in zip(found, truth, strict=True)
            ]
        )
        sizes = np.array([len(tags) for tags in truth])
        known = set(model.classes_.tolist())
        unknown = np.array([sum(tag not in known for tag in tags) for tags in truth])
        measures = {
            "token_accuracy": quotient(right, sizes),
            "sequence_accuracy": mean(right == sizes),
            "unknown_tags": quotient(unknown, sizes, is_better_high=None),
        }
        facts = {"sequences": len(truth), "tokens": int(sizes.sum())}
        title = f"{facts['tokens']:,} tokens in {len(truth):,} sequences, percent"
        return Judgement(title, facts, measures, {"confused": _confused(found, truth)})

    def describe(self, model: BaseEstimator) -> JsonObject:
        """Tags, features and weights."""
        coef = label_weights(model)
        assert coef is not None
        return {
            "labels": len(model.classes_),
            "features": coef.shape[1],
            "weights_not_zero": int(coef.nnz),
            "share_of_weights_not_zero": coef.nnz / max(1, coef.shape[0] * coef.shape[1]),
            "weights_per_label": spread_of(np.diff(coef.indptr)),
            "certificate": float(model.certificate_),
        }

    def feature_names(self, model: BaseEstimator) -> np.ndarray | None:
        """Names of features, if there are names."""
        return model.feature_names_

    # --- over HTTP ---------------------------------------------------------------------------

    def question(self, model: BaseEstimator) -> dict[str, Field]:
        """Sentences of words, or sequences of positions with features."""
        kind: object = list[list[str | list[str]]]
        what = "Each a list of words, or of lists: a word, further columns."
        if not _is_of_tokens(model):
            kind = list[list[list[str] | dict[str, float] | list[float]]]
            what = "Each a list of positions: names of features, names with values, or numbers."
        return {"sequences": Field(kind, ..., what, {"min_length": 1})}

    def example(self, model: BaseEstimator) -> JsonObject:
        """Two words, or one position."""
        if not _is_of_tokens(model):
            names = model.feature_names_
            first = [0.0] * model.n_features_in_ if names is None else [str(names[0])]
            return {"sequences": [[first]]}
        n_columns = int(notes_of(model)[_N_COLUMNS])
        words = ["the", "dog"]
        if n_columns > 1:
            return {"sequences": [[[word] + ["x"] * (n_columns - 1) for word in words]]}
        return {"sequences": [words]}

    def reader(self, model: BaseEstimator) -> Callable[[list[object], int], Matrix | list[object]]:
        """Features of the positions of each sequence."""
        from sublearn.structured import word_features

        def features(items: list[Any], first: int) -> list[object]:
            if _is_of_tokens(model):
                return [word_features(words) for words in items]
            return [_as_features(one) for one in items]

        return features

    def answer(
        self,
        model: BaseEstimator,
        question: Mapping[str, object],
        check: Callable[[], None],
        reader: Callable[[list[object], int], Matrix | list[object]] | None = None,
    ) -> JsonObject:
        """`tags` of each sequence."""
        sequences, read = question["sequences"], reader or self.reader(model)
        assert isinstance(sequences, list)
        found: list[object] = []
        for start in range(0, len(sequences), _AT_ONCE):
            check()
            features = read(sequences[start : start + _AT_ONCE], start)
            found += [{"tags": list(tags)} for tags in model.predict(features)]
        return {"predictions": found}


def _is_of_tokens(model: BaseEstimator) -> bool:
    return _COLUMNS in notes_of(model)


def _as_features(positions: Sequence[object]) -> object:
    """Rows of numbers as an array; names of features as they are."""
    are_numbers = bool(positions) and all(
        isinstance(one, list) and not any(isinstance(value, str) for value in one)
        for one in positions
    )
    return np.asarray(positions, dtype=np.float64) if are_numbers else positions


def _parse_columns(text: str | None) -> list[int] | None:
    """What `--token-columns` says."""
    if text is None:
        return None
    parts = text.split(",")
    if len(parts) < 2 or not all(part.strip().isdigit() and int(part) > 0 for part in parts):
        raise Refused(
            "--token-columns",
            "must be the numbers of the word's column, of further ones and of the tag's, with "
            f"commas between and counted from 1, got {text}",
        )
    return [int(part) for part in parts]


def _read_tokens(model: BaseEstimator, path: Path, *, has_tags: bool) -> Tokens:
    notes = notes_of(model)
    columns = [int(n) for n in notes[_COLUMNS]] or None
    if columns is None and not plain_name(path).endswith(".conllu"):
        columns = list(range(1, int(notes[_N_COLUMNS]) + 2))  # the tag, if any, stands after them
    return load_conll(path, columns=columns, has_tags=has_tags)


def _confused(found: list[list[object]], truth: list[list[str]]) -> list[tuple[str, str, int]]:
    from collections import Counter

    pairs = Counter(
        (str(true), str(tag))
        for own, tags in zip(truth, found, strict=True)
        for true, tag in zip(own, tags, strict=True)
        if true != tag
    )
    return [(true, tag, n) for (true, tag), n in pairs.most_common(15)]
