"""Fixtures that several folders of tests share."""

import os
import signal
import sys
from pathlib import Path

import pytest


def pytest_configure(config):
    """Let Ctrl-C be tested: in the background of a shell it is ignored, here and in children."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def figures_are_closed():
    """Pictures that a test drew do not wait for the next: pyplot warns of many."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="session")
def shared_data():
    """Folder of real data sets: beside the repository, or where SUBLEARN_DATA says."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("SUBLEARN_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"real data sets are not at hand: no folder {folder}")
    return folder
