"""`sublearn fit`: learn a model from a data file."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sublearn.cli.fit_options import (
    Bits,
    Learning,
    Loads,
    Method,
    Normalize,
    Output,
    Taxonomies,
    TokenColumns,
    Words,
)
from sublearn.cli.options import (
    Data,
    DataForm,
    Jobs,
    Json,
    Quiet,
    RandomState,
    ZeroBased,
    check_folder,
    given_of,
    refuse_given,
    with_groups,
)
from sublearn.typing import JsonObject, LabelsLike

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from sublearn.io import Dataset
    from sublearn.validation import EncodedLabels

__all__ = ["command"]


@with_groups
def command(
    data: Data,
    model: Output,
    *,
    method: Method = "ppd-sparse",
    learning: Learning,
    bits: Bits = None,
    n_jobs: Jobs = None,
    random_state: RandomState = 0,
    form: DataForm,
    zero_based: ZeroBased = False,
    normalize: Normalize = None,
    words: Words,
    tree: Taxonomies,
    token_columns: TokenColumns = None,
    loads: Loads,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Learn a model from DATA and save it.

    The model is one file (safetensors, no pickle) that appears when it is complete; Ctrl-C leaves
    nothing behind. It loads with `sublearn predict`, `evaluate` and `inspect`, and in Python with
    `sublearn.load(path)`.

    Methods, for `--method`:

    - ppd-sparse: very many labels, each learned on its own. pd-sparse: all of them ranked.

    - sparse-logistic: a few classes, one for each row. sparse-linear: a number for each row.

    - hiclass, hml: labels in a taxonomy, one path or several for each row.

    - chain: tags of sequences; DATA has a token and its tag on each line, blank lines between
      sequences (CoNLL).

    - forecast: loads over time; DATA is a CSV file with a header, times in the first column.

    Labels are kept by name where the data file has names (ARFF, .npz, text), else by number. With
    `--text` DATA is raw text, and the model keeps what turns text into numbers.

    Example: `sublearn fit train.txt.xz --model wiki.model --l1 0.05 --n-jobs 8`

    Example: `sublearn fit prices.svm --model prices.model --method sparse-linear --l1 cv`

    Example: `sublearn fit news.svm --model news.model --method hml --taxonomy topics.tsv`

    Example: `sublearn fit loads.csv --model loads.model --method forecast --horizon 24`

    Example: `sublearn fit train.conll --model tagger.model --method chain --C 0.3`

    Example: `sublearn fit --text records.tsv --model tags.model --ngram-range 1,2 --min-df 2`
    """
    from sublearn.cli.methods import make_estimator, refuse_foreign, show_figures

    check_folder(model, "--model")
    if bits not in (None, 8, 16, 32):
        raise typer.BadParameter(f"must be 8, 16 or 32, got {bits}", param_hint="--bits")
    of_rows = given_of(form) | given_of(words) | given_of(tree)
    of_rows |= {"zero_based": zero_based or None, "normalize": normalize}
    refuse_foreign(method, of_rows | given_of(loads) | {"token_columns": token_columns})
    params: JsonObject = {"random_state": random_state, "n_jobs": -1 if n_jobs is None else n_jobs}
    params |= given_of(learning) | {"verbose": 0 if quiet else 1}
    estimator = make_estimator(method, params)
    if bits is not None:
        from sublearn.cli.data import refuse_without

        refuse_without(estimator, "compress", "--bits")
    if method == "forecast":
        figures = _fit_loads(estimator, data, model, loads)
    elif method == "chain":
        figures = _fit_tagger(estimator, data, model, token_columns)
    elif form.text:
        numbers = {"zero_based": zero_based or None}
        refuse_given(numbers, "is for data of numbers, got --text")
        refuse_given({"no_normalize": normalize is False or None}, "is for data of numbers")
        _refuse_unless_plain(estimator, method)
        refuse_given(given_of(tree), f"is for hiclass and hml, got {method}")
        figures = _fit_text(estimator, data, form, words, model, bits)
    else:
        refuse_given(given_of(words), "needs --text, got data of numbers")
        form.refuse_text()
        dataset = _read(data, form, zero_based=zero_based)
        _set_taxonomy(estimator, method, tree, data, dataset)
        figures = _fit_numbers(
            estimator, dataset, model, bits, normalize=normalize, zero_based=zero_based
        )
    figures |= {"model": str(model), "model_bytes": model.stat().st_size}
    show_figures(figures, title=f"{method} on {data.name}", json=json, quiet=quiet)


def _fit_loads(estimator: BaseEstimator, data: Path, model: Path, loads: Loads) -> JsonObject:
    from sublearn.cli.forecasting import fit_forecast, read_dates
    from sublearn.forecast import TubeLoss

    given: JsonObject = {} if loads.horizon is None else {"horizon": loads.horizon}
    if loads.quantile is not None:
        given["loss"] = TubeLoss.quantile(loads.quantile)
    if loads.holidays is not None:
        given["holidays"] = read_dates(loads.holidays)
    estimator.set_params(**given)
    return fit_forecast(estimator, data, model, loads.target, loads.time_zone)


def _fit_tagger(
    estimator: BaseEstimator, data: Path, model: Path, columns: str | None
) -> JsonObject:
    from sublearn.cli.tagging import fit_tagger, parse_token_columns

    return fit_tagger(estimator, data, model, parse_token_columns(columns))


