"""Displays: what is drawn is what was given, one style, refusals in one sentence."""

import ast
import itertools
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.covariance import GraphicalLasso
from sklearn.exceptions import NotFittedError

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from sublearn import display as room
from sublearn.cli.report import _STYLE as OF_REPORTS
from sublearn.display import (
    BoundDisplay,
    ExplanationDisplay,
    Highlight,
    LabelConfusionDisplay,
    NetworkDisplay,
    TraceDisplay,
)
from sublearn.display.style import COLOURS, spread, telling_limits, timed
from sublearn.extreme import PPDSparseClassifier
from sublearn.extreme.explanation import Contribution, Explanation
from sublearn.graph import FactorGraph, potts, solve_map
from sublearn.linear import SparseInverseCovariance, SparseLogisticRegression
from sublearn.trace import Trace

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def rng():
    return np.random.default_rng(0)


def texts(ax):
    return [text.get_text() for text in ax.texts]


# --- the style ------------------------------------------------------------------------------------


def test_the_charts_of_benchmarks_have_the_same_colours(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from harness.svg import COLOURS as OF_CHARTS

    assert OF_CHARTS["light"] == COLOURS
    for scheme, name in itertools.product(OF_CHARTS, range(3)):
        assert f"--{('one', 'two', 'three')[name]}:{OF_CHARTS[scheme][name]}" in OF_REPORTS


def test_importing_displays_does_not_import_matplotlib():
    for path in (ROOT / "src/sublearn/display").glob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:  # inside functions it may be
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not any((name or "").startswith("matplotlib") for name in names), path
    assert set(room.__all__) <= set(dir(room))


def test_the_style_of_the_user_is_left_as_it_was():
    before = dict(plt.rcParams)
    Trace({"objective": [2.0, 1.0]}).plot()
    assert dict(plt.rcParams) == before


def test_names_are_spread_and_keep_their_order():
    values = rng().normal(size=40)
    places = spread(values, 0.3)
    assert (np.argsort(places) == np.argsort(values)).all()
    assert np.diff(np.sort(places)).min() > 0.3 - 1e-9
    assert spread(np.array([]), 1.0).size == 0


def test_times_have_a_unit_that_makes_numbers_one_can_read():
    assert [timed(np.array([most]))[1] for most in (2e-4, 0.2, 20.0, 2000.0)] == [
        "microseconds", "milliseconds", "seconds", "minutes",
    ]  # fmt: skip
    assert timed(np.array([600.0]))[0].tolist() == [10.0]


def test_first_guesses_do_not_hide_the_rest():
    low, high = telling_limits(np.array([-1e6, *np.linspace(0, 1, 30)]))
    assert -2 < low < 0
    assert high > 0.9
    assert telling_limits(np.linspace(0, 1, 30)) is None


# --- traces and bounds ----------------------------------------------------------------------------


def test_a_trace_draws_objective_and_certificate_over_time():
    trace = Trace(
        {"seconds": [1.0, 2.0, 3.0], "objective": [3.0, 2.0, 1.5], "certificate": [1, 0.1, 0.0]}
    )
    shown = trace.plot()
    objective, certificate = shown.axes_
    assert shown.ax_ is objective
    assert shown.figure_ is objective.figure
    assert objective.get_xlabel() == "seconds"
    np.testing.assert_array_equal(objective.lines[0].get_xdata(), [1, 2, 3])
    np.testing.assert_array_equal(objective.lines[0].get_ydata(), [3, 2, 1.5])
    assert certificate.get_yscale() == "log"
    np.testing.assert_array_equal(certificate.lines[0].get_ydata(), [1, 0.1, np.nan])


def test_any_columns_of_a_trace_can_be_drawn():
    _, ax = plt.subplots()
    trace = Trace({"work": [1, 2], "n_atoms": [5, 7], "output": [0, 0]})
    assert trace.plot(ax, x="work", y=["n_atoms"]).ax_ is ax
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("work", "n_atoms")
    assert trace.plot(y="work").ax_.get_xlabel() == "row of the trace"


def test_each_output_of_a_fit_has_its_line_and_rows_out_of_order_have_none():
    seconds, outputs = [1.0, 2.0, 1.0, 2.0], [0, 0, 1, 1]
    columns = {"seconds": seconds, "objective": [4.0, 3.0, 2.0, 1.0], "output": outputs}
    ax = TraceDisplay(columns).plot().ax_
    assert [line.get_ydata().tolist() for line in ax.lines] == [[4, 3], [2, 1]]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["output 0", "output 1"]
    shuffled = Trace({"seconds": [3.0, 1.0], "objective": [1.0, 2.0]}).plot().ax_
    assert shuffled.lines[0].get_linestyle() == "None"


def test_an_estimator_draws_its_trace_with_its_tolerance():
    X, y = rng().normal(size=(60, 5)), np.arange(60) % 2
    model = SparseLogisticRegression(0.01, tol=1e-3).fit(X, y)
    shown = TraceDisplay.from_estimator(model)
    assert shown.ax_.get_title(loc="left") == "SparseLogisticRegression"
    dashed = shown.axes_[1].lines[-1]
    assert dashed.get_ydata()[0] == 1e-3
    np.testing.assert_array_equal(shown.ax_.lines[0].get_ydata(), model.trace_["objective"])


@pytest.mark.parametrize(
    ("columns", "options", "sentence"),
    [
        ({"objective": []}, {}, "the trace has no rows, so there is nothing to plot"),
        ({}, {}, "the trace has no rows"),
        ({"work": [1]}, {"y": ["gap"]}, "no column 'gap' to plot; the trace has work"),
        ({"work": [1]}, {"x": "gap"}, "no column 'gap' to plot; the trace has work"),
    ],
)
def test_refuses_a_trace_it_cannot_draw(columns, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        Trace(columns).plot(**options)


def test_refuses_axes_that_are_none():
    trace = Trace({"objective": [1.0], "certificate": [0.5]})
    _, ax = plt.subplots()
    with pytest.raises(ValueError, match=r"TraceDisplay.ax must be 2 matplotlib axes, got 1"):
        trace.plot(ax)
    with pytest.raises(ValueError, match="ax must be a matplotlib axes, got 'left'"):
        trace.plot("left", y=["objective"])


@pytest.mark.parametrize("shown", [TraceDisplay, NetworkDisplay])
def test_refuses_an_estimator_that_is_not_fitted(shown):
    with pytest.raises(NotFittedError, match="SparseInverseCovariance"):
        shown.from_estimator(SparseInverseCovariance())


def test_a_map_result_draws_its_score_below_its_bound():
    graph = FactorGraph.grid(rng().normal(size=(8, 8, 3)), potts(3, 0.5))
    result = solve_map(graph, random_state=0)
    shown = result.plot()
    bound, score = shown.ax_.lines
    np.testing.assert_array_equal(bound.get_ydata(), result.trace["bound"])
    np.testing.assert_array_equal(score.get_ydata(), result.trace["score"])
    assert f"gap {result.gap:.1e}" in shown.ax_.get_title(loc="left")


def test_a_score_that_is_not_known_yet_is_left_out():
    ax = BoundDisplay([0, 1, 2], [-np.inf, 1, 2], [np.inf, 3, 2]).plot().ax_
    assert np.isnan(ax.lines[1].get_ydata()).tolist() == [True, False, False]
    with pytest.raises(ValueError, match="no rows"):
        BoundDisplay([], [], [])


# --- networks -------------------------------------------------------------------------------------


def test_a_network_has_a_line_for_each_link_and_a_name_for_each_variable_that_has_one():
    matrix = np.zeros((4, 4))
    matrix[0, 1], matrix[1, 2] = 0.5, -0.25
    shown = NetworkDisplay.from_matrix(matrix, names=list("abcd")).plot()
    assert shown.links.tolist() == [[0, 1], [1, 2]]
    assert texts(shown.ax_) == ["a", "b", "c"]
    assert [line.get_color() for line in shown.ax_.lines] == [COLOURS[0], COLOURS[1]]
    assert shown.ax_.lines[0].get_linewidth() > shown.ax_.lines[1].get_linewidth()


def test_pairs_of_variables_may_be_left_out():
    matrix = np.zeros((5, 5))
    matrix[0, 1], matrix[2, 3], matrix[3, 4] = 1, 3, 2
    shown = NetworkDisplay.from_matrix(matrix, with_pairs=False)
    assert shown.links.tolist() == [[2, 3], [3, 4]]
    assert shown.strengths.tolist() == [1, 2 / 3]


@pytest.mark.parametrize("model", [SparseInverseCovariance(0.1), GraphicalLasso(alpha=0.1)])
def test_partial_correlations_are_drawn_of_any_inverse_covariance(model):
    X = rng().normal(size=(200, 4))
    X[:, 1] += X[:, 0]
    model.fit(X)
    shown = NetworkDisplay.from_estimator(model, n_links=1, names=list("wxyz"))
    P = model.precision_
    assert shown.links.tolist() == [[0, 1]]
    assert shown.strengths[0] == pytest.approx(-P[0, 1] / np.sqrt(P[0, 0] * P[1, 1]))
    assert texts(shown.ax_) == ["w", "x"]


def test_the_estimator_of_the_library_draws_itself_and_an_empty_network_says_so():
    model = SparseInverseCovariance(10.0).fit(rng().normal(size=(50, 3)))
    assert model.plot().ax_.get_title(loc="left") == "No variables are linked"


def test_names_in_a_network_do_not_overlap():
    n = 30
    matrix = np.triu(rng().random((n, n)) < 0.1, k=1).astype(float)
    shown = NetworkDisplay.from_matrix(matrix, n_links=60, names=[f"name {i}" for i in range(n)])
    figure = shown.plot().figure_
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in shown.ax_.texts]
    overlaps = [a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i]]
    assert not any(overlaps)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: NetworkDisplay.from_matrix(np.ones((2, 3))), r"must be square, got .*\(2, 3\)"),
        (lambda: NetworkDisplay.from_matrix(np.ones((2, 2)), n_links=0), "n_links must be a pos"),
        (lambda: NetworkDisplay.from_matrix(np.ones((2, 2)), names=["a"]), "must be 2 names"),
        (lambda: NetworkDisplay([[0, 1]], [1.0], ["a"]), "must have one for each of 2 variables"),
        (lambda: NetworkDisplay([[0, 1]], [1.0], "ab", colours=["red"]), "colours must have one"),
    ],
)
def test_refuses_a_network_it_cannot_draw(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


# --- explanations ---------------------------------------------------------------------------------


def explanation(*parts):
    found = tuple(Contribution(name, 1.0, value, value) for name, value in parts)
    return Explanation("music", 0.5, -0.2, found, n_others=2, others=0.1, probability=0.75)


def test_an_explanation_draws_its_parts_and_the_bias():
    shown = explanation(("opera", 0.9), ("tax", -0.3)).plot()
    assert isinstance(shown, ExplanationDisplay)
    widths = [bar.get_width() for bar in shown.ax_.patches]
    assert widths == [0.9, -0.3, 0.1, -0.2]
    names = [label.get_text() for label in shown.ax_.get_yticklabels()]
    assert names == ["opera", "tax", "(2 others)", "(bias)"]
    assert shown.ax_.get_title(loc="left") == "music: score +0.5, probability 0.75"


def test_words_are_marked_in_their_text_longest_contribution_first():
    marked = explanation(("opera", 0.9), ("opera house", 1.5), ("tax", -0.3))
    text = "An OPERA-house, opera and taxes; tax"
    found = marked.highlight(text)
    assert [(text[a:b], value) for a, b, value in found.spans] == [
        ("OPERA-house", 1.5), ("opera", 0.9), ("tax", -0.3),
    ]  # fmt: skip
    assert found.to_html().count("<mark") == 3
    assert "taxes;" in found.to_html()
    assert str(found).startswith("An \x1b[1;34mOPERA-house\x1b[0m, ")


def test_a_text_cannot_control_a_page_or_a_terminal():
    marked = Highlight("<script>opera</script> \x1b[2J\u202e", {"opera": 1.0}, "<b>")
    page = marked._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "&lt;b&gt;" in page
    assert str(marked) == "<script>\x1b[1;34mopera\x1b[0m</script> [2J"


def test_refuses_what_is_no_text():
    with pytest.raises(ValueError, match=r"highlight.text must be a string, got bytes"):
        Highlight(b"opera", {})
    with pytest.raises(ValueError, match=r"must have at most 200,000 letters, got 200,001"):
        Highlight("a" * 200_001, {})


# --- confusion ------------------------------------------------------------------------------------


def test_one_label_per_sample_makes_the_usual_matrix():
    true, found = np.array(list("aabbc")), np.array(list("abbac"))[:, None]
    shown = LabelConfusionDisplay.from_predictions(true, found)
    assert shown.names == ["a", "b", "c"]
    assert shown.confusion.tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    assert texts(shown.ax_) == ["1", "1", "1", "1", "1"]
    np.testing.assert_allclose(shown.ax_.images[0].get_array()[0], [0.5, 0.5, 0])


def test_missed_labels_are_shared_among_those_predicted_instead():
    true, found = [["a", "b"], ["c"]], np.array([["a", "c", "d"], ["c", "a", "b"]])
    classes = np.array(list("abcd"))
    shown = LabelConfusionDisplay.from_predictions(true, found, classes=classes)
    expected = np.zeros((4, 4))
    expected[0, 0] = expected[2, 2] = 1
    expected[1, 2] = expected[1, 3] = 0.5
    np.testing.assert_allclose(shown.confusion, expected)


def test_the_labels_confused_most_are_shown():
    true = np.array([0, 0, 0, 1, 2, 3, 3])
    found = np.array([2, 2, 2, 1, 2, 1, 3])[:, None]
    shown = LabelConfusionDisplay.from_predictions(true, found, n_labels=2)
    assert shown.names == [0, 2]
    assert shown.confusion.tolist() == [[0, 3], [0, 1]]
    assert "2 labels confused most, of 4" in shown.ax_.get_title(loc="left")


def test_a_classifier_draws_its_confusion():
    X = sp.csr_matrix(rng().random((60, 8)))
    y = np.arange(60) % 3
    model = PPDSparseClassifier(random_state=0).fit(X, y)
    shown = LabelConfusionDisplay.from_estimator(model, X, y)
    predicted = model.predict_top_k(X, 1)[0][:, 0]
    expected = [[np.sum((y == i) & (predicted == j)) for j in range(3)] for i in range(3)]
    np.testing.assert_array_equal(shown.confusion, expected)
    with pytest.raises(ValueError, match="k must be a positive integer, got 0"):
        LabelConfusionDisplay.from_estimator(model, X, y, k=0)


def test_refuses_scores_in_place_of_labels():
    with pytest.raises(ValueError, match=r"y_pred must be labels of shape .* dtype float64"):
        LabelConfusionDisplay.from_predictions([0, 1], np.eye(2))
