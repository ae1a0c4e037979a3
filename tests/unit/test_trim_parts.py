"""The parts of Deep-Trim: losses, replays, objectives, blocks, steps, fewer neurons."""

import copy
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="sublearn.trim needs PyTorch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from sublearn.fitting.progress import Progress  # noqa: E402
from sublearn.optim import lhac  # noqa: E402
from sublearn.trace import Status  # noqa: E402
from sublearn.trim import cross_entropy, max_margin, remove_neurons  # noqa: E402
from sublearn.trim.blocks import Block, in_blocks  # noqa: E402
from sublearn.trim.layer_objective import (  # noqa: E402
    layer_objective,
    least_subgradient,
    only_gradient_of,
)
from sublearn.trim.losses import count_support_labels, divergence  # noqa: E402
from sublearn.trim.proximal_adam import Passes, ProximalAdam, Trained, train  # noqa: E402
from sublearn.trim.replay import Answers, RecordedAnswers, Replay, answers_of  # noqa: E402
from sublearn.trim.result import Judged  # noqa: E402
from sublearn.trim.samples import Samples, read_samples  # noqa: E402
from sublearn.trim.search import Judge, Search  # noqa: E402
from sublearn.trim.settings import L1Search, QuasiNewton, Retraining  # noqa: E402
from sublearn.trim.trimmer import Fit, Shrunk, Snapshot, Trimmer  # noqa: E402


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


