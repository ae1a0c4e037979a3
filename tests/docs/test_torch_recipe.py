"""The recipe for PyTorch in docs/optim.md works where PyTorch is installed."""

import re
from pathlib import Path

import numpy as np
import pytest

from sublearn.optim import lhac, linear_objective

PAGE = Path(__file__).resolve().parents[2] / "docs" / "optim.md"


def recipe():
    (code,) = re.findall(
        r"^```python\n(import torch\n.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S
    )
    namespace = {}
    exec(compile(code, str(PAGE), "exec"), namespace)
    return namespace["torch_objective"]


def test_the_page_has_a_recipe_for_pytorch():
    assert "def torch_objective(closure, parameters):" in PAGE.read_text(encoding="utf-8")


def test_a_closure_reaches_the_optimum_of_the_compiled_objective():
    torch = pytest.importorskip("torch", reason="the recipe needs PyTorch")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 6)), rng.choice([-1.0, 1.0], size=40)
    w = torch.zeros(6, dtype=torch.float64, requires_grad=True)
    rows, targets = torch.from_numpy(X), torch.from_numpy(y)

    def closure():
        return torch.nn.functional.softplus(-targets * (rows @ w)).mean()

    found = lhac(recipe()(closure, [w]), np.zeros(6), l1=0.02, tol=1e-8)
    judge = lhac(linear_objective(X, y), np.zeros(6), l1=0.02, tol=1e-8)
    assert found.objective == pytest.approx(judge.objective, abs=1e-8)
