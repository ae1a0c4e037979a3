"""A method as a command: its options, and what a fit does with them."""

from __future__ import annotations

import copy
import difflib
import importlib
import inspect
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.models import OptionInfo

from sublearn.cli.job import as_typed, call_of, check_call, keep_call, part_of
from sublearn.cli.methods import METHODS, RERANK, TEXT, Method
from sublearn.cli.options import (
    FLAG,
    OF_DATA,
    Columns,
    DataFormat,
    Jobs,
    Json,
    Labels,
    Quiet,
    Separator,
    ZeroBased,
)
from sublearn.execution import asked_for
from sublearn.kinds.base import Form, Kind, Lesson, Refused
from sublearn.typing import JsonObject

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from sublearn.cli.params import Param

__all__ = [
    "Learner",
    "TrainingData",
    "class_of",
    "command_of",
    "figure_rows",
    "find_method",
    "form_of",
    "form_options",
    "learn",
    "show_figures",
    "values_of",
]

_COMMON = ("n_jobs", "random_state")
_RARE = ("data_format", "zero_based")  # options of form that `--help` leaves to `--help-all`
_CLASSIFIERS = ("row_labels",)  # kinds of methods that text can be given to

Output = Annotated[
    Path,
    typer.Option(
        "--model", "-m", metavar="OUT", dir_okay=False, show_default=False,
        help="Where to save the model.",
    ),
]  # fmt: skip
TrainingData = Annotated[
    Path,
    typer.Argument(
        metavar="DATA", exists=True, dir_okay=False, show_default=False,
        help="Training file, `-` for standard input.",
    ),
]  # fmt: skip


def _form_option(metavar: str | None, help: str, *flags: str, default: str = "") -> OptionInfo:
    found: OptionInfo = typer.Option(
        *flags,
        metavar=metavar or FLAG,
        help=f"{help} [{default}]" if default else help,
        show_default=False,
        rich_help_panel=OF_DATA,
    )
    return found


#: Options about the form of a data file by the name of their field in `Form`; `fit` shows those
#: that the kind of a method knows.
FORM_OPTIONS: dict[str, Any] = {
    "labels": Labels,
    "data_format": DataFormat,
    "zero_based": ZeroBased,
    "normalize": Annotated[
        bool | None,
        _form_option(
            None,
            "Scale rows to length 1.",
            "--normalize/--no-normalize",
            default="for labels",
        ),
    ],
    "standardize": Annotated[
        bool,
        _form_option(
            None,
            "Give columns the same size, dense ones mean 0.",
            "--standardize",
        ),
    ],
    "separator": Separator,
    "columns": Columns,
    "label_names": Annotated[
        Path | None,
        _form_option("FILE", "Titles of labels, a line `label TAB title` for each, for `rerank`."),
    ],
    "taxonomy": Annotated[
        Path | None,
        _form_option(
            "FILE",
            "Labels and their parents: lines `parent TAB child`, SKOS (.ttl) or ARFF.",
            default="that of DATA, if ARFF",
        ),
    ],
    "label_paths": Annotated[
        str | None,
        _form_option(
            "SEP", "Labels are paths with SEP between parts: rec.sport."
        ),
    ],
    "token_columns": Annotated[
        str | None,
        _form_option(
            "N,...",
            "Columns to read, counted from 1: the word's, further ones, the tag's last.",
            default="all; 2,4 of a .conllu file",
        ),
    ],
    "target": Annotated[
        str | None,
        _form_option(
            "NAMES",
            "Columns that are loads, with commas between; the others are exogenous.",
            default="the first column of numbers",
        ),
    ],
    "quantile": Annotated[
        float | None,
        _form_option("X", "Forecast the load that is not exceeded this often, such as 0.9."),
    ],
    "holidays": Annotated[
        Path | None,
        _form_option("FILE", "Days unlike others, a date such as 2008-12-25 on each line."),
    ],
    "time_zone": Annotated[
        str | None,
        _form_option("NAME", "Of the times in DATA, such as Europe/Berlin: clock changes count."),
    ],
}  # fmt: skip


def class_of(name: str) -> type[BaseEstimator]:
    """The class that implements a method."""
    method = METHODS[name]
    found: type[BaseEstimator] = getattr(importlib.import_module(method.room), method.estimator)
    return found


def find_method(name: str, option: str = "METHOD") -> Method:
    """The method of that name.

    Raises
    ------
    Refused
        With the nearest names, if there is none.
    """
    if name in METHODS:
        return METHODS[name]
    near = difflib.get_close_matches(name, METHODS, 3, 0.5)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise Refused(option, f"must be one of {', '.join(METHODS)}, got {name}{hint}")


