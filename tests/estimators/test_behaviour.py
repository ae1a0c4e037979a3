"""What every estimator promises, whatever it learns: one suite over all classes of the library.

A class is a row of `CASES` (`estimator_cases.py`), further settings of it are rows of `SETTINGS`;
what it cannot promise stands below, with the reason. The checks of scikit-learn are in
`test_sklearn_contract.py`, real Ctrl-C in the middle of long fits in `test_interrupt.py`, bits for
any number of threads in `test_determinism.py`, files of earlier versions in `tests/golden`.
"""

import copy
import inspect
import pickle
import signal
import threading
import warnings
from dataclasses import fields

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from estimator_cases import ALL, CASES, answers
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.preprocessing import StandardScaler

import sublearn
from sublearn.io.models import MODELS
from sublearn.trace import Event
from sublearn.validation import Settings, assert_rules_complete

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

NO_NAMES = {"MIPSIndex": "vectors, whose coordinates have no names"}
SINGLE = ("DenseExtremeClassifier", "EmbeddingExtremeClassifier", "MIPSIndex")  # float32 always
NOT_HERE = {"SparseNetwork": "a module of PyTorch; tests/estimators/test_saved_networks.py"}
NO_WARNING = dict.fromkeys(
    ("DenseExtremeClassifier", "EmbeddingExtremeClassifier", "SkipGram"),
    "makes as many passes as asked for and promises no tolerance",
)
#: Fitted attributes that a file does not hold.
NOT_KEPT = {
    "model_": "its parts have names of their own",
    "phi_trace_": "the course of the search for `phi_`",
    "work_": "counts what this object did",
}
#: Figures that every watched fit leaves.
FIGURES = ("objective_", "certificate_", "n_iter_")


def test_every_class_is_here_or_has_a_reason():
    assert set(CASES) | set(NOT_HERE) == set(MODELS)


def parameters_of(name):
    return inspect.signature(type(CASES[name].make())).parameters


def with_parameter(parameter):
    return pytest.mark.parametrize("name", [n for n in CASES if parameter in parameters_of(n)])


every = pytest.mark.parametrize("name", CASES)
every_setting = pytest.mark.parametrize("name", ALL)
with_columns = pytest.mark.parametrize("name", [n for n in CASES if CASES[n].has_columns])


@pytest.fixture(scope="module")
def fits():
    """Models by name, fitted once; tests must not change them."""
    kept = {}

    def fitted(name):
        if name not in kept:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                kept[name] = ALL[name].fit()
        return kept[name]

    return fitted


def assert_equal(found, expected):
    """Equal to the bit, through lists, tuples, dictionaries, sparse matrices and parts."""
    assert isinstance(expected, (int, float)) or type(found) is type(expected)
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        assert_equal(list(found.values()), list(expected.values()))
    elif hasattr(expected, "get_params"):
        assert repr(found) == repr(expected)
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_equal(one, other)
    elif sp.issparse(expected):
        assert found.shape == expected.shape
        assert (found != expected).nnz == 0
    else:
        np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


def assert_answers_close(found, expected):
    """Equal but for rounding: sums over arrays in another order, or aligned otherwise."""
    for one, other in zip(found, expected, strict=True):
        if isinstance(other, np.ndarray) and other.dtype.kind == "f":
            np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-10)
        else:
            assert_equal(one, other)


def assert_answers_equal(found, expected, name):
    X = ALL[name].data()[0]
    assert_equal(answers(found, X), answers(expected, X))


def fitted_values(model):
    """All public attributes that a fit has made."""
    names = [key for key in dir(model) if key.endswith("_") and not key.startswith("_")]
    kept = [key for key in names if key not in NOT_KEPT and key != "notes_"]
    return {key: getattr(model, key) for key in kept if hasattr(model, key)}


# --- parameters -----------------------------------------------------------------------------------


@every
def test_has_a_rule_for_each_parameter(name):
    assert_rules_complete(CASES[name].make())


@pytest.mark.parametrize("settings", Settings.__subclasses__())
def test_settings_have_a_rule_for_each_field(settings):
    assert {field.name for field in fields(settings)} == set(settings._rules)


@every
def test_has_at_most_fifteen_parameters(name):
    assert len(parameters_of(name)) <= 15


