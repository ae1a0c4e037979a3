"""All sets by name."""

from __future__ import annotations

from sublearn.datasets import extreme, gefcom, rcv1, records, uai
from sublearn.datasets.shelf import Description

__all__ = ["list_datasets"]


def list_datasets() -> list[Description]:
    """What there is to fetch.

    Returns
    -------
    list of Description
        With `name`, `call` (the line that loads it), `what`, `licence`, `page` and `sums`.

    Examples
    --------
    >>> from sublearn.datasets import list_datasets
    >>> [one.call for one in list_datasets() if one.licence == "MIT"]
    ['fetch_uai("pdb1etl")']
    """
    rooms = (extreme, records, rcv1, uai, gefcom)
    return [one for room in rooms for one in room.DESCRIPTIONS]
