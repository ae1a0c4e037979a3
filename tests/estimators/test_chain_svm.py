"""ChainSVM as an estimator: forms of input, refusals, early stopping, saving, determinism.

scikit-learn's check_estimator does not apply: it passes one matrix and one label per row, and a
sequence is neither. What it asks of parameters (get_params, clone, rules) is asked here.
"""

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

import sublearn
from sublearn.errors import ParameterError
from sublearn.structured import ChainSVM, Passes


def tagged_words(n_sequences=40, seed=0):
    """Words of three kinds in an order that a grammar gives; some words are of two kinds."""
    rng = np.random.default_rng(seed)
    words = {"D": ["the", "a"], "N": ["dog", "run", "house"], "V": ["run", "sees", "is"]}
    follows = {"D": "N", "N": "V", "V": "D"}
    X, y = [], []
    for _ in range(n_sequences):
        tag, tags = "D", []
        for _ in range(rng.integers(1, 7)):
            tags.append(tag)
            tag = follows[tag]
        picked = [words[t][rng.integers(len(words[t]))] for t in tags]
        X.append([[f"word={w}", f"last={w[-1]}"] for w in picked])
        y.append(tags)
    return X, y


def as_matrices(X):
    """The same features as matrices, columns in the order of first appearance."""
    names = list(dict.fromkeys(name for s in X for position in s for name in position))
    place = {name: j for j, name in enumerate(names)}
    out = []
    for sequence in X:
        matrix = np.zeros((len(sequence), len(names)), dtype=np.float32)
        for t, position in enumerate(sequence):
            for name in position:
                matrix[t, place[name]] += 1
        out.append(matrix)
    return out


def chain(**options):
    """A model that converges on the data of these tests."""
    return ChainSVM(**({"C": 0.1, "random_state": 0, "max_iter": 1000} | options))


def joined(lists):
    return list(itertools.chain.from_iterable(lists))


def same(a, b):
    """Whether two models are equal in every weight."""
    return (
        (a._weights != b._weights).nnz == 0
        and np.array_equal(a.transitions_, b.transitions_)
        and a.classes_.tolist() == b.classes_.tolist()
    )


@pytest.fixture(scope="module")
def words():
    return tagged_words()


@pytest.fixture(scope="module")
def fitted(words):
    return chain().fit(*words)


def test_learns_what_only_the_neighbour_tells(fitted):
    """`run` is a noun after a determiner and a verb after a noun."""
    X = [[["word=the"], ["word=run"], ["word=run"], ["word=a"], ["word=house"]]]
    assert fitted.predict(X) == [["D", "N", "V", "D", "N"]]
    assert fitted.predict_one(X[0]) == ["D", "N", "V", "D", "N"]
    assert fitted.certificate_ <= 0.01
    assert fitted.transitions_[0, 1] == fitted.transitions_.max()  # D N
    assert fitted.start_.argmax() == 0


# --- forms of input ----------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["dense", "csr", "csc", "mixed", "lists", "one", "one sparse"])
def test_forms_of_input_give_the_same_model(words, fitted, form):
    X, y = words
    matrices = as_matrices(X)
    lengths, flat = None, y
    if form == "csr":
        matrices = [sp.csr_matrix(m) for m in matrices]
    elif form == "csc":
        matrices = [sp.csc_array(m) for m in matrices]
    elif form == "mixed":
        matrices[::2] = [sp.csr_matrix(m) for m in matrices[::2]]
    elif form == "lists":
        matrices = [m.tolist() for m in matrices]
    elif form.startswith("one"):
        lengths = [len(m) for m in matrices]
        matrices = np.concatenate(matrices)
        flat = np.concatenate(y)
        if form == "one sparse":
            matrices = sp.coo_matrix(matrices)
    model = chain(end_features=True).fit(matrices, flat, lengths=lengths)
    found = model.predict(matrices, lengths=lengths)
    if form == "lists":  # Python's numbers are float64
        assert np.allclose(model._weights.toarray(), fitted._weights.toarray(), atol=1e-3)
    else:
        assert same(model, fitted)
    if lengths is None:
        assert found == fitted.predict(X)
    else:
        assert found.tolist() == joined(fitted.predict(X))
    assert model.score(matrices, flat, lengths=lengths) == fitted.score(X, y)


