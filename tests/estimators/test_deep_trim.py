"""Deep-Trim from end to end: few weights, the loss allowed, the same network, files."""

import copy
import json
import math
from dataclasses import fields

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

torch = pytest.importorskip("torch", reason="sublearn.trim needs PyTorch")

from torch import nn  # noqa: E402

import sublearn  # noqa: E402
from sublearn.errors import ParameterError  # noqa: E402
from sublearn.io.bundle import load_bundle, save_bundle  # noqa: E402
from sublearn.trace import Status  # noqa: E402
from sublearn.trim import (  # noqa: E402
    L1Search,
    QuasiNewton,
    Retraining,
    deep_trim,
    load_network,
    multiply_adds,
    remove_neurons,
    save_network,
    to_sparse,
)
from sublearn.trim.losses import cross_entropy  # noqa: E402

N_TRAIN = 500
X8 = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))


class Digits(nn.Module):
    """A class of its own, with batch normalisation, functions and a view."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 3)
        self.norm = nn.BatchNorm2d(6)
        self.hidden = nn.Linear(6 * 9, 40)
        self.out = nn.Linear(40, 10)

    def forward(self, x):
        x = torch.relu(self.norm(self.conv(x.view(x.shape[0], 1, 8, 8))))
        x = torch.flatten(nn.functional.max_pool2d(x, 2), 1)
        return self.out(nn.functional.relu(self.hidden(x)))


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return torch.tensor(X / 16, dtype=torch.float32)[:700], torch.tensor(y)[:700]


def trained(network, X, y, n_epochs=30):
    optimizer = torch.optim.Adam(network.parameters(), 1e-2)
    for _ in range(n_epochs):
        for rows in torch.arange(N_TRAIN).split(100):
            optimizer.zero_grad()
            cross_entropy(network(X[rows]), y[rows]).backward()
            optimizer.step()
    return network


@pytest.fixture(scope="module")
def network(digits):
    torch.manual_seed(0)
    return trained(Digits(), *digits)


@pytest.fixture(scope="module")
def data(digits):
    X, y = digits
    return X[:N_TRAIN], y[:N_TRAIN]


QUICK = {"max_stages": 3, "warm_epochs": 2, "polish_epochs": 1, "batch_size": 50, "max_iter": 15}


def trim(module, data, *args, **options):
    """`deep_trim` with the fields of its settings as options beside the others."""
    if "search" not in options:  # judged by the samples that are trained on
        options = {"validation_fraction": 0.0} | options
    groups = {"search": L1Search, "retraining": Retraining, "quasi_newton": QuasiNewton}
    for group, kind in groups.items():
        names = [field.name for field in fields(kind) if field.name in options]
        if names:
            options[group] = kind(**{name: options.pop(name) for name in names})
    return deep_trim(module, data, *args, **{"random_state": 0} | options)


@pytest.fixture(scope="module")
def result(network, data):
    return trim(network, data, max_increase=0.05, **QUICK)


def mean_loss(module, data):
    with torch.no_grad():
        return cross_entropy(module.eval()(data[0]), data[1]).item()


def test_far_fewer_weights_at_the_loss_allowed(network, data, result):
    report = result.report
    assert report.ratio > 5
    assert mean_loss(result.module, data) <= mean_loss(network, data) + 0.05
    assert report.loss_after == pytest.approx(mean_loss(result.module, data), rel=1e-3)
    assert report.loss_before == pytest.approx(mean_loss(network, data), rel=1e-3)
    counted = sum(int(mask.sum()) for mask in result.masks.values())
    assert report.n_after == counted


def test_the_network_given_and_all_that_is_no_weight_stay(network, result):
    before, after = network.state_dict(), result.module.state_dict()
    assert list(before) == list(after)
    assert (network.hidden.weight != 0).all()
    for name in before:
        if name not in {f"{layer}.weight" for layer in result.masks}:
            assert torch.equal(before[name], after[name]), name


def test_biases_are_polished_when_asked_to(network, data):
    free = trim(network, data, max_increase=0.05, train_biases=True, **QUICK)
    after = free.module.state_dict()
    changed = {name for name, value in network.state_dict().items() if not value.equal(after[name])}
    assert {"conv.bias", "hidden.bias", "out.bias"} <= changed
    assert changed <= {f"{layer}.{kind}" for layer in free.masks for kind in ("weight", "bias")}
    assert free.report.loss_after == pytest.approx(mean_loss(free.module, data), rel=1e-3)


def test_a_network_can_be_asked_to_answer_like_the_one_given(network, digits, data):
    """With labels that say nothing, only the answers of the network given tell what to do."""
    X, y = data
    options = {"l1": 1e-3, "warm_epochs": 10, "polish_epochs": 10, "batch_size": 50, "max_iter": 0}
    wrong = (X, torch.full_like(y, 3))

    def agreement(distill):
        module = trim(network, wrong, distill=distill, **options).module
        with torch.no_grad():
            return (module(digits[0]).argmax(1) == network(digits[0]).argmax(1)).double().mean()

    assert agreement(1.0) > 0.9
    assert agreement(0.0) < 0.5


def without_right_half(inputs):
    """Noise where columns 4 to 7 of the pictures are."""
    pictures = inputs.view(-1, 8, 8).clone()
    pictures[:, :, 4:] = torch.rand_like(pictures[:, :, 4:])
    return pictures.view(inputs.shape)


def test_passes_see_what_augment_makes_of_the_inputs(digits, data):
    torch.manual_seed(0)
    network = trained(nn.Sequential(nn.Linear(64, 30), nn.ReLU(), nn.Linear(30, 10)), *digits)
    options = {"l1": 1e-2, "warm_epochs": 40, "polish_epochs": 0, "batch_size": 50, "max_iter": 10}

    def share_on_the_right(augment):
        state = torch.get_rng_state()
        module = trim(network, data, augment=augment, **options).module
        assert torch.equal(torch.get_rng_state(), state)
        size = module[0].weight.detach().abs().view(-1, 8, 8)
        return module, (size[:, :, 4:].sum() / size.sum()).item()

    module, share = share_on_the_right(without_right_half)
    assert share < 0.15
    assert share_on_the_right(None)[1] > 0.3
    again, _ = share_on_the_right(without_right_half)
    assert torch.equal(again[0].weight, module[0].weight)


def test_the_network_given_answers_for_changed_inputs(network, digits, data):
    """Labels say nothing, so what is learnt of the changed inputs is learnt from the network."""
    X, y = data
    options = {"l1": 1e-3, "warm_epochs": 10, "polish_epochs": 10, "batch_size": 50, "max_iter": 0}

    def darker(inputs):
        return 0.7 * inputs

    module = trim(
        network, (X, torch.full_like(y, 3)), distill=1.0, augment=darker, **options
    ).module
    with torch.no_grad():
        own, given = (part(darker(digits[0])).argmax(1) for part in (module, network))
    assert (own == given).double().mean() > 0.9


def test_the_weights_left_are_fewer_than_the_bound_of_theorem_7(result):
    for layer in result.report.layers:
        assert layer.bound == N_TRAIN * 10
        assert layer.n_after <= layer.bound
        assert layer.stationarity is not None


def test_the_trace_shows_every_stage(result):
    assert len(result.trace) == 3
    accepted = result.trace["is_accepted"] == 1
    assert result.trace["n_weights"][accepted].min() == result.report.n_after
    limit = result.report.criterion_before + 0.05
    assert (result.trace["criterion"][accepted] <= limit).all()
    assert (result.trace["criterion"][~accepted] > limit).all()


def test_the_same_seed_gives_the_same_network(network, data, result):
    again = trim(network, data, max_increase=0.05, **QUICK)
    for name, weight in again.module.state_dict().items():
        assert torch.equal(weight, result.module.state_dict()[name])


def test_without_a_seed_the_order_of_samples_differs(network, data):
    options = {"l1": 1e-3, "warm_epochs": 1, "polish_epochs": 0, "max_iter": 0}
    first, second = (trim(network, data, random_state=None, **options).module for _ in range(2))
    assert not torch.equal(first.hidden.weight, second.hidden.weight)


def test_quasi_newton_steps_alone_never_raise_the_objective(network, data):
    l1 = 1e-3
    sizes = [layer.weight.abs().sum().item() for layer in (network.hidden, network.out)]
    before = mean_loss(network, data) + l1 * sum(sizes)
    result = trim(
        network, data, layers=["hidden", "out"], l1=l1, warm_epochs=0, polish_epochs=0, max_iter=40
    )
    sizes = [layer.weight.abs().sum().item() for layer in (result.module.hidden, result.module.out)]
    assert mean_loss(result.module, data) + l1 * sum(sizes) < 0.8 * before
    assert torch.equal(result.module.conv.weight, network.conv.weight)
    assert result.status is Status.CONVERGED


def test_high_precision_brings_more_weights_to_0_than_small_batches_alone(network, data):
    options = {"l1": 2e-3, "warm_epochs": 3, "polish_epochs": 0, "batch_size": 50}
    rough = trim(network, data, max_iter=0, **options)
    fine = trim(network, data, max_iter=60, **options)
    assert fine.report.n_after < rough.report.n_after
    assert rough.report.layers[0].stationarity is None


def test_validation_data_and_error_decide_when_asked_to(network, digits, data):
    X, y = digits
    held_out = X[N_TRAIN:], y[N_TRAIN:]
    result = trim(network, data, eval_set=held_out, criterion="error", max_increase=0.02, **QUICK)
    with torch.no_grad():
        error = (result.module.eval()(held_out[0]).argmax(1) != held_out[1]).double().mean().item()
    assert result.report.criterion_after == pytest.approx(error)
    assert error <= result.report.criterion_before + 0.02


def test_as_many_weights_as_are_asked_for_are_left_and_the_best_of_them(network, data):
    options = QUICK | {"max_stages": 20, "growth": 2.0}
    result = trim(network, data, max_weights=400, **options)
    assert result.report.n_after <= 400
    assert result.status is Status.CONVERGED
    small = [row for row in result.trace.rows() if row["is_accepted"]]
    assert small == [row for row in result.trace.rows() if row["n_weights"] <= 400]
    assert result.report.criterion_after <= min(row["criterion"] for row in small)
    assert max(row["n_weights"] for row in small) > 300  # not far below what is allowed


def test_more_weights_than_asked_for_are_told(network, data):
    with pytest.warns(ConvergenceWarning, match=r"deep_trim: .* weights are left, more than"):
        result = trim(network, data, max_weights=5, **QUICK | {"max_stages": 1})
    assert result.report.n_after > 5


def test_a_network_that_was_trimmed_before_is_trimmed_by_size_at_once(network, data):
    first = trim(network, data, max_increase=0.05, **QUICK).module
    once = {"l1": 1e-3, "warm_epochs": 4}
    by_size = trim(first, data, **once).report
    equally = trim(first, data, adaptive=False, **once).report
    assert by_size.n_after < equally.n_after


def test_an_increase_that_nothing_meets_leaves_the_network(network, data):
    result = trim(
        network, data, max_increase=0.0, criterion="loss", max_stages=1, warm_epochs=1,
        polish_epochs=1, train_biases=True, max_iter=5,
    )  # fmt: skip
    assert result.report.n_after == result.report.n_before
    assert result.trace["is_accepted"][0] == 0
    assert torch.equal(result.module.hidden.weight, network.hidden.weight)
    assert torch.equal(result.module.hidden.bias, network.hidden.bias)


def test_the_search_begins_at_first_l1_and_goes_back_if_that_is_too_much(network, data):
    result = trim(network, data, max_increase=0.05, first_l1=1.0, **QUICK)
    trace = result.trace
    assert trace["l1"][0] == 1.0
    assert trace["is_accepted"][0] == 0
    assert trace["l1"][1] == 0.5


def test_a_callback_ends_the_search(network, data):
    events = []

    def stop(event):
        events.append(event)
        return event.n_done >= 1

    result = trim(network, data, max_increase=0.05, callback=stop, **{**QUICK, "max_stages": 50})
    assert result.status is Status.STOPPED
    assert 1 <= len(result.trace) < 50
    assert events[-1].n_total == 50


def test_large_batches_are_enlarged_until_they_tell_a_direction(network, data):
    options = {"l1": 1e-3, "layers": ["out"], "warm_epochs": 0, "polish_epochs": 0, "max_iter": 20}
    part = trim(network, data, sample_size=100, **options)
    whole = trim(network, data, **options)
    assert part.report.n_after < part.report.n_before
    assert part.report.loss_after < whole.report.loss_after + 0.2


def test_max_margin_and_rows_of_0_and_1(network, data):
    rows = nn.functional.one_hot(data[1], 10)
    result = trim(
        network, (data[0], rows), "max_margin", l1=1e-2, warm_epochs=1, polish_epochs=0, max_iter=20
    )
    bound = result.report.layers[0].bound
    assert 0 < bound < N_TRAIN * 10 / 2  # most samples are right by a margin
    assert result.report.n_after < result.report.n_before


def test_training_goes_on_with_the_zeros_kept(data, result):
    handles = result.keep_zeros()
    state = {name: value.clone() for name, value in result.module.state_dict().items()}
    optimizer = torch.optim.SGD(result.module.parameters(), 0.1, momentum=0.9, weight_decay=1e-3)
    for _ in range(3):
        optimizer.zero_grad()
        cross_entropy(result.module(data[0]), data[1]).backward()
        optimizer.step()
    layers = dict(result.module.named_modules())
    for name, mask in result.masks.items():
        assert (layers[name].weight[~mask] == 0).all()
        assert not torch.equal(layers[name].weight, state[f"{name}.weight"])
    for handle in handles:
        handle.remove()
    result.module.load_state_dict(state)


class Named(nn.Module):
    """Like the models of Hugging Face: arguments by name, an object with logits."""

    class Output(dict):
        @property
        def logits(self):
            return self["logits"]

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(30, 8)
        self.score = nn.Linear(8, 2)

    def forward(self, input_ids=None, attention_mask=None):
        vectors = self.words(input_ids) * attention_mask[..., None]
        return self.Output(logits=self.score(vectors.sum(1)))


def test_inputs_by_name_outputs_with_logits_and_embeddings():
    torch.manual_seed(0)
    ids = torch.randint(0, 30, (200, 5))
    inputs = {"input_ids": ids, "attention_mask": torch.ones(200, 5)}
    targets = (ids < 10).any(1).long()
    network = Named()
    optimizer = torch.optim.Adam(network.parameters(), 1e-2)
    for _ in range(60):
        optimizer.zero_grad()
        cross_entropy(network(**inputs).logits, targets).backward()
        optimizer.step()
    result = trim(network, (inputs, targets), max_increase=0.05, **QUICK)
    assert result.report.ratio > 2
    sparse = result.to_sparse()
    with torch.no_grad():
        torch.testing.assert_close(sparse(**inputs).logits, result.module(**inputs).logits)


class Encoder(nn.Module):
    """Rows of a digit as words: layers that PyTorch's encoder calls or reads, as it likes."""

    def __init__(self):
        super().__init__()
        self.words = nn.Linear(8, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.unused = nn.Linear(3, 3)
        self.score = nn.Linear(8, 10)

    def forward(self, x):
        return self.score(self.encoder(self.words(x.view(-1, 8, 8))).mean(1))


def test_layers_of_a_transformer_are_trimmed_and_those_nobody_calls_are_not(data):
    torch.manual_seed(0)
    network, before = Encoder().eval(), torch.backends.mha.get_fastpath_enabled()
    result = trim(network, data, l1=1e-3, warm_epochs=1, polish_epochs=0, max_iter=2)
    assert torch.backends.mha.get_fastpath_enabled() == before
    names = ["words", "encoder.layers.0.linear1", "encoder.layers.0.linear2", "score"]
    assert list(result.masks) == names
    assert result.report.loss_after == pytest.approx(mean_loss(result.module, data), rel=1e-4)
    sparse = result.to_sparse()
    with torch.no_grad():
        truth = result.module.eval()(data[0])
        torch.testing.assert_close(sparse(data[0]), truth, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="got 'unused', which the network does not call"):
        trim(network, data, layers=["unused"])


class Tied(nn.Module):
    """One matrix in two layers, another one read beside its layer, a third kept short."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(64, 64), nn.Linear(64, 64)
        self.second.weight = self.first.weight
        self.code = nn.Linear(64, 12)
        self.table = nn.Embedding(4, 64, max_norm=0.1)
        self.out = nn.Linear(64, 10)

    def forward(self, x):
        x = x.view(-1, self.first.in_features)
        x = self.code(torch.relu(self.second(torch.relu(self.first(x)))))
        x = nn.functional.linear(torch.relu(x), self.code.weight.t())
        return self.out(x + self.table(torch.zeros(len(x), dtype=torch.int64)))


def test_weights_with_two_uses_stay(data):
    torch.manual_seed(0)
    network = Tied()
    result = trim(network, data, l1=1e-3, warm_epochs=1, polish_epochs=0, max_iter=2)
    assert list(result.masks) == ["out"]
    with torch.no_grad():
        truth = result.module.eval()(data[0])
        torch.testing.assert_close(result.to_sparse()(data[0]), truth, rtol=1e-4, atol=1e-4)
    for name in ("second", "code"):
        with pytest.raises(ValueError, match=f"got '{name}', whose weights another part of the"):
            trim(network, data, layers=[name])
    with pytest.raises(ValueError, match=r"trimmed \(out\), got 'table'"):
        trim(network, data, layers=["table"])


class Scaled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


def test_a_layer_with_a_function_of_its_own_stays(data):
    network = nn.Sequential(Scaled(64, 12), nn.ReLU(), nn.Linear(12, 10))
    assert list(trim(network, data, l1=1e-3, warm_epochs=1, max_iter=1).masks) == ["2"]


def test_a_network_that_computes_layers_again_for_gradients_is_refused(data):
    class Again(nn.Sequential):
        def forward(self, x):
            return torch.utils.checkpoint.checkpoint(super().forward, x, use_reentrant=False)

    with pytest.raises(ValueError, match=r"module must not call its layers again .* got 'Again'"):
        trim(Again(nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 10)), data)


def test_a_layer_that_some_samples_do_not_reach_is_refused(data):
    class Routes(nn.Module):
        def __init__(self):
            super().__init__()
            self.out, self.seldom = nn.Linear(64, 10), nn.Linear(64, 10)

        def forward(self, x):
            out = self.out(x)
            return out + self.seldom(x) if len(x) > 9 else out

    with pytest.raises(ValueError, match="layers that the network calls whatever its inputs are"):
        trim(Routes(), data, l1=1e-3, warm_epochs=1)


def test_frozen_layers_are_trimmed_and_stay_frozen(network, data):
    frozen = copy.deepcopy(network)
    frozen.hidden.weight.requires_grad_(False)
    result = trim(frozen, data, l1=1e-3, warm_epochs=1, polish_epochs=0, max_iter=1)
    assert not result.module.hidden.weight.requires_grad
    assert len(result.keep_zeros()) == 2  # the third cannot change


def test_ignored_targets_count_nowhere(network, data):
    X, y = data[0][:100], data[1][:100].clone()
    y[:60] = -100  # all of the first chunk
    for loss in ("cross_entropy", "max_margin"):
        found = trim(
            network, (X, y), loss, criterion="error", l1=1e-3, warm_epochs=1, max_iter=1,
            chunk_size=50, polish_epochs=0,
        )  # fmt: skip
        assert np.isfinite(found.report.loss_after)
        assert found.report.criterion_before == 0.0


def test_a_function_of_its_own_as_loss_and_numbers_as_targets(data):
    torch.manual_seed(0)
    X = data[0][:100]
    network = nn.Sequential(nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 1))
    goal = X.double().sum(1, keepdim=True).numpy()  # of NumPy's own type
    options = {"l1": 1e-3, "warm_epochs": 1, "max_iter": 1}
    found = trim(network, (X, goal), nn.functional.mse_loss, **options)
    with torch.no_grad():
        truth = nn.functional.mse_loss(network(X), torch.tensor(goal)).item()
    assert found.report.loss_before == pytest.approx(truth, rel=1e-5)
    with pytest.raises(ValueError, match=r"criterion must be 'loss' where .* \(100, 1\) in data"):
        trim(network, (X, goal), nn.functional.mse_loss, criterion="error")
    with pytest.raises(ValueError, match=r"distill must be 0 .* one output, got 0\.5"):
        trim(network, (X, goal), nn.functional.mse_loss, distill=0.5)
    with pytest.raises(ValueError, match=r"loss must be a function of .* one output, got the name"):
        trim(network, (X, goal))


def test_augment_may_work_in_place_and_the_data_stay(network, data):
    X, y = data[0][:100].clone(), data[1][:100]

    def noisy(x):
        return x.add_(0.1 * torch.randn(x.shape))

    before, state = X.clone(), torch.get_rng_state()
    options = {"augment": noisy, "l1": 1e-3, "warm_epochs": 1, "polish_epochs": 1, "max_iter": 1}
    found = trim(network, (X, y), **options)
    assert torch.equal(X, before)
    assert torch.equal(torch.get_rng_state(), state)
    again = trim(network, (X, y), **options)
    assert torch.equal(found.module.hidden.weight, again.module.hidden.weight)


# --- what comes out ------------------------------------------------------------------------------


def test_the_sparse_network_computes_the_same(digits, result):
    sparse = result.to_sparse()
    with torch.no_grad():
        truth = result.module.eval()(digits[0])
        torch.testing.assert_close(sparse(digits[0]), truth, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(sparse(digits[0][:1]), truth[:1], rtol=1e-4, atol=1e-4)
    assert type(sparse.hidden).__name__ == "SparseLinear"


def test_a_saved_network_loads_without_its_class(tmp_path, digits, result):
    path = tmp_path / "network.safetensors"
    sparse = result.to_sparse()
    save_network(sparse, path)
    assert path.stat().st_size < result.report.bytes_dense
    with torch.no_grad():
        for load in (load_network, sublearn.load):
            loaded = load(path)
            assert "Digits" not in type(loaded).__name__
            assert torch.equal(loaded(digits[0]), sparse(digits[0]))
    loaded.save(tmp_path / "again.safetensors")
    assert torch.equal(load_network(tmp_path / "again.safetensors")(digits[0]), sparse(digits[0]))


def test_a_stack_in_a_sequence_is_one_call_and_survives_a_file(tmp_path):
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Linear(30, 200), nn.ReLU(), nn.Dropout(0.3), nn.Linear(200, 100), nn.ReLU(),
        nn.Linear(100, 4), nn.Softmax(1),
    ).eval()  # fmt: skip
    with torch.no_grad():
        for index in (0, 3, 5):
            network[index].weight *= torch.rand_like(network[index].weight) < 0.05
    sparse = to_sparse(network)
    assert [type(part).__name__ for part in sparse] == ["SparseStack", "Softmax"]
    x = torch.randn(50, 30)
    with torch.no_grad():
        torch.testing.assert_close(sparse(x), network(x), rtol=1e-5, atol=1e-6)
        save_network(sparse, tmp_path / "stack")
        assert torch.equal(load_network(tmp_path / "stack")(x), sparse(x))


@pytest.mark.parametrize(
    "step",
    [
        {"op": "call_function", "target": "os:system"},
        {"op": "call_function", "target": "torch:load"},
        {"op": "call_function", "target": "operator:attrgetter"},
        {"op": "call_method", "target": "__reduce__"},
        {"op": "run", "target": "x"},
    ],
)
def test_a_file_cannot_call_what_it_likes(tmp_path, step):
    path = tmp_path / "evil"
    save_network(nn.Sequential(nn.ReLU()), path)
    bundle = load_bundle(path)
    steps = list(bundle.attributes["steps"])
    steps[1] = {**steps[1], **step}
    arrays = {name: np.array(value) for name, value in bundle.arrays.items()}
    save_bundle(
        path, class_name="SparseNetwork", params={}, arrays=arrays,
        attributes={"steps": steps, "parts": bundle.attributes["parts"]},
    )  # fmt: skip
    with pytest.raises(ValueError, match="a network"):
        load_network(path)


@pytest.mark.parametrize(
    "network",
    [
        lambda net: net[-1](net[:-1](X8)) + net[:-1](X8)[:, :3],
        lambda net: sum((net[: k + 1](X8).mean(1) for k in range(len(net))), torch.zeros(1)),
        lambda net: net(X8) + net[1](net[0](X8)).mean(),
    ],
)
def test_a_sequence_that_is_taken_apart_stays_in_parts(network):
    class Apart(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(
                nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3)
            )

        def forward(self):
            return network(self.net)

    torch.manual_seed(0)
    whole = Apart()
    with torch.no_grad():
        torch.testing.assert_close(to_sparse(whole)(), whole())


def test_an_activation_or_a_layer_that_comes_twice_is_kept_twice():
    torch.manual_seed(0)
    act, layer = nn.ReLU(), nn.Linear(6, 6)
    network = nn.Sequential(
        nn.Linear(8, 6), act, layer, act, layer, act, nn.Linear(6, 3), nn.Tanh()
    )
    sparse = to_sparse(network)
    assert [type(part).__name__ for part in sparse] == ["SparseStack", "Tanh"]
    with torch.no_grad():
        torch.testing.assert_close(sparse(X8), network(X8))


def test_layers_without_a_sparse_kind_stay_dense():
    network = nn.Sequential(
        nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular"), nn.Conv2d(2, 2, 2, padding="same")
    )
    with torch.no_grad():
        network[0].weight.zero_()
        network[1].weight.zero_()
    assert [type(part).__name__ for part in to_sparse(network)] == ["Conv2d", "Conv2d"]


@pytest.mark.parametrize(
    ("function", "change", "message"),
    [
        (
            to_sparse,
            {"max_density": 2},
            r"to_sparse.max_density must be a number in \[0, 1\], got",
        ),
        (
            to_sparse,
            {"remove_neurons": 3},
            "to_sparse.remove_neurons must be True or False, got 3",
        ),
        (to_sparse, {"module": 3}, r"to_sparse.module must be a torch\.nn\.Module, got 3"),
        (remove_neurons, {"module": 3}, r"remove_neurons.module must be a torch\.nn\.Module"),
    ],
)
def test_bad_arguments_of_the_sparse_network_are_named(function, change, message):
    with pytest.raises(ValueError, match=message):
        function(**({"module": nn.Linear(2, 2)} | change))


class Holds(nn.Module):
    """Calls one part, in some way."""

    def __init__(self, part, how=lambda part, x: part(x)[0]):
        super().__init__()
        self.part, self.how = part, how

    def forward(self, x):
        return self.how(self.part, x)


def attend(part, x):
    return part(x, x, x)[0]


def compare(part, x):
    return torch.where(part(x) > 0, x.to(torch.float64), nn.functional.linear(x, part.weight))


@pytest.mark.parametrize(
    "network",
    [
        Holds(nn.LSTM(8, 5, 2, bias=False, bidirectional=True)),
        Holds(nn.GRU(8, 5, batch_first=True)),
        Holds(nn.RNN(8, 5, nonlinearity="relu")),
        Holds(nn.MultiheadAttention(8, 2, bias=False), attend),
        Holds(nn.MultiheadAttention(8, 2, add_bias_kv=True), attend),
        Holds(nn.Linear(8, 8), compare),
        nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 3)).double(),
    ],
)
def test_modules_come_back_from_a_file_as_they_were(tmp_path, network):
    x = X8.double() if next(network.parameters()).dtype is torch.float64 else X8
    save_network(network, tmp_path / "x")
    with torch.no_grad():
        found, truth = load_network(tmp_path / "x")(x), network.eval()(x)
    assert found.dtype is truth.dtype
    assert torch.equal(found, truth)


def test_a_sparse_table_of_doubles_gives_doubles(tmp_path):
    network = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 40), nn.BatchNorm1d(40)).double()
    with torch.no_grad():
        network[0].weight[:, 1:] = 0.0
        network[0].weight[0] = 0.0
    sparse, ids = to_sparse(network, max_density=0.5), torch.tensor([1, 0])
    save_network(sparse, tmp_path / "x")
    for found in (sparse, load_network(tmp_path / "x")):
        torch.testing.assert_close(found(ids), network.eval()(ids), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match=r"ids must be integers, got torch\.float32"):
        sparse(torch.ones(2))


def test_modules_that_cannot_be_made_again_are_refused_when_saved(tmp_path):
    encoder = nn.Sequential(nn.TransformerEncoderLayer(8, 2, 16))
    half = nn.Sequential(nn.Linear(2, 2)).bfloat16()
    for network, message in ((encoder, r"parts\.0.*TransformerEncoderLayer"), (half, "bfloat16")):
        with pytest.raises(ValueError, match=f"save_network.module must .*{message}"):
            save_network(network, tmp_path / "x")
        assert not (tmp_path / "x").exists()


def test_saving_leaves_the_mode_of_the_network(tmp_path):
    network = nn.Sequential(nn.Linear(3, 3), nn.Dropout())
    network[0].eval()
    save_network(network, tmp_path / "x")
    assert [part.training for part in network.modules()] == [True, False, True]
    with pytest.raises(ValueError, match=r"module must be a torch\.nn\.Module, got 'network'"):
        save_network("network", tmp_path / "y")


def test_what_cannot_be_kept_as_data_is_refused(tmp_path, network):
    class Decides(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    with pytest.raises(ValueError, match=r"torch\.fx can trace, got Decides"):
        save_network(Decides(), tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_a_limit_that_no_penalty_reaches_gives_the_network_back(digits):
    X, y = digits[0][:150], digits[1][:150]
    torch.manual_seed(0)
    module = torch.nn.Linear(64, 10)  # knows all rows by heart, the held-out ones as well
    optimizer = torch.optim.Adam(module.parameters(), 0.1)
    for _ in range(200):
        optimizer.zero_grad()
        cross_entropy(module(X), y).backward()
        optimizer.step()
    settings = QUICK | {"max_stages": 14, "warm_epochs": 1}
    with pytest.warns(ConvergenceWarning, match="no weights are removed"):
        found = trim(module, (X, y), max_increase=1e-9, validation_fraction=0.2, **settings)
    assert len(found.trace) == 14
    assert (np.diff(found.trace["l1"]) < 0).all()
    torch.testing.assert_close(found.module.weight, module.weight)


def test_the_report_prints_draws_and_goes_to_json(result):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    text = str(result.report)
    assert "hidden" in text
    assert f"{result.report.n_after:,}" in text
    assert json.loads(json.dumps(result.report.to_dict()))["n_after"] == result.report.n_after
    display = result.report.plot()
    report = result.report
    widths = [bar.get_width() for bar in display.ax_.patches]
    assert widths == [one.n_before for one in report.layers] + [
        one.n_after for one in report.layers
    ]
    pyplot.close(display.figure_)


def test_the_report_has_the_error_before_and_after(digits, network, data, result):
    def error(module):
        with torch.no_grad():
            return (module.eval()(data[0]).argmax(1) != data[1]).double().mean().item()

    report = result.report
    assert report.error_before == pytest.approx(error(network))
    assert report.error_after == pytest.approx(error(result.module))
    assert f"error {report.error_before:.2%} -> {report.error_after:.2%}" in str(report)
    assert f"{len(data[0])} training samples: loss" in str(report)


def test_a_tenth_is_held_out_by_default_and_figures_say_whose_they_are(network, data):
    result = deep_trim(
        network, data, max_increase=0.5, random_state=0, search=L1Search(max_stages=2),
        retraining=Retraining(warm_epochs=1, polish_epochs=1),
    )  # fmt: skip
    report, n = result.report, len(data[0])
    assert (report.judged.rows, report.judged.n_samples) == ("held-out", n // 10)
    assert report.n_training == n - n // 10
    assert f"{n // 10} held-out samples: loss" in str(report)
    assert report.ratio > 2
    judged = deep_trim(network, data, l1=1e-3, eval_set=data, random_state=0).report.judged
    assert (judged.rows, judged.n_samples) == ("eval_set", n)


def test_whole_neurons_go_and_the_smaller_dense_network_computes_the_same(network, digits, data):
    """Channels of the convolution and neurons of the hidden layer, with a normalisation between."""
    options = {"max_increase": 0.2, "structured": True, **QUICK, "max_stages": 4}
    result = trim(network, data, **options)
    smaller = result.remove_neurons()
    assert type(smaller.hidden) is nn.Linear
    assert smaller.hidden.out_features < 0.5 * network.hidden.out_features
    assert smaller.norm.num_features == smaller.conv.out_channels
    with torch.no_grad():
        wanted = result.module.eval()(digits[0])
        torch.testing.assert_close(smaller(digits[0]), wanted, rtol=1e-4, atol=1e-4)
    assert mean_loss(smaller, data) <= mean_loss(network, data) + 0.2 + 1e-4
    one = digits[0][:1]
    assert multiply_adds(smaller, one) < 0.5 * multiply_adds(network, one)
    sizes = [smaller.get_submodule(name).weight.numel() for name in ("conv", "hidden", "out")]
    assert sum(sizes) in result.trace["n_weights"]
    single = trim(network, data, **options | {"structured": False}).remove_neurons()
    assert multiply_adds(smaller, one) < multiply_adds(single, one)


def test_multiply_adds_are_those_of_the_layers(network, digits):
    wanted = 6 * 36 * 9 + 40 * 54 + 10 * 40
    assert multiply_adds(network, digits[0][:1]) == wanted
    assert multiply_adds(network, digits[0][:3]) == 3 * wanted
    with pytest.raises(ParameterError, match=r"multiply_adds.module must be a torch.nn.Module"):
        multiply_adds(None, digits[0])


def test_a_network_without_units_cannot_lose_any(data):
    with pytest.raises(ParameterError, match=r"L1Search.structured must be False for a network w"):
        trim(nn.Linear(64, 10), data, structured=True)


def test_by_default_a_network_that_knows_its_data_by_heart_is_not_made_worse(network, digits, data):
    def test_error(module):
        with torch.no_grad():
            wrong = module.eval()(digits[0][N_TRAIN:]).argmax(1) != digits[1][N_TRAIN:]
        return wrong.double().mean().item()

    quick = {"search": L1Search(max_stages=2), "retraining": Retraining(warm_epochs=2)}
    with pytest.warns(ConvergenceWarning, match=r"no weights are removed.*pass an eval_set"):
        result = deep_trim(network, data, max_increase=0.0, random_state=0, **quick)
    assert test_error(result.module) == test_error(network)


def test_samples_too_few_to_hold_any_out_are_a_warning(network, data):
    few = data[0][:50], data[1][:50]
    with pytest.warns(UserWarning, match="too few to hold a share of 0.1 out"):
        result = deep_trim(network, few, l1=1e-3, random_state=0)
    assert result.report.judged.rows == "training"


def test_a_loss_of_ones_own_has_no_error_to_report():
    torch.manual_seed(0)
    x = torch.randn(100, 4)
    network = nn.Linear(4, 1)
    result = trim(network, (x, x[:, :1]), nn.functional.mse_loss, l1=1e-3, max_iter=5)
    assert result.report.error_before is result.report.error_after is None
    assert "error" not in str(result.report)


def test_the_error_reported_is_that_of_evaluation_mode(data):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(64, 30), nn.ReLU(), nn.Dropout(0.9), nn.Linear(30, 10))
    result = trim(network, data, l1=1e-4, warm_epochs=3, max_iter=0)
    assert result.module.training
    with torch.no_grad():
        wrong = result.module.eval()(data[0]).argmax(1) != data[1]
    assert result.report.error_after == pytest.approx(wrong.double().mean().item())


def test_latency_and_the_picture_of_the_result(network, result):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    network.train()
    latency = result.latency(n_calls=3)
    assert network.training
    assert latency.dense > 0
    assert latency.sparse > 0
    assert latency.ratio == latency.dense / latency.sparse
    assert "times faster" in str(latency)
    display = result.plot()
    assert [len(ax.patches) for ax in display.axes_] == [2 * len(result.report.layers), 0, 3]
    pyplot.close(display.figure_)
    with pytest.raises(ValueError, match=r"latency.n_calls must be .*, got 0"):
        result.latency(n_calls=0)


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_increase": math.inf}, "deep_trim.max_increase must be"),
        ({"max_weights": 0}, "deep_trim.max_weights must be"),
        (
            {"max_increase": 0.1, "max_weights": 10},
            "deep_trim.max_weights must be None where max_increase is given, got 10",
        ),
        ({"max_weights": 10, "l1": 1e-3}, "deep_trim.l1 must be None where max_weights is given"),
        ({"l1": 0.0}, "deep_trim.l1 must be"),
        ({"first_l1": -1.0}, "L1Search.first_l1 must be"),
        ({"growth": 1.0}, r"L1Search.growth must be a number in \(1.03, inf\), got 1.0"),
        ({"patience": 0}, "L1Search.patience must be"),
        ({"augment": 3}, "Retraining.augment must be"),
        ({"augment": lambda x: x[:1]}, "augment must return as many inputs as it gets, got 1 for"),
        ({"augment": lambda x: x[:, :5]}, "augment must return inputs that the network takes"),
        ({"distill": 1.5}, r"Retraining.distill must be a number in \[0, 1\], got 1.5"),
        (
            {"search": {"growth": 2.0}},
            "deep_trim.search must be an instance of L1Search or None, got {'growth'",
        ),
        (
            {"retraining": 3},
            "deep_trim.retraining must be an instance of Retraining or None, got 3",
        ),
        ({"violation_tol": 0.0}, "QuasiNewton.violation_tol must be a positive number, got 0.0"),
        ({"random_state": -1}, "deep_trim.random_state must be"),
        ({"criterion": "auc"}, "criterion must be"),
        ({"loss": "hinge"}, "loss must be one of 'cross_entropy', 'max_margin' or a function"),
        ({"layers": ["nothing"]}, r"layers must be names .*hidden.*got 'nothing'"),
        ({"layers": []}, "layers must be names"),
        ({"layers": ["norm"]}, "got 'norm'"),
        ({"data": 3}, r"data must be \(inputs, targets\), a Dataset or a DataLoader, got 'int'"),
        ({"data": []}, "data must yield pairs of inputs and targets, got nothing"),
        ({"loss": ["hinge"]}, "loss must be one of .* or a function .*, got"),
        ({"loss": lambda a, b: 1.0}, "loss must return the mean of the batch, .* got 'float'"),
        ({"loss": nn.CrossEntropyLoss(reduction="none")}, r"got a tensor of shape \(2,\)"),
        ({"loss": lambda a, b: (a.argmax(1) == b).float().mean()}, "without a gradient"),
        ({"loss": nn.BCEWithLogitsLoss()}, "loss must take the logits and targets of data, got"),
        ({"data": [(torch.zeros(3), 1), (torch.zeros(4), 1)]}, "data must have samples of one"),
        ({"data": ([[1.0], [1.0, 2.0]], [0, 1])}, "data must hold tensors or arrays of numbers"),
        ({"module": nn.Sequential(nn.Linear(64, 10)).half()}, "of float32 or float64, got torch.f"),
        ({"module": nn.Sequential(nn.ReLU(inplace=True), nn.Linear(64, 10))}, "changes them in"),
        ({"module": nn.Sequential(nn.Linear(64, 30), nn.Unflatten(1, (3, 10)))}, r"\(500, 10\)"),
        ({"layers": 3}, "layers must be names of layers that can be trimmed .*, got 3"),
        ({"data": {"x": 1}}, r"data must be \(inputs, targets\), a Dataset .*, got 'dict'"),
        ({"augment": lambda x: x * torch.nan}, "augment must return finite inputs, got some that"),
        ({"augment": lambda x: x[:9]}, "augment must return as many inputs as it gets, got 9 for"),
        ({"module": "network"}, "module must be a torch.nn.Module, got 'network'"),
        ({"module": nn.ReLU()}, "must have a fully connected, convolution or embedding layer"),
    ],
)
def test_bad_arguments_are_named(network, data, change, message):
    arguments = {"module": network, "data": data} | change
    with pytest.raises((ValueError, TypeError), match=message):
        trim(**arguments)


def test_bad_data_are_named(network, data):
    X, y = data
    with pytest.raises(ValueError, match=r"data must have the same number .*\(500, 64\), \(499,\)"):
        trim(network, (X, y[:-1]))
    with pytest.raises(ValueError, match="data must be finite, got NaN"):
        trim(network, (X * torch.nan, y))
    with pytest.raises(ValueError, match="at least one"):
        trim(network, (X[:0], y[:0]))


def test_a_network_with_an_infinite_loss_is_refused(network, data):
    broken = Digits()
    with torch.no_grad():
        broken.out.weight.fill_(torch.nan)
    with pytest.raises(ValueError, match="module must have a finite loss on the data, got nan"):
        trim(broken, data)


def test_arrays_of_numpys_own_types_are_taken(network, data):
    X, y = data
    given = (X[:60].double().numpy(), y[:60].numpy().astype(np.int32))
    found = trim(network, given, l1=1e-3, warm_epochs=1, polish_epochs=1, max_iter=1)
    assert found.module.out.weight.dtype == torch.float32


@pytest.mark.parametrize(
    ("inputs", "targets", "message"),
    [
        (slice(0, 5), lambda y: y, "data must have inputs that the network takes, got some it"),
        (slice(None), lambda y: y + 5, "targets of data must be integers from 0 to 9, got 1"),
        (slice(None), lambda y: y - 9, "targets of data must be integers from 0 to 9, got -"),
        (slice(None), lambda y: y.float(), "from 0 to 9, got torch.float32"),
        (slice(None), lambda y: torch.eye(12)[y], r"as long as the logits, 10, got shape \(50"),
    ],
)
def test_data_beside_the_network_are_named(network, data, inputs, targets, message):
    X, y = data[0][:50], data[1][:50]
    with pytest.raises(ValueError, match=message):
        trim(network, (X[:, inputs], targets(y)))
