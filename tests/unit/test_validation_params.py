"""Rules for parameters, `n_jobs` and `random_state`."""

import os
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.model_selection import KFold

from sublearn.errors import ParameterError
from sublearn.validation import (
    Boolean,
    CallableOrNone,
    Either,
    Folds,
    InstanceOf,
    Interval,
    JobCount,
    NonNegative,
    OneOf,
    OneOfOrNone,
    OrNone,
    Positive,
    RandomState,
    Verbosity,
    as_n_threads,
    as_seed,
    assert_rules_complete,
    check_params,
)

FOLDS = "an integer of at least 2, a splitter or pairs of training and held-out rows"


class PPDSparseClassifier(BaseEstimator):
    _rules = {"tol": Positive(float), "n_jobs": JobCount()}  # noqa: RUF012

    def __init__(self, tol=1e-3, n_jobs=None):
        self.tol = tol
        self.n_jobs = n_jobs


def message_of(rule, value):
    class Model:
        _rules = {"p": rule}  # noqa: RUF012
        p = value

    with pytest.raises(ParameterError) as caught:
        check_params(Model())
    return str(caught.value)


def test_message_names_class_and_parameter_and_value():
    with pytest.raises(ParameterError) as caught:
        check_params(PPDSparseClassifier(tol=-1))
    assert str(caught.value) == "PPDSparseClassifier.tol must be a positive number, got -1"
    assert isinstance(caught.value, ValueError)


def test_accepts_parameters_that_obey_their_rules():
    check_params(PPDSparseClassifier(tol=np.float32(0.5), n_jobs=np.int64(-1)))


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        (Positive(float), 1),
        (Positive(float), 0.5),
        (Positive(float), np.float32(0.5)),
        (Positive(float), np.int8(3)),
        (Positive(float), Fraction(1, 3)),
        (Positive(int), 1),
        (Positive(int), np.uint8(1)),
        (NonNegative(float), 0),
        (NonNegative(float), 0.0),
        (NonNegative(int), 0),
        (Interval(float, 0, 1), 0),
        (Interval(float, 0, 1), 1.0),
        (Interval(float, 0, float("inf"), closed="left"), 1e300),
        (Interval(int, -2, 3, closed="neither"), -1),
        (OneOf("a", "b"), "b"),
        (OneOfOrNone("a", "b"), None),
        (OneOfOrNone("a", "b"), "a"),
        (OrNone(Positive(int)), None),
        (OrNone(Positive(int)), 2),
        (Either(Positive(float), OneOf("auto")), "auto"),
        (Either(Positive(float), OneOf("auto")), 2.0),
        (Boolean(), True),
        (Boolean(), np.bool_(False)),
        (CallableOrNone(), None),
        (CallableOrNone(), print),
        (InstanceOf(dict, list), {}),
        (Folds(), 2),
        (Folds(), KFold(3)),
        (Folds(), [([0], [1])]),
        (JobCount(), None),
        (JobCount(), -1),
        (JobCount(), 4),
        (RandomState(), None),
        (RandomState(), 0),
        (RandomState(), np.int64(7)),
        (RandomState(), 2**63 - 1),
        (RandomState(), np.random.RandomState(0)),
        (RandomState(), np.random.default_rng(0)),
        (Verbosity(), True),
        (Verbosity(), 2),
    ],
)
def test_accepts_what_the_rule_allows(rule, value):
    assert rule.accepts(value)


