"""Metrics at k and by label against slow twins; bootstrap intervals."""

import functools

import numpy as np
import pytest
import scipy.sparse as sp

from sublearn.errors import ParameterError
from sublearn.metrics import (
    bootstrap_difference,
    bootstrap_interval,
    f1_at_k,
    f1_samples,
    frequency_bands,
    macro_f1_at_k,
    macro_precision_at_k,
    macro_recall_at_k,
    precision_at_k,
    r_precision,
)

N, K = 40, 9


def problem(seed=0):
    rng = np.random.default_rng(seed)
    Y = rng.random((N, K)) < rng.uniform(0.05, 0.5, K)
    Y[0] = False
    ranked = np.array([rng.permutation(K)[:6] for _ in range(N)])
    return Y, ranked


def sets(ranked, k):
    return [set(row[:k].tolist()) for row in ranked]


def truths(Y):
    return [set(np.flatnonzero(row).tolist()) for row in Y]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_f1_at_k_is_the_mean_of_the_f1_of_samples(form):
    Y, ranked = problem()
    for k in (1, 3, 5):
        expected = np.mean(
            [2 * len(t & p) / (len(t) + k) for t, p in zip(truths(Y), sets(ranked, k), strict=True)]
        )
        assert f1_at_k(form(Y), ranked, k) == pytest.approx(expected)
    chosen = np.zeros_like(Y)
    np.put_along_axis(chosen, ranked[:, :3], True, axis=1)
    assert f1_at_k(form(Y), ranked, [1, 3])[1] == pytest.approx(f1_samples(Y, chosen))


def test_r_precision_cuts_at_the_number_of_true_labels():
    Y, ranked = problem()
    expected = np.mean(
        [
            len(t & set(row[: len(t)].tolist())) / max(len(t), 1)
            for t, row in zip(truths(Y), ranked, strict=True)
        ]
    )
    assert r_precision(Y, ranked) == pytest.approx(expected)
    scores = np.random.default_rng(1).normal(size=Y.shape)
    order = np.argsort(-scores, axis=1)
    assert r_precision(Y, scores) == pytest.approx(r_precision(Y, order))
    assert r_precision(Y, sp.csr_matrix(scores)) == pytest.approx(r_precision(Y, order))
    assert r_precision(np.zeros((3, 4)), np.zeros((3, 4))) == 0.0


def test_macro_averages_are_means_over_labels():
    Y, ranked = problem()
    for k in (1, 4):
        values = {"precision": [], "recall": [], "f1": []}
        for j in range(K):
            true = {i for i, t in enumerate(truths(Y)) if j in t}
            found = {i for i, p in enumerate(sets(ranked, k)) if j in p}
            both = len(true & found)
            values["precision"].append(both / max(len(found), 1))
            values["recall"].append(both / max(len(true), 1))
            values["f1"].append(2 * both / max(len(true) + len(found), 1))
        assert macro_precision_at_k(Y, ranked, k) == pytest.approx(np.mean(values["precision"]))
        assert macro_recall_at_k(Y, ranked, k) == pytest.approx(np.mean(values["recall"]))
        assert macro_f1_at_k(Y, ranked, [k, 2])[0] == pytest.approx(np.mean(values["f1"]))


def test_bands_split_the_labels_by_frequency():
    Y, ranked = problem()
    counts = np.array([0, 1, 2, 4, 5, 30, 99, 100, 1000])
    bands = frequency_bands(Y, ranked, counts, 3)
    assert [(b.low, b.high) for b in bands] == [(0, 0), (1, 4), (5, 19), (20, 99), (100, -1)]
    assert [b.n_labels for b in bands] == [1, 3, 1, 2, 2]
    assert sum(b.n_true for b in bands) == Y.sum()
    own = [1, 2, 3]
    pairs = [
        (len(t & set(own)), len(p & set(own)), len(t & p & set(own)))
        for t, p in zip(truths(Y), sets(ranked, 3), strict=True)
    ]
    true, found, both = np.sum(pairs, axis=0)
    assert bands[1].recall == pytest.approx(both / true)
    assert bands[1].precision == pytest.approx(both / found)
    assert bands[1].f1 == pytest.approx(2 * both / (true + found))
    hit = [any(j in t & p for t, p in zip(truths(Y), sets(ranked, 3), strict=True)) for j in own]
    assert bands[1].coverage == pytest.approx(np.mean(hit))


