"""Progress bars: by rich in a terminal, as one line of text that is replaced in a notebook.

In a notebook rich draws by the package ipywidgets, and nothing but a warning without it; a line
that IPython replaces needs no further package.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn

__all__ = ["Bar"]

_NOTEBOOK_SECONDS = 0.1  # between two pictures
_NOTEBOOK_WIDTH = 100


class _Place(Protocol):
    """Where a notebook shows something that may be replaced."""

    def update(self, shown: dict[str, str], *, raw: bool) -> None: ...


class Bar:
    """A bar on standard error, or in the output of a notebook's cell.

    Parameters
    ----------
    columns : list of ProgressColumn
        What it shows.
    title : str
        What is going on.
    total : int, optional
        When it is full.
    **fields
        Texts for the columns.
    """

    def __init__(
        self, columns: list[ProgressColumn], title: str, total: float | None, **fields: Any
    ):
        from rich.progress import Progress

        console = error_console()
        self._place = _place_in_notebook() if console.is_jupyter else None
        self._progress = Progress(*columns, console=_silent(console, self._place is not None))
        self._task = self._progress.add_task(title, total=total, **fields)
        self._shown_at = monotonic() - _NOTEBOOK_SECONDS
        if self._place is None:
            self._progress.start()

    def show(self, completed: float, **changes: Any) -> None:
        """Say how much is done, and what else has changed."""
        self._progress.update(self._task, completed=completed, **changes)
        if self._place is not None and monotonic() - self._shown_at >= _NOTEBOOK_SECONDS:
            self._draw(self._place)

    def _draw(self, place: _Place) -> None:
        self._shown_at = monotonic()
        place.update({"text/plain": _as_text(self._progress)}, raw=True)

    def close(self) -> None:
        """Leave the last picture."""
        if self._place is None:
            self._progress.stop()
        else:
            self._progress.stop_task(self._task)
            self._draw(self._place)


def error_console() -> Console:
    """Rich's view of standard error."""
    from rich.console import Console

    return Console(stderr=True)


def _place_in_notebook() -> _Place | None:
    from IPython.display import display

    place: _Place | None = display({"text/plain": ""}, raw=True, display_id=True)
    return place


def _silent(console: Console, is_silent: bool) -> Console:
    from rich.console import Console

    if not is_silent:
        return console
    return Console(force_jupyter=False, force_terminal=False, width=_NOTEBOOK_WIDTH)


def _as_text(progress: Progress) -> str:
    with progress.console.capture() as got:
        progress.console.print(progress.get_renderable())
    return got.get().rstrip()
