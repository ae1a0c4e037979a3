"""`sublearn words`: word vectors from a file of text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sublearn.cli.options import Jobs, Json, Quiet, RandomState

if TYPE_CHECKING:
    from sublearn.embed import SkipGram

__all__ = ["command"]


def command(
    corpus: Annotated[
        Path,
        typer.Argument(
            metavar="CORPUS", exists=True, dir_okay=False, show_default=False,
            help="Text file in UTF-8, a sentence or a document on each line; with `.gz`, `.xz`, "
            "`.bz2` or `.zst` if compressed.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", show_default=False,
            help="File for the vectors in word2vec's format.",
        ),
    ] = None,
    binary: Annotated[
        bool, typer.Option("--binary", metavar=" ", help="Write word2vec's binary format.")
    ] = False,
    model: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False, help="File for the whole model."),
    ] = None,
    n_components: Annotated[
        int, typer.Option(metavar="N", min=1, help="Numbers in a vector.")
    ] = 100,
    window: Annotated[
        int, typer.Option(metavar="N", min=1, help="How far apart two words may stand.")
    ] = 5,
    min_count: Annotated[
        int, typer.Option(metavar="N", min=1, help="Leave out words seen less often.")
    ] = 5,
    max_iter: Annotated[int, typer.Option(metavar="N", min=0, help="Passes.")] = 5,
    random_state: RandomState = 0,
    n_jobs: Jobs = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Learn word vectors from the text in CORPUS.

    Example: `sublearn words news.txt.gz --output vectors.txt`

    Example: `sublearn words news.txt --output vectors.bin --binary --n-components 300`
    """
    from sublearn.embed import SkipGram

    if output is None and model is None:
        raise typer.BadParameter("needs --output or --model", param_hint="sublearn words")
    from sublearn.io.files import check_target

    check_target(output, "--output")
    check_target(model, "--model")
    found = SkipGram(
        n_components, window=window, min_count=min_count, max_iter=max_iter,
        n_jobs=-1 if n_jobs is None else n_jobs, random_state=random_state,
        verbose=not (quiet or json),
    ).fit(corpus)  # fmt: skip
    if output is not None:
        found.export(output, binary=binary)
    if model is not None:
        found.set_params(verbose=0).save(model)
    _show(found, corpus, json, quiet)


def _show(found: SkipGram, corpus: Path, json: bool, quiet: bool) -> None:
    from sublearn.cli.console import facts, print_json, print_titled

    figures = {
        "words": len(found.words_),
        "pairs": found.n_pairs_,
        "objective": round(found.objective_, 6),
        "passes": found.n_iter_,
    }
    if json:
        print_json(figures)
    elif not quiet:
        rows = [(name, f"{value:,}") for name, value in figures.items()]
        print_titled(f"word vectors of {corpus.name}", facts(rows))
