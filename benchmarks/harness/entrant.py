"""An entrant: a script that fits and predicts, the environment it runs in, and its settings.

The script is loaded in the entrant's own process, ``harness/child.py``, and defines

    fit(data, task) -> model                       timed
or
    solve(data, task, keep)                        timed; tells every better model to `keep`

and if it needs them

    read(train) -> data                            not timed: the form that all below get
    refuse(data, task) -> str or None              why it cannot take this problem, if it cannot
    prepare(data, task) -> data                    not timed: a rival's own form of the data
    prepare_test(test, task) -> test               not timed: the same for rows asked
    ready(model, task) -> model                    not timed: a rival's own fast form
    predict(model, test, task) -> {name: array}    timed; without it the model is the answer
    figures(model) -> {name: number}               what it says of the model, such as a bound
    save(model, task, directory)                   not timed: size on disk
    solution(model, task) -> {name: array}         not timed: for an audit

where `train` and `test` are dictionaries of arrays and `task` is a :class:`harness.child.Task`.
Imports belong at the top of the script: they happen before the clock starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

__all__ = ["Entrant"]

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Entrant:
    """A named way to solve a problem; `script` is a file below ``entrants/``.

    `settings` hold for every problem; `by_problem` overrides them for the problems it names. With a
    `sweep` the script is fitted once with each of its settings, from little effort to much.
    """

    name: str
    script: str
    settings: Settings = field(default_factory=dict)
    by_problem: Mapping[str, Settings] = field(default_factory=dict)
    note: str = ""
    environment: str = "main"
    sweep: Sequence[Settings] = ()

    def settings_for(self, problem: str) -> dict[str, Any]:
        """Settings on `problem`."""
        return {**self.settings, **self.by_problem.get(problem, {})}

    def having(self, **settings: Any) -> Entrant:
        """The same with other settings."""
        return replace(self, settings={**self.settings, **settings})
