"""An entrant: a script that fits and predicts, the environment it runs in, and its settings.

The script is loaded in the entrant's own process and defines

    fit(train, task) -> model                      timed
    predict(model, test, task) -> {name: array}    timed
    prepare(train, task) -> train                  optional, not timed: a rival's own file format
    prepare_test(test, task) -> test               optional, not timed: the same for rows asked
    ready(model, task) -> model                    optional, not timed: a rival's own fast form
    save(model, task, directory)                   optional, not timed: size on disk
    solution(model, task) -> {name: array}         optional, not timed: for the room's audit

where `train` and `test` are dictionaries of arrays and `task` is a :class:`harness.child.Task`.
Imports belong at the top of the script: they happen before the clock starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Entrant"]


@dataclass(frozen=True)
class Entrant:
    """A named way to solve a problem.

    `settings` hold for every problem; `by_problem` overrides them for the problems it names.
    """

    name: str
    environment: str
    script: Path
    settings: Mapping[str, Any] = field(default_factory=dict)
    by_problem: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    note: str = ""

    def settings_for(self, problem: str) -> dict[str, Any]:
        """Settings on `problem`."""
        return {**self.settings, **self.by_problem.get(problem, {})}
