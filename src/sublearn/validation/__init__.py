"""Whatever a user passes, made canonical or refused with one sentence.

Parameters are checked against rules kept as data, features become one CSR matrix, labels become
the rows that carry each label, `n_jobs` becomes a number of threads, `random_state` a seed.
"""

from sublearn.validation.features import check_features
from sublearn.validation.labels import (
    EncodedLabels,
    LabelKind,
    decode_predictions,
    encode_each,
    encode_labels,
)
from sublearn.validation.params import (
    EARLY_STOPPING,
    RUN_RULES,
    WATCH_RULES,
    Boolean,
    CallableOrNone,
    ClassWeight,
    Either,
    Folds,
    InstanceOf,
    Interval,
    JobCount,
    NameOr,
    NonNegative,
    OneOf,
    OneOfOrNone,
    OrNone,
    Positive,
    RandomState,
    Rule,
    SettingsOf,
    Verbosity,
    as_n_threads,
    as_seed,
    assert_rules_complete,
    check_argument,
    check_arguments,
    check_params,
)
from sublearn.validation.settings import Settings
from sublearn.validation.weights import check_sample_weight

__all__ = [
    "EARLY_STOPPING",
    "RUN_RULES",
    "WATCH_RULES",
    "Boolean",
    "CallableOrNone",
    "ClassWeight",
    "Either",
    "EncodedLabels",
    "Folds",
    "InstanceOf",
    "Interval",
    "JobCount",
    "LabelKind",
    "NameOr",
    "NonNegative",
    "OneOf",
    "OneOfOrNone",
    "OrNone",
    "Positive",
    "RandomState",
    "Rule",
    "Settings",
    "SettingsOf",
    "Verbosity",
    "as_n_threads",
    "as_seed",
    "assert_rules_complete",
    "check_argument",
    "check_arguments",
    "check_features",
    "check_params",
    "check_sample_weight",
    "decode_predictions",
    "encode_each",
    "encode_labels",
]
