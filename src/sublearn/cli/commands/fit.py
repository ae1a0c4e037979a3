"""`sublearn fit`: learn a model from a data file."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sublearn.cli.fit_options import (
    L1,
    Analyzer,
    Bits,
    ClassWeight,
    EarlyStopping,
    FitIntercept,
    Hashes,
    Holidays,
    Horizon,
    LabelPaths,
    Loss,
    LossWeight,
    MaxDf,
    MaxFeatures,
    MaxIter,
    MinDf,
    Ngrams,
    Output,
    Prune,
    Quantile,
    StopWords,
    Target,
    TaxonomyFile,
    TimeZone,
    TokenColumns,
    Tol,
    Vectorizer,
)
from sublearn.cli.options import (
    NUMBERS,
    Columns,
    Data,
    DataFormat,
    Jobs,
    Json,
    Labels,
    Quiet,
    Separator,
    Text,
    TextForm,
    ZeroBased,
    check_folder,
    refuse_given,
)
from sublearn.typing import JsonObject, LabelsLike

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from sublearn.io import Dataset
    from sublearn.validation import EncodedLabels

__all__ = ["command"]


def command(
    data: Data,
    model: Output,
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="One of those above. Defaults shown are those of ppd-sparse, and of pd-sparse "
            "where they differ.",
        ),
    ] = "ppd-sparse",
    C: LossWeight = None,
    l1: L1 = None,
    loss: Loss = None,
    fit_intercept: FitIntercept = None,
    tol: Tol = None,
    max_iter: MaxIter = None,
    prune: Prune = None,
    class_weight: ClassWeight = None,
    early_stopping: EarlyStopping = False,
    bits: Bits = None,
    jobs: Jobs = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed of the random order.")] = 0,
    labels: Labels = None,
    data_format: DataFormat = None,
    zero_based: ZeroBased = False,
    normalize: Annotated[
        bool | None,
        typer.Option(
            "--normalize/--no-normalize",
            show_default="normalize, but not for sparse-linear",
            help="Scale each row to length 1; the model remembers it for predict and evaluate.",
            rich_help_panel=NUMBERS,
        ),
    ] = None,
    text: Text = False,
    separator: Separator = None,
    columns: Columns = None,
    vectorizer: Vectorizer = None,
    analyzer: Analyzer = None,
    ngrams: Ngrams = None,
    min_df: MinDf = None,
    max_df: MaxDf = None,
    max_features: MaxFeatures = None,
    stop_words: StopWords = None,
    hashes: Hashes = None,
    taxonomy: TaxonomyFile = None,
    label_paths: LabelPaths = None,
    token_columns: TokenColumns = None,
    horizon: Horizon = None,
    target: Target = None,
    quantile: Quantile = None,
    holidays: Holidays = None,
    time_zone: TimeZone = None,
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

    Example: `sublearn fit train.txt.xz --model wiki.model --l1 0.05 --jobs 8`

    Example: `sublearn fit prices.svm --model prices.model --method sparse-linear --l1 cv`

    Example: `sublearn fit news.svm --model news.model --method hml --taxonomy topics.tsv`

    Example: `sublearn fit loads.csv --model loads.model --method forecast --horizon 24`

    Example: `sublearn fit train.conll --model tagger.model --method chain --C 0.3`

    Example: `sublearn fit --text records.tsv --model tags.model --ngrams 1,2 --min-df 2`
    """
    from sklearn.base import is_regressor

    from sublearn.cli.data import refuse_without
    from sublearn.cli.fitting import show_figures
    from sublearn.cli.methods import (
        make_estimator,
        parse_fit_intercept,
        parse_l1,
        refuse_foreign,
    )
    from sublearn.cli.taxonomies import HIERARCHICAL, choose_taxonomy

    check_folder(model, "--model")
    if bits not in (None, 8, 16, 32):
        raise typer.BadParameter(f"must be 8, 16 or 32, got {bits}", param_hint="--bits")
    params: JsonObject = {"C": C, "l1": parse_l1(l1, method)}
    params |= {"loss": loss, "fit_intercept": parse_fit_intercept(fit_intercept)}
    params |= {"tol": tol, "max_iter": max_iter}
    params |= {"class_weight": class_weight, "early_stopping": early_stopping or None}
    params |= {"prune": prune, "random_state": seed, "n_jobs": -1 if jobs is None else jobs}
    words: JsonObject = {"vectorizer": vectorizer, "analyzer": analyzer, "ngrams": ngrams}
    words |= {"min_df": min_df, "max_df": max_df, "max_features": max_features}
    words |= {"stop_words": stop_words, "hashes": hashes}
    of_rows = words | {"text": text or None, "separator": separator, "columns": columns}
    of_rows |= {"labels": labels, "data_format": data_format, "zero_based": zero_based or None}
    of_rows |= {"normalize": normalize, "taxonomy": taxonomy, "label_paths": label_paths}
    loads: JsonObject = {"horizon": horizon, "target": target, "quantile": quantile}
    loads |= {"holidays": holidays, "time_zone": time_zone}
    refuse_foreign(method, of_rows | loads | {"token_columns": token_columns})
    estimator = make_estimator(method, params | {"verbose": 0 if quiet else 1})
    if bits is not None:
        refuse_without(estimator, "compress", "--bits")
    if method == "forecast":
        _fit_loads(estimator, data, model, loads, json=json, quiet=quiet)
        return
    if method == "chain":
        _fit_tagger(estimator, data, model, token_columns, json=json, quiet=quiet)
        return
    form = TextForm(text, separator, columns)
    if text:
        numbers = {"labels": labels, "data_format": data_format, "zero_based": zero_based or None}
        refuse_given(numbers, "is for data of numbers, got --text")
        refuse_given(
            {"no_normalize": True if normalize is False else None}, "is for data of numbers"
        )
        if is_regressor(estimator) or method in HIERARCHICAL:
            raise typer.BadParameter(
                f"needs a method that learns plain labels, got {method}", param_hint="--text"
            )
        figures = _fit_text(estimator, data, form, words, model, bits)
    else:
        refuse_given(words, "needs --text, got data of numbers")
        form.refuse_unless_text()
        dataset = _read(data, labels, data_format, zero_based=zero_based)
        tree = choose_taxonomy(method, taxonomy, label_paths, data, dataset)
        if tree is not None:
            estimator.set_params(taxonomy=tree)
        if normalize is None:
            normalize = not is_regressor(estimator)
        figures = _fit_numbers(
            estimator, dataset, model, bits, normalize=normalize, zero_based=zero_based
        )
    figures |= {"model": str(model), "model_bytes": model.stat().st_size}
    show_figures(figures, title=f"{method} on {data.name}", json=json, quiet=quiet)


