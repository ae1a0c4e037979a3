"""`sublearn convert`: write a data file in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sublearn.cli.options import Data, DataFormat, Labels, ZeroBased
from sublearn.kinds.base import Form, Refused

__all__ = ["command"]


def command(
    data: Data,
    output: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            dir_okay=False,
            help="File to write; its ending says the format, as for DATA (not `.arff`, `.csv`).",
            show_default=False,
        ),
    ],
    labels: Labels = None,
    data_format: DataFormat = None,
    zero_based: ZeroBased = False,
) -> None:
    """Write DATA in the format that the ending of OUT says.

    Values come back exactly. Names of features and labels survive in `.npz` only; a note says so
    when they are lost.

    Example: `sublearn convert train.txt train.npz`
    """
    from sublearn.io import load_npz, load_svmlight, load_xmc, save_dataset
    from sublearn.io.datasets import find_reader
    from sublearn.io.files import check_target
    from sublearn.kinds.rows import read_dataset

    check_target(output, "OUT")
    target = find_reader(output)
    if target not in (load_npz, load_svmlight, load_xmc):
        raise Refused(
            "OUT", f"must end in .txt, .xmc, .svm, .svmlight, .libsvm or .npz, got {output.name}"
        )
    form = Form(labels, data_format, zero_based)
    multilabel = True if target is load_xmc else None  # that format knows nothing else
    dataset = read_dataset(data, form, multilabel=multilabel)
    options = {"zero_based": zero_based} if target is load_svmlight else {}
    save_dataset(output, dataset, **options)
    if target is not load_npz and dataset.label_names is not None:
        from sublearn.cli.console import err

        err.print("note: names of features and labels are not in the new file; .npz keeps them")
