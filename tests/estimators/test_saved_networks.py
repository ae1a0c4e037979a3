"""Networks in files: what comes back is what went in, and a hostile file can do nothing else."""

import builtins
import copy
import io
import json
import pickle
import random
import weakref

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="sublearn.trim needs PyTorch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import sublearn  # noqa: E402
from sublearn.errors import ModelFileError  # noqa: E402
from sublearn.io.bundle import load_bundle, save_bundle  # noqa: E402
from sublearn.trim import (  # noqa: E402
    QuasiNewton,
    Retraining,
    SparseNetwork,
    deep_trim,
    load_network,
    remove_neurons,
    save_network,
    to_sparse,
)

X = torch.randn(3, 4, 8, 8, generator=torch.Generator().manual_seed(0))
IDS = torch.tensor([[1, 2, 3, 0], [4, 4, 0, 0]])


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


class Does(nn.Module):
    """Computes with its parts as a function says."""

    def __init__(self, how, **parts):
        super().__init__()
        self.how = how
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x):
        return self.how(self, x)


def through_file(network, tmp_path):
    save_network(network, tmp_path / "network")
    return load_network(tmp_path / "network")


def same(found, truth):
    if isinstance(truth, torch.Tensor):
        return found.dtype is truth.dtype and torch.equal(found, truth)
    pairs = zip(found, truth, strict=True)
    return all(same(left, right) for left, right in pairs)


# --- what networks are made of -------------------------------------------------------------------


def attention(net, x):
    q, k, v = net.qkv(x.flatten(2).transpose(1, 2)).chunk(3, dim=-1)
    scores = (q @ k.transpose(-2, -1)) * q.shape[-1] ** -0.5
    mask = torch.tril(torch.ones_like(scores)) == 0
    return scores.masked_fill(mask, float("-inf")).softmax(dim=-1) @ v


def heads(net, x):
    x = x.flatten(2).transpose(1, 2)
    n, length, _ = x.shape[0], x.shape[1], x.shape[2]
    q = net.qkv(x).view(n, length, 3, 2, 2).permute(2, 0, 3, 1, 4)
    tail = (4,)
    out = functional.scaled_dot_product_attention(q[0], q[1], q[2])
    return net.norm(out.transpose(1, 2).reshape(x.shape[:2] + tail) + x)


def dense_block(net, x):
    first = torch.relu(net.a(x))
    second = functional.silu(net.b(torch.cat([x, first], 1)))
    return torch.cat([x, first, second], dim=1).mean((2, 3))


def u_net(net, x):
    down = functional.max_pool2d(functional.leaky_relu(net.a(x), 0.1), 2)
    up = functional.interpolate(down, scale_factor=2.0, mode="bilinear", align_corners=False)
    return net.c(functional.pad(net.up(down) + up, (1, 0, 0, 1)))


def squeeze_and_excite(net, x):
    weights = functional.adaptive_avg_pool2d(x, 1).flatten(1)
    weights = torch.sigmoid(net.b(net.act(net.a(weights))))
    return x * weights[:, :, None, None] + x.mean(dim=(2, 3), keepdim=True).expand_as(x)


def sentence(net, x):
    states, _ = net.gru(net.words(x))
    bag = net.bag(x)
    return torch.stack([states[:, -1], bag]).sum(0) + states.max(dim=1)[0]


def residual(net, x):
    y = net.bn2(net.conv2(torch.relu(net.bn1(net.conv1(x)))))
    y += x
    return torch.einsum("nchw,nkhw->nck", functional.gelu(y), x)


