"""The model that the servers of these tests have."""

import sys
from pathlib import Path

import pytest

from sublearn.extreme import TextTagger

sys.path.insert(0, str(Path(__file__).parent))  # importlib mode hides the modules beside tests

N_LABELS = 300


@pytest.fixture(scope="session")
def tagger_file(tmp_path_factory):
    """A model of 300 labels, one for each word."""
    words = [f"word{i}" for i in range(N_LABELS)]
    model = TextTagger(min_df=1).fit(words * 2, [[f"label {word}"] for word in words] * 2)
    path = tmp_path_factory.mktemp("serve") / "tagger.model"
    model.save(path)
    return path