class Residual(nn.Module):
    """Skips its middle layer, calls one module twice, and has functions between modules."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.act = nn.Tanh()
        self.middle = nn.Linear(8, 8)
        self.last = nn.Linear(8, 3)

    def forward(self, x, scale=None):
        x = self.act(self.first(x))
        y = self.act(self.middle(functional.relu(x + 0.1)))
        return self.last(x + y if scale is None else x + scale * y)


@pytest.fixture
def residual():
    return Residual().eval()


def pictures():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 6, 3), nn.ReLU(), nn.Flatten(),
        nn.Linear(6 * 16, 12), nn.ReLU(), nn.Linear(12, 3),
    ).eval()  # fmt: skip


# --- losses --------------------------------------------------------------------------------------


def test_cross_entropy_of_class_numbers_is_that_of_rows_of_0_and_1():
    logits, targets = torch.randn(7, 4), torch.tensor([0, 3, 1, 1, 2, 0, 3])
    rows = functional.one_hot(targets, 4)
    assert cross_entropy(logits, targets).item() == pytest.approx(
        cross_entropy(logits, rows).item()
    )


def test_cross_entropy_of_several_labels_is_2_49():
    logits, rows = torch.randn(3, 4), torch.tensor([[1, 1, 0, 0], [0, 0, 0, 0], [0, 1, 1, 1]])
    by_hand = 0.0
    for scores, row in zip(logits.tolist(), rows.tolist(), strict=True):
        if any(row):
            by_hand += np.logaddexp.reduce(scores) - np.dot(scores, row) / sum(row)
    assert cross_entropy(logits, rows).item() == pytest.approx(by_hand / 3, rel=1e-5)


def test_max_margin_is_2_50_cut_off_at_0_and_has_few_support_labels():
    logits = torch.tensor([[3.0, 0.0, 1.0], [0.2, 0.0, 0.1]])
    targets = torch.tensor([0, 0])
    assert max_margin(logits, targets).item() == pytest.approx((0.0 + 0.9) / 2)
    assert count_support_labels(logits, targets, max_margin) == 2
    assert count_support_labels(logits, targets, cross_entropy) == 6


def test_the_divergence_has_the_slopes_of_the_probabilities_at_temperature_2():
    logits, others = torch.randn(5, 4).requires_grad_(), torch.randn(5, 4)
    (slope,) = torch.autograd.grad(divergence(logits, others), logits)
    expected = 2 * (functional.softmax(logits / 2, 1) - functional.softmax(others / 2, 1)) / 5
    torch.testing.assert_close(slope, expected.detach())


def test_a_sample_with_all_labels_or_none_has_no_margin():
    assert max_margin(torch.randn(2, 3), torch.tensor([[1, 1, 1], [0, 0, 0]])).item() == 0.0


# --- replay --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["first", "middle", "last"])
def test_a_replay_answers_like_the_network_and_skips_what_is_below(residual, name):
    layer = getattr(residual, name)
    samples = Samples(torch.randn(10, 6), torch.zeros(10))
    truth = residual(samples.inputs)
    replay = Replay(residual, layer, samples, 4)
    calls = []
    handle = residual.first.register_forward_hook(lambda *_: calls.append(1))
    below = residual.first.forward
    with torch.no_grad():
        layer.weight.mul_(2.0)
        changed = residual(samples.inputs)
        with replay.active():
            answers = torch.cat([replay.logits(chunk) for chunk in replay.chunks])
    handle.remove()
    assert not torch.allclose(changed, truth)
    torch.testing.assert_close(answers, changed)
    assert residual.first.forward == below  # nothing stays patched


def test_a_replay_keeps_only_what_the_layers_above_need(residual):
    samples = Samples(torch.randn(5, 6), torch.zeros(5))

    def kept(layer):
        outputs = Replay(residual, layer, samples, 5).chunks[0].outputs
        return [type(m).__name__ for (m, _), value in outputs.items() if value.isfinite().all()]

    assert kept(residual.middle) == ["Tanh"]  # the connection that skips the layer
    assert kept(residual.last) == []


class Writes(nn.Module):
    """Changes what its layers return in place, and names their arguments."""

    def __init__(self):
        super().__init__()
        self.first, self.middle, self.last = nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, x):
        x = self.first(input=x).mul_(2)
        x += self.middle(input=x.clone())
        return self.last(input=functional.relu(input=x, inplace=True))


@pytest.mark.parametrize("name", ["first", "middle", "last"])
def test_what_was_recorded_survives_a_network_that_writes_into_it(name):
    network = Writes().eval().double()
    layer = getattr(network, name)
    samples = Samples(torch.randn(10, 6).double(), torch.randint(0, 3, (10,)))
    (truth,) = torch.autograd.grad(
        cross_entropy(network(samples.inputs), samples.targets), layer.weight
    )
    with only_gradient_of(network, [layer.weight]):
        objective = layer_objective(network, layer, samples, cross_entropy, 4)
        for _ in range(2):
            _, gradient = objective.value_and_gradient(objective.start())
            np.testing.assert_allclose(gradient, truth.reshape(-1).numpy(), atol=1e-12)


def test_a_replay_restores_the_network_after_an_error(residual):
    replay = Replay(residual, residual.last, Samples(torch.randn(4, 6), torch.zeros(4)), 4)
    with pytest.raises(RuntimeError), replay.active(lambda x: x @ torch.zeros(2, 2)):
        replay.logits(replay.chunks[0])
    assert "forward" not in residual.last.__dict__
    assert "forward" not in residual.act.__dict__


# --- objectives ----------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [0, 2, 5, 7])
def test_an_objective_has_the_gradient_of_autograd(index):
    network = pictures().double()
    samples = Samples(torch.randn(9, 1, 8, 8).double(), torch.randint(0, 3, (9,)))
    weight = network[index].weight
    loss = cross_entropy(network(samples.inputs), samples.targets)
    (truth,) = torch.autograd.grad(loss, weight)
    with only_gradient_of(network, [weight]):
        objective = layer_objective(network, network[index], samples, cross_entropy, 4)
        value, gradient = objective.value_and_gradient(objective.start())
    assert value == pytest.approx(loss.item(), rel=1e-12)
    np.testing.assert_allclose(gradient, truth.reshape(-1).numpy(), atol=1e-12)


@pytest.mark.parametrize("bias", [True, False])
def test_a_part_of_a_gradient_is_a_part_of_the_gradient(bias):
    network = nn.Sequential(nn.Linear(20, 10, bias=bias), nn.ReLU(), nn.Linear(10, 3)).double()
    samples = Samples(torch.randn(9, 20).double(), torch.randint(0, 3, (9,)))
    support = np.array([3, 5, 45, 47, 103])
    x = np.zeros(200)
    x[support] = np.random.default_rng(0).normal(size=5)
    with only_gradient_of(network, [network[0].weight]):
        objective = layer_objective(network, network[0], samples, cross_entropy, 4)
        value, part = objective.partial(x, support)
        all_value, gradient = objective.value_and_gradient(x)
    assert value == pytest.approx(all_value, rel=1e-12)
    np.testing.assert_allclose(part, gradient[support], atol=1e-12)


def test_passes_over_the_data_do_not_compute_what_lies_below_again():
    network = pictures()
    samples = Samples(torch.randn(50, 1, 8, 8), torch.arange(50) % 3)
    layers = {"5": network[5], "7": network[7]}
    generator = torch.Generator().manual_seed(0)
    trimmer = Trimmer(
        network, layers, samples, cross_entropy, generator, bool,
        Retraining(train_biases=True), QuasiNewton(chunk_size=16),
    )  # fmt: skip
    assert trimmer.fit().loss == pytest.approx(
        cross_entropy(network(samples.inputs), samples.targets).item(), rel=1e-5
    )
    start = copy.deepcopy(network)
    for part in (network[0], network[2]):
        part._conv_forward = None  # cannot be called
    trimmer.descend(Passes(2, 1e-2, 10), None)
    parts = [Trained(start[5].weight), Trained(start[7].weight)]
    parts += [Trained(start[k].bias, is_free=True) for k in (5, 7)]
    shuffle = torch.Generator().manual_seed(0)

    def loss(batch):
        return cross_entropy(batch.logits, samples.targets[batch.rows])

    train(Answers(start, samples), parts, loss, Passes(2, 1e-2, 10), shuffle, bool)
    for parameter, expected in zip(network.parameters(), start.parameters(), strict=True):
        np.testing.assert_allclose(parameter.detach(), expected.detach(), atol=1e-5)


def test_answers_are_recorded_only_where_that_helps_and_is_safe(residual):
    network, samples = pictures(), Samples(torch.randn(6, 1, 8, 8), torch.arange(6) % 3)
    assert type(answers_of(network, [network[7], network[2]], samples, 4)) is RecordedAnswers
    assert type(answers_of(network, [network[0]], samples, 4)) is Answers
    rows = Samples(torch.randn(6, 6), torch.arange(6) % 3)
    assert type(answers_of(residual, [residual.middle], rows, 4)) is Answers  # x skips it
    recorded = answers_of(residual, [residual.last], rows, 4)
    with torch.no_grad(), recorded.active():
        logits, targets = recorded.of(torch.tensor([4, 1]))
    np.testing.assert_allclose(logits, residual(rows.inputs)[[4, 1]].detach(), atol=1e-6)
    assert targets.tolist() == [1, 1]


class Twice(nn.Module):
    """One layer that is called again on what it returned."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(torch.relu(self.layer(x)))


