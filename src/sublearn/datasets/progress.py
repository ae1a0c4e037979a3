"""The bar of a download."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["DownloadBar"]


class DownloadBar:
    """A bar on standard error with bytes, speed and what time is left; nothing if it is not wanted.

    Parameters
    ----------
    name : str
        What is downloaded.
    is_shown : bool
        Whether to draw it.
    """

    def __init__(self, name: str, is_shown: bool):
        self._name, self._progress = name, _progress() if is_shown else None

    def __enter__(self) -> DownloadBar:
        if self._progress is not None:
            self._progress.start()
            self._task = self._progress.add_task(self._name, total=None)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def show(self, n_bytes: int, total: int | None) -> None:
        """Say how many bytes are there."""
        if self._progress is not None:
            self._progress.update(self._task, completed=n_bytes, total=total)


def _progress() -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        console=Console(stderr=True),
    )