@pytest.mark.parametrize(
    ("rule", "value", "sentence"),
    [
        (Positive(float), 0, "a positive number, got 0"),
        (Positive(float), True, "a positive number, got True"),
        (Positive(float), np.bool_(True), "a positive number, got True"),
        (Positive(float), float("nan"), "a positive number, got nan"),
        (Positive(float), float("inf"), "a positive number, got inf"),
        (Positive(float), np.float32("inf"), "a positive number, got inf"),
        (Positive(float), np.float64(-2), "a positive number, got -2.0"),
        (Positive(float), "1", "a positive number, got '1'"),
        (Positive(float), None, "a positive number, got None"),
        (Positive(float), 1 + 0j, "a positive number, got (1+0j)"),
        (Positive(float), Decimal(1), "a positive number, got Decimal('1')"),
        (Positive(float), 10**400, "a positive number, got an integer of more than 64 bits"),
        (Positive(float), np.ones(3), "a positive number, got an array of shape (3,)"),
        (Positive(int), 1.0, "a positive integer, got 1.0"),
        (Positive(int), True, "a positive integer, got True"),
        (Positive(int), 0, "a positive integer, got 0"),
        (Positive(int), 2**63, "a positive integer, got an integer of more than 64 bits"),
        (NonNegative(float), -1e-9, "a non-negative number, got -1e-09"),
        (NonNegative(int), -1, "a non-negative integer, got -1"),
        (NonNegative(int), 0.5, "a non-negative integer, got 0.5"),
        (Interval(float, 0, 1), 1.5, "a number in [0, 1], got 1.5"),
        (Interval(float, 0, 1, closed="left"), 1, "a number in [0, 1), got 1"),
        (Interval(float, 0, 1, closed="right"), 0, "a number in (0, 1], got 0"),
        (Interval(int, 1, 9, closed="neither"), 9, "an integer in (1, 9), got 9"),
        (Interval(float, 0, float("inf")), float("inf"), "a number in [0, inf], got inf"),
        (OneOf("a", "b", "c"), "d", "'a', 'b' or 'c', got 'd'"),
        (OneOf("a"), ["a"], "'a', got ['a']"),
        (OneOf("a", "b"), None, "'a' or 'b', got None"),
        (OneOfOrNone("a", "b"), 1, "'a' or 'b' or None, got 1"),
        (OrNone(Positive(int)), 0, "a positive integer or None, got 0"),
        (Either(Positive(float), OneOf("auto")), "x", "a positive number or 'auto', got 'x'"),
        (Boolean(), 1, "True or False, got 1"),
        (CallableOrNone(), 3, "a callable or None, got 3"),
        (InstanceOf(dict, list), 3, "an instance of dict or list, got 3"),
        (Folds(), 1, f"{FOLDS}, got 1"),
        (Folds(), "ten", f"{FOLDS}, got 'ten'"),
        (Folds(), 0.5, f"{FOLDS}, got 0.5"),
        (JobCount(), 0, "an integer other than 0 (-1 uses all cores) or None, got 0"),
        (JobCount(), 1.5, "an integer other than 0 (-1 uses all cores) or None, got 1.5"),
        (
            RandomState(),
            -1,
            "a non-negative integer, a NumPy RandomState or Generator, or None, got -1",
        ),
        (Verbosity(), -1, "a non-negative integer, True or False, got -1"),
    ],
)
def test_refuses_what_the_rule_does_not_allow(rule, value, sentence):
    assert message_of(rule, value) == f"Model.p must be {sentence}"


def test_a_long_value_is_shortened_in_the_message():
    message = message_of(OneOf("a"), "x" * 10_000)
    assert len(message) < 120
    assert message.endswith("...")


def test_rules_are_frozen_and_compare_by_value():
    assert OneOf("a", "b") == OneOf("a", "b")
    assert hash(Positive(int)) == hash(Positive(int))
    assert Positive(int) != Positive(float)
    with pytest.raises(AttributeError):
        Positive(int).kind = float


def test_complete_rules_pass():
    assert_rules_complete(PPDSparseClassifier())


def test_a_forgotten_rule_and_a_stray_rule_are_found():
    class Model(BaseEstimator):
        _rules = {"b": Boolean(), "c": Boolean()}  # noqa: RUF012

        def __init__(self, a=1, b=True):
            self.a = a
            self.b = b

    with pytest.raises(AssertionError, match=r"without a rule \['a'\].*parameter \['c'\]"):
        assert_rules_complete(Model())


N_CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


@pytest.mark.parametrize(
    ("n_jobs", "n_threads"),
    [
        (None, 1),
        (1, 1),
        (7, 7),
        (np.int32(3), 3),
        (-1, N_CORES),
        (-2, max(1, N_CORES - 1)),
        (-10_000, 1),
    ],
)
def test_n_jobs_becomes_a_number_of_threads(n_jobs, n_threads):
    assert as_n_threads(n_jobs) == n_threads
    assert type(as_n_threads(n_jobs)) is int


@pytest.mark.parametrize("n_jobs", [0, 1.0, "2", True])
def test_refuses_n_jobs_that_is_zero_or_no_integer(n_jobs):
    with pytest.raises(ParameterError, match=r"^n_jobs must be an integer other than 0 .*, got "):
        as_n_threads(n_jobs)


def test_an_integer_is_its_own_seed():
    assert as_seed(42) == 42
    assert type(as_seed(np.int32(42))) is int


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_a_generator_gives_a_seed_by_drawing(make):
    first, second = make(3), make(3)
    assert as_seed(first) == as_seed(second)
    assert as_seed(first) != as_seed(make(3))  # the draw has advanced it


def test_no_random_state_gives_a_new_seed_each_time():
    seeds = {as_seed(None) for _ in range(20)}
    assert len(seeds) == 20
    assert all(0 <= seed < 2**63 for seed in seeds)


@pytest.mark.parametrize("random_state", [-1, 1.0, "a", True, 2**63])
def test_refuses_a_random_state_of_another_kind(random_state):
    with pytest.raises(
        ParameterError, match=r"^random_state must be a non-negative integer, .*got"
    ):
        as_seed(random_state)