def test_a_layer_called_twice_and_rows_of_zeros_have_the_gradient_of_autograd():
    network = Twice()
    X, y = torch.randn(30, 4), torch.arange(30) % 4
    objective = layer_objective(network, network.layer, Samples(X, y), cross_entropy, 16)
    x = objective.start()
    x[4:8] = 0.0
    with only_gradient_of(network, [network.layer.weight]):
        value, gradient = objective.value_and_gradient(x)
        support = np.array([0, 2, 9])
        sparse = np.zeros_like(x)
        sparse[support] = x[support]
        part_value, part = objective.partial(sparse, support)
        whole_value, whole = objective.value_and_gradient(sparse)
    objective.put(x)
    network.requires_grad_()
    loss = cross_entropy(network(X), y)
    (expected,) = torch.autograd.grad(loss, network.layer.weight)
    assert value == pytest.approx(loss.item(), rel=1e-5)
    np.testing.assert_allclose(gradient, expected.ravel(), atol=1e-6)
    assert part_value == pytest.approx(whole_value, rel=1e-6)
    np.testing.assert_allclose(part, whole[support], atol=1e-6)
    empty, slope = objective.value_and_gradient(np.zeros_like(x))
    assert np.isfinite(empty)
    assert slope.shape == x.shape


def test_the_last_layer_reaches_the_optimum_of_a_convex_tool():
    cvxpy = pytest.importorskip("cvxpy")
    features, targets = torch.randn(30, 5).double(), torch.randint(0, 3, (30,))
    network = nn.Sequential(nn.Linear(5, 3, bias=False)).double()
    with only_gradient_of(network, [network[0].weight]):
        objective = layer_objective(
            network, network[0], Samples(features, targets), cross_entropy, 8
        )
        solution = lhac(objective, objective.start(), 0.02, tol=1e-8)
    W = cvxpy.Variable((3, 5))
    scores = features.numpy() @ W.T
    truth = cvxpy.sum(cvxpy.log_sum_exp(scores, axis=1)) - cvxpy.sum(
        cvxpy.multiply(functional.one_hot(targets, 3).numpy(), scores)
    )
    optimum = cvxpy.Problem(cvxpy.Minimize(truth / 30 + 0.02 * cvxpy.sum(cvxpy.abs(W)))).solve(
        solver=cvxpy.CLARABEL
    )
    assert solution.objective == pytest.approx(optimum, rel=1e-6)


