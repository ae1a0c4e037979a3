"""The learning methods by name; a line here puts an estimator on the command line.

The kind of an estimator, which its class names too, says which files it learns from; its
signature, its rules and its docstring become the options of `sublearn fit METHOD`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["METHODS", "RERANK", "TEXT", "Method"]


@dataclass(frozen=True)
class Method:
    """Where a method is, what it is for, and which of its options come first.

    Parameters
    ----------
    room, estimator : str
        The class that implements it.
    kind : str
        The kind of its models, a name of `sublearn.kinds`.
    sentence : str
        What it learns, for people.
    first : tuple of str
        The parameters that a user changes first; the others are shown by `--help-all`.
    example : str
        What follows `sublearn fit METHOD` in an example.
    grid : mapping of str to tuple of str
        What `sublearn tune` tries where it is not told.
    """

    room: str
    estimator: str
    kind: str
    sentence: str
    first: tuple[str, ...]
    example: str
    grid: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


#: The method of raw text, whose classifier is another method.
TEXT = "text"
#: The same with a second stage around it.
RERANK = "rerank"

METHODS = {
    TEXT: Method(
        "sublearn.extreme", "TextTagger", "text_labels",
        "Labels of raw text: one label or many for each text, of very many.",
        ("vectorizer", "analyzer", "ngram_range", "min_df", "stop_words", "l1", "C"),
        "records.tsv --model tags.model --min-df 2",
        {"l1": ("0.05", "0.1", "0.3", "1"), "min_df": ("1", "2")},
    ),
    RERANK: Method(
        "sublearn.extreme", "LabelReranker", "text_labels",
        "Labels of raw text, ranked again by near texts and titles: better, for twice the time.",
        ("candidates", "n_neighbors", "refit", "analyzer", "min_df", "l1"),
        "records.tsv --label-names subjects.tsv --model tags.model",
        {"l1": ("0.05", "0.1", "0.3", "1"), "min_df": ("1", "2")},
    ),
    "ppd-sparse": Method(
        "sublearn.extreme", "PPDSparseClassifier", "row_labels",
        "Very many labels, one or many for each row, each learnt on its own.",
        ("l1", "C", "loss", "fit_intercept", "class_weight", "tol", "max_iter"),
        "train.txt.xz --model wiki.model --l1 0.05",
        {"l1": ("0.01", "0.03", "0.1", "0.3", "1"), "C": ("0.3", "1", "3")},
    ),
    "pd-sparse": Method(
        "sublearn.extreme", "PDSparseClassifier", "row_labels",
        "Very many labels, ranked against each other.",
        ("l1", "C", "fit_intercept", "class_weight", "early_stopping", "max_iter"),
        "train.svm --model wiki.model --l1 0.01",
        {"l1": ("0.001", "0.003", "0.01", "0.03", "0.1"), "C": ("0.3", "1", "3")},
    ),
    "sparse-logistic": Method(
        "sublearn.linear", "SparseLogisticRegression", "row_labels",
        "A few classes, one for each row, with probabilities and a sparse model.",
        ("l1", "l2", "multinomial", "class_weight", "fit_intercept", "max_iter"),
        "mail.svm --model mail.model --l1 cv",
        {"l1": ("0.0003", "0.001", "0.003", "0.01", "0.03")},
    ),
    "sparse-linear": Method(
        "sublearn.linear", "SparseLinearRegression", "row_numbers",
        "A number for each row by a sparse linear model.",
        ("l1", "l2", "loss", "positive", "fit_intercept", "max_iter"),
        "prices.csv --labels price --model prices.model --l1 cv",
        {"l1": ("0.0003", "0.001", "0.003", "0.01", "0.03", "0.1")},
    ),
    "group-linear": Method(
        "sublearn.linear", "GroupLinearRegression", "row_numbers",
        "A number for each row by a linear model whose features enter in groups.",
        ("l1", "feature_groups", "within_share", "l2", "loss", "fit_intercept", "tol", "max_iter"),
        "prices.csv --labels price --model prices.model --l1 cv --feature-groups a,a,b,b,b",
        {"l1": ("0.0003", "0.001", "0.003", "0.01", "0.03", "0.1")},
    ),
    "group-logistic": Method(
        "sublearn.linear", "GroupLogisticRegression", "row_labels",
        "A few classes, one for each row, by features that enter in groups.",
        ("l1", "feature_groups", "within_share", "l2", "class_weight", "fit_intercept", "tol",
         "max_iter"),
        "people.csv --labels income --model people.model --l1 cv --feature-groups a,a,b,b,b",
        {"l1": ("0.0003", "0.001", "0.003", "0.01", "0.03")},
    ),
    "hiclass": Method(
        "sublearn.hierarchy", "HierarchicalClassifier", "taxonomy_labels",
        "Labels in a taxonomy, one path for each row.",
        ("strategy", "decoding", "C", "leaf"),
        "news.svm --taxonomy topics.tsv --model news.model",
        {"C": ("0.1", "1", "10"), "strategy": ("top_down", "flat")},
    ),
    "hml": Method(
        "sublearn.hierarchy", "HierarchicalMultilabelClassifier", "taxonomy_labels",
        "Labels in a taxonomy, several paths for each row.",
        ("l1", "loss", "metric", "cv"),
        "news.svm --taxonomy topics.tsv --model news.model",
        {"l1": ("0.00003", "0.0001", "0.0003", "0.001")},
    ),
    "chain": Method(
        "sublearn.structured", "ChainSVM", "sequence_tags",
        "Tags of sequences, from a file with a token and its tag on each line (CoNLL).",
        ("C", "max_iter", "early_stopping", "tol", "solver"),
        "train.conll --model tagger.model --C 0.3",
        {"C": ("0.1", "0.3", "1", "3")},
    ),
    "forecast": Method(
        "sublearn.forecast", "LoadForecaster", "loads",
        "Loads over time, from a CSV file with times in its first column.",
        ("horizon", "strategy", "C", "intervals", "solver"),
        "loads.csv --model loads.model --horizon 24",
        {"C": ("0.1", "1", "10")},
    ),
    "dense-extreme": Method(
        "sublearn.embed", "DenseExtremeClassifier", "row_labels",
        "Very many labels of dense rows, such as vectors of a network: its last layer.",
        ("loss", "learning_rate", "max_iter", "batch_size", "early_stopping"),
        "vectors.npz --model layer.model --max-iter 20",
        {"learning_rate": ("0.1", "0.3", "1"), "max_iter": ("10", "20")},
    ),
    "embedding-extreme": Method(
        "sublearn.embed", "EmbeddingExtremeClassifier", "row_labels",
        "Very many labels of sparse rows through short dense vectors.",
        ("n_components", "loss", "learning_rate", "max_iter", "batch_size", "early_stopping"),
        "train.txt --model small.model --n-components 100",
        {"n_components": ("50", "100", "200"), "learning_rate": ("0.03", "0.1", "0.3")},
    ),
    "pairwise": Method(
        "sublearn.structured", "PairwiseMultilabelSVM", "row_label_sets",
        "Sets of labels for each row that are chosen together, pair by pair.",
        ("C", "pair_penalty", "pairs", "tol", "max_iter"),
        "scene.arff --labels scene.xml --model scene.model",
        {"C": ("0.1", "1", "10"), "pair_penalty": ("0.1", "1", "10")},
    ),
    "latent-features": Method(
        "sublearn.latent", "LatentFeatureLasso", "row_codes",
        "Features that rows have or lack, found from the rows alone.",
        ("n_components", "l1", "l2", "max_components", "max_iter", "missing"),
        "faces.csv --model parts.model --n-components 8",
    ),
    "mix-lasso": Method(
        "sublearn.latent", "MixLassoRegressor", "row_numbers",
        "A number for each row where rows come from several lines: a mixture of regressions.",
        ("n_components", "mixture", "max_components", "l2", "tol", "max_iter"),
        "tones.csv --labels tuned --model tones.model --n-components 2",
        {"n_components": ("1", "2", "3", "4")},
    ),
    "inverse-covariance": Method(
        "sublearn.linear", "SparseInverseCovariance", "row_likelihoods",
        "Which columns depend on each other given all others (graphical lasso).",
        ("l1", "assume_centered", "penalise_diagonal", "cv"),
        "genes.csv --standardize --model genes.model --l1 cv",
        {"l1": ("0.03", "0.1", "0.2", "0.4", "0.6")},
    ),
    "skip-gram": Method(
        "sublearn.embed", "SkipGram", "words",
        "Vectors of words, from a file of text.",
        ("n_components", "window", "min_count", "max_words", "max_iter", "subsample"),
        "news.txt.gz --model words.model --n-components 100",
    ),
    "index": Method(
        "sublearn.embed", "MIPSIndex", "vectors",
        "An index of rows to search for those of largest inner product.",
        ("n_clusters", "n_probe", "balance", "max_iter"),
        "vectors.npz --model vectors.index",
        {"n_probe": ("1", "2", "4", "8", "16", "32")},
    ),
}  # fmt: skip
