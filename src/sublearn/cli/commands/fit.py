"""`sublearn fit`: learn a model from a data file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from sublearn.cli.options import Data, Jobs, Json, Labels, Quiet, ZeroBased

__all__ = ["command"]

_OBJECTIVE, _SOLVER, _FILES = "What is minimised", "How", "Data"


def _option(panel: str, help: str, default: str | None, metavar: str | None = None) -> typer.Option:  # type: ignore[valid-type]
    """An option whose default belongs to the estimator; a test compares what is shown with it."""
    return typer.Option(
        help=help, rich_help_panel=panel, metavar=metavar, show_default=default or False
    )


def command(
    data: Data,
    model: Annotated[
        Path,
        typer.Option(
            "--model",
            "-m",
            metavar="OUT",
            dir_okay=False,
            help="Where to save the model.",
            show_default=False,
        ),
    ],
    method: Annotated[
        str, typer.Option(metavar="NAME", help="Learning method: ppd-sparse.")
    ] = "ppd-sparse",
    C: Annotated[
        float | None,
        _option(
            _OBJECTIVE, "Weight of the loss; larger fits the training rows closer.", "1.0", "X"
        ),
    ] = None,
    l1: Annotated[
        float | None,
        _option(
            _OBJECTIVE,
            "Weight of the l1 penalty; larger gives fewer non-zero weights and a smaller file.",
            "0.1",
            "X",
        ),
    ] = None,
    loss: Annotated[
        str | None,
        _option(_OBJECTIVE, "squared_hinge or hinge.", "squared_hinge", "NAME"),
    ] = None,
    bias: Annotated[
        str | None,
        _option(
            _OBJECTIVE, "How each label's intercept is found: learned or fixed.", "learned", "NAME"
        ),
    ] = None,
    tol: Annotated[
        float | None,
        _option(_SOLVER, "Stop when the certificate (relative duality gap) is below.", "0.01", "X"),
    ] = None,
    max_iter: Annotated[
        int | None, _option(_SOLVER, "Most passes over the active rows of a label.", None, "N")
    ] = None,
    prune: Annotated[
        float | None,
        _option(_SOLVER, "Drop weights of this size or smaller from the model.", "0.0", "X"),
    ] = None,
    jobs: Jobs = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed of the random order.")] = 0,
    labels: Labels = None,
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
    from sublearn.cli.data import as_targets, notes_for, read_data, unit_rows
    from sublearn.cli.fitting import fit_with_figures, show_figures
    from sublearn.cli.methods import make_estimator

    _refuse_place_nobody_can_write(model)
    params = {"C": C, "l1": l1, "loss": loss, "bias": bias, "tol": tol, "max_iter": max_iter}
    params |= {"prune": prune, "random_state": seed, "n_jobs": -1 if jobs is None else jobs}
    estimator = make_estimator(method, params | {"verbose": 0 if quiet else 1})
    dataset = read_data(data, labels, zero_based=zero_based)
    if normalize:
        unit_rows(dataset.X)
    figures = fit_with_figures(estimator, dataset.X, as_targets(dataset))
    estimator.set_params(verbose=0)
    estimator.save(model, notes=notes_for(dataset, normalize=normalize, zero_based=zero_based))
    figures |= {"model": str(model), "model_bytes": model.stat().st_size}
    show_figures(figures, title=f"{method} on {data.name}", json=json, quiet=quiet)


def _refuse_place_nobody_can_write(path: Path) -> None:
    """Better now than after an hour of fitting."""
    folder = path.resolve().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise typer.BadParameter(
            f"must be in a folder that can be written, got {folder}", param_hint="--model"
        )
