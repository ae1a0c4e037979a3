"""Each function on the list of networks in files: its bound is not below what it makes."""

import pytest

torch = pytest.importorskip("torch", reason="sublearn.trim needs PyTorch")

from sublearn.trim.network_ops import FUNCTIONS, METHODS  # noqa: E402
from sublearn.trim.network_sizes import most_of_call, tensors_in  # noqa: E402

torch.manual_seed(0)
X = torch.rand(2, 4, 6)
W = torch.rand(4)
SQUARE = torch.rand(4, 4)
MASK = X > 0.5
IDS = torch.randint(0, 2, (2, 4, 6))
PICTURES = {n: torch.rand(2, 4, *[6] * n) for n in (1, 2, 3)}
IMAGE = PICTURES[2]

#: Arguments of what does not take X alone, or X twice.
SAMPLES = {
    **dict.fromkeys(("and_", "or_", "xor"), (MASK, MASK)),
    **{f"bitwise_{name}": (MASK, MASK) for name in ("and", "or", "xor")},
    **dict.fromkeys(("bitwise_not", "invert"), (MASK,)),
    **dict.fromkeys(("matmul", "mm"), (SQUARE, SQUARE)),
    **dict.fromkeys(("cat", "concat", "stack", "hstack", "vstack"), ([X, X, X],)),
    **dict.fromkeys(("swapaxes", "swapdims", "transpose"), (X, 0, 1)),
    **dict.fromkeys(("clamp", "clip", "clamp_"), (X, 0.1, 0.5)),
    **dict.fromkeys(("clamp_max", "clamp_min"), (X, 0.4)),
    **dict.fromkeys(("cumprod", "cumsum", "logsumexp"), (X, 1)),
    **dict.fromkeys(("softmax", "log_softmax", "softmin", "glu"), (X, -1)),
    **dict.fromkeys(("masked_fill", "masked_fill_"), (X[:1], MASK[:1], -1.0)),
    **dict.fromkeys(("new_ones", "new_zeros"), (X, 20, 30)),
    **dict.fromkeys(("layer_norm", "rms_norm"), (X, (6,))),
    **dict.fromkeys(("pixel_shuffle", "pixel_unshuffle", "channel_shuffle"), (IMAGE, 2)),
    **{f"dropout{n}d": (PICTURES[n],) for n in PICTURES},
    **{f"adaptive_{kind}_pool{n}d": (PICTURES[n], 9) for n in PICTURES for kind in ("avg", "max")},
    **{f"{kind}_pool{n}d": (PICTURES[n], 2, 1, 1) for n in PICTURES for kind in ("avg", "max")},
    **{f"lp_pool{n}d": (PICTURES[n], 2.0, 2) for n in (1, 2)},
    **{f"conv{n}d": (PICTURES[n], torch.rand(3, 4, *[2] * n), None, 2, 3) for n in PICTURES},
    **{
        f"conv_transpose{n}d": (PICTURES[n], torch.rand(4, 3, *[2] * n), None, 3)
        for n in PICTURES
    },
    "addcdiv": (X[:1], X, W[:, None]), "addcmul": (X[:1], X, W[:, None]),
    "addmm": (SQUARE, SQUARE, SQUARE), "baddbmm": (torch.rand(2, 4, 4), X, X.mT),
    "batch_norm": (X, W, W), "bilinear": (X, X, torch.rand(30, 6, 6)), "bmm": (X, X.mT),
    "broadcast_to": (X, (3, 2, 4, 6)), "cdist": (X, X), "chunk": (X, 2, 1),
    "cosine_similarity": (X, X[:1]), "einsum": ("bij,bkj->bik", X, X),
    "embedding": (IDS, torch.rand(2, 50)), "expand": (W, 3, -1),
    "expand_as": (W, torch.rand(3, 4)), "flip": (X, (0,)),
    "fold": (torch.rand(2, 16, 9), (6, 6), (2, 2), 1, 0, 2), "full_like": (X, 2.0),
    "gather": (X, 1, IDS), "getattr": (X, "shape"), "getitem": (SQUARE, IDS), "group_norm": (X, 2),
    "index_select": (X, 0, torch.tensor([1, 0, 1])), "instance_norm": (IMAGE,),
    "interpolate": (IMAGE, None, 2.5), "lerp": (X, X, 0.3), "linear": (X, torch.rand(30, 6)),
    "local_response_norm": (IMAGE, 2), "logit": (X, 1e-3), "meshgrid": (W, W, W),
    "movedim": (X, 0, 2), "mv": (SQUARE, W), "narrow": (X, 1, 1, 2), "new_full": (X, (20, 30), 1.0),
    "outer": (W, W), "pad": (X, (5, 5, 1, 1)), "pairwise_distance": (X, X),
    "permute": (X, (2, 0, 1)), "pow": (X, 2), "prelu": (X, W), "repeat": (X, 3, 2, 1),
    "repeat_interleave": (X, 3, 1), "reshape": (X, (2, -1)), "roll": (X, 1, 0),
    "scaled_dot_product_attention": (X, X, X), "select": (X, 1, 0), "size": (X, 0),
    "split": (X, 2, 1), "t": (SQUARE,), "take_along_dim": (X, IDS, 1),
    "tensordot": (X, SQUARE, ([1], [0])),
    "threshold": (X, 0.1, 0.2), "tile": (X, (3, 2, 1)), "to": (X, torch.float64), "topk": (X, 2),
    "type_as": (X, IDS), "unfold": (X, 2, 3, 1),
    "torch.nn.functional:unfold": (IMAGE, (2, 2), 1, 3), "view_as": (X, X), "reshape_as": (X, X),
    "unflatten": (X, 1, (2, 2)), "unsqueeze": (X, 0), "view": (X, 2, -1),
    "where": (MASK[:1], X, W[:, None]), "div_": (X, 2),
}  # fmt: skip
CALLS = [("call_function", name) for name in FUNCTIONS] + [("call_method", n) for n in METHODS]


@pytest.mark.parametrize(("op", "target"), CALLS)
@pytest.mark.filterwarnings("ignore:torch.meshgrid")
def test_no_bound_is_below_what_a_call_makes(op, target):
    name = target.rpartition(":")[2]
    call = (METHODS if op == "call_method" else FUNCTIONS)[target]
    is_pair = len(call.parameters) > 1 and call.parameters[1] in ("other", "b", "x2")
    args = SAMPLES.get(target) or SAMPLES.get(name) or ((X[:1].clone(), X) if is_pair else (X,))
    if name.endswith("_") and name not in ("and_", "or_"):  # works in place
        args = (X.clone(), *args[1:])
    most = most_of_call(op, target, list(args), {})
    function = call.function or (lambda first, *rest: getattr(first, name)(*rest))
    made = tensors_in(function(*args))
    assert most >= max((tensor.numel() for tensor in made), default=0)


@pytest.mark.parametrize(
    ("op", "target", "args"),
    [
        ("call_method", "repeat", (X, torch.tensor(2))),
        ("call_method", "narrow", (X, 0, 0, torch.tensor(1))),
        ("call_function", "operator:getitem", (X, slice(torch.tensor(1)))),
        ("call_function", "operator:getitem", (X, MASK)),
        ("call_function", "torch:where", (MASK,)),
        ("call_function", "torch:repeat_interleave", (X, IDS)),
    ],
)
def test_shapes_that_depend_on_values_are_refused(op, target, args):
    with pytest.raises(ValueError, match=r"must (be|have) "):
        most_of_call(op, target, list(args), {})