def test_theorem_7_bounds_the_weights_of_a_stationary_point():
    features, targets = torch.randn(12, 400).double(), torch.randint(0, 2, (12,))
    network = nn.Sequential(nn.Linear(400, 2, bias=False)).double()
    with only_gradient_of(network, [network[0].weight]):
        objective = layer_objective(
            network, network[0], Samples(features, targets), cross_entropy, 12
        )
        solution = lhac(objective, objective.start(), 1e-3, tol=1e-10, max_iter=5000)
        objective.put(solution.x)
    bound = count_support_labels(network(features), targets, cross_entropy)
    assert bound == 24
    assert 0 < np.count_nonzero(solution.x) <= bound


def test_the_least_subgradient_by_hand():
    x = np.array([1.0, -2.0, 0.0, 0.0, 0.0])
    gradient = np.array([0.3, 0.3, 0.3, -0.8, 0.8])
    expected = [0.8, -0.2, 0.0, -0.3, 0.3]
    np.testing.assert_allclose(least_subgradient(x, gradient, np.full(5, 0.5)), expected)


def test_noise_falls_with_the_number_of_samples():
    network = nn.Sequential(nn.Linear(5, 2)).double()
    inputs = torch.randn(4096, 5).double()
    samples = Samples(inputs, (inputs[:, 0] > 0).long())
    ratios = []
    with only_gradient_of(network, [network[0].weight]):
        for size in (64, 4096):
            part = samples.take(slice(size))
            objective = layer_objective(network, network[0], part, cross_entropy, size // 16)
            ratios.append(objective.noise(objective.start(), np.zeros(10)))
    assert ratios[1] < ratios[0] / 10


# --- blocks and steps ----------------------------------------------------------------------------


@pytest.mark.parametrize("index", [0, 2, 5, 7])
def test_a_layer_in_a_block_computes_the_same_and_gets_its_weights_back(index):
    network = pictures()
    layer = network[index]
    with torch.no_grad():
        layer.weight[1:] = 0.0
        layer.weight[:, 2:] = 0.0
    x, before = torch.randn(3, 1, 8, 8), layer.weight.clone()
    truth = network(x)
    assert Block(layer).weight.numel() < layer.weight.numel() or index == 0
    with in_blocks([layer]) as blocks:
        torch.testing.assert_close(network(x), truth)
        with torch.no_grad():
            blocks[0].weight.mul_(2.0)
    assert torch.equal(layer.weight, 2 * before)
    assert "forward" not in layer.__dict__


def test_a_step_is_the_proximal_operator_in_adams_metric():
    weight = torch.tensor([1.0, -0.008, 1e-4, 0.0])
    gradient = torch.tensor([0.2, 0.0, 1e-3, -4.0])
    optimizer = ProximalAdam([Trained(weight, penalty=torch.full((4,), 0.1))])
    optimizer.step([gradient], 0.01)
    metric = (gradient**2 + 0.1**2).sqrt()  # at the first step v, its bias removed, is its square
    moved = torch.tensor([1.0, -0.008, 1e-4, 0.0]) - 0.01 * gradient / metric
    threshold = 0.01 * 0.1 / metric
    expected = moved.sign() * (moved.abs() - threshold).clamp(min=0)
    torch.testing.assert_close(weight, expected, rtol=1e-4, atol=1e-6)
    assert weight[1] == 0.0  # no gradient at all: nothing but the penalty speaks


def test_without_penalties_zeros_stay_unless_they_are_free():
    weight = torch.tensor([1.0, 0.0])
    bias = weight.clone()
    optimizer = ProximalAdam([Trained(weight), Trained(bias, is_free=True)])
    optimizer.step([torch.ones(2), torch.ones(2)], 0.1)
    torch.testing.assert_close(weight, torch.tensor([0.9, 0.0]))
    torch.testing.assert_close(bias, torch.tensor([0.9, -0.1]))


def test_adaptive_penalties_do_not_depend_on_the_scale_of_a_layer():
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    with torch.no_grad():
        first.weight[0, 0] = 0.0
        second.weight.copy_(10 * first.weight)
    samples = Samples(torch.zeros(1, 3), torch.zeros(1, dtype=torch.long))
    layers = {"0": first, "1": second}
    trimmer = Trimmer(
        nn.Sequential(first, second), layers, samples, cross_entropy, torch.Generator(), bool
    )
    penalties = trimmer.penalties(0.5, is_adaptive=True)
    np.testing.assert_allclose(penalties["0"], 10 * penalties["1"], rtol=1e-5)
    sizes = torch.cat([first.weight.abs().ravel(), second.weight.abs().ravel()]).double()
    mean, own_mean = sizes.sum() / 16, first.weight.abs().sum() / 8
    expected = 0.5 * mean / (first.weight.abs() + 0.1 * own_mean)
    np.testing.assert_allclose(penalties["0"], expected.detach(), rtol=1e-5)
    assert (trimmer.penalties(0.5, is_adaptive=False)["1"] == 0.5).all()


def test_passes_one_by_one_have_the_rates_of_all_together():
    def moved(*parts):
        weight = torch.zeros(1).requires_grad_()
        answers = Answers(lambda x: x * weight, Samples(torch.ones(40, 1), torch.ones(40)))
        trained, generator = [Trained(weight, is_free=True)], torch.Generator()
        for passes in parts:
            train(answers, trained, lambda batch: -batch.logits.mean(), passes, generator, bool)
        return weight.item()

    twice = Passes(2, 0.1, 10)
    assert moved(twice) == pytest.approx(0.45, rel=1e-3)  # the mean of the cosine
    once = list(twice.one_by_one())
    assert moved(*once) == pytest.approx(moved(twice), rel=1e-6)
    assert moved(once[0]) == pytest.approx(0.3507, rel=1e-3)  # most of it


# --- fewer neurons -------------------------------------------------------------------------------


def test_neurons_without_readers_or_weights_go_and_the_function_stays():
    network = nn.Sequential(
        nn.Linear(4, 10), nn.BatchNorm1d(10), nn.ReLU(), nn.Linear(10, 6), nn.Sigmoid(),
        nn.Linear(6, 2),
    ).eval()  # fmt: skip
    with torch.no_grad():
        network[1].running_mean.normal_()
        network[0].weight[:3] = 0.0  # constants
        network[3].weight[:, 5:7] = 0.0  # unseen
        network[3].weight[2] = 0.0
    smaller = remove_neurons(network)
    x = torch.randn(20, 4)
    torch.testing.assert_close(smaller(x), network(x), rtol=1e-5, atol=1e-6)
    assert (smaller[0].out_features, smaller[1].num_features) == (5, 5)
    assert smaller[3].weight.shape == (5, 5)
    assert network[0].out_features == 10


def test_channels_go_through_pooling_and_flattening():
    network = pictures()
    with torch.no_grad():
        network[5].weight.view(12, 6, 16)[:, 1] = 0.0  # channel 1 is not looked at
        network[2].weight[3] = 0.0  # channel 3 is a constant of 0 after the rectifier
        network[2].bias[3] = -1.0
        network[2].weight[4] = 0.0  # channel 4 is a constant that is not 0: it stays
        network[2].bias[4] = 1.0
    smaller = remove_neurons(network)
    x = torch.randn(3, 1, 8, 8)
    torch.testing.assert_close(smaller(x), network(x), rtol=1e-5, atol=1e-6)
    assert smaller[2].out_channels == 4
    assert smaller[5].in_features == 64


def test_neurons_seen_by_two_layers_stay(residual):
    with torch.no_grad():
        residual.middle.weight[:, 0] = 0.0
    smaller = remove_neurons(residual)
    assert smaller.first.out_features == 8


def thinned(network):
    with torch.no_grad():
        for part in network.modules():
            if isinstance(part, (nn.Linear, nn.Conv1d, nn.Conv2d)):
                part.weight *= torch.rand_like(part.weight) < 0.3
                part.weight[1] = 0.0
                part.weight[:, 2] = 0.0
                part.bias[::2] = -0.5
    return network.eval()


class Decoder(nn.Module):
    """Reads the weights of its layer a second time."""

    def __init__(self):
        super().__init__()
        self.hidden, self.code = nn.Linear(6, 8), nn.Linear(8, 4)

    def forward(self, x):
        code = self.code(functional.relu(self.hidden(x)))
        return functional.linear(functional.relu(code), self.hidden.weight.t()[:, :4])


@pytest.mark.parametrize(
    ("network", "shape"),
    [
        (lambda: nn.Sequential(nn.Linear(6, 8), nn.ReLU(inplace=True), nn.Linear(8, 3)), (9, 6)),
        (lambda: nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(5), nn.Linear(8, 3)), (9, 5, 6)),
        (
            lambda: nn.Sequential(
                nn.Linear(6, 8), nn.BatchNorm1d(8, track_running_stats=False), nn.Linear(8, 3)
            ),
            (9, 6),
        ),
        (lambda: nn.Sequential(nn.Linear(6, 8), nn.MaxPool1d(3, 1, 1), nn.Linear(8, 3)), (9, 6)),
        (Writes, (9, 6)),
        (Decoder, (9, 6)),
    ],
)
def test_the_function_stays_whatever_is_between_the_layers(network, shape):
    network, x = thinned(network()), torch.randn(shape)
    with torch.no_grad():
        truth = network(x)
        torch.testing.assert_close(remove_neurons(network)(x), truth, rtol=1e-5, atol=1e-6)
        assert torch.equal(network(x), truth)