@every
def test_shares_names_and_defaults_with_the_others(name):
    defaults = {"n_jobs": None, "random_state": None, "verbose": 0, "callback": None}
    given = parameters_of(name)
    assert {key: given[key].default for key in defaults if key in given}.items() <= defaults.items()


@every_setting
def test_a_clone_has_the_parameters_and_nothing_else(name, fits):
    again = clone(fits(name))
    assert repr(again) == repr(clone(ALL[name].make()))
    assert not [key for key in vars(again) if key.endswith("_") and not key.startswith("_")]


@every
def test_a_fit_changes_neither_parameters_nor_data(name):
    model, data = CASES[name].make(), CASES[name].data()
    params, before = model.get_params(deep=False), copy.deepcopy(data)
    model.fit(*data)
    assert all(value is params[key] for key, value in model.get_params(deep=False).items())
    if not isinstance(data[0], list) or not hasattr(data[0][0], "features"):  # graphs have no ==
        assert_equal(data, before)


@every
def test_fits_anew_when_it_is_fitted_again(name, fits):
    model = CASES[name].fit()
    model.fit(*CASES[name].data())
    assert_answers_equal(model, fits(name), name)


# --- before and after a fit -----------------------------------------------------------------------


@every
def test_refuses_questions_before_it_is_fitted(name):
    model, X = CASES[name].make(), CASES[name].data()[0]
    for method in ("predict", "transform", "search", "score"):
        if not callable(getattr(model, method, None)):  # `search` is a parameter of some
            continue
        arguments = (X, X) if method == "score" else (X,)
        with pytest.raises(NotFittedError, match=type(model).__name__):
            getattr(model, method)(*arguments)


@every
def test_cannot_be_saved_before_it_is_fitted(name, tmp_path):
    with pytest.raises(NotFittedError):
        CASES[name].make().save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


@with_parameter("callback")
def test_says_how_good_it_is(name, fits):
    model = fits(name)
    for figure in FIGURES:
        assert np.isfinite(np.asarray(getattr(model, figure), dtype=float)).all()
    assert model.certificate_ >= 0
    assert len(model.trace_["seconds"]) >= 1


# --- files and copies -----------------------------------------------------------------------------


@every_setting
def test_a_saved_model_answers_as_before(name, fits, tmp_path):
    model = fits(name)
    model.save(tmp_path / "m.sublearn", notes={"source": "records"})
    loaded = sublearn.load(tmp_path / "m.sublearn")
    assert_answers_equal(loaded, model, name)
    assert repr(loaded) == repr(model)
    assert loaded.notes_ == {"source": "records"}
    assert_equal(fitted_values(loaded), fitted_values(model))


@every_setting
def test_a_loaded_model_is_saved_to_the_same_bytes(name, fits, tmp_path):
    fits(name).save(tmp_path / "a")
    sublearn.load(tmp_path / "a").save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@every_setting
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))],
                         ids=["copy", "pickle"])  # fmt: skip
def test_a_copy_answers_as_before(name, copied, fits):
    assert_answers_equal(copied(fits(name)), fits(name), name)


@every
def test_a_loaded_model_can_be_copied_and_fitted_again(name, fits, tmp_path):
    fits(name).save(tmp_path / "m")
    loaded = pickle.loads(pickle.dumps(sublearn.load(tmp_path / "m")))
    assert_answers_equal(loaded, fits(name), name)
    assert_answers_equal(loaded.fit(*CASES[name].data()), fits(name), name)


def learn_more(name, model, *data):
    return model.update(data[0][:8]) if name == "LoadForecaster" else model.partial_fit(*data)


@pytest.mark.parametrize(
    "name", [n for n in CASES if {"partial_fit", "update"} & set(dir(type(CASES[n].make())))]
)
def test_copies_and_files_go_on_learning(name, fits, tmp_path):
    data, model = CASES[name].data(), fits(name)
    model.save(tmp_path / "m")
    copies = copy.deepcopy(model), pickle.loads(pickle.dumps(model)), sublearn.load(tmp_path / "m")
    if name == "MIPSIndex":
        assert all(len(each.add(data[0][:2])) == 2 for each in copies)
        return
    first, *others = (learn_more(name, each, *data) for each in copies)
    for other in others:
        if name != "TextTagger":  # its classifier has it
            assert other.n_iter_ == first.n_iter_
        if name in ("LoadForecaster", "PPDSparseClassifier", "TextTagger"):  # the others draw
            assert_answers_close(answers(other, data[0]), answers(first, data[0]))
    assert_answers_equal(model, fits(name), name)


