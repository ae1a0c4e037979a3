"""Tables of Yen 2017 and of chapter 4 of Yen 2018: what their rows say is what was measured."""

import numpy as np
import pytest
from harness.bench import Bench
from harness.data import data_directory
from harness.verdicts import REPRODUCED, WORSE
from mixtures import Recipe
from reproduction import latent


def test_bands_are_from_the_least_seed_to_the_largest():
    (line,) = latent.lines({"a": {4: [1.0, 3.0, 2.0], 2: [5.0]}})
    assert list(line.x) == [2, 4]
    assert (line.y[1], line.low[1], line.high[1]) == (2.0, 1.0, 3.0)


def test_figure_1_counts_failures_of_rare_features():
    bench = Bench(data_directory(None), is_quick=True)
    found = latent.figure_1(bench)
    assert [row[-1] for row in found.rows] == [REPRODUCED] * len(found.rows)
    assert len(found.charts[0].series) == 2


def test_all_methods_are_judged_at_each_number_of_features(monkeypatch):
    monkeypatch.setattr(latent, "RIVAL_SECONDS", 0.01)
    split = latent.recipe(40, 25, 3, 0.0, 25, seed=0)
    found = latent.judged(split.train["X"], split.truth, (3,), 0)
    assert set(found) == {"RMSE to data", "CPU s", "Hamming error", "RMSE"}
    assert found["Hamming error"][latent.OURS]["3"] == 0.0
    assert len(found["RMSE"]) == 5


def test_a_mixture_has_an_error_for_each_method():
    case = Recipe("Syn1", 3, 2, "normal", False, 0.0, 0)
    found = latent.mixture_errors(case, 120, 0)
    assert set(found) == {*latent.SEARCHES, latent.EM_RANDOM, latent.EM_TENSOR}
    assert found[latent.BOTH] < 1e-6


@pytest.mark.parametrize(("errors", "word"), [([0.5, 1e-9], REPRODUCED), ([0.9, 0.9], WORSE)])
def test_a_claim_holds_if_errors_are_smaller_along_the_curve(errors, word):
    case = Recipe("Syn1", 3, 2, "normal", False, 0.0, 0)
    curves = {
        latent.MIXLASSO: {100: errors[:1], 200: errors[1:]},
        latent.EM_RANDOM: {100: [0.9], 200: [0.9]},
    }
    rows = latent.compared(curves, case, 1e-3)
    assert rows[0][-1] == word
    assert rows[0][2] == ("200" if word == REPRODUCED else "above 200")
    assert np.isfinite(float(rows[1][3].split(", ")[0]))