@pytest.mark.parametrize("kind", ["dict of strings", "dict of numbers", "dict of bools", "tuples"])
def test_named_features_in_all_forms_give_the_same_model(words, fitted, kind):
    X, y = words
    make = {
        "dict of strings": lambda p: dict(name.split("=") for name in p),
        "dict of numbers": lambda p: dict.fromkeys(p, 1),
        "dict of bools": lambda p: dict.fromkeys(p, True) | {"never": False},
        "tuples": tuple,
    }[kind]
    other = [[make(p) for p in s] for s in X]
    model = chain().fit(other, y)
    assert model.predict(other) == fitted.predict(X)
    if kind == "dict of bools":  # a column of its own, without a weight
        never = model.feature_names_.tolist().index("never")
        assert model.coef_[:, [never]].nnz == 0
    else:
        assert same(model, fitted)
        assert model.feature_names_.tolist() == fitted.feature_names_.tolist()


def test_positions_one_after_another_with_lengths(words, fitted):
    X, y = words
    lengths = [len(s) for s in X]
    model = chain().fit(joined(X), joined(y), lengths=lengths)
    assert same(model, fitted)


def test_numbers_of_dicts_are_values():
    X = [[{"size": 2.0}, {"size": -1.0, "word": "a"}]]
    model = chain(fit_intercept=False, end_features=False, max_iter=200)
    model.fit(X, [["p", "q"]])
    assert model.feature_names_.tolist() == ["size", "word=a"]
    scores = model.decision_function(X)[0]
    expected = np.array([[2.0, 0.0], [-1.0, 1.0]]) @ model.coef_.toarray().T
    assert np.allclose(scores, expected)


def test_a_name_that_stands_twice_counts_twice():
    twice = [[["a", "a"], ["b"]], [["b"], ["a", "a"]]]
    as_number = [[{"a": 2}, {"b": 1}], [{"b": 1}, {"a": 2}]]
    y = [["p", "q"], ["q", "p"]]
    assert same(chain().fit(twice, y), chain().fit(as_number, y))


@pytest.mark.parametrize("tags", [[3, 7, 11], [("a", 1), ("b", 2), ("c", 3)], [True, False, True]])
def test_tags_of_any_hashable_type(words, tags):
    X, y = words
    names = dict(zip("DNV", tags, strict=True))
    renamed = [[names[t] for t in s] for s in y]
    model = chain().fit(X, renamed)
    assert set(model.classes_.tolist()) == set(tags)
    found = model.predict(X)
    assert found[0][0] in tags
    assert model.score(X, renamed) > 0.8


def test_float32_stays(words):
    matrices = as_matrices(words[0])
    assert chain().fit(matrices, words[1])._weights.dtype == np.float32
    doubles = [m.astype(np.float64) for m in matrices]
    assert chain().fit(doubles, words[1])._weights.dtype == np.float64


# --- odd but good input ------------------------------------------------------------------------


def test_empty_sequences_change_nothing(words, fitted):
    X, y = words
    model = chain().fit([*X, []], [*y, []])
    assert same(model, fitted)
    assert model.predict([[], X[0], []]) == [[], fitted.predict([X[0]])[0], []]
    assert model.predict([[]]) == [[]]
    tags, scores = model.predict_with_scores([[], X[0]])
    assert scores[0] == 0.0
    assert len(tags[1]) == len(X[0])


def test_empty_matrices_change_nothing(words):
    matrices = as_matrices(words[0])
    before = chain().fit(matrices, words[1])
    after = chain().fit([np.zeros((0, 3)), *matrices], [[], *words[1]])
    assert same(before, after)


def test_sequences_of_length_one_have_no_transitions():
    X = [[["a"]], [["b"]]]
    model = chain().fit(X, [["p"], ["q"]])
    assert model.predict(X) == [["p"], ["q"]]
    assert not model.transitions_.any()


