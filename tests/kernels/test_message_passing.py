"""Algorithm 11 on tiny problems: a slow twin, theorems 12 and 13, what a block leaves out."""

import numpy as np
import pytest

from sublearn import _core
from sublearn.embed import LabelSearch
from sublearn.embed.layer_training import LabelRows, LayerTrainer

LOSSES = ("softmax", "margin", "triplet", "smoothed_margin")
TAU = 0.05


def loss_of(name, z, n_positives, n_rest=0):
    """Loss and gradient with further labels of score 0, which softmax alone looks at."""
    wide = np.concatenate([z, np.zeros(n_rest)]) if name == "softmax" else z
    gradient = np.empty_like(wide)
    return _core.output_loss(name, 1.0, wide, n_positives, gradient), gradient[: len(z)]


def slow_messages(name, parts, n_positives, n_steps, tau, n_rest):
    """The algorithm as it is printed, with messages in full."""
    n_blocks = len(parts)
    messages = np.zeros_like(parts)
    whole = parts.sum(axis=0)
    for t in range(1, n_steps + 1):
        slopes = [
            loss_of(name, n_blocks * (z + m), n_positives, n_rest)[1]
            for z, m in zip(parts, messages, strict=True)
        ]
        active = np.flatnonzero((np.abs(slopes) > tau).any(axis=0))
        best = whole / n_blocks - parts
        eta = 2 / (t + 2)
        messages[:, active] = eta * best[:, active] + (1 - eta) * messages[:, active]
    found = [
        loss_of(name, n_blocks * (z + m), n_positives, n_rest)
        for z, m in zip(parts, messages, strict=True)
    ]
    return np.mean([value for value, _ in found]), np.mean([slope for _, slope in found], axis=0)


def messages(name, parts, n_positives, n_steps, tau=TAU, n_rest=0):
    gradient = np.empty(parts.shape[1])
    rest = (float(n_rest), 0.0)
    value = _core.pass_messages(name, 1.0, parts.copy(), n_positives, n_steps, tau, rest, gradient)
    return value, gradient


