"""What the harness adds to plain times: audits, propensities, speed-ups, growth in pieces."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from harness.audit import linear_objective
from harness.bench import Bench
from harness.entrant import Entrant
from harness.judge import ranking_judge
from harness.runner import Outcome, Run
from harness.synthetic import Documents, make_documents, thinned

from sublearn.extreme import PPDSparseClassifier
from sublearn.metrics import propensities, psp_at_k

TINY = Documents(
    n_train=100, n_test=25, n_features=300, n_labels=8, n_groups=3, words_per_document=30
)


def test_deals_every_label_to_a_training_row():
    size = Documents(
        n_train=60, n_test=5, n_features=200, n_labels=120, n_groups=4,
        labels_per_document=4.0, every_label=True,
    )  # fmt: skip
    split = make_documents(size, 0)
    assert split.facts()["labels_used"] == 120


@pytest.mark.parametrize(
    ("axis", "size", "shape"), [("K", 5, (100, 5)), ("N", 40, (40, 8)), ("nnz", 10, (100, 8))]
)
def test_thins_a_problem_along_one_axis_and_leaves_the_others(axis, size, shape):
    whole = make_documents(TINY, 0)
    part = thinned(whole, axis, size, 0)
    assert part.train["Y"].shape == shape
    assert part.train["X"].shape == (shape[0], 300)
    assert part.truth["Y"].shape == (25, shape[1])
    lengths = np.sqrt(part.train["X"].multiply(part.train["X"]).sum(axis=1)).A1
    assert np.allclose(lengths[lengths > 0], 1, atol=1e-6)
    if axis == "nnz":
        assert part.train["X"].nnz == pytest.approx(size * shape[0], rel=0.2)


def test_refuses_more_labels_than_places_to_deal_them_to():
    size = Documents(n_train=5, n_test=1, n_features=50, n_labels=90, n_groups=2, every_label=True)
    with pytest.raises(ValueError, match="every_label must find a place for each of 90 labels"):
        make_documents(size, 0)


def test_audit_finds_the_objective_that_the_estimator_reports():
    train = make_documents(TINY, 0).train
    model = PPDSparseClassifier(random_state=0).fit(train["X"], train["Y"])
    solution = {
        "form": np.array("one-vs-rest"), "coef": model.coef_, "intercept": model.intercept_,
        "C": np.array(model.C), "l1": np.array(model.l1),
    }  # fmt: skip
    assert linear_objective(train, solution) == pytest.approx(model.objective_, rel=1e-5)


def test_audit_of_separation_takes_the_worst_pair_of_each_row():
    train = {"X": sp.csr_matrix(np.eye(2)), "Y": sp.csr_matrix(np.array([[1, 0, 0], [0, 1, 1]]))}
    coef = sp.csr_matrix(np.array([[2.0, 0.0], [0.5, 1.0], [0.0, 0.25]]))
    solution = {
        "form": np.array("separation"), "coef": coef, "intercept": np.zeros(3),
        "C": np.array(2.0), "l1": np.array(0.1),
    }  # fmt: skip
    # row 0: 1 + 0.5 - 2 < 0; row 1: 1 + 0 - 0.25
    penalty = 0.5 * (4 + 0.25 + 1 + 0.0625) + 0.1 * 3.75
    assert linear_objective(train, solution) == pytest.approx(penalty + 2 * 0.75)


def test_judge_counts_a_repeated_label_once_in_every_figure():
    truth = sp.csr_matrix(np.array([[1, 1, 0], [0, 0, 1], [1, 0, 0]]))
    known = {"Y": truth, "propensity": propensities(truth)}
    twice = ranking_judge((1, 3))(known, {"labels": np.array([[0, 0, 1], [2, 2, 2], [1, 0, 0]])})
    once = np.array([[0, -1, 1], [2, -1, -1], [1, 0, -1]])
    assert twice == pytest.approx(ranking_judge((1, 3))(known, {"labels": once}))
    assert twice["PSP@3"] == pytest.approx(psp_at_k(truth, once, known["propensity"], 3))


def test_two_limits_of_threads_give_a_speed_up_within_the_run():
    import extreme

    case = extreme.case_of("tiny", lambda: make_documents(TINY, 0))
    svc = [Entrant("svc", "extreme/linearsvc.py")]
    outcomes = Bench(Path()).compete(case, svc, 60.0, threads=(1, 2))
    one, two = (extreme.cells(outcome, outcomes, case.split) for outcome in outcomes)
    assert one["fit speed-up"] is None
    assert two["fit speed-up"] == pytest.approx(one["fit wall s"] / two["fit wall s"])
    assert one["MB above data"] is not None
    found = extreme.shown(list(zip(outcomes, (one, two), strict=True)), "note")
    assert list(found.columns)[:3] == ["entrant", "threads", "fit CPU s"]
    assert "certificate" not in found.columns
    assert [row[1] for row in found.rows] == [1, 2]


def test_growth_shows_costs_by_size_and_their_exponents():
    import extreme

    splits = [make_documents(TINY, 0)] * 2
    runs = [Run([{"work": work, "P@1": 0.5}]) for work in (4.0, 16.0)]
    entrant = Entrant("a", "a.py")
    series = {"a": [Outcome(entrant, 1, [run]) for run in runs]}
    found = extreme.growth_table("K", (2, 4), splits, series)
    assert ["a", "operations", 4.0, 16.0, pytest.approx(2.0)] in found.rows
    assert found.rows[-1] == ["a", "P@1", "0.5000", "0.5000", ""]
