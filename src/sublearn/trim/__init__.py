"""Smaller networks: l1 stationary points of trained ones (Deep-Trim). Needs PyTorch."""

from sublearn.errors import needs_extra as _needs_extra

with _needs_extra("sublearn.trim", "torch"):
    import torch as _torch  # noqa: F401

from sublearn.trim.deep_trim import deep_trim
from sublearn.trim.losses import cross_entropy, max_margin
from sublearn.trim.multiply_adds import multiply_adds
from sublearn.trim.result import Judged, Latency, LayerReport, TrimReport, TrimResult
from sublearn.trim.saved_network import SparseNetwork, load_network, save_network
from sublearn.trim.settings import L1Search, QuasiNewton, Retraining
from sublearn.trim.sparse_layers import SparseConv, SparseEmbedding, SparseLinear, SparseStack
from sublearn.trim.sparse_network import remove_neurons, to_sparse

__all__ = [
    "Judged",
    "L1Search",
    "Latency",
    "LayerReport",
    "QuasiNewton",
    "Retraining",
    "SparseConv",
    "SparseEmbedding",
    "SparseLinear",
    "SparseNetwork",
    "SparseStack",
    "TrimReport",
    "TrimResult",
    "cross_entropy",
    "deep_trim",
    "load_network",
    "max_margin",
    "multiply_adds",
    "remove_neurons",
    "save_network",
    "to_sparse",
]