@dataclass(frozen=True)
class Learner:
    """A method, and for texts the method of the classifier, with all their options."""

    name: str
    classifier: str | None = None

    @classmethod
    def of(cls, name: str, classifier: str | None) -> Learner:
        """Refuses names that are none, and a classifier that takes no plain labels."""
        find_method(name)
        if name not in (TEXT, RERANK):
            return cls(name)
        found = find_method(classifier or "ppd-sparse", "--classifier")
        if found.kind not in _CLASSIFIERS:
            raise Refused(
                "--classifier", f"needs a method that learns plain labels, got {classifier}"
            )
        return cls(name, classifier or "ppd-sparse")

    @property
    def kind(self) -> Kind:
        """The kind of its models."""
        from sublearn.kinds import kind_named

        return kind_named(METHODS[self.name].kind)

    def params(self) -> dict[str, Param]:
        """Options that are parameters; those of the classifier after those of words."""
        from sublearn.cli.params import params_of

        found = params_of(class_of(self.name))
        for inner in self.inner():
            found |= params_of(class_of(inner))
        return found

    def inner(self) -> list[str]:
        """The methods within: that of words and that of labels. Theirs is an option of a name
        that several have, threads and seed apart."""
        if self.classifier is None:
            return []
        return [TEXT, self.classifier] if self.name == RERANK else [self.classifier]

    def has_bar(self) -> bool:
        """Whether a fit can draw a progress bar."""
        return "verbose" in class_of(self.classifier or self.name)._rules

    def can_compress(self) -> bool:
        """Whether weights can be saved with fewer bits."""
        if self.name == RERANK:
            return False
        cls = class_of(self.classifier or self.name)
        return any("compress" in vars(one) for one in cls.__mro__)

    def can_part(self) -> bool:
        """Whether processes can solve a part of a fit each."""
        learner = class_of(self.classifier or self.name)
        return self.name != RERANK and "model_path" in learner._rules

    def grow_at(self, estimator: BaseEstimator, model: Path) -> None:
        """Let the estimator write what it has solved beside the file of its model."""
        learner = estimator if self.classifier is None else estimator.classifier
        learner.set_params(model_path=str(model))

    def make(self, values: Mapping[str, object]) -> BaseEstimator:
        """An unfitted estimator with these values."""
        from sublearn.cli.params import build, params_of

        outer = class_of(self.name)
        if self.classifier is None:
            return build(outer, values)
        if self.name == RERANK:
            tagger = Learner(TEXT, self.classifier)
            own = params_of(outer).keys() - tagger.params().keys() | set(_COMMON)
            words = {name: value for name, value in values.items() if name in own}
            within = {n: v for n, v in values.items() if n not in own or n in _COMMON}
            return build(outer, words).set_params(taggers=tagger.make(within))
        own = params_of(outer).keys() - {"verbose"}
        inner = {name: value for name, value in values.items() if name not in own}
        words = {name: value for name, value in values.items() if name in own}
        return build(outer, words).set_params(classifier=build(class_of(self.classifier), inner))

    def knows(self, flag: str) -> bool:
        """Whether an option can be typed after this method."""
        names = {"model", "m", "q", "quiet", "json", "h", "help", "help-all", "debug", "bits"}
        names |= {name.replace("_", "-") for name in self.kind.fit_form}
        names |= {param.flag[2:] for param in self.params().values()} | {"n-jobs", "random-state"}
        names |= {"part"} if self.can_part() else set()
        names |= {"no-normalize"} if "normalize" in self.kind.fit_form else set()
        return flag.lstrip("-") in names | ({"classifier"} if self.classifier else set())


def command_of(learner: Learner, *, shows_all: bool) -> Callable[..., None]:
    """The command of a method, for Typer: a function whose signature are its options."""
    params = learner.params()

    def run(**options: Any) -> None:
        fit(learner, params, options)

    run.__doc__ = _help_of(learner)
    run.__dict__["__signature__"] = inspect.Signature(
        [*_leading(), *_of_params(learner, params, shows_all), *form_options(learner, shows_all),
         *_trailing(learner, params, shows_all)]
    )  # fmt: skip
    return run


def _option(name: str, annotation: object, default: object) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
    )


def _leading() -> list[inspect.Parameter]:
    none = inspect.Parameter.empty
    return [
        _option("context", typer.Context, none),
        _option("data", TrainingData, none),
        _option("model", Output, none),
    ]


