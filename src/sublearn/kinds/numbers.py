"""Rows to numbers, to codes of features that rows have or lack, and to likelihoods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from sublearn.io import Dataset
from sublearn.io.prepared import as_dense, n_values
from sublearn.kinds.base import Asked, Form, Lesson, Refused, Wish, fit_figures, label_weights
from sublearn.kinds.judging import Judgement, Measure, mean, quotient
from sublearn.kinds.rows import OfRows, number_targets
from sublearn.kinds.weights import explain_by_weights, top_weights
from sublearn.typing import JsonObject, LabelsLike, Matrix

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from sublearn.extreme.explanation import Explanation

__all__ = ["RowCodes", "RowLikelihoods", "RowNumbers"]

_THE_MODEL = np.array(["the number"])


class _OneNumber(OfRows):
    """Kinds that answer with one number for each row."""

    makes_unit_rows: ClassVar[bool] = False
    column: ClassVar[str] = "prediction"

    def values(self, model: BaseEstimator, items: Matrix) -> np.ndarray:
        """The numbers."""
        raise NotImplementedError(f"{type(self).__name__}.values is missing")

    def answers(
        self, model: BaseEstimator, items: Matrix | list[object], wish: Wish
    ) -> list[JsonObject]:
        """One number for each row."""
        return [{self.column: value} for value in self.values(model, items).tolist()]

    def nothing(self, wish: Wish) -> JsonObject:
        """No number."""
        return {self.column: None, "empty": True}

    def line(self, answer: JsonObject) -> str:
        """The number, with six digits."""
        value = answer[self.column]
        return "\n" if value is None else f"{value:.6g}\n"

    def header(self, model: BaseEstimator, wish: Wish) -> list[str]:
        """The row and its number."""
        return ["row", self.column]

    def records(self, answer: JsonObject, i: int) -> Iterator[Sequence[object]]:
        """One record."""
        yield [i + 1, self.line(answer).rstrip("\n")]

    def arrays(
        self, model: BaseEstimator, answers: list[JsonObject], wish: Wish
    ) -> dict[str, np.ndarray]:
        """`predictions` and `is_empty`; NaN for an empty row."""
        values = np.array([one[self.column] for one in answers], dtype=np.float64)
        is_empty = np.array([one.get("empty", False) for one in answers], dtype=bool)
        return {f"{self.column}s": values, "is_empty": is_empty}

    def over_http(self, answer: JsonObject, wish: Wish) -> object:
        """The number itself."""
        return answer[self.column]


class RowNumbers(_OneNumber):
    """A number for each row."""

    name = "row_numbers"
    gives = "numbers of rows"
    main_measure = "R2"
    explains = True

    def targets(
        self, estimator: BaseEstimator, dataset: Dataset, path: Path, form: Form
    ) -> LabelsLike:
        """The number of each row."""
        return number_targets(dataset)

    def truth(self, dataset: Dataset) -> LabelsLike:
        """The number of each row, where the file has one."""
        has_numbers = dataset.Y.ndim == 1 and dataset.Y.dtype.kind in "iuf"
        return dataset.Y if has_numbers else []

    def figures(self, model: BaseEstimator, lesson: Lesson, seconds: float) -> JsonObject:
        """With the work, where the model has weights."""
        X = lesson.arguments[0]
        size = (lesson.n_rows, int(lesson.figures["features"]), n_values(X))
        if self._has_weights(model):
            return fit_figures(model, size, seconds)
        return super().figures(model, lesson, seconds)

    @staticmethod
    def _has_weights(model: BaseEstimator) -> bool:
        """A mixture has weights for each of its components, and no single row of them."""
        coef = label_weights(model)
        return coef is not None and coef.shape[0] == 1 and np.ndim(model.intercept_) == 0

    def values(self, model: BaseEstimator, items: Matrix) -> np.ndarray:
        """The numbers."""
        return np.asarray(model.predict(items))

    def judge(self, model: BaseEstimator, asked: Asked, options: JsonObject) -> Judgement:
        """How far predicted numbers are from the true ones."""
        truth = np.asarray(asked.truth, dtype=np.float64)
        if len(truth) != len(asked):
            raise ValueError("DATA must have one number per row for a model of numbers, got labels")
        errors = self.values(model, asked.items) - truth
        ones = np.ones(len(truth))
        r2 = np.stack([errors**2, truth, truth**2, ones], axis=1)
        rmse = np.stack([errors**2, ones], axis=1)
        measures = {
            "R2": Measure(r2, _explained, is_share=False),
            "MAE": mean(np.abs(errors), is_share=False, is_better_high=False),
            "RMSE": Measure(rmse, lambda s: np.sqrt(s[:, 0] / s[:, 1]), False, False),
        }
        sketches = {"numbers": (truth, errors + truth)}
        return Judgement(f"{len(truth):,} rows", {"rows": len(truth)}, measures, sketches)

    def explain(
        self, model: BaseEstimator, item: Matrix | list[object], labels: list[str], k: int
    ) -> list[Explanation]:
        """Value times weight of each feature, and the intercept."""
        if labels:
            raise Refused("--label", f"needs a model of labels, got one of {self.gives}")
        if not self._has_weights(model):
            raise self._cannot(model, "explain")
        names = self.feature_names(model)
        return [explain_by_weights(model, item, _THE_MODEL, 0, k, names)]

    def describe(self, model: BaseEstimator) -> JsonObject:
        """Features, weights, intercept and the certificate."""
        if not self._has_weights(model):
            return super().describe(model)
        coef = label_weights(model)
        assert coef is not None
        return {
            "features": coef.shape[1],
            "weights_not_zero": int(coef.nnz),
            "share_of_weights_not_zero": coef.nnz / max(1, coef.shape[1]),
            "intercept": float(model.intercept_),
            "top_weights": {"the model": top_weights(self.feature_names(model), coef[0], 10)},
            "certificate": float(model.certificate_),
        }


def _explained(sums: np.ndarray) -> np.ndarray:
    """1 less the squared errors over the squared distances from the mean; NaN for a constant."""
    errors, first, second, n = sums.T
    spread = second - first**2 / n
    is_spread = spread > 1e-12 * np.maximum(second, 1e-300)
    return 1 - np.divide(errors, spread, out=np.full(len(sums), np.nan), where=is_spread)


class RowLikelihoods(_OneNumber):
    """How far each row is from the middle of a Gaussian, and how likely rows are."""

    name = "row_likelihoods"
    gives = "squared Mahalanobis distances of rows"
    has_targets: ClassVar[bool] = False
    column = "distance"
    main_measure = "log_likelihood"

    def figures(self, model: BaseEstimator, lesson: Lesson, seconds: float) -> JsonObject:
        """With the pairs of columns that depend on each other."""
        coef = model.sparse_precision_
        n_pairs = (int(coef.nnz) - coef.shape[0]) // 2
        found = super().figures(model, lesson, seconds)
        if model.get_params(deep=False).get("l1") in ("cv", "cv_1se"):
            found["l1"] = float(model.l1_)
        return found | {"pairs": n_pairs, "blocks": int(model.n_blocks_)}

    def values(self, model: BaseEstimator, items: Matrix) -> np.ndarray:
        """Squared Mahalanobis distances: large ones are outliers."""
        return model.mahalanobis(items)

    def judge(self, model: BaseEstimator, asked: Asked, options: JsonObject) -> Judgement:
        """The log-likelihood of rows: half of log det P less the distance, up to a constant."""
        _, log_det = np.linalg.slogdet(model.precision_)
        constant = log_det - len(model.precision_) * np.log(2 * np.pi)
        likelihoods = 0.5 * (constant - self.values(model, asked.items))
        measures = {"log_likelihood": mean(likelihoods, is_share=False)}
        return Judgement(f"{len(asked):,} rows, mean of each", {"rows": len(asked)}, measures)


class RowCodes(OfRows):
    """Which latent features each row has."""

    name = "row_codes"
    gives = "codes of rows: which latent features each has"
    has_targets: ClassVar[bool] = False
    makes_unit_rows: ClassVar[bool] = False
    main_measure = "explained"

    def figures(self, model: BaseEstimator, lesson: Lesson, seconds: float) -> JsonObject:
        """With the number of features found."""
        ends = {"n_iter": int(model.n_iter_), "latent_features": int(model.n_components_)}
        return lesson.figures | {"seconds": round(seconds, 3)} | ends

    def answers(
        self, model: BaseEstimator, items: Matrix | list[object], wish: Wish
    ) -> list[JsonObject]:
        """A list of 0 and 1 for each row."""
        codes = np.asarray(model.transform(items)).astype(int)
        return [{"code": code} for code in codes.tolist()]

    def nothing(self, wish: Wish) -> JsonObject:
        """No code."""
        return {"code": [], "empty": True}

    def line(self, answer: JsonObject) -> str:
        """Zeros and ones with blanks between."""
        return " ".join(map(str, answer["code"])) + "\n"

    def header(self, model: BaseEstimator, wish: Wish) -> list[str]:
        """The row, and a column for each latent feature."""
        return ["row", *(f"feature_{j + 1}" for j in range(int(model.n_components_)))]

    def records(self, answer: JsonObject, i: int) -> Iterator[Sequence[object]]:
        """One record."""
        yield [i + 1, *answer["code"]]

    def arrays(
        self, model: BaseEstimator, answers: list[JsonObject], wish: Wish
    ) -> dict[str, np.ndarray]:
        """`codes` of shape (rows, latent features) and `is_empty`."""
        n = int(model.n_components_)
        codes = [one["code"] or [0] * n for one in answers]
        is_empty = np.array([one.get("empty", False) for one in answers], dtype=bool)
        return {
            "codes": np.array(codes, dtype=np.int8).reshape(len(codes), n),
            "is_empty": is_empty,
        }

    def judge(self, model: BaseEstimator, asked: Asked, options: JsonObject) -> Judgement:
        """The share of the squares of rows, less the intercept, that codes and features explain."""
        rows = as_dense(asked.items)
        left = rows - model.inverse_transform(model.transform(asked.items))
        squares = np.nansum(np.square(left), axis=1)
        whole = np.nansum(np.square(rows - model.intercept_), axis=1)
        measures = {
            "explained": quotient(whole - squares, whole),
            "mean_square_left": mean(squares / rows.shape[1], is_share=False, is_better_high=False),
        }
        return Judgement(f"{len(asked):,} rows", {"rows": len(asked)}, measures)