def test_bands_take_names_and_labels_that_were_never_trained():
    lists = [["a"], ["b", "new"], ["new"]]
    ranked = np.array([["a"], ["b"], ["a"]])
    bands = frequency_bands(lists, ranked, [7, 1], 1, bands=(0, 1, 5), classes=["a", "b"])
    assert [b.n_true for b in bands] == [2, 1, 1]
    assert [b.recall for b in bands] == [0.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="classes must name the labels that label_counts"):
        frequency_bands(lists, ranked, [7, 1, 0], 1)
    with pytest.raises(ValueError, match="bands must be integers that increase from 0"):
        frequency_bands(lists, ranked, [7, 1], 1, bands=(1, 0), classes=["a", "b"])
    with pytest.raises(ValueError, match="label_counts must be integers"):
        frequency_bands(lists, ranked, [0.5, 1], 1, classes=["a", "b"])


def test_an_interval_has_the_quantiles_of_samples_drawn_again():
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 2, 200), rng.integers(0, 2, 200)
    metric = lambda a, b: float(np.mean(a == b))  # noqa: E731
    found = bootstrap_interval(metric, y, p, n_resamples=300, random_state=3)
    draws = np.random.default_rng(0)  # another seed
    again = [metric(y[r], p[r]) for r in (draws.integers(0, 200, 200) for _ in range(300))]
    assert found.value == metric(y, p)
    np.testing.assert_allclose(
        (found.low, found.high), np.quantile(again, [0.025, 0.975]), atol=0.03
    )
    assert found == bootstrap_interval(metric, y, p, n_resamples=300, random_state=3)
    assert str(found).startswith(f"{found.value:.4f} [")


@pytest.mark.parametrize("form", ["lists", "dense", "sparse"])
def test_an_interval_of_label_sets_in_any_form(form):
    Y, ranked = problem()
    lists = [sorted(t) for t in truths(Y)]
    y = {"lists": lists, "dense": Y, "sparse": sp.csc_matrix(Y)}[form]
    metric = functools.partial(precision_at_k, k=2)
    found = bootstrap_interval(metric, y, ranked, n_resamples=20)
    assert found.value == pytest.approx(precision_at_k(Y, ranked, 2))
    assert found.low < found.value < found.high


def test_a_difference_is_drawn_in_pairs():
    Y, ranked = problem()
    other = ranked.copy()
    other[:3] = ranked[:3][:, ::-1]
    metric = functools.partial(precision_at_k, k=1)
    same = bootstrap_difference(metric, Y, ranked, ranked, n_resamples=10)
    assert (same.value, same.low, same.high, same.share_above_zero) == (0, 0, 0, 0)
    found = bootstrap_difference(metric, Y, ranked, other, n_resamples=50)
    assert found.value == pytest.approx(metric(Y, ranked) - metric(Y, other))
    alone = bootstrap_interval(metric, Y, ranked, n_resamples=50)
    assert found.high - found.low < alone.high - alone.low


def test_intervals_refuse_what_they_cannot_draw():
    with pytest.raises(ParameterError, match=r"bootstrap.level must be"):
        bootstrap_interval(f1_samples, [0, 1], [0, 1], level=1.0)
    with pytest.raises(ParameterError, match=r"bootstrap.n_resamples must be a positive integer"):
        bootstrap_interval(f1_samples, [0, 1], [0, 1], n_resamples=0)
    with pytest.raises(ValueError, match=r"must have one row per sample \(2\), got 3"):
        bootstrap_interval(f1_samples, [0, 1], [0, 1, 1])
