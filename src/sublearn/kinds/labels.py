"""Rows to labels: the best ones in order, or a set of labels that belong together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import scipy.sparse as sp

from sublearn.io import Dataset
from sublearn.io.prepared import n_values, notes_of
from sublearn.kinds.base import (
    Asked,
    Field,
    Form,
    Kind,
    Lesson,
    Refused,
    Wish,
    fit_figures,
    label_weights,
    offers,
)
from sublearn.kinds.judging import Judgement
from sublearn.kinds.rankings import judge_rankings, set_measures
from sublearn.kinds.rows import OfRows, as_targets
from sublearn.kinds.weights import (
    explain_by_weights,
    find_label,
    spread_of,
)
from sublearn.typing import JsonObject, LabelsLike, Matrix

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from sublearn.extreme.explanation import Explanation
    from sublearn.validation.labels import DecodedLabels

__all__ = ["OfLabels", "RowLabelSets", "RowLabels"]

_USUAL_K = 5


class OfLabels(Kind):
    """Kinds whose models rank labels."""

    wishes: ClassVar[tuple[str, ...]] = ("k", "probabilities", "threshold")
    main_measure = "P@1"
    explains = True
    has_labels = True

    # --- asking ------------------------------------------------------------------------------

    def check_wish(self, model: BaseEstimator, wish: Wish) -> None:
        """Refuse probabilities of a model that knows scores only."""
        super().check_wish(model, wish)
        if wish.probabilities and not offers(model, "predict_proba_top_k"):
            raise Refused(
                "--probabilities",
                "needs a model with probabilities, got one without; `sublearn calibrate` adds them",
            )

    def n_scores(self, model: BaseEstimator) -> int:
        """Scores or features, in a dense form, of one item."""
        return max(len(model.classes_), 1)

    def answers(
        self, model: BaseEstimator, items: Matrix | list[object], wish: Wish
    ) -> list[JsonObject]:
        """The best labels and their scores, or probabilities."""
        best = model.predict_proba_top_k if wish.probabilities else model.predict_top_k
        labels, scores = best(items, min(wish.k or _USUAL_K, len(model.classes_)))
        pairs = zip(labels.tolist(), scores.tolist(), strict=True)
        if wish.threshold is None:
            return [{"labels": names, "scores": values} for names, values in pairs]
        return [_above(names, values, wish.threshold) for names, values in pairs]

    def nothing(self, wish: Wish) -> JsonObject:
        """No label."""
        return {"labels": [], "scores": [], "empty": True}

    # --- writing -----------------------------------------------------------------------------

    def line(self, answer: JsonObject) -> str:
        """`label:score` pairs with tabs between."""
        pairs = zip(answer["labels"], answer["scores"], strict=True)
        return "\t".join(f"{name}:{value:.6g}" for name, value in pairs) + "\n"

    def header(self, model: BaseEstimator, wish: Wish) -> list[str]:
        """A column for the row, and two for each label."""
        k = min(wish.k or _USUAL_K, len(model.classes_))
        value = "probability" if wish.probabilities else "score"
        return ["row", *(f"{what}_{i + 1}" for i in range(k) for what in ("label", value))]

    def records(self, answer: JsonObject, i: int) -> Iterator[Sequence[object]]:
        """One record: the row from 1, then labels with their scores."""
        pairs = zip(answer["labels"], answer["scores"], strict=True)
        yield [i + 1, *(part for name, value in pairs for part in (name, f"{value:.6g}"))]

    def arrays(
        self, model: BaseEstimator, answers: list[JsonObject], wish: Wish
    ) -> dict[str, np.ndarray]:
        """`labels`, `scores` and `is_empty`; -1 or "", and NaN, where there is no label."""
        k = min(wish.k or _USUAL_K, len(model.classes_))
        is_text = model.classes_.dtype.kind not in "iuf"
        nothing = "" if is_text else -1
        rows = [one["labels"] + [nothing] * (k - len(one["labels"])) for one in answers]
        dtype = str if is_text else model.classes_.dtype
        scores = [one["scores"] + [np.nan] * (k - len(one["scores"])) for one in answers]
        return {
            "labels": np.array(rows, dtype=dtype).reshape(len(answers), k),
            "scores": np.array(scores, dtype=np.float64).reshape(len(answers), k),
            "is_empty": np.array([one.get("empty", False) for one in answers], dtype=bool),
        }

    # --- judging, describing -----------------------------------------------------------------

    def judge(self, model: BaseEstimator, asked: Asked, options: JsonObject) -> Judgement:
        """Precision, nDCG and recall of the k best labels; F1 of sets; calibration error."""
        return judge_rankings(model, asked, options, has_proba=offers(model, "predict_proba_top_k"))

    def check_calibration(self, model: BaseEstimator) -> None:
        """Only some classifiers can."""
        if not (offers(model, "calibrate") and offers(self.own(model), "calibrate")):
            raise self._cannot(self.own(model), "calibrate")

    def calibrate(
        self, model: BaseEstimator, asked: Asked, method: str, least: int | None
    ) -> tuple[int, int]:
        """Learn probabilities from items with something in them."""
        items, truth = asked.items, asked.truth
        if asked.is_empty.any() and isinstance(items, list) and isinstance(truth, list):
            kept = np.flatnonzero(~asked.is_empty).tolist()
            items, truth = [items[i] for i in kept], [truth[i] for i in kept]
        model.calibrate(items, truth, method, min_positives=least)
        is_shared = self.own(model).calibration_.is_pooled
        return int(is_shared.sum()), len(is_shared)

    def explain(
        self, model: BaseEstimator, item: Matrix | list[object], labels: list[str], k: int
    ) -> list[Explanation]:
        """Value times weight of each feature, and the bias, of the labels or of the best one."""
        if label_weights(self.own(model)) is None:
            raise self._cannot(self.own(model), "explain")
        names = self.labels_of(model)
        wanted = labels or [str(model.predict_top_k(item, 1)[0][0, 0])]
        return [self.explain_one(model, item, find_label(names, label), k) for label in wanted]

    def explain_one(
        self, model: BaseEstimator, item: Matrix | list[object], row: int, k: int
    ) -> Explanation:
        """One label."""
        names = self.feature_names(model)
        return explain_by_weights(model, item, self.labels_of(model), row, k, names)

    def describe(self, model: BaseEstimator) -> JsonObject:
        """Labels, features, how sparse the weights are, and the certificate."""
        coef = label_weights(self.own(model))
        if coef is None:
            return super().describe(model)
        return {
            "labels": len(model.classes_),
            "probabilities": offers(model, "predict_proba"),
            "features": coef.shape[1],
            "weights_not_zero": int(coef.nnz),
            "share_of_weights_not_zero": coef.nnz / max(1, coef.shape[0] * coef.shape[1]),
            "weights_per_label": spread_of(np.diff(coef.indptr)),
            "certificate": float(self.own(model).certificate_),
        }

    def label_counts(self, model: BaseEstimator) -> np.ndarray | None:
        """Training rows that carry each label, if they were counted."""
        found = notes_of(model).get("label_counts")
        return None if found is None else np.asarray(found)

    # --- over HTTP ---------------------------------------------------------------------------

    def over_http(self, answer: JsonObject, wish: Wish) -> object:
        """`probabilities` have their own name."""
        if not wish.probabilities:
            return answer
        found = {**answer, "probabilities": answer["scores"]}
        del found["scores"]
        return found

    def answer(
        self,
        model: BaseEstimator,
        question: Mapping[str, object],
        check: Callable[[], None],
        reader: Callable[[list[object], int], Matrix | list[object]] | None = None,
    ) -> JsonObject:
        """Labels of all items; probabilities only where the model has them."""
        if question.get("probabilities") and not offers(model, "predict_proba_top_k"):
            raise ValueError(
                "probabilities must be false for a model without them, got true; "
                "`sublearn calibrate` adds them"
            )
        return super().answer(model, question, check, reader)

    @staticmethod
    def label_fields() -> dict[str, Field]:
        """Fields of all questions for labels."""
        return {
            "k": Field(int, 5, "Labels per item, at most those of the model.", {"ge": 1}),
            "probabilities": Field(bool, False, "Probabilities instead of scores."),
        }


def _above(names: list[object], values: list[float], threshold: float) -> JsonObject:
    kept = [pair for pair in zip(names, values, strict=True) if pair[1] >= threshold]
    return {"labels": [name for name, _ in kept], "scores": [value for _, value in kept]}


class RowLabels(OfRows, OfLabels):
    """Rows to labels, best first."""

    name = "row_labels"
    gives = "labels of rows"

    def lesson(self, estimator: BaseEstimator, path: Path, form: Form) -> Lesson:
        """As for all rows; how many rows carry each label is noted."""
        found = super().lesson(estimator, path, form)
        found.notes["label_counts"] = _count_labels(found.arguments[1], found.n_rows)
        return found

    def figures(self, model: BaseEstimator, lesson: Lesson, seconds: float) -> JsonObject:
        """With the work, and the number of labels."""
        X = lesson.arguments[0]
        size = (lesson.n_rows, int(lesson.figures["features"]), n_values(X))
        return fit_figures(model, size, seconds) | {"labels": len(model.classes_)}

    def question(self, model: BaseEstimator) -> dict[str, Field]:
        """Rows, and how many labels."""
        return self.label_fields() | super().question(model)

    def example(self, model: BaseEstimator) -> JsonObject:
        """As for all rows, and how many labels."""
        return super().example(model) | {"k": min(5, len(model.classes_))}


class RowLabelSets(OfRows, OfLabels):
    """Rows to sets of labels, with what no other set can exceed."""

    name = "row_label_sets"
    gives = "sets of labels of rows"
    wishes: ClassVar[tuple[str, ...]] = ()
    main_measure = "F1"

    def targets(
        self, estimator: BaseEstimator, dataset: Dataset, path: Path, form: Form
    ) -> LabelsLike:
        """Sets of labels."""
        return as_targets(dataset)

    def figures(self, model: BaseEstimator, lesson: Lesson, seconds: float) -> JsonObject:
        """With the numbers of labels and of pairs."""
        found = super().figures(model, lesson, seconds)
        pairs = int(model.interactions_.nnz)
        return found | {"labels": len(model.classes_), "pairs": pairs}

    def check_wish(self, model: BaseEstimator, wish: Wish) -> None:
        """A set is not cut."""
        for name in wish.given():
            raise Refused(f"--{name}", f"needs a model that ranks labels, got one of {self.gives}")

    def answers(
        self, model: BaseEstimator, items: Matrix | list[object], wish: Wish
    ) -> list[JsonObject]:
        """`labels`, `score` and `bound` of each row."""
        sets, scores, bounds = model.predict_with_bounds(items)
        found = zip(_as_lists(sets, model), scores.tolist(), bounds.tolist(), strict=True)
        return [{"labels": names, "score": score, "bound": bound} for names, score, bound in found]

    def nothing(self, wish: Wish) -> JsonObject:
        """No label."""
        return {"labels": [], "score": None, "bound": None, "empty": True}

    def line(self, answer: JsonObject) -> str:
        """Labels with tabs between."""
        return "\t".join(map(str, answer["labels"])) + "\n"

    def header(self, model: BaseEstimator, wish: Wish) -> list[str]:
        """The row, its labels with blanks between, the score and the bound of the set."""
        return ["row", "labels", "score", "bound"]

    def records(self, answer: JsonObject, i: int) -> Iterator[Sequence[object]]:
        """One record."""
        yield [i + 1, " ".join(map(str, answer["labels"])), answer["score"], answer["bound"]]

    def arrays(
        self, model: BaseEstimator, answers: list[JsonObject], wish: Wish
    ) -> dict[str, np.ndarray]:
        """`labels` as an indicator of `classes`, `scores`, `bounds` and `is_empty`."""
        column = {name: j for j, name in enumerate(model.classes_.tolist())}
        found = np.zeros((len(answers), len(column)), dtype=bool)
        for i, one in enumerate(answers):
            found[i, [column[name] for name in one["labels"]]] = True
        numbers = {
            f"{name}s": np.array([one[name] for one in answers], dtype=np.float64)
            for name in ("score", "bound")
        }
        is_empty = np.array([one.get("empty", False) for one in answers], dtype=bool)
        classes = model.classes_
        classes = classes.astype(str) if classes.dtype == object else classes
        return {"labels": found, "classes": classes, **numbers, "is_empty": is_empty}

    def judge(self, model: BaseEstimator, asked: Asked, options: JsonObject) -> Judgement:
        """F1 over all labels, of each row, and rows whose set is right."""
        measures = set_measures(model.predict(asked.items), asked)
        return Judgement(f"{len(asked):,} rows, percent", {"rows": len(asked)}, measures)

    def over_http(self, answer: JsonObject, wish: Wish) -> object:
        """A set as it is."""
        return answer

    def explain(
        self, model: BaseEstimator, item: Matrix | list[object], labels: list[str], k: int
    ) -> list[Explanation]:
        """What speaks for labels on their own, pairs left out; of those of the best set."""
        wanted = labels or [str(name) for name in _as_lists(model.predict(item), model)[0]]
        if not wanted:
            raise ValueError("the model gives this row no label; --label says which to explain")
        return [self.explain_one(model, item, find_label(model.classes_, n), k) for n in wanted]


def _count_labels(targets: object, n_rows: int) -> np.ndarray:
    """Number of rows that carry each label, in the order of `classes_`."""
    from sublearn.validation import encode_labels

    return encode_labels(targets, n_rows).counts()


def _as_lists(sets: DecodedLabels, model: BaseEstimator) -> list[list[object]]:
    """Sets of labels in any form as lists of names."""
    if isinstance(sets, list):
        return [list(labels) for labels in sets]
    if isinstance(sets, np.ndarray) and sets.ndim == 1:
        return [[label] for label in sets.tolist()]
    rows = sp.csr_matrix(sets)
    ends = zip(rows.indptr[:-1].tolist(), rows.indptr[1:].tolist(), strict=True)
    return [model.classes_[rows.indices[a:b]].tolist() for a, b in ends]