def _trailing(
    learner: Learner, params: Mapping[str, Param], shows_all: bool
) -> list[inspect.Parameter]:
    """What the fit as a whole is told; all but threads and the classifier is rare."""
    found = []
    if learner.classifier is not None:
        help = "The method that learns the labels; its options belong to this command."
        option = typer.Option(
            "--classifier", metavar="METHOD", help=f"{help} [ppd-sparse]", show_default=False
        )
        found.append(_option("classifier", Annotated[str, option], "ppd-sparse"))
    if learner.can_compress():
        help = "Save weights with 8, 16 or 32 bits: smaller files."
        option = typer.Option(
            "--bits", metavar="N", help=help, show_default=False, hidden=not shows_all
        )
        found.append(_option("bits", Annotated[int | None, option], None))
    if learner.can_part():
        help = "Solve part K of N only, as in a job array; `sublearn join OUT` puts them together."
        option = typer.Option(
            "--part", metavar="K/N", help=help, show_default=False, hidden=not shows_all
        )
        found.append(_option("part", Annotated[str | None, option], None))
    if "n_jobs" in params:
        found.append(_option("n_jobs", Jobs, None))
    if "random_state" in params:
        help = "Seed of the random order. [0]"
        option = typer.Option(
            "--random-state", metavar="N", help=help, show_default=False, hidden=not shows_all
        )
        found.append(_option("random_state", Annotated[int, option], 0))
    return [*found, _option("quiet", Quiet, False), _option("json", Json, False)]


def form_of(learner: Learner, options: dict[str, Any]) -> Form:
    """The options about the form of the training file, taken out of all."""
    return Form(**{name: options.pop(name) for name in learner.kind.fit_form})


def form_options(learner: Learner, shows_all: bool) -> list[inspect.Parameter]:
    """Options about the form of the training file."""
    found = []
    for name in learner.kind.fit_form:
        annotation = FORM_OPTIONS[name]
        option = copy.copy(annotation.__metadata__[0])
        option.hidden = name in _RARE and not shows_all
        found.append(_option(name, Annotated[annotation.__origin__, option], getattr(Form(), name)))
    return found


def _of_params(
    learner: Learner, params: Mapping[str, Param], shows_all: bool
) -> list[inspect.Parameter]:
    """Options that are parameters, those that matter first, the others hidden unless wanted."""
    first = METHODS[learner.name].first
    order = [n for n in first if n in params] + [n for n in params if n not in first]
    found = []
    for name in order:
        param = params[name]
        if name in _COMMON:
            continue
        option = typer.Option(
            param.flag,
            metavar=param.metavar,
            help=f"{param.help}{_shown(param.default)}",
            show_default=False,
            hidden=name not in first and not shows_all,
            rich_help_panel="How to learn",
        )
        found.append(_option(name, Annotated[str | None, option], None))
    return found


def _shown(default: object) -> str:
    if default is None:
        return ""
    value = ",".join(map(str, default)) if isinstance(default, tuple) else str(default)
    return f" [{value}]"


def _help_of(learner: Learner) -> str:
    method = METHODS[learner.name]
    return (
        f"{method.sentence} `--help-all` shows all options.\n\n"
        f"Example: `sublearn fit {learner.name} {method.example}`"
    )


# --- a fit -------------------------------------------------------------------------------------


def fit(learner: Learner, params: Mapping[str, Param], options: dict[str, Any]) -> None:
    """Learn a model, or a part of it, and save it; show what it cost."""
    data, model = Path(str(options.pop("data"))), Path(str(options.pop("model")))
    bits, quiet, as_json = (options.pop(name, None) for name in ("bits", "quiet", "json"))
    part, context = options.pop("part", None), options.pop("context")
    options.pop("classifier", None)
    from sublearn.io.files import check_target

    check_target(model, "--model")
    if bits not in (None, 8, 16, 32):
        raise Refused("--bits", f"must be 8, 16 or 32, got {bits}")
    form = form_of(learner, options)
    estimator = learner.make(
        values_of(params, options, is_quiet=bool(quiet), has_bar=learner.has_bar())
    )
    if part is not None or asked_for() is not None:
        if not learner.can_part():
            raise Refused("METHOD", f"must be one that is fitted in parts, got {learner.name}")
        learner.grow_at(estimator, model)
        call = call_of(learner.name, data, context)
    if part is not None:
        check_call(Path(f"{model}.parts"), call)
    lesson = _read(learner, estimator, data, form, is_quiet=bool(quiet))
    if part is not None:
        figures = _learn_part(str(part), estimator, lesson, model)
        keep_call(Path(f"{model}.parts"), call)
        show_figures(figures, title=f"part {part} on {data.name}", json=bool(as_json),
                     quiet=bool(quiet))  # fmt: skip
        return
    with nullcontext() if asked_for() is None else as_typed():
        fitted, figures = learn(learner.kind, estimator, lesson)
    fitted = learner.kind.finish(fitted, bits if isinstance(bits, int) else None)
    fitted.save(model, notes=lesson.notes)
    figures |= {"model": str(model), "model_bytes": model.stat().st_size}
    name = learner.classifier or learner.name
    show_figures(figures, title=f"{name} on {data.name}", json=bool(as_json), quiet=bool(quiet))


