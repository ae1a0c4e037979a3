"""The judge of sparse inverse covariance, and tables of Tang's thesis."""

import numpy as np
from harness.bench import Bench
from judges.quic import objective, quic
from reproduction import optim

from sublearn.linear import SparseInverseCovariance


def test_quic_and_ours_have_the_same_optimum():
    S = np.corrcoef(np.random.default_rng(0).normal(size=(30, 8)), rowvar=False)
    values = [value for _, value, _ in quic(S, 0.2)]
    assert (np.diff(values) <= 1e-12).all()
    model = SparseInverseCovariance(
        l1=0.2, covariance="precomputed", penalise_diagonal=True, tol=1e-10
    ).fit(S)
    np.testing.assert_allclose(objective(model.precision_, S, 0.2), values[-1], rtol=1e-8)


def test_not_to_end_is_a_verdict_as_well():
    assert optim.judged(None, None) == "reproduced"
    assert optim.judged(300, None) == "worse"
    assert optim.judged(None, 300) == "better"
    assert optim.judged(300, 100) == "better"


def test_the_slopes_of_budgets_are_measured(tmp_path):
    found = optim.slopes(Bench(tmp_path, is_quick=True))
    assert [row[0] for row in found.rows] == ["coordinate", "coordinate", "ista", "ista"]
    assert found.rows[0][3] == 30  # a = 0: one pass in each iteration