def test_neurons_of_a_parametrized_layer_stay():
    first = torch.nn.utils.parametrizations.weight_norm(nn.Linear(6, 8))
    network = nn.Sequential(first, nn.ReLU(), thinned(nn.Linear(8, 3))).eval()
    x = torch.randn(9, 6)
    torch.testing.assert_close(remove_neurons(network)(x), network(x))


# --- samples -------------------------------------------------------------------------------------


def test_datasets_loaders_and_pairs_are_the_same_samples():
    inputs, targets = torch.randn(10, 3), torch.arange(10)
    dataset = torch.utils.data.TensorDataset(inputs, targets)
    loader = torch.utils.data.DataLoader(dataset, batch_size=4)
    for data in (dataset, loader, (inputs.numpy(), targets.numpy()), [inputs, targets]):
        samples = read_samples("data", data)
        assert torch.equal(samples.inputs, inputs)
        assert torch.equal(samples.targets, targets)


def test_inputs_by_name_and_in_order():
    parts = {"x": torch.randn(4, 6), "scale": torch.ones(4, 1)}
    samples = read_samples("data", (parts, torch.zeros(4)))
    assert list(samples.take(slice(2)).inputs) == ["x", "scale"]
    pair = tuple(parts.values())
    assert len(read_samples("data", (pair, torch.zeros(4))).take(torch.tensor([3, 0])).inputs) == 2