def _learn_part(text: str, estimator: BaseEstimator, lesson: Lesson, model: Path) -> JsonObject:
    from sublearn.parts import solve_part

    number, n_parts = part_of(text)
    with as_typed(), solve_part(number, n_parts) as part:
        estimator.fit(*lesson.arguments)
    return {"part": number, "n_parts": n_parts, "labels": part.n_labels,
            "labels_solved_now": part.n_solved, "folder": f"{model}.parts"}  # fmt: skip


def _read(
    learner: Learner, estimator: BaseEstimator, data: Path, form: Form, *, is_quiet: bool
) -> Lesson:
    if is_quiet:
        return learner.kind.lesson(estimator, data, form)
    from sublearn.cli.console import working

    with working(f"reading {data.name}"):
        return learner.kind.lesson(estimator, data, form)


def values_of(
    params: Mapping[str, Param],
    options: Mapping[str, object],
    *,
    is_quiet: bool,
    has_bar: bool = True,
) -> JsonObject:
    """Parameters that were given, as values; threads and seed have defaults of their own."""
    found: JsonObject = {
        name: params[name].parse(text)
        for name, text in options.items()
        if isinstance(text, str) and name in params
    }
    if "n_jobs" in params:
        found["n_jobs"] = -1 if options.get("n_jobs") is None else options["n_jobs"]
    if "random_state" in params:
        found["random_state"] = options.get("random_state", 0)
    return found | ({"verbose": 1} if not is_quiet and has_bar else {})


def learn(kind: Kind, estimator: BaseEstimator, lesson: Lesson) -> tuple[BaseEstimator, JsonObject]:
    """The fitted estimator, and what the fit cost."""
    start = time.perf_counter()
    estimator.fit(*lesson.arguments)
    return estimator, kind.figures(estimator, lesson, time.perf_counter() - start)


# --- figures -----------------------------------------------------------------------------------


def figure_rows(figures: JsonObject) -> list[tuple[str, str]]:
    """The figures in words, in reading order."""
    from sublearn.cli.console import in_bytes

    sizes = [what for what in ("rows", "features", "labels") if what in figures]
    rows = [("data", ", ".join(_counted(figures[what], what) for what in sizes))]
    if "l1" in figures:
        rows.append(("l1", f"{figures['l1']:.4g}, chosen by cross-validation"))
    rows += [
        ("fit", f"{figures['seconds']:.2f} s"),
        ("certificate", f"{figures['certificate']:.2g} (relative duality gap)"),
        ("weights", _share(figures["weights"], figures["weights_possible"], "are not zero")),
    ]
    if "duals" in figures:
        duals = _share(figures["duals"], figures["duals_possible"], "are active")
        rows.append(("dual variables", duals))
    if "held_out_score" in figures:
        rows.append(("held-out rows", f"{figures['held_out_score']:.4f}, the metric learned for"))
    if "work" in figures:
        rows.append(("work", _work(figures["work"], figures["work_of_one_pass"])))
    if "model_bytes" in figures:
        rows.append(("model", f"{figures['model']}, {in_bytes(figures['model_bytes'])}"))
    return rows


def show_figures(figures: JsonObject, *, title: str, json: bool, quiet: bool) -> None:
    """The figures on standard output: JSON, or a table unless `quiet`."""
    if quiet and not json:
        return
    from sublearn.cli.console import facts, print_json, print_titled

    if json:
        print_json(figures)
    else:
        has_work = "weights_possible" in figures
        print_titled(title, facts(figure_rows(figures) if has_work else _by_name(figures)))


def _by_name(figures: JsonObject) -> list[tuple[str, str]]:
    """Figures of methods for which the work of one pass says nothing."""
    return [
        (name.replace("_", " "), f"{value:.4g}" if isinstance(value, float) else str(value))
        for name, value in figures.items()
    ]


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what if n != 1 else what.removesuffix('s')}"


def _share(part: int, whole: int, verb: str) -> str:
    percent = 100 * part / max(1, whole)
    return f"{part:,} of {whole:,} {verb} ({percent:.3g} %)"


def _work(work: int, one_pass: int) -> str:
    return (
        f"{work:,} matrix entries visited; a single pass of one-vs-rest over all rows "
        f"would visit {one_pass:,}"
    )
