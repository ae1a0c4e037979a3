"""What a network costs on any machine: multiplications with a weight, counted."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sublearn.trim.checks import copy_of
from sublearn.trim.samples import Inputs, call

__all__ = ["multiply_adds"]

_COUNTED = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


@torch.no_grad()
def multiply_adds(module: nn.Module, inputs: Inputs) -> int:
    """Multiply-adds of the fully connected and convolution layers for these inputs.

    Dense layers multiply with their zeros as well; only smaller layers have fewer.

    Parameters
    ----------
    module : Module
        Not changed.
    inputs : Tensor, tuple or dict
        As the network takes them.

    Returns
    -------
    int
    """
    network, total = copy_of(module, "multiply_adds"), 0

    def count(layer: nn.Module, _: object, output: Tensor) -> None:
        nonlocal total
        total += output.numel() * layer.weight[0].numel()

    for part in network.modules():
        if isinstance(part, _COUNTED):
            part.register_forward_hook(count)
    call(network, inputs)
    return total
