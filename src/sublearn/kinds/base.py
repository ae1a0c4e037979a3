"""What every kind can be asked for, and what passes between a kind and whoever asks.

Nothing heavy is imported here: the command line reads it for its help.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from sublearn.errors import ParameterError
from sublearn.typing import JsonObject, Matrix

if TYPE_CHECKING:
    import numpy as np
    import scipy.sparse as sp
    from sklearn.base import BaseEstimator

    from sublearn.extreme.explanation import Explanation
    from sublearn.kinds.judging import Judgement

__all__ = [
    "KINDS",
    "Asked",
    "Field",
    "Form",
    "Kind",
    "Lesson",
    "Refused",
    "Wish",
    "fit_figures",
    "kind_named",
    "kind_of",
    "label_weights",
    "offers",
]

#: Scores or features, in a dense form, of the items that a model is asked about at once.
_MOST_VALUES = 4_000_000


class Refused(ParameterError):
    """An option or argument of a command that means nothing here, or has a value that does not."""

    def __init__(self, what: str, sentence: str):
        super().__init__(f"{what}: {sentence}")
        self.sentence = sentence


@dataclass(frozen=True)
class Form:
    """What a user says about the form of a data file; each kind reads the fields that concern it.

    `labels`, `data_format`, `zero_based`, `normalize` and `standardize` are of rows of numbers;
    `text`, `separator`, `columns` and `label_names` of texts; `taxonomy` and `label_paths` of
    labels in a taxonomy; `token_columns` of sequences; `target`, `time_zone`, `quantile` and
    `holidays` of loads.
    """

    labels: str | None = None
    data_format: str | None = None
    zero_based: bool = False
    normalize: bool | None = None
    standardize: bool = False
    text: bool = False
    separator: str | None = None
    columns: str | None = None
    label_names: Path | None = None
    taxonomy: Path | None = None
    label_paths: str | None = None
    token_columns: str | None = None
    target: str | None = None
    time_zone: str | None = None
    quantile: float | None = None
    holidays: Path | None = None

    def given(self) -> list[str]:
        """Names of the fields that differ from their default."""
        return [
            one.name for one in dataclasses.fields(self) if getattr(self, one.name) != one.default
        ]


@dataclass(frozen=True)
class Wish:
    """What is wanted of each item: how many labels, as what, and where to cut."""

    k: int | None = None
    probabilities: bool = False
    threshold: float | None = None

    def given(self) -> list[str]:
        """Names of the fields that differ from their default."""
        return [
            one.name for one in dataclasses.fields(self) if getattr(self, one.name) != one.default
        ]


@dataclass(frozen=True)
class Lesson:
    """What `fit` takes, and what a saved model must remember of how it was read."""

    arguments: tuple[Any, ...]
    n_rows: int
    notes: JsonObject = field(default_factory=dict)
    figures: JsonObject = field(default_factory=dict)

    def take(self, rows: np.ndarray) -> Lesson:
        """The lesson of some rows only."""
        parts = tuple(_rows_of(one, rows) for one in self.arguments)
        return dataclasses.replace(self, arguments=parts, n_rows=len(rows))


def _rows_of(values: Any, rows: np.ndarray) -> Any:
    if values is None:
        return None
    if isinstance(values, list):
        return [values[i] for i in rows.tolist()]
    return values[rows]


@dataclass(frozen=True)
class Asked:
    """Items of a data file as a model takes them, what is true of them, and which are empty."""

    items: Any  # a matrix, or a list of texts or sequences
    truth: Any  # labels in any form, numbers, or loads
    is_empty: np.ndarray

    def __len__(self) -> int:
        return len(self.is_empty)


@dataclass(frozen=True)
class Field:
    """A field of a question in JSON: its type, default (... where it must be given) and rules."""

    type: object
    default: object
    description: str
    rules: Mapping[str, float] = field(default_factory=dict)
    is_checked_by_kind: bool = False


def offers(model: object, method: str) -> bool:
    """Whether a model offers a method that only some have, as scikit-learn says it: it is there.

    The methods are `predict_proba_top_k` (calibrated models), `calibrate`, `compress` and `coef_`
    of classifiers of one kind. The only place that asks so.
    """
    return hasattr(model, method)


class Kind:
    """One kind of question: the files, the answers, the measures and the words for its models.

    A method that a kind does not have refuses with a sentence that says what the model is and
    which command, or Python, serves it.
    """

    #: Name, as classes of estimators have it.
    name: ClassVar[str]
    #: What models of this kind give, for people.
    gives: ClassVar[str]
    #: What their data files hold, for people.
    data: ClassVar[str]
    #: What to use where a command does not serve the kind.
    instead: ClassVar[str] = "use sublearn.load in Python"
    #: Fields of `Form` that matter when a model is fitted, and when it is asked.
    fit_form: ClassVar[tuple[str, ...]] = ()
    form: ClassVar[tuple[str, ...]] = ()
    #: What is said of items that get no answer, after their number.
    empty_means: ClassVar[str] = "rows are empty, and so are their answers"
    #: Fields of `Wish` that matter.
    wishes: ClassVar[tuple[str, ...]] = ()
    #: Formats of answers.
    formats: ClassVar[tuple[str, ...]] = ("text", "jsonl", "csv", "npz")
    #: Whether `explain` has an answer for some of its models.
    explains: ClassVar[bool] = False
    #: Whether its models have labels, with weights of features for each in most of them.
    has_labels: ClassVar[bool] = False
    #: The measure that says most, of those of `judge`.
    main_measure: ClassVar[str] = ""

    def _cannot(self, model: BaseEstimator, what: str) -> Refused:
        return Refused(
            "MODEL",
            f"needs a model that can {what}, got a {type(model).__name__}; {self.instead} "
            f"(it gives {self.gives})",
        )

    # --- fitting -----------------------------------------------------------------------------

    def lesson(self, estimator: BaseEstimator, path: Path, form: Form) -> Lesson:
        """Read a training file for an estimator, which may get parameters from it."""
        raise self._cannot(estimator, "learn from a file")

    def figures(self, model: BaseEstimator, lesson: Lesson, seconds: float) -> JsonObject:
        """What a fit cost and what came out."""
        return lesson.figures | {"seconds": round(seconds, 3)} | self._end_of(model)

    @staticmethod
    def _end_of(model: BaseEstimator) -> JsonObject:
        return {"certificate": float(model.certificate_), "n_iter": int(model.n_iter_)}

    def finish(self, model: BaseEstimator, bits: int | None) -> BaseEstimator:
        """The model as it is saved: silent, and with fewer bits if they are wanted."""
        model.set_params(verbose=0)
        return model if bits is None else model.compress(bits)

    def items_of_lesson(self, lesson: Lesson) -> Matrix | list[object]:
        """What is asked of a fitted model to judge it on rows of a lesson."""
        return lesson.arguments[0]

    def hold_out(self, lesson: Lesson, n_rows: int) -> tuple[Lesson, Asked]:
        """A lesson without some of its rows, drawn at random, and these rows as questions."""
        import numpy as np

        order = np.random.default_rng(0).permutation(lesson.n_rows)
        test = lesson.take(np.sort(order[:n_rows]))
        truth = test.arguments[1] if len(test.arguments) > 1 else []
        asked = Asked(self.items_of_lesson(test), truth, np.zeros(n_rows, dtype=bool))
        return lesson.take(np.sort(order[n_rows:])), asked

    # --- asking ------------------------------------------------------------------------------

    def check_wish(self, model: BaseEstimator, wish: Wish) -> None:
        """Refuse what a model of this kind has no answer to."""
        for name in wish.given():
            if name not in self.wishes:
                raise Refused(f"--{name}", f"needs a model of labels, got one of {self.gives}")

    def check_form(self, model: BaseEstimator, form: Form) -> None:
        """Refuse what the files of this kind do not know."""
        for name in form.given():
            if name in self.form:
                continue
            option = f"--{name.replace('_', '-')}"
            if name == "text":
                raise Refused(
                    option, f"needs a model that was fitted to text, got one fitted to {self.data}"
                )
            what = "text" if name in ("separator", "columns") else "data of numbers"
            raise Refused(option, f"is for {what}, got {self.data}")

    def read(
        self, model: BaseEstimator, path: Path, form: Form, *, needs_truth: bool = False
    ) -> Asked:
        """Read a data file as the training file was read."""
        raise self._cannot(model, "predict")

    def n_scores(self, model: BaseEstimator) -> int:
        """Numbers that an answer to one item takes inside, to bound the memory of a block."""
        return 1

    def answers(
        self, model: BaseEstimator, items: Matrix | list[object], wish: Wish
    ) -> list[JsonObject]:
        """What the model says of each item, as JSON values."""
        raise self._cannot(model, "predict")

    def predict(self, model: BaseEstimator, asked: Asked, wish: Wish) -> Iterator[JsonObject]:
        """Answers in the order of items, found for so many at once as memory allows."""
        step = max(1, min(4096, _MOST_VALUES // max(1, self.n_scores(model))))
        for start in range(0, len(asked), step):
            own = slice(start, start + step)
            found = self.answers(model, asked.items[own], wish)
            for answer, is_empty in zip(found, asked.is_empty[own].tolist(), strict=True):
                yield self.nothing(wish) if is_empty else answer

    def nothing(self, wish: Wish) -> JsonObject:
        """The answer to an empty item."""
        return {"empty": True}

    # --- writing -----------------------------------------------------------------------------

    def as_json(self, answer: JsonObject) -> JsonObject:
        """An answer as one object on a line."""
        return answer

    def line(self, answer: JsonObject) -> str:
        """An answer as text, with the end of its line."""
        raise NotImplementedError(f"{type(self).__name__}.line is missing")

    def header(self, model: BaseEstimator, wish: Wish) -> list[str]:
        """Names of the columns of a CSV file of answers."""
        raise NotImplementedError(f"{type(self).__name__}.header is missing")

    def records(self, answer: JsonObject, i: int) -> Iterator[Sequence[object]]:
        """Records of a CSV file that an answer, the i-th from 0, becomes."""
        raise NotImplementedError(f"{type(self).__name__}.records is missing")

    def arrays(
        self, model: BaseEstimator, answers: list[JsonObject], wish: Wish
    ) -> dict[str, np.ndarray]:
        """Answers as arrays by name, for an .npz file."""
        raise NotImplementedError(f"{type(self).__name__}.arrays is missing")

    # --- judging, describing -----------------------------------------------------------------

    def judge(self, model: BaseEstimator, asked: Asked, options: JsonObject) -> Judgement:
        """How good the answers are where the truth is known."""
        raise self._cannot(model, "be judged")

    def cost(self, model: BaseEstimator, asked: Asked, seconds: float) -> float:
        """Seconds that settings cost, after a fit that took so many: those of the fit."""
        return seconds

    def check_calibration(self, model: BaseEstimator) -> None:
        """Refuse a model that cannot learn probabilities."""
        raise self._cannot(model, "calibrate")

    def calibrate(
        self, model: BaseEstimator, asked: Asked, method: str, least: int | None
    ) -> tuple[int, int]:
        """Teach a model which probability a score stands for: labels that share a map, and all."""
        raise self._cannot(model, "calibrate")

    def explain(
        self, model: BaseEstimator, item: Matrix | list[object], labels: list[str], k: int
    ) -> list[Explanation]:
        """What speaks for and against labels of one item; for none given, of the best one."""
        raise self._cannot(model, "explain")

    def describe(self, model: BaseEstimator) -> JsonObject:
        """Sizes and other facts of a fitted model: its fitted numbers, shapes of its arrays."""
        found: JsonObject = {}
        for name, value in vars(model).items():
            if name.startswith("_") or not name.endswith("_") or name == "notes_":
                continue
            shown = _in_short(value)
            if shown is not None:
                found[name.strip("_")] = shown[0]
        return found

    def own(self, model: BaseEstimator) -> BaseEstimator:
        """The estimator that holds the weights."""
        return model

    def labels_of(self, model: BaseEstimator) -> np.ndarray:
        """Labels in the order of the rows of weights."""
        return model.classes_

    def label_counts(self, model: BaseEstimator) -> np.ndarray | None:
        """Training rows that carry each label, if they were counted."""
        return None

    def feature_names(self, model: BaseEstimator) -> np.ndarray | None:
        """Names of the features that the model was fitted to, if it knows them."""
        return None

    def each_label(self, model: BaseEstimator, wanted: list[int], top: int) -> list[JsonObject]:
        """Rows, weights, bias and strongest features of labels."""
        from sublearn.kinds.weights import describe_labels

        return describe_labels(
            self.own(model),
            self.labels_of(model),
            wanted,
            self.label_counts(model),
            self.feature_names(model),
            top,
        )

    # --- over HTTP ---------------------------------------------------------------------------

    #: Field of a question with its items, if it has a list of them.
    items_field: ClassVar[str | None] = None

    def question(self, model: BaseEstimator) -> dict[str, Field]:
        """Fields of a question in JSON."""
        raise self._cannot(model, "be asked over HTTP")

    def example(self, model: BaseEstimator) -> JsonObject:
        """A question that the model answers."""
        raise self._cannot(model, "be asked over HTTP")

    def over_http(self, answer: JsonObject, wish: Wish) -> object:
        """An answer as it is sent."""
        return answer

    def answer(
        self,
        model: BaseEstimator,
        question: Mapping[str, object],
        check: Callable[[], None],
        reader: Callable[[list[object], int], Matrix | list[object]] | None = None,
    ) -> JsonObject:
        """`predictions` of all items, found for so many of them at once as memory allows.

        `check` is called before each part and may raise to end it; `reader` is that of the model,
        if it was made before.
        """
        items = question[self.items_field or ""]
        assert isinstance(items, list)
        wanted: JsonObject = {name: question[name] for name in self.wishes if name in question}
        wish = Wish(**wanted)
        read = reader or self.reader(model)
        step = max(1, _MOST_VALUES // max(1, self.n_scores(model)))
        found: list[object] = []
        for start in range(0, len(items), step):
            check()
            part = items[start : start + step]
            answers = self.answers(model, read(part, start), wish)
            found += [self.over_http(one, wish) for one in answers]
        return {"predictions": found}

    def reader(self, model: BaseEstimator) -> Callable[[list[object], int], Matrix | list[object]]:
        """Makes what the model takes of items in JSON; the number is that of the first of them."""
        return lambda items, first: items


def _in_short(value: object) -> tuple[object] | None:
    """A number or a word as it is, an array as its shape, None for the rest."""
    import numpy as np
    import scipy.sparse as sp

    if isinstance(value, (str, int, float)) or value is None:
        return (value,)
    if not isinstance(value, (np.ndarray, sp.spmatrix)):
        return None
    size = " x ".join(f"{n:,}" for n in value.shape)
    return (f"{size} {value.dtype}" if size else value.item(),)


def label_weights(model: BaseEstimator) -> sp.csr_matrix | None:
    """Weights with a row for each label, or one for two classes; None if a model has no such."""
    import scipy.sparse as sp

    if offers(model, "sparse_coef_"):
        return model.sparse_coef_
    return sp.csr_matrix(model.coef_) if offers(model, "coef_") else None


def fit_figures(model: BaseEstimator, size: tuple[int, int, int], seconds: float) -> JsonObject:
    """Sizes, seconds, certificate, and how little of the matrix a fit of weights has touched.

    `work` counts matrix entries visited. One pass of one-vs-rest over all rows visits all entries
    for each label, which is what `work_of_one_pass` gives to compare with.
    """
    n_rows, n_features, n_values = size
    trace, weights = model.trace_, label_weights(model)
    n_models = 1 if weights is None else weights.shape[0]  # one for two classes, and for numbers
    figures: JsonObject = {
        "rows": n_rows,
        "features": n_features,
        "seconds": round(seconds, 3),
        "certificate": float(model.certificate_),
        "n_iter": int(model.n_iter_),
    }
    if weights is not None:
        figures |= {"weights": int(weights.nnz), "weights_possible": n_models * n_features}
    if "work" in trace.columns and weights is not None:
        figures |= {"work": _total_work(model), "work_of_one_pass": n_models * n_values}
    if "nnz_dual" in trace.columns:
        figures |= {"duals": int(trace["nnz_dual"][-1]), "duals_possible": n_rows * n_models}
    if model.get_params(deep=False).get("l1") in ("cv", "cv_1se"):
        figures["l1"] = float(model.l1_)
    return figures


def _total_work(model: BaseEstimator) -> int:
    """Entries visited; a trace may have the rows of several problems, one after another."""
    trace = model.trace_
    if "output" not in trace.columns:
        return int(trace["work"][-1])
    outputs = trace["output"]
    return sum(int(trace["work"][outputs == k].max()) for k in set(outputs.tolist()))


# --- which kind ---------------------------------------------------------------------------------

#: Name of a kind to the module and the class that know it; imported when it is asked for.
KINDS = {
    "text_labels": ("texts", "TextLabels"),
    "row_labels": ("labels", "RowLabels"),
    "row_label_sets": ("labels", "RowLabelSets"),
    "taxonomy_labels": ("taxonomies", "TaxonomyLabels"),
    "row_numbers": ("numbers", "RowNumbers"),
    "row_codes": ("numbers", "RowCodes"),
    "row_likelihoods": ("numbers", "RowLikelihoods"),
    "row_scores": ("others", "RowScores"),
    "sequence_tags": ("sequences", "SequenceTags"),
    "factor_graphs": ("others", "FactorGraphs"),
    "loads": ("loads", "Loads"),
    "vectors": ("others", "Vectors"),
    "words": ("others", "Words"),
}


def kind_named(name: str) -> Kind:
    """The kind of that name."""
    module, cls = KINDS[name]
    found: Kind = getattr(importlib.import_module(f"sublearn.kinds.{module}"), cls)()
    return found


def kind_of(model: BaseEstimator) -> Kind:
    """The kind that the class of a model, or of an unfitted estimator, names.

    Raises
    ------
    ValueError
        For an object of another library, which names none.
    """
    name = next((vars(cls)["_kind"] for cls in type(model).__mro__ if "_kind" in vars(cls)), None)
    if name not in KINDS:
        raise ValueError(f"model must be of a class of sublearn, got a {type(model).__name__}")
    return kind_named(str(name))