@pytest.fixture
def parts():
    """Three blocks, two positives; a block has found half of the negatives."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(3, 14))
    scores[:, 2:] *= rng.random((3, 12)) < 0.5
    return scores


@pytest.mark.parametrize("n_steps", [0, 1, 2, 7])
@pytest.mark.parametrize("name", LOSSES)
def test_is_the_algorithm_as_it_is_printed(name, n_steps, parts):
    value, gradient = messages(name, parts, 2, n_steps, n_rest=30)
    expected, slopes = slow_messages(name, parts, 2, n_steps, TAU, 30)
    assert value == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(gradient, slopes, atol=1e-10)


@pytest.mark.parametrize("name", LOSSES)
def test_the_loss_of_the_blocks_bounds_that_of_all_from_above_and_comes_down_to_it(name, parts):
    whole, slopes = loss_of(name, parts.sum(axis=0), 2, 30)
    values = [messages(name, parts, 2, n, 0.0, 30)[0] for n in (0, 1, 2, 10, 1000)]
    assert (np.array(values) >= whole - 1e-10).all()
    assert values[0] > whole + 0.1
    assert values[-1] == pytest.approx(whole, abs=1e-3)
    if name == "softmax":
        np.testing.assert_allclose(messages(name, parts, 2, 1000, 0.0, 30)[1], slopes, atol=1e-3)


@pytest.mark.parametrize("tau", [0.0, 0.02])
def test_the_gap_is_within_the_bound_of_theorem_13(tau, parts):
    whole = loss_of("softmax", parts.sum(axis=0), 2, 30)[0]
    best = parts.sum(axis=0) / 3 - parts
    # Two positives double the loss of one, and with it the inverse of its smoothness.
    for n_steps in (1, 3, 9, 27):
        t = n_steps + 1
        smooth = 2 * 3 * 2 * np.square(best).sum() / (t + 2)
        bound = smooth + 2 * tau * np.log(t) * np.abs(best).sum()
        assert messages("softmax", parts, 2, n_steps, tau, 30)[0] - whole <= bound


def test_labels_below_the_threshold_in_every_block_get_no_message(parts):
    value, _ = messages("softmax", parts, 2, 5, 10.0, 30)  # no gradient is above 10
    assert value == pytest.approx(messages("softmax", parts, 2, 0, 0.0, 30)[0], rel=1e-12)


def test_refuses_arrays_that_do_not_fit(parts):
    with pytest.raises(ValueError, match="must fit the parts"):
        _core.pass_messages("softmax", 1.0, parts, 2, 1, 0.0, (0.0, 0.0), np.empty(3))


# --- the layer that uses it -----------------------------------------------------------------------


def layer_of(weights, gradient="decomposed", loss="softmax", **search):
    search = {"n_probe": 10**6, "min_gradient": 0.01, **search}
    return LayerTrainer(
        weights.astype(np.float32), np.random.default_rng(0), loss=loss, gradient=gradient,
        search=LabelSearch(**search), n_threads=1,
    )  # fmt: skip


@pytest.fixture
def problem():
    rng = np.random.default_rng(2)
    weights, X = rng.normal(size=(200, 12)), rng.normal(size=(30, 12))
    return weights, X, LabelRows(np.arange(31), rng.integers(200, size=30).astype(np.int32))


def differentiated(trainer, X, labels):
    rows = trainer.inputs(X.astype(np.float32))
    losses, samples, ids, values, _ = trainer.layer.differentiate(
        rows, labels, trainer.prepare(np.inf), 0
    )
    gradient = np.zeros((len(X), trainer.n_labels))
    gradient[samples, ids] = values
    return losses, gradient


@pytest.mark.parametrize("n_steps", [1, 4])
def test_a_layer_passes_messages_between_what_its_blocks_have_found(n_steps, problem):
    """Search, algorithm 11 and the gradient against loops over blocks of three coordinates."""
    weights, X, labels = problem
    trainer = layer_of(weights, n_blocks=4, n_candidates=24, n_messages=n_steps)
    losses, gradient = differentiated(trainer, X, labels)
    for i, own in enumerate(labels.ids):
        scores = np.stack([weights[:, c : c + 3] @ X[i, c : c + 3] for c in range(0, 12, 3)])
        n_known = 24 + 1
        bar = np.log((np.exp(scores[:, own].sum()) + 200 - n_known) * 0.01)
        hits = []
        for z in scores:
            best = [k for k in np.argsort(-z)[:6] if 4 * z[k] > bar and k != own]
            hits.append(best)
        union = [own, *sorted({k for best in hits for k in best})]
        parts = np.zeros((4, len(union)))
        for j, best in enumerate(hits):
            for place, k in enumerate(union):
                parts[j, place] = scores[j, k] if k == own or k in best else 0
        value, slopes = slow_messages("softmax", parts, 1, n_steps, 0.01, 200 - len(union))
        assert losses[i] == pytest.approx(value, rel=1e-4)
        slopes = np.where(np.abs(slopes) > 0.01, slopes, 0)
        np.testing.assert_allclose(gradient[i, union], slopes, atol=1e-4)
        assert not np.delete(gradient[i], union).any()


def exact_losses(weights, X, labels):
    z = X @ weights.T
    return np.log(np.exp(z).sum(axis=1)) - z[np.arange(len(X)), labels.ids]


@pytest.mark.parametrize("gradient", ["mips", "decomposed"])
def test_the_mean_score_of_the_rest_gives_a_lower_bound_of_the_loss_over_all_labels(
    gradient, problem
):
    weights, X, labels = problem
    exact = exact_losses(weights, X, labels)
    found, _ = differentiated(layer_of(weights, gradient, rest="mean", n_candidates=8), X, labels)
    assert (found <= exact + 1e-4).all()
    assert (exact - found).mean() < 1.0
    X[:, 0], weights[:, 0] = 1, -5  # all scores are low: 0 says little about the rest
    exact = exact_losses(weights, X, labels)
    by_rest = [
        differentiated(layer_of(weights, gradient, rest=rest, n_candidates=8), X, labels)[0]
        for rest in ("mean", "zero")
    ]
    assert (by_rest[0] <= exact + 1e-3).all()
    assert np.abs(exact - by_rest[0]).mean() < np.abs(exact - by_rest[1]).mean()


@pytest.mark.parametrize("loss", ["margin", "triplet", "smoothed_margin"])
def test_margins_of_candidates_are_lower_bounds_of_those_over_all_labels(loss, problem):
    weights, X, labels = problem
    exact, _ = differentiated(layer_of(weights, "exact", loss, min_gradient=0), X, labels)
    found, _ = differentiated(layer_of(weights, "mips", loss, n_probe=2), X, labels)
    assert (found <= exact + 1e-4).all()


@pytest.mark.parametrize("gradient", ["mips", "decomposed"])
def test_a_search_that_widens_leaves_out_no_label_that_its_blocks_think_large(gradient, problem):
    weights, X, labels = problem
    narrow = {"n_candidates": 4, "n_probe": 1, "n_blocks": 2, "min_gradient": 1e-4}
    found = [
        differentiated(layer_of(weights, gradient, widens=w, **narrow), X, labels)[1]
        for w in (False, True)
    ]
    z = X @ weights.T
    shares = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    missed = [(shares * (g == 0)).sum(axis=1).mean() for g in found]
    assert missed[1] < 0.1 * missed[0]


def test_rows_that_a_step_has_changed_are_found_by_the_next_search_at_once(problem):
    weights, X, labels = problem
    for refresh, is_found in ((0.0, True), (0.25, False)):
        trainer = layer_of(
            weights, "mips", n_candidates=1, n_probe=1, refresh=refresh, min_gradient=1e-3
        )
        rows, settings = trainer.inputs(X.astype(np.float32)), trainer.prepare(np.inf)
        trainer.layer.differentiate(rows, labels, settings, 0)
        trainer.layer.move_rows(settings, 300.0)  # the rows of labels go far
        other = LabelRows(np.arange(31), (labels.ids + 1).astype(np.int32) % 200)
        gradient = differentiated(trainer, X, other)[1]
        best = (X @ trainer.weights().T).argmax(axis=1)
        hits = (gradient[np.arange(30), best] != 0).mean()
        assert (hits > 0.6) == is_found
