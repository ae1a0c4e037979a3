"""Pieces of scripts that measure the library alone."""

import os
import time

import numpy as np
import pytest
from harness.machine import group_seconds
from harness.synthetic import Documents, make_documents
from harness.timing import cpu_timed, median_cpu, median_ms


def test_times_are_of_calls():
    calls = []
    assert median_cpu(lambda: calls.append(1), repeat=3) >= 0
    assert median_ms([lambda: calls.append(1)] * 4) >= 0
    assert cpu_timed(lambda: len(calls))[0] == 7


def test_counts_the_cpu_seconds_of_a_group_of_processes():
    before = group_seconds(os.getpgrp())
    if before is None:
        pytest.skip("only Linux tells")
    start = time.process_time()
    while time.process_time() - start < 0.2:
        pass
    assert group_seconds(os.getpgrp()) >= before + 0.1


def test_settings_are_chosen_on_training_rows_alone():
    from tuning import DEFAULT, folded, validated

    size = Documents(n_train=80, n_test=10, n_features=200, n_labels=6, n_groups=2)
    split = make_documents(size, 0)
    train_only = type(split)(split.train, test={}, truth={})
    row = validated(train_only, DEFAULT, folds=4, held=2, seed=0)
    assert row[: len(DEFAULT)] == list(DEFAULT.values())
    assert 0 <= row[-2] <= 1
    held = np.concatenate([test for _, test in folded(80, 4, 4, seed=0)])
    assert sorted(held.tolist()) == list(range(80))


def test_a_drawn_model_of_a_million_labels_predicts():
    from serving import MILLION, WEIGHTS_PER_FEATURE, two_features, wide_model

    model = wide_model(3, seed=0)
    assert model.coef_.shape == (MILLION, 3)
    assert model.coef_.nnz == 3 * WEIGHTS_PER_FEATURE
    labels, scores = model.predict_top_k(two_features(3, 0), k=5)
    assert labels.shape == (1, 5)
    assert (np.diff(scores[0]) <= 0).all()
