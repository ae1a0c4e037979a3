"""Fixtures that several folders of tests share."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data():
    """Folder of real data sets: beside the repository, or where SUBLEARN_DATA says."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("SUBLEARN_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"real data sets are not at hand: no folder {folder}")
    return folder