def _fit_loads(
    estimator: BaseEstimator, data: Path, model: Path, loads: JsonObject, *, json: bool, quiet: bool
) -> None:
    from sublearn.cli.fitting import show_plain_figures
    from sublearn.cli.forecasting import fit_forecast, read_dates
    from sublearn.forecast import TubeLoss

    given = {} if loads["horizon"] is None else {"horizon": loads["horizon"]}
    if loads["quantile"] is not None:
        given["loss"] = TubeLoss.quantile(loads["quantile"])
    if loads["holidays"] is not None:
        given["holidays"] = read_dates(loads["holidays"])
    estimator.set_params(**given)
    figures = fit_forecast(estimator, data, model, loads["target"], loads["time_zone"])
    show_plain_figures(figures, title=f"forecast on {data.name}", json=json, quiet=quiet)


def _fit_tagger(
    estimator: BaseEstimator,
    data: Path,
    model: Path,
    columns: str | None,
    *,
    json: bool,
    quiet: bool,
) -> None:
    from sublearn.cli.fitting import show_plain_figures
    from sublearn.cli.tagging import fit_tagger, parse_token_columns

    figures = fit_tagger(estimator, data, model, parse_token_columns(columns))
    figures |= {"model": str(model), "model_bytes": model.stat().st_size}
    show_plain_figures(figures, title=f"chain on {data.name}", json=json, quiet=quiet)


def _read(data: Path, labels: str | None, data_format: str | None, *, zero_based: bool) -> Dataset:
    from sublearn.cli.console import working
    from sublearn.cli.data import read_data, refuse_no_rows

    with working(f"reading {data.name}"):
        dataset = read_data(data, labels, data_format, zero_based=zero_based)
    refuse_no_rows(dataset.X, data)
    return dataset


def _fit_numbers(
    estimator: BaseEstimator,
    dataset: Dataset,
    model: Path,
    bits: int | None,
    *,
    normalize: bool,
    zero_based: bool,
) -> JsonObject:
    from sklearn.utils import get_tags

    from sublearn.cli.data import as_targets, notes_for, number_targets, predicts_numbers
    from sublearn.cli.fitting import fit_with_figures
    from sublearn.cli.taxonomies import labels_in
    from sublearn.io.prepared import unit_rows

    if normalize:
        unit_rows(dataset.X)
    is_of_numbers = predicts_numbers(estimator)
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
    form: TextForm,
    words: JsonObject,
    model: Path,
    bits: int | None,
) -> JsonObject:
    from sublearn.cli.console import working
    from sublearn.cli.fitting import fit_texts_with_figures
    from sublearn.extreme import TextTagger
    from sublearn.io import load_texts
    from sublearn.validation import encode_labels

    given = {name: value for name, value in words.items() if value is not None}
    if "ngrams" in given:
        given["ngram_range"] = _parse_pair(given.pop("ngrams"))
    if "hashes" in given:
        given["n_hashes"] = given.pop("hashes")
    tagger = TextTagger(estimator, **given)
    with working(f"reading {data.name}"):
        texts, lists = load_texts(data, **form.as_notes())
    if not texts:
        raise ValueError(f"{data}: must have at least one row, got 0")
    labels = encode_labels(lists, len(texts), estimator_name=type(tagger).__name__)
    if form.columns is None:
        _warn_of_swapped_columns(texts, labels)
    figures = fit_texts_with_figures(tagger, texts, labels)
    tagger.classifier_.set_params(verbose=0)
    if bits is not None:
        tagger.classifier_ = tagger.classifier_.compress(bits)
    tagger.save(model, notes=form.as_notes())
    return figures


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
            f"must be two numbers with a comma between, got {text}", param_hint="--ngrams"
        )
    return int(parts[0]), int(parts[1])