# --- the search for l1 -------------------------------------------------------------------------


@pytest.mark.parametrize("n_left", [0, 3, 200])
def test_a_snapshot_of_few_weights_is_small_and_gives_them_back(n_left):
    weight = torch.zeros(4, 5, 3, 4)
    weight.view(-1)[:n_left] = torch.arange(1.0, 1.0 + n_left)
    snapshot = Snapshot.of({"layer": weight}, [torch.ones(4)])
    assert snapshot.kept["layer"].is_sparse == (n_left < 15)
    before = weight.clone()
    weight.fill_(7.0)
    assert torch.equal(snapshot.weights["layer"], before)


class FakePath:
    """A network of `n_weights`, whose criterion is a function of them and of the last polish."""

    def __init__(self, criterion):
        self.criterion, self.state = criterion, (100, False)
        self.retraining, self.n_polished = Retraining(), 0

    def snapshot(self):
        return Snapshot({"layer": torch.ones(self.state[0])}, self.state[1])

    def put(self, snapshot):
        self.state = (len(snapshot.weights["layer"]), snapshot.biases)

    def fit(self):
        return Fit(self.criterion(*self.state), 0)

    def size(self):
        return self.state[0]

    def shrink(self, l1, before, is_adaptive):
        self.state = (int(100 / l1), False)
        return Shrunk(l1, self.snapshot(), None, {})

    def polish(self, factor=1):
        self.n_polished += 1
        self.state = (self.state[0], factor > 1)

    def search(self, first_l1=2.0, max_stages=6, patience=2, max_increase=0.0, max_weights=None):
        """A search that has run."""
        settings = L1Search(first_l1, max_stages, growth=2.0, patience=patience)
        judge = Judge(Judged("loss", "training", 1), lambda: self.criterion(*self.state))
        search = Search(self, settings, judge, max_increase, Progress())
        search.run(max_weights=max_weights)
        return search


