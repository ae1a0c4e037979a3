"""Layers of few weights compute what PyTorch's dense layers compute."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="sublearn.trim needs PyTorch")

from torch import nn  # noqa: E402

from sublearn import _core  # noqa: E402
from sublearn.trim import SparseConv, SparseEmbedding, SparseLinear, SparseStack  # noqa: E402


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


def thinned(layer, density=0.2):
    with torch.no_grad():
        layer.weight *= torch.rand_like(layer.weight) < density
    return layer.eval()


def assert_same(dense, sparse, x):
    with torch.no_grad():
        torch.testing.assert_close(sparse(x), dense(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(1, 30), (100, 30), (2, 5, 30), (30,), (0, 30)])
def test_linear(bias, shape):
    layer = thinned(nn.Linear(30, 17, bias=bias))
    assert_same(layer, SparseLinear.of(layer), torch.randn(shape))


def test_linear_without_any_weight_is_its_bias():
    layer = thinned(nn.Linear(4, 3), density=0.0)
    assert_same(layer, SparseLinear.of(layer), torch.randn(2, 4))


CONVOLUTIONS = [
    lambda: (nn.Conv1d(3, 4, 5, stride=2, padding=3, dilation=2), (2, 3, 19)),
    lambda: (nn.Conv2d(3, 8, 3), (2, 3, 7, 9)),
    lambda: (nn.Conv2d(4, 8, (3, 2), stride=(2, 1), padding=(0, 4), bias=False), (1, 4, 7, 9)),
    lambda: (nn.Conv2d(4, 8, 3, padding="same", groups=2), (3, 4, 6, 5)),
    lambda: (nn.Conv2d(2, 3, 3, stride=3, padding=2, dilation=3), (2, 2, 11, 10)),
    lambda: (nn.Conv3d(2, 3, 2, padding=1, stride=(1, 2, 3)), (2, 2, 4, 5, 6)),
    lambda: (nn.Conv2d(2, 3, 3, padding="valid"), (2, 5, 5)),
]


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolution(case):
    layer, shape = case()
    assert_same(thinned(layer, 0.5), SparseConv.of(layer), torch.randn(shape))


def test_embedding():
    layer = thinned(nn.Embedding(20, 6))
    assert_same(layer, SparseEmbedding.of(layer), torch.randint(0, 20, (3, 4)))


def test_a_stack_is_its_layers_one_after_the_other_on_any_number_of_threads():
    layers = [thinned(nn.Linear(a, b)) for a, b in ((12, 40), (40, 3), (3, 9))]
    dense = nn.Sequential(layers[0], nn.ReLU(), layers[1], layers[2], nn.ReLU())
    sparse = SparseStack([SparseLinear.of(layer) for layer in layers], [True, False, True])
    x = torch.randn(300, 12)
    assert_same(dense, sparse, x)
    alone = sparse(x)
    sparse.n_threads = 4
    assert torch.equal(sparse(x), alone)
    assert torch.equal(copy.deepcopy(sparse)(x), alone)


def test_float64_comes_back_as_float64():
    layer = thinned(nn.Linear(5, 4))
    assert SparseLinear.of(layer)(torch.randn(2, 5, dtype=torch.float64)).dtype is torch.float64


def test_wrong_shapes_are_refused():
    layer = SparseLinear.of(thinned(nn.Linear(5, 4)))
    with pytest.raises(ValueError, match="x must have 5 columns"):
        layer(torch.randn(2, 6))
    convolution = SparseConv.of(thinned(nn.Conv2d(3, 4, 3)))
    with pytest.raises(ValueError, match=r"x must have shape \(n, 3\)"):
        convolution(torch.randn(1, 2, 8, 8))
    with pytest.raises(ValueError, match="padded length from 3"):
        convolution(torch.randn(1, 3, 2, 8))
    with pytest.raises(ValueError, match=r"ids must be from 0 to 2"):
        SparseEmbedding.of(nn.Embedding(3, 2))(torch.tensor([3]))


def test_a_chain_refuses_layers_that_do_not_fit():
    chain = _core.SparseChain()
    rows = np.array([0, 1], np.int32), np.array([2], np.int32), np.ones(1, np.float32)
    chain.add(*rows, 3)
    with pytest.raises(ValueError, match="n_inputs must be 1"):
        chain.add(*rows, 3)
    with pytest.raises(ValueError, match="bias must have 1 entries"):
        chain.add(rows[0], np.zeros(1, np.int32), rows[2], 1, np.zeros(2, np.float32))


@pytest.mark.parametrize("options", [{"padding_mode": "reflect"}, {"padding": "same"}])
def test_other_paddings_are_refused(options):
    with pytest.raises(ValueError, match=r"SparseConv.layer must pad with .*, got Conv2d\(1, 1"):
        SparseConv.of(nn.Conv2d(1, 1, 2, **options))
