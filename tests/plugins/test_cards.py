"""Model cards of every kind of model, and what breaks no table."""

import numpy as np
import pytest

import sublearn
from sublearn.errors import ParameterError
from sublearn.extreme import PPDSparseClassifier, TextTagger
from sublearn.linear import SparseLinearRegression
from sublearn.plugins.cards import model_card


@pytest.fixture(scope="module")
def model():
    X = np.random.default_rng(0).normal(size=(50, 4))
    return SparseLinearRegression(l1=0.05).fit(X, X[:, 0])


def test_a_card_says_what_was_reached_and_leaves_places_for_what_it_cannot_know(model):
    card = model_card(model)
    for said in (
        f"| certificate | {model.certificate_:.2e}, within tol={model.tol:g} |",
        f"| objective | {model.objective_:.6g} |",
        "| features | 4 |",
        "| l1 | 0.05 |",
        "_To be filled in: what it was trained on",
        "_To be filled in: the licence of the model._",
        "license: unknown",
        'sublearn.load("model.sublearn")',
    ):
        assert said in card
    last = model.trace_.rows()[-1]
    assert " | ".join(f"{value:.6g}" for value in last.values()) in card


def test_what_the_user_knows_takes_these_places(model):
    card = model_card(model, title="Tones", licence="mit", data="150 tones.", figures={"R2": 0.987})
    assert "# Tones\n" in card
    assert "## Data\n\n150 tones.\n" in card
    assert "| R2 | 0.987 |" in card
    assert "license: mit" in card
    assert "To be filled in" not in card


def test_a_long_trace_is_shown_in_few_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 40))
    y = X @ rng.normal(size=40) + rng.normal(size=300)
    model = SparseLinearRegression(l1=1e-4, solver="cd1", tol=1e-9).fit(X, y)
    assert len(model.trace_) > 0
    table = model_card(model).partition("How it went (")[2]
    n_shown = int(table.split()[0])
    assert n_shown <= 9
    assert n_shown == min(n_shown, len(model.trace_))


def test_a_tagger_has_a_card_with_the_certificate_of_its_classifier():
    tagger = TextTagger().fit(["a cat", "a dog", "the rain"] * 4, [["x"], ["x"], ["y"]] * 4)
    card = model_card(tagger)
    assert f"{tagger.classifier_.certificate_:.2e}" in card
    assert "text-labels" in card


def test_names_from_outside_break_no_table_and_bring_no_html(model):
    card = model_card(model, title="a | b\n# c <script>", figures={"x|y": 1.0})
    assert "# a \\| b # c &lt;script>" in card
    assert "| x\\|y | 1 |" in card


def test_every_saved_model_of_the_golden_files_has_a_card(golden_models):
    for path in golden_models:
        assert "## Parameters" in model_card(sublearn.load(path)), path.name


@pytest.fixture
def golden_models():
    from pathlib import Path

    folder = Path(__file__).resolve().parents[1] / "golden"
    paths = [one for one in sorted(folder.glob("*.sublearn")) if "Network" not in one.name]
    return [path for path in paths if path.is_file() and not path.name.startswith("bundle")]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"licence": "MIT License"}, r"model_card\.licence must be an identifier .*'MIT License'"),
        ({"licence": "mit\nx: y"}, r"model_card\.licence must be an identifier"),
        (
            {"figures": [1]},
            r"model_card\.figures must be an instance of Mapping or None, got \[1\]",
        ),
        ({"title": 3}, r"model_card\.title must be"),
    ],
)
def test_refuses_what_makes_no_card(model, options, said):
    with pytest.raises(ParameterError, match=said):
        model_card(model, **options)


def test_refuses_what_is_not_fitted_or_no_model_of_this_library():
    with pytest.raises(ParameterError, match="must be a model of this library, got a object"):
        model_card(object())
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        model_card(PPDSparseClassifier())