def searched(criterion, max_increase=0.0):
    """The weights of the network that a search ends with, and whether it had the last polish."""
    search = FakePath(criterion).search(max_increase=max_increase)
    return len(search._best.polished.weights["layer"]), search._best.polished.biases


@pytest.mark.parametrize("patience", [1, 3])
def test_patience_counts_the_stages_above_the_limit(patience):
    search = FakePath(lambda n, _: 1.0 if n >= 50 else 2.0).search(patience=patience)
    tried = [row["l1"] for row in search._rows]
    assert tried[: 1 + patience] == [2.0 * 2.0**k for k in range(1 + patience)]
    assert tried[1 + patience] == pytest.approx(2.0 * math.sqrt(2.0))


def test_the_smallest_network_allowed_is_kept_though_a_larger_one_comes_later():
    sizes = iter([40, 60, 70])
    path = FakePath(lambda n, _: 1.0)
    path.shrink = lambda l1, *_: (
        setattr(path, "state", (next(sizes), False)) or Shrunk(l1, path.snapshot(), None, {})
    )
    search = path.search(max_stages=3)
    assert len(search._best.polished.weights["layer"]) == 40


def test_a_first_l1_that_is_too_large_is_divided_by_ever_larger_factors():
    search = FakePath(lambda n, _: 1.0 if n >= 30 else 2.0).search(200.0, max_stages=4)
    assert [row["l1"] for row in search._rows] == [200.0, 100.0, 25.0, 25.0 / 16]