def test_unseen_features_are_ignored(fitted):
    known, unknown = [[["word=the"]]], [[["word=the", "word=unheard", "x"]]]
    assert fitted.predict(known) == fitted.predict(unknown)
    assert np.array_equal(*map(np.vstack, map(fitted.decision_function, (known, unknown))))


def test_a_position_without_features_is_scored_by_its_place(fitted):
    scores = fitted.decision_function([[[], [], []]])[0]
    assert np.allclose(scores[1], fitted.intercept_)
    assert np.allclose(scores[0], fitted.intercept_ + fitted.start_)
    assert np.allclose(scores[2], fitted.intercept_ + fitted.end_)


def test_unseen_tags_are_mistakes(fitted, words):
    X, y = words
    known = fitted.score(X, y)
    strange = [["Z" for _ in s] for s in y]
    assert fitted.score(X, strange) == 0.0
    assert 0.0 < fitted.score([*X, *X], [*y, *strange]) == pytest.approx(known / 2)


# --- refusals ----------------------------------------------------------------------------------

MATRIX = np.ones((2, 3))
BAD_FITS = {
    "X must be a list of sequences, or one matrix": (MATRIX, [["a", "b"]], {}),
    "X must have at least one sequence": ([], [], {}),
    "X must have at least one position": ([[], []], [[], []], {}),
    r"lengths must add up to the rows of X \(2\), got 3": (MATRIX, ["a", "b"], {"lengths": [3]}),
    "lengths must not be negative": (MATRIX, ["a", "b"], {"lengths": [3, -1]}),
    "lengths must be a list of integers": (MATRIX, ["a", "b"], {"lengths": [1.5, 0.5]}),
    "one number of features, got 3 and 2": ([MATRIX, np.ones((1, 2))], [["a", "b"], ["a"]], {}),
    "contains NaN": ([np.full((2, 1), np.nan)], [["a", "b"]], {}),
    "contains infinity": ([np.full((2, 1), np.inf)], [["a", "b"]], {}),
    "must have finite numbers": ([[{"a": float("nan")}, {}]], [["a", "b"]], {}),
    "a string, a bool or a number for each name": ([[{"a": None}]], [["a"]], {}),
    "a list of strings or a dict for each position": ([["the", "dog"]], [["a", "b"]], {}),
    "either lists or dicts": ([[["a"], {"a": 1}]], [["a", "b"]], {}),
    "strings as names of features": ([[["a"], [3]]], [["a", "b"]], {}),
    "strings as names": ([[["a"], [["b"]]]], [["a", "b"]], {}),
    r"X\[0\] must be a matrix or a list of positions": (["the dog"], [["a", "b"]], {}),
    r"X\[0\] must have shape": ([np.ones((2, 2, 2))], [["a", "b"]], {}),
    r"y\[0\] must have 2 labels, got 1": ([MATRIX], [["a"]], {}),
    r"y\[0\] must be a list of labels, got 'ab'": ([MATRIX], ["ab"], {}),
    "y must have a list of labels for each of 1 samples, got 2": ([MATRIX], [["a"], ["b"]], {}),
    "y must have 2 labels, got 1": (MATRIX, ["a"], {"lengths": [2]}),
    "y must have a list of labels for each of 1 samples, got None": ([MATRIX], None, {}),
    "y needs at least 2 different labels, got 1": ([MATRIX], [["a", "a"]], {}),
    "y must hold labels of one type": ([MATRIX], [["a", 1]], {}),
    "y must not have missing labels": ([MATRIX], [["a", None]], {}),
    "y must hold hashable labels": ([MATRIX], [["a", []]], {}),
    "eval_set must be": ([MATRIX], [["a", "b"]], {"eval_set": 3}),
}


