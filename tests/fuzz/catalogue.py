"""All targets of the campaign, and single cases of them again."""

from __future__ import annotations

import importlib.util
import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import array_targets
import call_targets
import model_targets
import reader_targets
from engine import Target, case_random

MODULES = [model_targets, reader_targets, array_targets, call_targets]
if importlib.util.find_spec("uvicorn") and importlib.util.find_spec("fastapi"):
    import server_targets

    MODULES.append(server_targets)


def targets(only: list[str] | None = None) -> list[Target]:
    """Those whose names begin with one of `only`, or all; without PyTorch, no networks."""
    has_torch = importlib.util.find_spec("torch") is not None
    return [
        target
        for module in MODULES
        for target in module.TARGETS
        if (not only or target.name.startswith(tuple(only)))
        and (has_torch or "SparseNetwork" not in target.name)
    ]


def preload(chosen: list[Target]) -> None:
    """Import and use what workers will need, once, in the process that they are forks of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in MODULES:
            if {target.use for target in chosen} & {target.use for target in module.TARGETS}:
                module.preload()


def kept_case(file: Path) -> Target:
    """A target with one case, which was kept: of its bytes if it has any, else of its number."""
    recipe = json.loads(file.with_suffix(".json").read_text())
    target = next(t for t in targets() if t.name == recipe["target"])
    content = file.with_suffix(".bin")
    if content.exists():
        case: Any = content.read_bytes()
    else:
        case = target.make(case_random(recipe["seed"], target, recipe["case"]))
    return replace(target, name=file.stem, make=lambda rng: case, cases=1)