NETWORKS = {
    "attention": Does(attention, qkv=nn.Linear(4, 12)),
    "heads": Does(heads, qkv=nn.Linear(4, 12), norm=nn.LayerNorm(4)),
    "dense block": Does(dense_block, a=nn.Conv2d(4, 2, 3, padding=1), b=nn.Conv2d(6, 2, 1)),
    "u-net": Does(
        u_net, a=nn.Conv2d(4, 4, 3, padding="same"),
        up=nn.ConvTranspose2d(4, 4, 2, stride=2), c=nn.Conv2d(4, 2, 3, groups=2),
    ),
    "squeeze": Does(squeeze_and_excite, a=nn.Linear(4, 2), act=nn.PReLU(), b=nn.Linear(2, 4)),
    "residual": Does(
        residual, conv1=nn.Conv2d(4, 4, 3, padding=1), bn1=nn.BatchNorm2d(4),
        conv2=nn.Conv2d(4, 4, 3, padding=1), bn2=nn.BatchNorm2d(4),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NETWORKS)
def test_common_networks_come_back_as_they_were(tmp_path, name):
    network = NETWORKS[name].eval()
    loaded = through_file(network, tmp_path)
    with torch.no_grad():
        for x in (X, X[:1]):
            assert same(loaded(x), network(x))
    assert loaded.state_dict().keys() == network.state_dict().keys()


@pytest.mark.parametrize("options", [{}, {"affine": False}, {"affine": True, "bias": False}])
@pytest.mark.parametrize(
    "make",
    [
        lambda options: nn.BatchNorm2d(4, **options),
        lambda options: nn.InstanceNorm2d(4, **options),
        lambda options: nn.GroupNorm(2, 4, **options),
    ],
    ids=["batch", "instance", "group"],
)
def test_layers_that_normalise_come_back_with_their_bias_or_without(tmp_path, make, options):
    try:
        layer = make(options)
    except TypeError:
        pytest.skip("this PyTorch has no such layer without a bias")
    network = nn.Sequential(layer).eval()
    loaded = through_file(network, tmp_path)
    assert same(loaded(X), network(X))
    assert loaded.state_dict().keys() == network.state_dict().keys()


def test_a_network_of_words_comes_back_as_it_was(tmp_path):
    network = Does(
        sentence, words=nn.Embedding(5, 6, padding_idx=0), gru=nn.GRU(6, 3, 2, batch_first=True),
        bag=nn.EmbeddingBag(5, 3, mode="max"),
    ).eval()  # fmt: skip
    loaded = through_file(network, tmp_path)
    assert same(loaded(IDS), network(IDS))
    with pytest.raises((IndexError, RuntimeError)):  # of PyTorch: shapes fit, values do not
        loaded(IDS + 3)


LAYERS = [
    nn.Conv2d(4, 2, (3, 1), stride=2, padding=1, dilation=1, bias=False, padding_mode="reflect"),
    nn.ConvTranspose2d(4, 2, 3, 2, padding=1, output_padding=1),
    nn.BatchNorm2d(4, momentum=None), nn.InstanceNorm2d(4, affine=True), nn.GroupNorm(2, 4),
    nn.LayerNorm([8, 8], bias=False), nn.LocalResponseNorm(2), nn.Linear(8, 3, bias=False),
    nn.MaxPool2d(2, ceil_mode=True), nn.MaxPool2d(2, return_indices=True), nn.AvgPool2d(3, 2, 1),
    nn.AdaptiveAvgPool2d((None, 2)), nn.AdaptiveMaxPool2d(3), nn.LPPool2d(2, 2),
    nn.ReLU6(), nn.LeakyReLU(0.3), nn.ELU(2.0), nn.CELU(2.0), nn.SELU(), nn.GELU("tanh"), nn.SiLU(),
    nn.Mish(), nn.Hardswish(), nn.Hardsigmoid(), nn.Hardtanh(-2, 2), nn.Hardshrink(), nn.RReLU(),
    nn.Softshrink(), nn.Softplus(2), nn.Threshold(0.1, 20), nn.LogSigmoid(), nn.Tanhshrink(),
    nn.Softsign(), nn.Sigmoid(), nn.Softmax2d(), nn.Identity(), nn.GLU(1), nn.Softmin(1),
    nn.LogSoftmax(1), nn.PReLU(4), nn.Dropout2d(0.1), nn.AlphaDropout(), nn.ConstantPad2d(1, 3.0),
    nn.ZeroPad2d((1, 0, -1, 2)), nn.ReflectionPad2d(2), nn.ReplicationPad2d(1),
    nn.CircularPad2d(1), nn.Flatten(2), nn.Unflatten(1, (2, 2)), nn.PixelShuffle(2),
    nn.PixelUnshuffle(4), nn.ChannelShuffle(2), nn.Upsample(scale_factor=2.0),
    nn.Upsample(size=(3, 5), mode="bilinear", align_corners=True), nn.UpsamplingNearest2d(16),
    nn.Unfold(2), nn.Bilinear(8, 8, 2),
]  # fmt: skip


@pytest.mark.parametrize("layer", LAYERS, ids=repr)
def test_layers_come_back_with_their_settings(tmp_path, layer):
    network = Does(lambda net, x: net.part(x), part=layer)
    if isinstance(layer, nn.Bilinear):
        network = Does(lambda net, x: net.part(x, x), part=layer)
    loaded = through_file(network, tmp_path)
    assert repr(loaded.part) == repr(layer)
    with torch.no_grad():
        assert same(loaded(X), network.eval()(X))


SEQUENCE = torch.randn(5, 3, 4, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    "layer",
    [
        nn.LSTM(4, 5, 2, bidirectional=True, batch_first=True), nn.LSTM(4, 5, proj_size=2),
        nn.GRU(4, 5, bias=False), nn.RNN(4, 5, nonlinearity="relu", dropout=0.2, num_layers=2),
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("x", [SEQUENCE, SEQUENCE[0]], ids=["batch", "one"])
@pytest.mark.filterwarnings("ignore:LSTM with projections")
def test_recurrent_layers_come_back_as_they_were(tmp_path, layer, x):
    loaded = through_file(Does(lambda net, x: net.part(x), part=layer), tmp_path)
    with torch.no_grad():
        truth = layer.eval()(x)
        assert same(loaded(x), truth)


# --- what a loaded network is --------------------------------------------------------------------


def network_file(tmp_path):
    """A small file that has a bit of everything."""

    def how(net, x):
        x = net.act(net.conv(x)).view(x.shape[0], -1)
        x = net.net(functional.relu(x[:, 2:50]))
        return functional.linear(x, net.net[0].weight.t()[:, :3], None) + net.shift

    network = Does(
        how, conv=nn.Conv2d(4, 2, 3, stride=1), act=nn.ReLU(), shift=nn.Parameter(torch.ones(1)),
        net=nn.Sequential(nn.Linear(48, 6), nn.LayerNorm(6), nn.ReLU(), nn.Linear(6, 3)),
    )  # fmt: skip
    with torch.no_grad():
        network.conv.weight *= torch.rand_like(network.conv.weight) < 0.1
    sparse = to_sparse(network, max_density=0.5)
    path = tmp_path / "network.safetensors"
    save_network(sparse, path)
    return path


def test_a_loaded_network_is_copied_pickled_and_saved_again(tmp_path):
    path = network_file(tmp_path)
    loaded = load_network(path)
    truth = loaded(X)
    buffer = io.BytesIO()
    torch.save(loaded, buffer)
    buffer.seek(0)
    for other in (
        copy.deepcopy(loaded),
        pickle.loads(pickle.dumps(loaded)),
        torch.load(buffer, weights_only=False),
    ):
        assert type(other) is SparseNetwork
        assert torch.equal(other(X), truth)
    loaded.save(tmp_path / "again")
    before, after = load_bundle(path), load_bundle(tmp_path / "again")
    assert before.attributes == after.attributes
    assert before.arrays.keys() == after.arrays.keys()
    nested = through_file(nn.Sequential(loaded, nn.Softmax(1)), tmp_path)
    assert torch.equal(nested(X), truth.softmax(1))


def test_a_loaded_network_changes_its_type_and_takes_inputs_by_name(tmp_path):
    loaded = load_network(network_file(tmp_path))
    assert not loaded.training
    assert torch.equal(loaded(x=X), loaded(X))
    with pytest.raises(TypeError, match="too many"):
        loaded(X, X)
    with torch.inference_mode():
        assert loaded.double()(X.double()).dtype is torch.float64

    class Optional(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = nn.Linear(8, 2)

        def forward(self, x, scale=2.0, *rest):
            return self.part(x) * scale

    network = Optional()
    loaded = through_file(network, tmp_path)
    assert torch.equal(loaded(X), network(X))
    assert torch.equal(loaded(X, scale=3.0), network(X, 3.0))


def test_a_loaded_network_is_trimmed_and_made_sparse(tmp_path):
    network = nn.Sequential(nn.Linear(8, 30), nn.ReLU(), nn.Linear(30, 3))
    with torch.no_grad():
        network[2].weight[:, 5:] = 0.0
    loaded = through_file(network, tmp_path)
    x = X.reshape(-1, 8)
    targets = network(x).argmax(1)
    assert remove_neurons(loaded)._modules["0"].out_features == 5
    with torch.no_grad():
        torch.testing.assert_close(to_sparse(loaded)(x), network(x), rtol=1e-5, atol=1e-6)
    options = {
        "l1": 1e-3,
        "retraining": Retraining(warm_epochs=1),
        "quasi_newton": QuasiNewton(max_iter=3),
        "random_state": 0,
        "eval_set": (x, targets),
    }
    found = deep_trim(loaded, (x, targets), **options)
    assert found.report.n_after == deep_trim(network, (x, targets), **options).report.n_after
    torch.testing.assert_close(found.to_sparse()(x), found.module.eval()(x))


def test_results_are_dropped_after_their_last_reader(tmp_path):
    network = nn.Sequential(*[nn.Tanh() for _ in range(6)])
    loaded = through_file(network, tmp_path)
    loaded(X)
    alive, results = [], []
    for part in loaded.children():
        part.register_forward_hook(lambda _, __, out: results.append(weakref.ref(out)))
        part.register_forward_pre_hook(
            lambda *_: alive.append(sum(ref() is not None for ref in results))
        )
    loaded(X)
    assert alive == [0, 1, 1, 1, 1, 1]


def test_a_call_may_take_no_more_memory_than_a_limit(tmp_path):
    loaded = through_file(nn.Sequential(nn.Tanh(), nn.Tanh(), nn.Tanh()), tmp_path)
    loaded.max_bytes = 2 * X.nbytes  # the second step's input and its result
    loaded(X)
    loaded.max_bytes -= 1
    with pytest.raises(ValueError, match=r"step '_1' .* more than max_bytes \(6,143\)"):
        loaded(X)


def test_shapes_that_do_not_fit_are_named_with_the_step(tmp_path):
    loaded = through_file(nn.Sequential(nn.ReLU(), nn.Linear(8, 2)), tmp_path)
    with pytest.raises(ValueError, match="SparseNetwork: inputs must be such that step '_1' can"):
        loaded(X[..., :5])


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (lambda net, x: torch.special.entr(x), "may not call the function '.*entr'"),
        (lambda net, x: x.cauchy_(), "may not call the method 'cauchy_'"),
        (lambda net, x: torch.nonzero(x), "may not call the function '.*nonzero'"),
        (lambda net, x: x.repeat(2**40, 1, 1, 1), r"numbers must be below 2\*\*31"),
        (lambda net, x: x.data, "words must be on the list"),
        (lambda net, x: x.to("meta"), "words must be on the list"),
    ],
)
def test_what_cannot_be_loaded_is_not_saved(tmp_path, how, message):
    with pytest.raises(ValueError, match=f"save_network.module must .*{message}"):
        save_network(Does(how), tmp_path / "x")
    assert not (tmp_path / "x").exists()


# --- attacks -------------------------------------------------------------------------------------

INPUT = {"op": "placeholder", "name": "x", "target": "x", "args": {"tuple": []}, "kwargs": {}}
OUTPUT = {
    "op": "output", "name": "output", "target": "output", "args": {"tuple": [{"node": "y"}]},
    "kwargs": {},
}  # fmt: skip
Y = {
    "op": "call_function", "name": "y", "target": "torch:relu", "args": {"tuple": [{"node": "x"}]},
    "kwargs": {},
}  # fmt: skip


def write(path, steps, parts=None, arrays=None):
    save_bundle(
        path, class_name="SparseNetwork", params={}, arrays=arrays or {},
        attributes={"steps": steps, "parts": parts or {}},
    )  # fmt: skip
    return path


def call(target, *args, op="call_function", **kwargs):
    step = {"op": op, "target": target, "args": {"tuple": [{"node": "x"}, *args]}}
    return [INPUT, {**Y, **step, "kwargs": kwargs}, OUTPUT]


def nested(depth):
    value = {"node": "x"}
    for _ in range(depth):
        value = {"tuple": [value]}
    return value


EVIL = "__import__('pathlib').Path('ran').touch()"
ATTACKS = {
    "code in the name of an input": [{**INPUT, "target": f"x, evil={EVIL}"}, Y, OUTPUT],
    "code in the default of an input": [{**INPUT, "args": {"tuple": [EVIL]}}, Y, OUTPUT],
    "code in a keyword": call("torch.nn.functional:relu", **{f"a={EVIL}, inplace": False}),
    "a line break in a keyword": call("torch.nn.functional:relu", **{"inplace\n": False}),
    "a line break in a name": [{**INPUT, "name": "x\nimport os"}, Y, OUTPUT],
    "a line break in an input": [{**INPUT, "target": "x\n"}, Y, OUTPUT],
    "a keyword of Python": [{**INPUT, "target": "lambda"}, Y, OUTPUT],
    "a name with underscores": [{**INPUT, "target": "__class__"}, Y, OUTPUT],
    "stars": [{**INPUT, "target": "***x"}, Y, OUTPUT],
    "two inputs of a name": [INPUT, {**INPUT, "name": "z"}, Y, OUTPUT],
    "eval": call("builtins:eval"),
    "system": call("os:system"),
    "load": call("torch:load"),
    "save": call("torch:save", "ran"),
    "from_file": call("torch:from_file", "ran"),
    "attrgetter": call("operator:attrgetter"),
    "methodcaller": call("operator:methodcaller"),
    "a path of attributes": call("torch:ops.aten.relu"),
    "torch.nn.functional as a path": call("torch:nn.functional.relu"),
    "a function of another space": call("torch.nn.functional:torch"),
    "no space": call("relu"),
    "a private function": call("torch:_C"),
    "getattr of __class__": call("builtins:getattr", "__class__"),
    "getattr of data": call("builtins:getattr", "data"),
    "getattr of a step": call("builtins:getattr", {"node": "z"}),
    "a type of numbers": call("torch:sum", dtype={"dtype": "load"}),
    "a type with underscores": call("torch:sum", dtype={"dtype": "__class__"}),
    "another argument": call("torch:relu", {"node": "x"}),
    "an argument given twice": call("torch:softmax", 1, dim=1),
    "a result to be written to": call("torch:add", 1, out={"node": "x"}),
    **{
        f"the method {name}": call(name, op="call_method")
        for name in ("__class__", "__reduce__", "set_", "resize_", "data", "numpy", "item",
                     "apply_", "register_hook", "storage", "backward", "share_memory_", "a.b", "")
    },
    "a step after": call("torch:add", {"node": "output"}),
    "a step of its own": call("torch:add", {"node": "y"}),
    "no step": call("torch:add", {"node": "nothing"}),
    "a node that is a number": call("torch:add", {"node": 0}),
    "no output": [INPUT, Y],
    "two outputs": [INPUT, Y, OUTPUT, {**OUTPUT, "name": "again"}],
    "an output in between": [INPUT, {**OUTPUT, "args": {"tuple": [{"node": "x"}]}}, Y],
    "an input in between": [INPUT, Y, {**INPUT, "name": "z", "target": "z"}, OUTPUT],
    "no input": [{**Y, "args": {"tuple": []}}, OUTPUT],
    "nothing": [],
    "a step without an earlier one": [INPUT, {**Y, "args": {"tuple": [3]}}, OUTPUT],
    "a giant number": call("repeat", 10**12, op="call_method"),
    "a giant negative number": call("repeat", -(10**12), op="call_method"),
    "deep arguments": call("torch:add", nested(200)),
    "many arguments": call("torch:cat", {"list": [{"node": "x"}] * 100_000}),
    # a million would be more than the header of a file may hold
    "very many steps": [INPUT, *[{**Y, "name": f"y{k}"} for k in range(70_000)], OUTPUT],
    "a list without its kind": call("torch:add", [1, 2]),
    "two kinds at once": call("torch:add", {"tuple": [], "list": []}),
    "a slice of four": call("operator:getitem", {"slice": [0, 1, 2, 3]}),
    "a word": call("torch:add", EVIL),
    "an equation with code": [
        INPUT, {**Y, "target": "torch:einsum", "args": {"tuple": [EVIL, {"node": "x"}]}}, OUTPUT
    ],
    "a step of another kind": [INPUT, {**Y, "op": "run"}, OUTPUT],
    "a step with more": [INPUT, {**Y, "code": EVIL}, OUTPUT],
    "a step with less": [INPUT, {"op": "output"}, OUTPUT],
    "a string": [INPUT, EVIL, OUTPUT],
    "a module that is not there": call("conv", op="call_module"),
    "a tensor that is not there": [
        INPUT, {**Y, "op": "get_attr", "target": "w", "args": {"tuple": []}}, OUTPUT
    ],
    "a tensor by underscores": [
        INPUT, {**Y, "op": "get_attr", "target": "__class__", "args": {"tuple": []}}, OUTPUT
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_a_hostile_list_of_steps_is_refused_and_runs_nothing(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path / "evil", ATTACKS[name])
    for load in (load_network, sublearn.load):
        with pytest.raises(ModelFileError, match="evil: "):
            load(path)
    assert [file.name for file in tmp_path.iterdir()] == ["evil"]


def part(kind, arrays=(), **settings):
    floats = {f"part.{name}": np.ones(shape, np.float32) for name, shape in dict(arrays).items()}
    return {"part": {"kind": kind, "settings": settings}}, floats


CONV = {
    "n_columns": 9, "dtype_name": "float32", "kernel": [3, 3], "n_axes": 2, "stride": [1, 1],
    "padding": [0, 0], "dilation": [1, 1], "groups": 1, "n_inputs": 1,
}  # fmt: skip


def sparse(kind="SparseConv", arrays=(), **change):
    tensors = {
        "indptr": np.array([0, 1, 2], np.int32), "indices": np.array([0, 8], np.int32),
        "values": np.ones(2, np.float32), "bias": np.ones(2, np.float32),
    } | dict(arrays)  # fmt: skip
    base = CONV if kind == "SparseConv" else {"n_columns": 9, "dtype_name": "float32"}
    tensors = {f"part.{name}": value for name, value in tensors.items() if value is not None}
    return {"part": {"kind": kind, "settings": base | change}}, tensors


LINEAR = {"weight": (2, 3), "bias": (2,)}
LYING_PARTS = {
    "a giant layer": part("Linear", LINEAR, in_features=2**40, out_features=2**40, bias=True),
    "a large layer": part("Linear", LINEAR, in_features=2**30, out_features=2**30, bias=True),
    "a number as text": part("Linear", LINEAR, in_features="3", out_features=2, bias=True),
    "a flag as a number": part("Linear", LINEAR, in_features=3, out_features=2, bias=1),
    "a device": part("Linear", LINEAR, in_features=3, out_features=2, bias=True, device="cpu"),
    "no sizes": part("Linear", LINEAR),
    "no arrays": part("Linear", in_features=3, out_features=2, bias=True),
    "no bias": part("Linear", LINEAR, in_features=3, out_features=2, bias=False),
    "a million layers": part("LSTM", input_size=1, hidden_size=1, num_layers=10**6),
    "stride 0": part("MaxPool2d", kernel_size=2, stride=0),
    "no heads": part("MultiheadAttention", embed_dim=4, num_heads=0),
    "heads that do not divide": part("MultiheadAttention", embed_dim=4, num_heads=3),
    "no groups": part("ChannelShuffle", groups=0),
    "another word": part("GELU", approximate=EVIL),
    "not a number": part("ELU", alpha=float("nan")),
    "a huge number": part("ELU", alpha=10**400),
    "a module with children": part("Sequential"),
    "a list of modules": part("ModuleList"),
    "a module by path": part("modules.linear.Linear", LINEAR, in_features=3, out_features=2),
    "a function of nn": part("init"),
    "a parameter": part("Parameter"),
    "a parallel module": part("DataParallel"),
    "a kind that is none": part(["Linear"]),
    "settings that are none": ({"part": {"kind": "ReLU", "settings": None}}, {}),
    "a part that is none": ({"part": "ReLU"}, {}),
    "a part too many": ({"part": {"kind": "ReLU", "settings": {}},
                         "more": {"kind": "ReLU", "settings": {}}}, {}),
    "an array too many": ({"part": {"kind": "ReLU", "settings": {}}}, {"w": np.ones(1)}),
    "an array of the part too many": part("ReLU", {"w": (1,)}),
    "integers as weights": ({"part": {"kind": "PReLU", "settings": {"num_parameters": 1}}},
                            {"part.weight": np.ones(1, np.int64)}),
    "sparse: stride 0": sparse(stride=[0, 1]),
    "sparse: negative padding": sparse(padding=[-1, 0]),
    "sparse: no dilation": sparse(dilation=[0, 0]),
    "sparse: another number of strides": sparse(stride=[1]),
    "sparse: a stride that is a number": sparse(stride=1),
    "sparse: strides of truth": sparse(stride=[True, True]),
    "sparse: no axes": sparse(n_axes=0, kernel=[], stride=[], padding=[], dilation=[]),
    "sparse: four axes": sparse(n_axes=4, kernel=[1] * 4, stride=[1] * 4),
    "sparse: another kernel": sparse(kernel=[3, 2]),
    "sparse: a giant kernel": sparse(kernel=[2**31 - 1, 2**31 - 1]),
    "sparse: no groups": sparse(groups=0),
    "sparse: groups that do not divide": sparse(groups=2),
    "sparse: other inputs": sparse(n_inputs=2),
    "sparse: giant columns": sparse("SparseLinear", n_columns=2**40),
    "sparse: fewer columns": sparse("SparseLinear", n_columns=8),
    "sparse: no columns": sparse("SparseLinear", n_columns=0),
    "sparse: a type by name": sparse("SparseLinear", dtype_name="load"),
    "sparse: a type that is none": sparse("SparseLinear", dtype_name=["float32"]),
    "sparse: a setting too many": sparse("SparseLinear", forward=3),
    "sparse: indptr decreases": sparse(arrays={"indptr": np.array([0, 3, 2], np.int32)}),
    "sparse: indptr of 2e9": sparse(arrays={"indptr": np.array([0, 2 * 10**9, 0], np.int32)}),
    "sparse: indptr starts late": sparse(arrays={"indptr": np.array([1, 1, 2], np.int32)}),
    "sparse: indptr ends early": sparse(arrays={"indptr": np.array([0, 0, 1], np.int32)}),
    "sparse: no indptr": sparse(arrays={"indptr": np.array([], np.int32)}),
    "sparse: wide indptr": sparse(arrays={"indptr": np.array([0, 1, 2])}),
    "sparse: negative index": sparse(arrays={"indices": np.array([-1, 0], np.int32)}),
    "sparse: index behind the end": sparse(arrays={"indices": np.array([0, 9], np.int32)}),
    "sparse: fewer values": sparse(arrays={"values": np.ones(1, np.float32)}),
    "sparse: values in a table": sparse(arrays={"values": np.ones((2, 1), np.float32)}),
    "sparse: values of integers": sparse(arrays={"values": np.ones(2, np.int32)}),
    "sparse: a longer bias": sparse(arrays={"bias": np.ones(3, np.float32)}),
    "sparse: no values": sparse(arrays={"values": None}),
    "sparse: more arrays": sparse(arrays={"forward": np.ones(1)}),
    "stack: of nothing": ({"part": {"kind": "SparseStack", "layers": [], "is_relu": []}}, {}),
    "stack: of stacks": ({"part": {"kind": "SparseStack", "is_relu": [True], "layers": [
        {"kind": "SparseStack", "layers": [], "is_relu": []}]}}, {"part.w": np.ones(1)}),
}  # fmt: skip


@pytest.mark.parametrize("name", LYING_PARTS)
def test_a_part_that_does_not_fit_is_refused(tmp_path, name):
    parts, arrays = LYING_PARTS[name]
    path = write(tmp_path / "evil", call("part", op="call_module"), parts, arrays)
    with pytest.raises(ModelFileError, match="evil: "):
        load_network(path)


@pytest.mark.parametrize(
    ("links", "is_relu"),
    [([9, 9], [True, False]), ([9, 2], [True]), ([9, 2], [1, 0]), ([9, 2], None)],
)
def test_a_stack_that_does_not_fit_is_refused(tmp_path, links, is_relu):
    parts, arrays = [], {}
    for k, n_columns in enumerate(links):
        what, tensors = sparse("SparseLinear", n_columns=n_columns)
        tensors["part.indices"] = np.zeros(2, np.int32)
        parts.append(what["part"])
        arrays |= {name.replace("part", f"part.layers.{k}"): v for name, v in tensors.items()}
    stack = {"part": {"kind": "SparseStack", "layers": parts, "is_relu": is_relu}}
    path = write(tmp_path / "evil", call("part", op="call_module"), stack, arrays)
    with pytest.raises(ModelFileError, match=r"evil: parts\.part: "):
        load_network(path)


def test_a_good_part_of_the_same_form_is_not_refused(tmp_path):
    for parts, arrays in (
        sparse(), sparse("SparseLinear"), sparse("SparseEmbedding", {"bias": None}),
        part("Linear", LINEAR, in_features=3, out_features=2, bias=True),
    ):  # fmt: skip
        load_network(write(tmp_path / "good", call("part", op="call_module"), parts, arrays))


def chain(*steps):
    """Steps that each read the one before."""
    found, before = [INPUT], "x"
    for k, step in enumerate(steps):
        args = json.loads(json.dumps(step["args"]).replace('"x"', f'"{before}"'))
        found.append({**step, "name": f"s{k}", "args": args})
        before = f"s{k}"
    return [*found, {**OUTPUT, "args": {"tuple": [{"node": before}]}}]


def last(steps):
    return steps[1]


AT_CALL = {
    "repeated": chain(*[last(call("repeat", 1000, 1000, 1, 1, op="call_method"))] * 3),
    "doubled": chain(*[last(call("torch:cat"))] * 1),
    "cat of cats": chain(
        *[{**Y, "target": "torch:cat", "args": {"tuple": [{"list": [{"node": "x"}] * 64}]}}] * 8
    ),
    "expanded and added": chain(
        last(call("expand", 2**20, 2**10, -1, -1, -1, -1, op="call_method")),
        last(call("torch:add", 1)),
    ),
    "a large picture": chain(last(call("torch.nn.functional:interpolate", scale_factor=1e5))),
    "wide padding": chain(last(call("torch.nn.functional:pad", {"tuple": [2**30] * 4}))),
    "new zeros": chain(last(call("new_zeros", 2**30, 2**20, op="call_method"))),
    "outer products": chain(
        last(call("flatten", op="call_method")),
        *[{**Y, "target": "torch:outer", "args": {"tuple": [{"node": "x"}] * 2}}],
        last(call("flatten", op="call_method")),
        *[{**Y, "target": "torch:outer", "args": {"tuple": [{"node": "x"}] * 2}}],
    ),
    "pieces": chain(
        last(call("expand", 2**22, -1, -1, -1, -1, op="call_method")),
        last(call("unbind", op="call_method")),
    ),
    "axes": chain(*[last(call("unsqueeze", 0, op="call_method"))] * 200),
    "a power of numbers": chain(
        last(call("builtins:getattr", "ndim")),
        last(call("operator:pow", 2**31 - 1)),
    ),
    "numbers that square": chain(
        last(call("builtins:getattr", "ndim")),
        *[{**Y, "target": "operator:mul", "args": {"tuple": [{"node": "x"}] * 2}}] * 40,
    ),
    "tuples that double": chain(
        last(call("builtins:getattr", "shape")),
        *[{**Y, "target": "operator:add", "args": {"tuple": [{"node": "x"}] * 2}}] * 40,
    ),
    "a shape times a number": chain(
        last(call("builtins:getattr", "shape")), last(call("operator:mul", 2**30)),
    ),
    "an attribute of a shape": chain(
        last(call("builtins:getattr", "shape")), last(call("builtins:getattr", "ndim")),
    ),
    "a method of a shape": chain(
        last(call("builtins:getattr", "shape")), last(call("numel", op="call_method")),
    ),
    "a division by zero": chain(
        last(call("builtins:getattr", "ndim")), last(call("operator:floordiv", 0)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", AT_CALL)
def test_a_call_that_would_grow_without_bound_is_refused(tmp_path, name):
    loaded = load_network(write(tmp_path / "evil", AT_CALL[name]))
    with pytest.raises(ValueError, match="SparseNetwork: inputs must be such that step 's"):
        loaded(X)
    with pytest.raises(ValueError, match="SparseNetwork: "):  # and not because it was seen before
        loaded(X)
    to_sparse(loaded)  # looks at the steps, and computes none


def test_no_source_is_made_of_a_file(tmp_path, monkeypatch):
    path = network_file(tmp_path)
    truth = load_network(path)(X)

    def refuse(*args, **kwargs):
        raise AssertionError("source was compiled")

    monkeypatch.setattr(torch.fx.GraphModule, "__new__", refuse)
    monkeypatch.setattr(torch.fx.Graph, "python_code", refuse)
    for name in ("exec", "eval", "compile"):
        monkeypatch.setattr(builtins, name, refuse)
    loaded = load_network(path)
    found = loaded(X)
    loaded.save(tmp_path / "again")
    monkeypatch.undo()
    assert torch.equal(found, truth)


# --- mutations -----------------------------------------------------------------------------------

VALUES = [
    None, True, False, 0, 1, -1, 2, 7, 2**31 - 1, 2**31, 2**40, -(2**63), 10**30, 0.5, -1e308, "",
    "x", "x\n", "__class__", "os:system", "torch:load", "operator:add", "weight", "float64", [], {},
    [0], [1, 1], [0, 0], [2**31 - 1] * 3, {"tuple": []}, {"node": "x"}, {"node": "nothing"},
    {"dtype": "int64"}, {"slice": [None, None, -1]}, {"list": [1]}, {"ellipsis": True},
    "call_method", "call_function", "call_module", "get_attr", "placeholder", "output", "kind",
    "SparseConv", "Linear", "LSTM", "view", "torch:cat", "repeat",
]  # fmt: skip


def places(value):
    """All containers inside a description, each with one of its keys."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield value, key
        if isinstance(item, (dict, list)):
            yield from places(item)


def mutated(attributes, arrays, rng):
    """One to three changes of fields, or of bytes in arrays."""
    attributes = json.loads(attributes)
    arrays = {name: value.copy() for name, value in arrays.items()}
    for _ in range(rng.randint(1, 3)):
        kind = rng.randrange(6)
        found = list(places(attributes))
        if not found:
            break
        holder, key = rng.choice(found)
        if kind == 0 and isinstance(holder, list):
            holder.insert(key, copy.deepcopy(rng.choice(found)[0]))
        elif kind == 1:
            del holder[key]
        elif kind == 2 and isinstance(holder, dict) and isinstance(key, str):
            holder[rng.choice(["x", "bias", "kernel", key + "_", "\n"])] = holder.pop(key)
        elif kind == 3 and arrays:
            flat = arrays[rng.choice(list(arrays))].reshape(-1).view(np.uint8)
            for _ in range(rng.randint(1, 4)):
                flat[rng.randrange(len(flat))] = rng.randrange(256)
        elif kind == 4 and isinstance(holder[key], (int, float)):
            holder[key] = holder[key] + rng.choice([-2, -1, 1, 2, 1000])
        else:
            other = rng.choice(found)
            pool = VALUES if rng.random() < 0.7 else [other[0][other[1]]]
            holder[key] = copy.deepcopy(rng.choice(pool))
    return attributes, arrays


def attack(path, attributes, arrays, inputs):
    """How far a mutated file comes: refused when loaded, when called, or not at all."""
    try:
        write(path, attributes.get("steps"), attributes.get("parts"), arrays)
        loaded = load_network(path)
    except ValueError:
        return "load"
    try:
        with torch.no_grad():
            loaded(inputs)
    except (ValueError, RuntimeError, IndexError):
        return "call"
    except TypeError as error:
        if "argument" not in str(error):  # more or fewer inputs than there were
            raise
        return "call"
    return "none"


def campaign(folder, path, inputs, seed, n_files):
    bundle = load_bundle(path)
    text = json.dumps(bundle.attributes)
    arrays = {name: np.array(value) for name, value in bundle.arrays.items()}
    rng = random.Random(seed)
    counts = {"load": 0, "call": 0, "none": 0}
    for _ in range(n_files):
        counts[attack(folder / "mutated", *mutated(text, arrays, rng), inputs)] += 1
    return counts


@pytest.mark.filterwarnings("ignore")
def test_mutated_networks_are_refused_or_run(tmp_path):
    counts = campaign(tmp_path, network_file(tmp_path), X, seed=0, n_files=1500)
    words = Does(
        sentence, words=nn.Embedding(5, 6, padding_idx=0), gru=nn.GRU(6, 3, 2, batch_first=True),
        bag=nn.EmbeddingBag(5, 3, mode="max"),
    )  # fmt: skip
    save_network(words, tmp_path / "words")
    for kind, count in campaign(tmp_path, tmp_path / "words", IDS, seed=1, n_files=500).items():
        counts[kind] += count
    assert counts["load"] > 1000
    assert min(counts.values()) > 10