def _refuse_unless_plain(estimator: BaseEstimator, method: str) -> None:
    """Refuse text for a method of numbers or of labels in a taxonomy."""
    from sklearn.base import is_regressor

    if is_regressor(estimator) or hasattr(estimator, "taxonomy"):
        raise typer.BadParameter(
            f"needs a method that learns plain labels, got {method}", param_hint="--text"
        )


def _set_taxonomy(
    estimator: BaseEstimator, method: str, tree: Taxonomies, data: Path, dataset: Dataset
) -> None:
    from sublearn.cli.taxonomies import choose_taxonomy

    found = choose_taxonomy(method, tree.taxonomy, tree.label_paths, data, dataset)
    if found is not None:
        estimator.set_params(taxonomy=found)


def _read(data: Path, form: DataForm, *, zero_based: bool) -> Dataset:
    from sublearn.cli.console import working
    from sublearn.cli.data import read_data, refuse_no_rows

    with working(f"reading {data.name}"):
        dataset = read_data(data, form.labels, form.data_format, zero_based=zero_based)
    refuse_no_rows(dataset.X, data)
    return dataset


def _fit_numbers(
    estimator: BaseEstimator,
    dataset: Dataset,
    model: Path,
    bits: int | None,
    *,
    normalize: bool | None,
    zero_based: bool,
) -> JsonObject:
    from sklearn.utils import get_tags

    from sublearn.cli.data import as_targets, notes_for, number_targets, predicts_numbers
    from sublearn.cli.methods import fit_with_figures
    from sublearn.cli.taxonomies import labels_in
    from sublearn.io.prepared import unit_rows

    is_of_numbers = predicts_numbers(estimator)
    normalize = not is_of_numbers if normalize is None else normalize
    if normalize:
        unit_rows(dataset.X)
    tree = getattr(estimator, "taxonomy", None)
    targets: LabelsLike
    if tree is not None:
        is_single = not get_tags(estimator).classifier_tags.multi_label
        targets = labels_in(tree, dataset, is_single=is_single)
    else:
        targets = number_targets(dataset) if is_of_numbers else as_targets(dataset)
    figures = fit_with_figures(estimator, dataset.X, targets)
    estimator.set_params(verbose=0)
    if bits is not None:
        estimator = estimator.compress(bits)
    notes = notes_for(
        dataset,
        normalize=normalize,
        zero_based=zero_based,
        has_labels=not is_of_numbers and tree is None,
    )
    estimator.save(model, notes=notes)
    return figures


def _fit_text(
    estimator: BaseEstimator,
    data: Path,
    form: DataForm,
    words: Words,
    model: Path,
    bits: int | None,
) -> JsonObject:
    from sklearn.utils import get_tags

    from sublearn.cli.console import working
    from sublearn.cli.methods import fit_texts_with_figures
    from sublearn.extreme import TextTagger
    from sublearn.io import load_texts
    from sublearn.validation import encode_labels

    form.refuse_numbers("--text")
    given = given_of(words)
    if words.ngram_range is not None:
        given["ngram_range"] = _parse_pair(words.ngram_range)
    tagger = TextTagger(estimator, **given)
    with working(f"reading {data.name}"):
        records = zip(*load_texts(data, **form.of_text()), strict=True)
        kept = [(text, names) for text, names in records if text.strip() or names]
    if not kept:
        raise ValueError(f"{data}: must have at least one row, got 0")
    texts, lists = (list(column) for column in zip(*kept, strict=True))
    labels = encode_labels(lists, len(texts), estimator_name=type(tagger).__name__)
    if form.columns is None:
        _warn_of_swapped_columns(texts, labels)
    takes_lists = get_tags(estimator).classifier_tags.multi_label
    figures = fit_texts_with_figures(tagger, texts, labels if takes_lists else _one_each(lists))
    tagger.classifier_.set_params(verbose=0)
    if bits is not None:
        tagger.classifier_ = tagger.classifier_.compress(bits)
    tagger.save(model, notes=form.of_text())
    return figures


def _one_each(lists: list[list[str]]) -> list[str]:
    """The only label of each text, for methods that learn one."""
    for row, names in enumerate(lists):
        if len(names) != 1:
            raise ValueError(
                f"the labels of DATA must be one for each text for this method, got {names[:5]} "
                f"for text {row + 1}; ppd-sparse and pd-sparse take several"
            )
    return [names[0] for names in lists]


def _warn_of_swapped_columns(texts: list[str], labels: EncodedLabels) -> None:
    """Sentences as labels: more labels than rows, and longer than the texts."""
    if labels.n_classes <= len(texts):
        return
    length_of_labels = labels.counts() @ [len(label) for label in labels.classes]
    if length_of_labels > sum(map(len, texts)):
        warnings.warn(
            f"{labels.n_classes:,} labels for {len(texts):,} rows, longer than the texts: if the "
            "text comes first in the file, say --columns text,labels (else --columns labels,text)",
            stacklevel=2,
        )


def _parse_pair(text: str) -> tuple[int, int]:
    parts = text.split(",")
    if len(parts) != 2 or not all(part.strip().isdigit() for part in parts):
        raise typer.BadParameter(
            f"must be two numbers with a comma between, got {text}", param_hint="--ngram-range"
        )
    return int(parts[0]), int(parts[1])
