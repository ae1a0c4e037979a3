"""The bar of a download."""

from __future__ import annotations

from types import TracebackType

from sublearn.bars import Bar

__all__ = ["DownloadBar"]


class DownloadBar:
    """A bar with bytes, speed and what time is left; nothing if it is not wanted.

    Parameters
    ----------
    name : str
        What is downloaded.
    is_shown : bool
        Whether to draw it.
    """

    def __init__(self, name: str, is_shown: bool):
        self._name, self._is_shown = name, is_shown
        self._bar: Bar | None = None

    def __enter__(self) -> DownloadBar:
        if self._is_shown:
            self._bar = _bar(self._name)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def show(self, n_bytes: int, total: int | None) -> None:
        """Say how many bytes are there."""
        if self._bar is not None:
            self._bar.show(n_bytes, total=total)


def _bar(name: str) -> Bar:
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = [
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
    ]
    return Bar(columns, name, None)