@pytest.mark.parametrize("sentence", BAD_FITS)
def test_refuses_bad_input_by_a_sentence(sentence):
    X, y, options = BAD_FITS[sentence]
    with pytest.raises(ValueError, match=sentence):
        ChainSVM().fit(X, y, **options)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("C", 0.0),
        ("C", float("nan")),
        ("tol", -1),
        ("max_iter", 0),
        ("end_features", "yes"),
        ("transitions", 1),
        ("validation_fraction", 1.0),
        ("average", 1),
        ("solver", "away"),
        ("early_stopping", 0),
        ("passes", {"rho": 1.0}),
        ("n_jobs", 0),
    ],
)
def test_refuses_bad_parameters(parameter, value, words):
    with pytest.raises(ParameterError, match=rf"ChainSVM\.{parameter} must be"):
        ChainSVM(**{parameter: value}).fit(*words)


@pytest.mark.parametrize(
    ("field", "value"), [("evaluate_every", -1), ("rho", 0.0), ("label_parts", 0)]
)
def test_refuses_passes_that_cannot_be_made(field, value):
    with pytest.raises(ParameterError, match=rf"Passes\.{field} must be"):
        Passes(**{field: value})


def test_refuses_a_C_that_would_overflow(words):
    with pytest.raises(ParameterError, match=r"ChainSVM\.C times positions"):
        ChainSVM(C=1e300).fit(*words)


def test_refuses_other_features_than_in_fit(fitted, words):
    with pytest.raises(ValueError, match="named features, as in fit, got matrices"):
        fitted.predict([MATRIX])
    model = chain().fit(as_matrices(words[0]), words[1])
    with pytest.raises(ValueError, match="matrices, as in fit, got positions with named features"):
        model.predict(words[0])
    with pytest.raises(ValueError, match="features, but ChainSVM is expecting"):
        model.predict([MATRIX])


def test_refuses_early_stopping_on_one_sequence():
    with pytest.raises(
        ValueError, match="X must have at least 2 samples for early_stopping, got 1"
    ):
        ChainSVM(early_stopping=True).fit([MATRIX], [["a", "b"]])


# --- conventions -------------------------------------------------------------------------------


def test_warns_of_what_was_not_reached(words):
    with pytest.warns(ConvergenceWarning, match=r"ChainSVM: the iteration limit.*tol=1e-12"):
        model = ChainSVM(tol=1e-12, max_iter=3, random_state=0).fit(*words)
    assert model.n_iter_ == 3
    assert model.certificate_ > 1e-12
    assert np.isfinite(model.trace_["primal"]).tolist() == [False, False, True]


def test_a_fit_that_asks_for_no_certificate_ends_with_its_passes_without_a_warning(words):
    model = ChainSVM(C=10.0, max_iter=3, random_state=0).fit(*words)
    assert model.n_iter_ == 3
    assert 0.01 < model.certificate_ < np.inf
    with pytest.warns(ConvergenceWarning, match=r"asked for tol=0\.01 "):
        asked = ChainSVM(C=10.0, max_iter=3, tol=0.01, random_state=0).fit(*words)
    assert asked.certificate_ == model.certificate_


def test_a_fit_that_asks_for_no_certificate_ends_at_a_hundredth(words):
    model = ChainSVM(C=0.01, max_iter=500, random_state=0).fit(*words)
    assert model.n_iter_ < 500
    assert model.certificate_ <= 0.01


def test_without_evaluation_there_is_no_certificate_and_no_warning(words):
    model = ChainSVM(max_iter=4, passes=Passes(evaluate_every=0), random_state=0).fit(*words)
    assert model.n_iter_ == 4
    assert model.certificate_ == np.inf
    assert np.isnan(model.objective_)


def test_trace_has_a_row_per_pass(fitted):
    assert len(fitted.trace_) == fitted.n_iter_
    assert fitted.trace_.columns == (
        "seconds", "primal", "dual", "bound", "certificate", "infeasibility", "n_labels",
        "n_states", "n_factors", "n_visits", "work", "rho",
    )  # fmt: skip
    assert (np.diff(fitted.trace_["work"]) > 0).all()


def test_a_warning_points_to_the_caller(words):
    with pytest.warns(ConvergenceWarning) as caught:
        ChainSVM(tol=1e-12, max_iter=1, random_state=0).fit(*words)
    assert caught[0].filename == __file__


