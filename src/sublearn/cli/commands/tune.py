"""`sublearn tune`: settings of a method chosen on held-out rows."""

from __future__ import annotations

import inspect
import itertools
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sublearn.cli.fitting import (
    Learner,
    TrainingData,
    find_method,
    form_of,
    form_options,
    learn,
    values_of,
)
from sublearn.cli.methods import METHODS
from sublearn.cli.options import Jobs, Json, Quiet
from sublearn.kinds.base import Asked, Form, Lesson, Refused
from sublearn.typing import JsonObject

if TYPE_CHECKING:
    from sublearn.cli.params import Param

__all__ = ["complete", "make_group"]

_HELP = """Choose settings of a method on held-out rows of DATA: quality against size and time.

Each combination of the values of `--grid` is fitted to four fifths of the rows and judged on the
others, the same for all; of loads over time the last fifth is forecast. Without `--grid` the values
are those that matter most for the method. With `--model` the best is fitted to all rows and saved.

Example: `sublearn tune ppd-sparse train.txt --grid l1=0.03,0.1 --grid C=1,3 --model best.model`"""

#: What no row of a file can judge, and why.
_NOT_TUNED = {
    "skip-gram": "no text says which vectors of words are good: fit several, and compare what "
    "`sublearn predict` finds near to words that you know, or a task that uses them",
}

Grid = Annotated[
    list[str] | None,
    typer.Option(
        "--grid", metavar="NAME=V,V", show_default=False,
        help="Values of an option to try, with commas between; may be repeated.",
    ),
]  # fmt: skip
ModelOut = Annotated[
    Path | None,
    typer.Option(
        "--model", "-m", metavar="OUT", dir_okay=False, show_default=False,
        help="Fit the best settings to all rows and save the model here.",
    ),
]  # fmt: skip
Picture = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", dir_okay=False, show_default=False,
        help="Write an SVG picture of quality against size and time.",
    ),
]  # fmt: skip
HeldOut = Annotated[
    float,
    typer.Option(metavar="X", help="Share of the rows to judge on. [0.2]", show_default=False),
]


@dataclass(frozen=True)
class Trial:
    """Settings, and what they gave on the held-out rows."""

    settings: Mapping[str, str]
    quality: float
    n_bytes: int
    seconds: float
    is_better_high: bool = True

    @property
    def goodness(self) -> float:
        """The quality, so that more is better."""
        return self.quality if self.is_better_high else -self.quality


def complete(arguments: Sequence[str]) -> list[str]:
    """The call as it is; a method that is none is refused with the nearest names."""
    words = list(arguments)
    if words and not words[0].startswith("-"):
        find_method(words[0])
        if words[0] in _NOT_TUNED:
            raise Refused(
                "METHOD", f"{words[0]} has nothing to be tuned by; {_NOT_TUNED[words[0]]}"
            )
    return words or ["--help"]


def make_group(arguments: Sequence[str]) -> typer.Typer:
    """The methods as commands, with the options of the one that is called."""
    group = typer.Typer(
        help=_HELP, rich_markup_mode="markdown", add_completion=False,
        subcommand_metavar="METHOD DATA [OPTIONS]",
    )  # fmt: skip
    for name, method in METHODS.items():
        if name in _NOT_TUNED:
            continue
        is_wanted = bool(arguments) and arguments[0] == name
        command = _command_of(Learner.of(name, None)) if is_wanted else _nothing
        group.command(name, help=None if is_wanted else method.sentence)(command)
    return group


def _nothing() -> None:
    """Stands for methods that are only listed."""


def _command_of(learner: Learner) -> Callable[..., None]:
    def run(**options: Any) -> None:
        tune(learner, form_of(learner, options), **options)

    grid = ", ".join(f"{k}={','.join(v)}" for k, v in METHODS[learner.name].grid.items())
    run.__doc__ = (
        f"Choose settings of {learner.name} on held-out rows; tried by default: {grid}.\n\n"
        f"Example: `sublearn tune {learner.name} DATA --model best.model --picture frontier.svg`"
    )
    own = inspect.signature(tune, eval_str=True).parameters
    kept = [
        one.replace(kind=one.KEYWORD_ONLY)
        for name, one in own.items()
        if name not in ("learner", "form")
    ]
    run.__dict__["__signature__"] = inspect.Signature([*kept, *form_options(learner, False)])
    return run


