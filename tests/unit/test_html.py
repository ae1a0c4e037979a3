"""What a notebook shows of a fitted model."""

import re

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sublearn.extreme import PPDSparseClassifier, TextTagger
from sublearn.fitting.html import fit_in_words
from sublearn.linear import SparseLinearRegression, SparseLogisticRegression


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(0).normal(size=(60, 8))
    return X, (X[:, 0] + 0.1 * X[:, 1] > 0).astype(int)


def facts_of(html):
    table = html[html.index('<table class="sublearn-fit"') :]
    pairs = re.findall(r"<th[^>]*>(.*?)</th><td[^>]*>(.*?)</td>", table)
    return dict(pairs)


def test_the_picture_of_scikit_learn_stays_and_the_fit_stands_below(rows):
    model = SparseLogisticRegression(l1=0.05)
    before = model._repr_html_()
    assert "sublearn-fit" not in before
    html = model.fit(*rows)._repr_html_()
    assert "sk-top-container" in html[: html.index("sublearn-fit")]
    facts = facts_of(html)
    assert facts == facts_of(model._repr_mimebundle_()["text/html"])
    assert facts["certificate"] == f"{model.certificate_:.2e}, within tol={model.tol:g}"
    assert facts["iterations"] == str(model.n_iter_)
    assert (facts["features"], facts["labels"]) == ("8", "2")
    n_left = np.count_nonzero(model.coef_)
    assert facts["weights"] == f"{n_left} of 8 are not 0 ({n_left / 8:.2%})"


def test_a_certificate_that_was_not_reached_is_said_to_be_above(rows):
    with pytest.warns(ConvergenceWarning):
        model = SparseLinearRegression(l1=0.01, tol=1e-14, max_iter=1).fit(*rows)
    assert f"above tol={model.tol:g}" in facts_of(model._repr_html_())["certificate"]


def test_sparse_weights_are_counted(rows):
    model = PPDSparseClassifier(random_state=0).fit(*rows)
    assert facts_of(model._repr_html_())["weights"].startswith(f"{model.coef_.nnz} of 8 ")


def test_a_tagger_shows_the_fit_of_its_classifier():
    texts = ["cats and dogs", "dogs and cats", "rain and snow", "snow and rain"] * 3
    labels = [["animals"], ["animals"], ["weather"], ["weather"]] * 3
    tagger = TextTagger().fit(texts, labels)
    assert facts_of(tagger._repr_html_()) == fit_in_words(tagger.classifier_)


def test_a_pipeline_keeps_the_picture_of_scikit_learn(rows):
    pipeline = make_pipeline(StandardScaler(), SparseLogisticRegression(l1=0.05)).fit(*rows)
    assert "SparseLogisticRegression" in pipeline._repr_html_()


def test_plain_text_is_shown_where_the_user_wants_text(rows):
    model = SparseLogisticRegression(l1=0.05).fit(*rows)
    with sklearn.config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()
        assert not hasattr(model, "_repr_html_")
