"""Files of tokens: `fit --method chain`, and its models in `predict` and `evaluate`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import IO, TYPE_CHECKING

import typer

from sublearn.typing import JsonObject

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from sublearn.io.conll import Tokens

__all__ = ["fit_tagger", "is_tagger", "judge_tags", "parse_token_columns", "write_tags"]

_NOTE = "token_columns"  # of a saved model: how its file of tokens was read


def parse_token_columns(text: str | None) -> list[int] | None:
    """What `--token-columns` says."""
    if text is None:
        return None
    parts = text.split(",")
    if len(parts) < 2 or not all(part.strip().isdigit() and int(part) > 0 for part in parts):
        raise typer.BadParameter(
            "must be the numbers of the word's column, of further ones and of the tag's, with "
            f"commas between and counted from 1, got {text}",
            param_hint="--token-columns",
        )
    return [int(part) for part in parts]


def is_tagger(model: BaseEstimator) -> bool:
    """Whether a model was made by `fit --method chain` from a file of tokens.

    Another model of sequences is refused: its features are not those of a file of tokens.
    """
    from sublearn.structured import ChainSVM

    has_note = _NOTE in getattr(model, "notes_", {})
    if isinstance(model, ChainSVM) and not has_note:
        raise typer.BadParameter(
            "must be from `sublearn fit --method chain`, got a ChainSVM saved in Python; use "
            "sublearn.load there",
            param_hint="MODEL",
        )
    return has_note


def fit_tagger(
    estimator: BaseEstimator, data: Path, model: Path, columns: list[int] | None
) -> JsonObject:
    """Fit, save, and tell the figures."""
    from sublearn.cli.console import working
    from sublearn.io import load_conll
    from sublearn.structured import word_features

    with working(f"reading {data.name}"):
        tokens, tags = load_conll(data, columns=columns)
        features = [word_features(sequence) for sequence in tokens]
    start = time.perf_counter()
    estimator.fit(features, tags)
    figures = {
        "sequences": len(tokens),
        "tokens": sum(map(len, tokens)),
        "tags": len(estimator.classes_),
        "features": estimator.n_features_in_,
        "seconds": round(time.perf_counter() - start, 3),
        "n_iter": estimator.n_iter_,
        "certificate": float(estimator.certificate_),
        "weights_not_zero": int(estimator.coef_.nnz),
    }
    if estimator.held_out_accuracy_ is not None:
        figures["held_out_accuracy"] = float(estimator.held_out_accuracy_)
    n_columns = len(tokens[0][0])
    notes = {_NOTE: columns or [], "n_columns": n_columns}
    estimator.set_params(verbose=0, n_jobs=None).save(model, notes=notes)
    return figures


def _read(model: BaseEstimator, data: Path, *, has_tags: bool) -> Tokens:
    from sublearn.io import load_conll
    from sublearn.io.files import plain_name

    columns = [int(n) for n in model.notes_[_NOTE]] or None
    n_columns = int(model.notes_["n_columns"])
    if columns is None and not plain_name(data).endswith(".conllu"):
        columns = list(range(1, n_columns + 2))  # the tag, if there is one, stands after them
    return load_conll(data, columns=columns, has_tags=has_tags)


def write_tags(stream: IO[str], model: BaseEstimator, data: Path, *, format: str) -> None:
    """The tokens with their tags as a last column, or an object for each sequence."""
    import json

    from sublearn.structured import word_features

    tokens, _ = _read(model, data, has_tags=False)
    tags = model.predict([word_features(sequence) for sequence in tokens])
    for sequence, found in zip(tokens, tags, strict=True):
        if format == "jsonl":
            words = [token[0] for token in sequence]
            stream.write(json.dumps({"tokens": words, "tags": found}, ensure_ascii=False) + "\n")
            continue
        for token, tag in zip(sequence, found, strict=True):
            stream.write("\t".join([*token, tag]) + "\n")
        stream.write("\n")


def judge_tags(model: BaseEstimator, data: Path) -> dict[str, float]:
    """Shares of tokens and of whole sequences that are right, and of tokens with unknown tags."""
    from sublearn.structured import word_features

    tokens, truth = _read(model, data, has_tags=True)
    tags = model.predict([word_features(sequence) for sequence in tokens])
    n_tokens = sum(map(len, truth))
    right = [[a == b for a, b in zip(*pair, strict=True)] for pair in zip(tags, truth, strict=True)]
    known = set(model.classes_.tolist())
    return {
        "sequences": len(truth),
        "tokens": n_tokens,
        "token_accuracy": sum(map(sum, right)) / n_tokens,
        "sequence_accuracy": sum(map(all, right)) / len(truth),
        "unknown_tags": sum(tag not in known for tags in truth for tag in tags) / n_tokens,
    }