def tune(
    learner: Learner,
    form: Form,
    data: TrainingData,
    grid: Grid = None,
    model: ModelOut = None,
    picture: Picture = None,
    held_out: HeldOut = 0.2,
    n_jobs: Jobs = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Try all settings of a grid and show what they gave."""
    from sublearn.io.files import check_target

    check_target(model, "--model")
    check_target(picture, "--picture")
    if not 0 < held_out < 1:
        raise Refused("--held-out", f"must be between 0 and 1, got {held_out}")
    params = learner.params()
    options = _parse_grid(learner, params, grid or [])
    estimator = learner.make({})
    before = estimator.get_params(deep=False)
    lesson = learner.kind.lesson(estimator, data, form)
    after = estimator.get_params(deep=False)
    shared = {name: value for name, value in after.items() if value is not before[name]}
    trials = _run(
        learner, params, options, lesson, shared, held_out, n_jobs, is_quiet=quiet or json
    )
    best = max(trials, key=lambda one: one.goodness)
    frontier = [one for one in trials if not any(_beats(other, one) for other in trials)]
    measure = learner.kind.main_measure
    if picture is not None:
        _draw(picture, trials, frontier, best, f"{learner.name} on {data.name}", measure)
    if model is not None:
        _save_best(learner, params, best, lesson, shared, n_jobs, model)
    _show(trials, frontier, best, measure, f"{learner.name} on {data.name}", json=json, quiet=quiet)


def _parse_grid(
    learner: Learner, params: Mapping[str, Param], grid: list[str]
) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for one in grid:
        name, _, values = one.partition("=")
        key = name.strip().lstrip("-").replace("-", "_")
        if key not in params or not values:
            raise Refused(
                "--grid",
                f"must be NAME=V,V with an option of {learner.name} ({', '.join(list(params)[:8])} "
                f"...), got {one}",
            )
        parts = tuple(part.strip() for part in values.split(","))
        for part in parts:
            params[key].parse(part)
        found[key] = parts
    return found or dict(METHODS[learner.name].grid)


def _run(
    learner: Learner,
    params: Mapping[str, Param],
    options: Mapping[str, tuple[str, ...]],
    lesson: Lesson,
    shared: JsonObject,
    held_out: float,
    n_jobs: int | None,
    *,
    is_quiet: bool,
) -> list[Trial]:
    """One trial for each combination, with a bar on standard error."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from sublearn.cli.console import err

    n_test = round(held_out * lesson.n_rows)
    if not 0 < n_test < lesson.n_rows:
        sentence = f"must leave rows on both sides, got {n_test} of {lesson.n_rows}"
        raise Refused("--held-out", sentence)
    train, asked = learner.kind.hold_out(lesson, n_test)
    combinations = [
        dict(zip(options, one, strict=True)) for one in itertools.product(*options.values())
    ]
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    found = []
    with Progress(*columns, console=err, disable=is_quiet, transient=True) as bar:
        task = bar.add_task("tuning", total=len(combinations))
        for settings in combinations:
            bar.update(task, description=_in_short(settings))
            values = values_of(params, settings | {"n_jobs": n_jobs}, is_quiet=True)
            found.append(_try(learner, values, settings, shared, train, asked))
            bar.advance(task)
    return found


def _try(
    learner: Learner,
    values: JsonObject,
    settings: Mapping[str, str],
    shared: JsonObject,
    train: Lesson,
    asked: Asked,
) -> Trial:
    import tempfile

    estimator = learner.make(values).set_params(**shared)
    start = time.perf_counter()
    with warnings.catch_warnings():  # labels that the rows of one side do not carry, and such
        warnings.simplefilter("ignore")
        fitted, _ = learn(learner.kind, estimator, train)
        seconds = time.perf_counter() - start
        fitted.notes_ = dict(train.notes)
        seconds = learner.kind.cost(fitted, asked, seconds)
        judged = learner.kind.judge(fitted, asked, {})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m"
        learner.kind.finish(fitted, None).save(path)
        n_bytes = path.stat().st_size
    measure = judged.measures[learner.kind.main_measure]
    return Trial(settings, measure.value, n_bytes, seconds, measure.is_better_high is not False)


def _beats(one: Trial, other: Trial) -> bool:
    """Whether a trial is at least as good in all three and better in one."""
    a = (one.goodness, -one.n_bytes, -one.seconds)
    b = (other.goodness, -other.n_bytes, -other.seconds)
    return a != b and all(x >= y for x, y in zip(a, b, strict=True))


def _save_best(
    learner: Learner,
    params: Mapping[str, Param],
    best: Trial,
    lesson: Lesson,
    shared: JsonObject,
    n_jobs: int | None,
    model: Path,
) -> None:
    values = values_of(params, {**best.settings, "n_jobs": n_jobs}, is_quiet=True)
    fitted, _ = learn(learner.kind, learner.make(values).set_params(**shared), lesson)
    learner.kind.finish(fitted, None).save(model, notes=lesson.notes)


# --- showing -----------------------------------------------------------------------------------


def _in_short(settings: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items()) or "defaults"


def _show(
    trials: list[Trial],
    frontier: list[Trial],
    best: Trial,
    measure: str,
    title: str,
    *,
    json: bool,
    quiet: bool,
) -> None:
    from sublearn.cli.console import in_bytes, out, print_json, print_titled, table

    if json:
        rows = [{**one.settings, measure: one.quality, "bytes": one.n_bytes, "seconds": one.seconds}
                for one in trials]  # fmt: skip
        print_json({"best": dict(best.settings), measure: best.quality, "trials": rows})
        return
    if quiet:
        return
    grid = table(["settings", measure, "size", "seconds", ""])
    for one in sorted(trials, key=lambda one: -one.goodness):
        mark = "best" if one is best else "frontier" if one in frontier else ""
        size, seconds = in_bytes(one.n_bytes), f"{one.seconds:.2f}"
        grid.add_row(_in_short(one.settings), f"{one.quality:.4f}", size, seconds, mark)
    print_titled(f"{title}, held-out rows", grid)
    flags = " ".join(f"--{k.replace('_', '-')} {v}" for k, v in best.settings.items())
    out.print(f"[dim]best:[/] {flags}; frontier: nothing is better, smaller and faster")
    _warn_of_edges(trials, best)


def _warn_of_edges(trials: list[Trial], best: Trial) -> None:
    """Say so where the best value of an option is the first or last of three or more."""
    from sublearn.cli.console import say_warning

    for name, value in best.settings.items():
        values = list(dict.fromkeys(one.settings[name] for one in trials))
        if len(values) > 2 and value in (values[0], values[-1]):
            say_warning(f"the best {name} is at the end of its values ({value}): try others beyond")


def _draw(
    path: Path, trials: list[Trial], frontier: list[Trial], best: Trial, title: str, measure: str
) -> None:
    """Two pictures above each other: quality by size, and by seconds."""
    from sublearn.cli.charts import Axis, dots
    from sublearn.cli.writing import open_text

    y = Axis.of(measure, [one.quality for one in trials])
    parts = []
    for name, value in (("bytes of the model", _bytes_of), ("seconds of the fit", _seconds_of)):
        x = Axis.of(name, [value(one) for one in trials], is_log=True)
        points = [
            (
                value(one),
                one.quality,
                _in_short(one.settings),
                2 if one is best else int(one in frontier),
            )
            for one in trials
        ]
        steps = sorted((value(one), one.goodness) for one in trials)
        course = [(at, y if best.is_better_high else -y) for at, y in _best_so_far(steps)]
        parts.append(
            dots(
                f"{title}: {measure} by {name}",
                x,
                y,
                points,
                path=course,
                is_named=len(trials) <= 20,
            )
        )
    shifted = [
        part.replace("<svg ", f'<svg y="{310 * i}" height="300" width="560" ')
        for i, part in enumerate(parts)
    ]
    with open_text(path) as stream:
        stream.write(
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 560 620">\n'
            f'<rect width="560" height="620" fill="#fff"/>\n{"".join(shifted)}\n</svg>\n'
        )


def _bytes_of(trial: Trial) -> float:
    return float(trial.n_bytes)


def _seconds_of(trial: Trial) -> float:
    return max(trial.seconds, 1e-4)


def _best_so_far(steps: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The corner points of the best quality for at most so much."""
    found: list[tuple[float, float]] = []
    for x, quality in steps:
        if not found or quality > found[-1][1]:
            found += [(x, found[-1][1] if found else quality), (x, quality)]
    return [*found, (steps[-1][0], found[-1][1])]
