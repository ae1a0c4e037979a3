"""The layer for PyTorch: equal to full softmax where all labels are candidates, and it trains."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch", reason="sublearn.embed.torch_layer needs PyTorch")

from sublearn.embed import LabelSearch  # noqa: E402
from sublearn.embed.torch_layer import SearchedOutput  # noqa: E402
from sublearn.errors import ParameterError  # noqa: E402


@pytest.fixture(autouse=True)
def _one_seed():
    torch.manual_seed(0)


def full_softmax(features, weight, targets):
    return torch.nn.functional.cross_entropy(features @ weight.T, targets)


@pytest.mark.parametrize("gradient", ["exact", "sampled", "mips", "decomposed"])
def test_is_softmax_when_all_labels_are_candidates(gradient):
    everything = {"n_candidates": 10**6, "n_probe": 10**6, "n_sampled": 10**6}
    search = LabelSearch(n_warm=0, min_gradient=1e-9, **everything)
    layer = SearchedOutput(12, 50, gradient=gradient, search=search, random_state=0)
    with torch.no_grad():
        layer.weight.copy_(torch.randn(50, 12))
    layer.refresh()
    features = torch.randn(20, 12, requires_grad=True)
    targets = torch.randint(50, (20,))
    loss = layer(features, targets)
    loss.backward()

    twin, weight = features.detach().clone().requires_grad_(), layer.weight.detach().clone()
    weight.requires_grad_()
    expected = full_softmax(twin, weight, targets)
    expected.backward()
    torch.testing.assert_close(loss, expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(features.grad, twin.grad, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(layer.weight.grad.to_dense(), weight.grad, rtol=1e-3, atol=1e-5)


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")  # of PyTorch's own Adagrad
def test_trains_a_network_below_it():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(200, 10)).astype(np.float32)
    y = rng.integers(200, size=4000)
    X = torch.from_numpy(centres[y] + 0.2 * rng.normal(size=(4000, 10)).astype(np.float32))
    targets = torch.from_numpy(y)
    body = torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.Tanh())
    head = SearchedOutput(32, 200, random_state=0)
    steps = [
        torch.optim.Adagrad(body.parameters(), lr=0.05),
        torch.optim.Adagrad(head.parameters(), lr=0.5),
    ]
    for start in [*range(0, 4000, 100)] * 4:
        part = slice(start, start + 100)
        for step in steps:
            step.zero_grad()
        head(body(X[part]), targets[part]).backward()
        for step in steps:
            step.step()
    with torch.no_grad():
        hits = (body(X) @ head.weight.T).argmax(dim=1) == targets
    assert hits.float().mean() > 0.9


def test_several_labels_come_as_a_sparse_matrix():
    Y = sp.csr_matrix(np.eye(30)[:6] + np.eye(30)[1:7])
    layer = SearchedOutput(8, 30, gradient="exact")
    loss = layer(torch.randn(6, 8), Y)
    assert loss.item() == pytest.approx(2 * np.log(30), rel=1e-5)


def test_a_loaded_weight_is_used():
    layer, other = SearchedOutput(8, 30, gradient="exact"), SearchedOutput(8, 30, gradient="exact")
    with torch.no_grad():
        layer.weight.copy_(torch.randn(30, 8))
    features, targets = torch.randn(5, 8), torch.arange(5)
    other(features, targets)
    other.load_state_dict(layer.state_dict())
    expected = full_softmax(features, layer.weight, targets)
    torch.testing.assert_close(other(features, targets), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("targets", [[0, 30], [-1, 3], [0.5, 1.5], [1]])
def test_refuses_targets_that_are_no_labels(targets):
    layer = SearchedOutput(8, 30)
    with pytest.raises(ValueError, match="SearchedOutput: targets must be"):
        layer(torch.randn(2, 8), torch.tensor(targets))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_labels": 0}, r"SearchedOutput\.n_labels must be a positive integer"),
        ({"search": {}}, r"SearchedOutput\.search must be an instance of LabelSearch or None"),
    ],
)
def test_refuses_parameters_that_mean_nothing(options, message):
    with pytest.raises(ParameterError, match=message):
        SearchedOutput(**{"in_features": 8, "n_labels": 30} | options)


def test_copies_and_pickles_go_on_by_themselves():
    layer = SearchedOutput(8, 30, gradient="exact")
    features, targets = torch.randn(5, 8), torch.arange(5)
    with torch.no_grad():
        layer.weight.copy_(torch.randn(30, 8))
    layer.refresh()
    expected = layer(features, targets)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        torch.testing.assert_close(other(features, targets), expected)
        with torch.no_grad():
            other.weight.zero_()
        other.refresh()
        assert other(features, targets).item() == pytest.approx(np.log(30), rel=1e-5)
    torch.testing.assert_close(layer(features, targets), expected)


def test_a_stored_zero_is_no_label():
    Y = sp.csr_matrix(np.eye(30)[:6] + np.eye(30)[1:7])
    Y.data[::2] = 0
    layer = SearchedOutput(8, 30, gradient="exact")
    assert layer(torch.randn(6, 8), Y).item() == pytest.approx(np.log(30), rel=1e-5)


@pytest.mark.parametrize("features", [torch.zeros(5, 3), torch.zeros(8), np.zeros((5, 8))])
def test_features_of_another_kind_are_named(features):
    layer = SearchedOutput(8, 30)
    with pytest.raises(ValueError, match=r"features must be a tensor of shape \(n_samples, 8\)"):
        layer(features, torch.zeros(5, dtype=torch.int64))


@pytest.mark.parametrize("gradient", ["exact", "mips", "decomposed"])
def test_nca_is_softmax_of_negative_squared_distances(gradient):
    search = LabelSearch(n_warm=0, min_gradient=1e-9, n_candidates=10**6, n_probe=10**6)
    layer = SearchedOutput(12, 50, loss="nca", gradient=gradient, search=search, random_state=0)
    with torch.no_grad():
        layer.weight.copy_(torch.randn(50, 12) / 2)
    layer.refresh()
    features = (torch.randn(20, 12) / 2).requires_grad_()
    targets = torch.randint(50, (20,))
    loss = layer(features, targets)
    loss.backward()

    twin = features.detach().clone().requires_grad_()
    weight = layer.weight.detach().clone().requires_grad_()
    scores = -((twin[:, None] - weight) ** 2).sum(dim=2)
    expected = torch.nn.functional.cross_entropy(scores, targets)
    expected.backward()
    torch.testing.assert_close(loss, expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(features.grad, twin.grad, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(layer.weight.grad.to_dense(), weight.grad, rtol=1e-3, atol=1e-5)
    pickle.loads(pickle.dumps(layer))(features, targets)