def test_grid_search_sees_that_neighbours_matter(words):
    model = chain(tol=0.1, end_features=False)
    search = GridSearchCV(model, {"transitions": [False, True]}, cv=3).fit(*words)
    assert search.best_params_ == {"transitions": True}
    assert search.predict(words[0])[0] == words[1][0]


def test_a_data_frame_keeps_its_names_through_a_file(tmp_path):
    frame = pd.DataFrame({"a": [1.0, -1.0, 1.0], "b": [0.0, 1.0, 0.5]})
    model = chain().fit(frame, ["p", "q", "p"], lengths=[2, 1])
    model.save(tmp_path / "chain")
    again = sublearn.load(tmp_path / "chain")
    assert again.predict(frame, lengths=[3]).tolist() == ["p", "q", "p"]
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame[["b", "a"]], lengths=[3])


def test_refuses_numbers_too_large_for_the_type_of_the_fit(words):
    matrices = as_matrices(words[0])
    model = chain().fit(matrices, words[1])
    with pytest.raises(ValueError, match="X must be at most 1e"):
        model.predict([np.full((1, matrices[0].shape[1]), 1e300)])


# --- early stopping, callbacks -----------------------------------------------------------------


def test_early_stopping_returns_the_best_pass_not_the_last():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(5, 6)) for _ in range(60)]
    y = [rng.integers(3, size=5).tolist() for _ in range(60)]  # noise: training only hurts
    options = {"C": 10.0, "random_state": 0, "early_stopping": 4, "max_iter": 50}
    model = ChainSVM(**options).fit(X[:40], y[:40], eval_set=(X[40:], y[40:]))
    held_out = model.trace_["held_out"]
    assert held_out[-1] < held_out.max(), "the data were to be such that the last is not the best"
    assert model.held_out_accuracy_ == held_out.max()
    assert model.score(X[40:], y[40:]) == held_out.max()
    assert model.n_iter_ == held_out.argmax() + 1 + 4


def test_eval_set_may_have_unknown_tags_and_lengths(words):
    X, y = words
    flat = joined(X), joined([["Z" for _ in s] for s in y]), [len(s) for s in X]
    model = chain().fit(X, y, eval_set=flat)
    assert model.held_out_accuracy_ == 0.0


# --- saving ------------------------------------------------------------------------------------


def test_parameters_of_an_earlier_version_are_translated():
    stored = {
        "C": 0.3, "method": "away", "rho": 2.0, "label_parts": 3, "evaluate_every": 0,
        "early_stopping": True, "n_iter_no_change": 7,
    }  # fmt: skip
    passes = Passes(evaluate_every=0, rho=2.0, label_parts=3)
    expected = {"C": 0.3, "solver": "frank_wolfe", "passes": passes, "early_stopping": 7}
    assert ChainSVM._current_params(stored) == expected
    without = ChainSVM._current_params(stored | {"early_stopping": False})
    assert without == expected | {"early_stopping": False}


def test_tags_that_no_file_can_hold_are_refused(tmp_path, words):
    X, y = words
    model = chain().fit(X, [[(t,) for t in s] for s in y])
    with pytest.raises(TypeError, match=r"classes_ .* must hold strings only to be saved"):
        model.save(tmp_path / "chain")


def test_the_mean_over_passes_counts_later_ones_more(words):
    options = {"C": 0.3, "passes": Passes(evaluate_every=0), "random_state": 0}
    passes = [ChainSVM(max_iter=t, average=False, **options).fit(*words) for t in (1, 2, 3)]
    mean = ChainSVM(max_iter=3, **options).fit(*words)
    for name in ("coef_", "transitions_"):
        weights = [sp.csr_matrix(getattr(m, name)).toarray() for m in (*passes, mean)]
        expected = (6 * weights[0] + 24 * weights[1] + 60 * weights[2]) / 90
        np.testing.assert_allclose(weights[3], expected, atol=1e-6)
        assert not np.allclose(weights[2], weights[3], atol=1e-3)