def test_the_last_polish_may_bring_the_nearest_miss_below_the_limit():
    # 100 weights have 1; 50 are allowed, 25 are near, 12 far: 25 are taken, polished.
    errors = {100: 1.0, 50: 1.0, 35: 1.0, 25: 1.1, 12: 3.0}
    assert searched(lambda n, is_long: errors.get(n, 2.0) - 0.2 * is_long) == (25, True)


def test_the_last_polish_finds_the_smallest_miss_that_it_mends():
    # Of 50, 25, 12, 35 and 42 weights only the first are allowed; polished, all from 30 on.
    def criterion(n, is_long):
        return 1.0 if n >= (30 if is_long else 50) else 2.0

    assert searched(criterion) == (35, True)


def test_fewer_errors_may_be_asked_for_and_are_found_by_the_last_polish():
    # Nothing is below 0.9 before the last polish, 25 and more weights are after it.
    def criterion(n, is_long):
        return (1.0 if n >= 12 else 2.0) - 0.15 * (is_long and n >= 25)

    assert searched(criterion, max_increase=-0.1) == (25, True)


def test_errors_that_no_network_makes_so_few_of_leave_the_network_given():
    search = FakePath(lambda n, _: 1.0).search(max_stages=3, max_increase=-0.1)
    assert search._best is None
    assert [row["l1"] for row in search._rows] == [2.0, 4.0, 8.0]


def test_a_miss_that_a_long_polish_does_not_mend_is_forgotten():
    errors = {100: 1.0, 50: 1.0}
    n_weights, is_polished = searched(lambda n, is_long: errors.get(n, 2.0) - 0.2 * is_long)
    assert (n_weights, is_polished) == (50, True)


def test_a_network_that_a_long_polish_makes_worse_stays_as_it_was():
    errors = {100: 1.0, 50: 1.0}
    assert searched(lambda n, is_long: errors.get(n, 2.0) + is_long) == (50, False)


def sized(max_weights, first_l1=2.0, max_stages=20):
    """A search for a size, on a path of 100 / l1 weights."""
    path = FakePath(lambda n, is_long: 1.0 - 0.1 * is_long)
    return path, path.search(first_l1, max_stages, max_weights=max_weights)


@pytest.mark.parametrize("first_l1", [2.0, 0.5, 90.0])
@pytest.mark.parametrize("max_weights", [40, 11])
def test_a_search_for_a_size_ends_just_below_it(max_weights, first_l1):
    _, search = sized(max_weights, first_l1)
    n_weights = len(search._best.polished.weights["layer"])
    assert 0.9 * max_weights <= n_weights <= max_weights
    assert search._status is Status.CONVERGED
    assert search._best.polished.biases  # by the last polish


def test_networks_that_are_too_large_are_not_polished():
    path, search = sized(11)
    n_small = sum(row["n_weights"] <= 11 for row in search._rows)
    assert 0 < n_small < len(search._rows)
    assert path.n_polished == n_small + 1


def test_the_smallest_network_is_kept_where_none_is_small_enough():
    _, search = sized(11, max_stages=2)
    assert len(search._best.polished.weights["layer"]) == 25
    assert search._status is Status.MAX_ITER


def test_a_polish_that_raises_the_criterion_is_taken_back():
    path = FakePath(lambda n, is_polished: 1.0 + is_polished)
    path.polish = lambda factor=1: setattr(path, "state", (path.state[0], True))
    search = path.search(max_stages=2)
    assert [row["criterion"] for row in search._rows] == [1.0, 1.0]
    assert not search._best.polished.biases
