"""`sublearn fit`: learn a model from a data file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sublearn.cli.options import (
    Data,
    DataFormat,
    Jobs,
    Json,
    Labels,
    Quiet,
    ZeroBased,
    check_folder,
)

__all__ = ["command"]

_Output = Annotated[
    Path,
    typer.Option(
        "--model", "-m", metavar="OUT", dir_okay=False, show_default=False,
        help="Where to save the model.",
    ),
]  # fmt: skip

# Options of the estimators. Not given, they keep the estimator's own default; the one shown is
# ppd-sparse's, which a test checks.

_OBJECTIVE: Any = {"rich_help_panel": "What is minimised"}
_SOLVER: Any = {"rich_help_panel": "How"}

_LossWeight = Annotated[
    float | None,
    typer.Option(
        "--C", metavar="X", show_default="1.0", **_OBJECTIVE,
        help="Weight of the loss; larger fits the training rows closer.",
    ),
]  # fmt: skip
_L1 = Annotated[
    float | None,
    typer.Option(
        metavar="X", show_default="0.1", **_OBJECTIVE,
        help="Weight of the l1 penalty; larger gives fewer weights and a smaller file.",
    ),
]  # fmt: skip
_Loss = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", show_default="squared_hinge", **_OBJECTIVE, help="squared_hinge or hinge."
    ),
]
_Bias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", show_default="learned", **_OBJECTIVE,
        help="Intercept of each label: learned, or fixed.",
    ),
]  # fmt: skip
_Tol = Annotated[
    float | None,
    typer.Option(
        metavar="X", show_default="0.01", **_SOLVER,
        help="Stop a label when its certificate (relative duality gap) is below.",
    ),
]  # fmt: skip
_MaxIter = Annotated[
    int | None,
    typer.Option(
        metavar="N", show_default="100", **_SOLVER,
        help="Most rounds of search, correct and shrink for a label.",
    ),
]  # fmt: skip
_Prune = Annotated[
    float | None,
    typer.Option(
        metavar="X", show_default="0.0", **_SOLVER,
        help="Leave weights of this size or smaller out of the model.",
    ),
]  # fmt: skip


def command(
    data: Data,
    model: _Output,
    method: Annotated[
        str, typer.Option(metavar="NAME", help="Learning method: ppd-sparse.")
    ] = "ppd-sparse",
    C: _LossWeight = None,
    l1: _L1 = None,
    loss: _Loss = None,
    bias: _Bias = None,
    tol: _Tol = None,
    max_iter: _MaxIter = None,
    prune: _Prune = None,
    jobs: Jobs = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed of the random order.")] = 0,
    labels: Labels = None,
    data_format: DataFormat = None,
    zero_based: ZeroBased = False,
    normalize: Annotated[
        bool,
        typer.Option(
            "--normalize/--no-normalize",
            help="Scale each row to length 1; the model remembers it for predict and evaluate.",
        ),
    ] = True,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Learn a model from DATA and save it.

    The model is one file (safetensors, no pickle) that appears when it is complete; Ctrl-C leaves
    nothing behind. It loads with `sublearn predict`, `evaluate` and `inspect`, and in Python with
    `sublearn.load(path)`.

    Labels are kept by name where the data file has names (ARFF, .npz), else by number.

    Example: `sublearn fit train.txt.xz --model wiki.model --l1 0.05 --jobs 8`
    """
    from sublearn.cli.console import working
    from sublearn.cli.data import as_targets, notes_for, read_data, refuse_no_rows, unit_rows
    from sublearn.cli.fitting import fit_with_figures, show_figures
    from sublearn.cli.methods import make_estimator

    check_folder(model, "--model")
    params = {"C": C, "l1": l1, "loss": loss, "bias": bias, "tol": tol, "max_iter": max_iter}
    params |= {"prune": prune, "random_state": seed, "n_jobs": -1 if jobs is None else jobs}
    estimator = make_estimator(method, params | {"verbose": 0 if quiet else 1})
    with working(f"reading {data.name}"):
        dataset = read_data(data, labels, data_format, zero_based=zero_based)
    refuse_no_rows(dataset, data)
    if normalize:
        unit_rows(dataset.X)
    figures = fit_with_figures(estimator, dataset.X, as_targets(dataset))
    estimator.set_params(verbose=0)
    estimator.save(model, notes=notes_for(dataset, normalize=normalize, zero_based=zero_based))
    figures |= {"model": str(model), "model_bytes": model.stat().st_size}
    show_figures(figures, title=f"{method} on {data.name}", json=json, quiet=quiet)
