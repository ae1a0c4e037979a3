"""A fit is a short walk: how many files of the package the two longest of them enter.

A file counts once a function of it runs; what is only imported does not.
"""

import inspect
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import sublearn
from sublearn.cli.app import run
from sublearn.forecast import LoadForecaster
from sublearn.io import load_quickstart

PACKAGE = str(Path(sublearn.__file__).parent)


def files_entered(call):
    """Files of the package in which a function was called, on any thread."""
    entered = set()

    def note(frame, event, argument):
        code = frame.f_code
        is_function = code.co_flags & inspect.CO_OPTIMIZED  # bodies of modules and classes are not
        if event == "call" and is_function and code.co_filename.startswith(PACKAGE):
            entered.add(code.co_filename[len(PACKAGE) + 1 :])

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return sorted(entered)


@pytest.fixture
def records(tmp_path):
    """A file of titles and their tags."""
    found = load_quickstart(300)
    lines = [
        f"{','.join(tag.replace(',', ' ') for tag in tags)}\t{text}"
        for text, tags in zip(found.train_texts, found.train_labels, strict=True)
    ]
    path = tmp_path / "records.tsv"
    path.write_text("\n".join(lines), "utf-8")
    return path


@pytest.mark.parametrize(
    ("options", "most"),
    [
        (["--analyzer", "word", "--decision", "above_zero"], 32),
        ([], 39),  # with the trial on held-out texts: words or characters, and a threshold
    ],
    ids=["told", "chosen"],
)
def test_a_fit_of_texts_from_the_command_line_enters_few_files(records, tmp_path, options, most):
    words = ["fit", "text", str(records), "--model", str(tmp_path / "m"), "--quiet", *options]
    entered = files_entered(lambda: run(words))
    assert (tmp_path / "m").exists()
    assert len(entered) <= most, entered


def test_a_fit_of_loads_enters_few_files():
    t = np.arange(24 * 7 * 10)
    loads = 100 + 20 * np.sin(2 * np.pi * t / 24) + np.random.default_rng(0).normal(size=len(t))
    model = LoadForecaster(random_state=0)
    entered = files_entered(lambda: model.fit(loads))
    assert len(entered) <= 22, entered