# --- watching -------------------------------------------------------------------------------------


@with_parameter("callback")
def test_a_callback_sees_the_fit(name, fits):
    events = []
    model = CASES[name].fit(callback=events.append)
    assert events
    assert all(isinstance(event, Event) for event in events)
    assert [event.n_done for event in events] == sorted(event.n_done for event in events)
    assert_answers_equal(model, fits(name), name)


@with_parameter("callback")
def test_a_true_callback_ends_the_fit_with_a_model(name):
    case = CASES[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = case.fit(callback=lambda event: True, **case.endless)
    if case.endless:
        said = [str(warning.message) for warning in caught]
        assert name in NO_WARNING or any("the callback asked to stop" in text for text in said)
        assert model.n_iter_ < 10**6
    arguments = () if name == "LoadForecaster" else case.data()[:1]
    assert first_method(model)(*arguments) is not None


class WrongError(Exception):
    pass


def fail(event):
    raise WrongError


@with_parameter("callback")
def test_an_exception_of_the_callback_leaves_the_model_as_it_was(name):
    model = CASES[name].make(callback=fail, **CASES[name].endless)
    with pytest.raises(WrongError):
        model.fit(*CASES[name].data())
    assert not [key for key in vars(model) if key.endswith("_") and not key.startswith("_")]
    assert threading.active_count() < 20
    with pytest.raises(NotFittedError):
        first_method(model)(CASES[name].data()[0])


@with_parameter("callback")
def test_ctrl_c_leaves_an_earlier_fit_as_it_was(name, fits):
    model = CASES[name].fit()
    model.set_params(callback=lambda event: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        model.fit(*CASES[name].data())
    assert_answers_equal(model, fits(name), name)


@with_parameter("verbose")
def test_draws_a_bar_only_when_asked(name, capsys):
    CASES[name].fit(verbose=0)
    assert capsys.readouterr() == ("", "")
    CASES[name].fit(verbose=1)
    found = capsys.readouterr()
    assert name.removesuffix("Classifier")[:2] in found.err
    assert found.out == ""


# --- threads --------------------------------------------------------------------------------------


@every_setting
def test_answers_from_several_threads_at_once(name, fits):
    model, X = fits(name), ALL[name].data()[0]
    expected, found = answers(model, X), []
    threads = [threading.Thread(target=lambda: found.append(answers(model, X))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for each in found:
        assert_equal(each, expected)


# --- columns --------------------------------------------------------------------------------------


def named(X, frame=pd.DataFrame):
    return frame({f"column {j}": column for j, column in enumerate(np.asarray(X).T)})


def first_method(model):
    methods = [getattr(model, key, None) for key in ("predict", "transform", "search", "score")]
    return next(method for method in methods if callable(method))


with_names = pytest.mark.parametrize(
    "name", [n for n in CASES if CASES[n].has_columns and n not in NO_NAMES]
)


@with_names
def test_keeps_the_names_of_columns_and_refuses_others(name, fits, tmp_path):
    X, *rest = CASES[name].data()
    model = CASES[name].make().fit(named(X), *rest)
    assert model.feature_names_in_.tolist() == named(X).columns.tolist()
    assert_answers_close(answers(model, named(X)), answers(fits(name), X))
    model.save(tmp_path / "m")
    loaded = sublearn.load(tmp_path / "m")
    assert loaded.feature_names_in_.tolist() == model.feature_names_in_.tolist()
    for each in (model, loaded):
        with pytest.raises(ValueError, match="feature names"):
            first_method(each)(named(X).rename(columns={"column 0": "another"}))


@with_names
def test_knows_the_columns_of_polars(name, fits):
    X, *rest = CASES[name].data()
    frame = named(X, pl.DataFrame)
    model = CASES[name].make().fit(frame, *rest)
    assert_answers_close(answers(model, frame), answers(fits(name), X))
    if hasattr(StandardScaler().fit(frame), "feature_names_in_"):
        assert model.feature_names_in_.tolist() == frame.columns
    # Releases of scikit-learn before 1.8 cannot read the names of polars 2.


@with_columns
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_keeps_the_precision_of_the_data(name, dtype):
    X, *rest = CASES[name].data()
    X = np.asarray(X, dtype=dtype)
    model = CASES[name].make().fit(X, *rest)
    if name in SINGLE:
        dtype = np.float32
    for weights in ("coef_", "intercept_", "components_", "interactions_", "weights_"):
        assert getattr(getattr(model, weights, None), "dtype", dtype) == dtype
    for method in ("decision_function", "label_scores", "inverse_transform"):
        if hasattr(model, method):
            asked = model.codes_ if method == "inverse_transform" else X
            assert getattr(model, method)(asked).dtype == dtype


@with_columns
def test_a_failed_fit_leaves_the_first(name, fits):
    X, *rest = CASES[name].data()
    model = CASES[name].fit()
    with pytest.raises(ValueError, match=r"X|y|sample"):
        model.fit(X[:, :5] * np.nan, *rest)
    assert_answers_equal(model, fits(name), name)
    fresh = CASES[name].make()
    before = set(vars(fresh))
    with pytest.raises(ValueError, match=r"X|y|sample"):
        fresh.fit(X * np.nan, *rest)
    assert set(vars(fresh)) == before


@with_columns
def test_refuses_another_number_of_columns(name, fits):
    X = CASES[name].data()[0]
    with pytest.raises(ValueError, match=rf"\b{X.shape[1] - 1}\b"):
        first_method(fits(name))(X[:, 1:])


@with_columns
@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1e200])
def test_refuses_numbers_that_are_none(name, wrong):
    X, *rest = CASES[name].data()
    X = np.array(X, dtype=float)
    X[1, 1] = wrong
    with pytest.raises(ValueError, match=r"NaN|infinity|too large|at most|finite|missing"):
        CASES[name].make().fit(X, *rest)


# --- the best labels ------------------------------------------------------------------------------

RANKING = [n for n in CASES if hasattr(type(CASES[n].make()), "predict_top_k")]


@pytest.mark.parametrize("name", RANKING)
def test_gives_five_labels_unless_told_and_all_if_there_are_fewer(name, fits):
    model, X = fits(name), CASES[name].data()[0]
    n_labels = len(model.predict_top_k(X, 10**6)[0][0])
    for k in (1, 2, n_labels, n_labels + 1):
        labels, scores = model.predict_top_k(X, k)
        assert labels.shape == scores.shape == (len(X), min(k, n_labels))
        assert (np.diff(scores) <= 0).all()
    assert model.predict_top_k(X)[0].shape == (len(X), min(5, n_labels))


@pytest.mark.parametrize("name", RANKING)
@pytest.mark.parametrize("k", [0, -1, 1.0, True, None, "2"])
def test_refuses_a_k_that_is_no_number_of_labels(name, k, fits):
    with pytest.raises(ValueError, match=r"^predict_top_k\.k must be a positive integer, got"):
        fits(name).predict_top_k(CASES[name].data()[0], k)


# --- weights --------------------------------------------------------------------------------------


def weighted():
    fits = {name: type(case.make()).fit for name, case in CASES.items()}
    names = [n for n, fit in fits.items() if "sample_weight" in inspect.signature(fit).parameters]
    return pytest.mark.parametrize("name", names)


@weighted()
def test_equal_weights_are_no_weights(name, fits):
    data = CASES[name].data()
    model = CASES[name].make().fit(*data, sample_weight=np.ones(len(data[1])))
    assert_answers_equal(model, fits(name), name)


@weighted()
@pytest.mark.parametrize("weights", [-1.0, 0.0, np.nan, "heavy"])
def test_refuses_weights_that_are_none(name, weights):
    data = CASES[name].data()
    with pytest.raises((ValueError, TypeError), match="sample_weight"):
        CASES[name].make().fit(*data, sample_weight=[weights] * len(data[1]))


@weighted()
def test_refuses_weights_of_other_rows(name):
    data = CASES[name].data()
    with pytest.raises(ValueError, match="sample_weight"):
        CASES[name].make().fit(*data, sample_weight=np.ones(len(data[1]) + 1))
