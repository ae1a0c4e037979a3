"""Every rival of the extreme room that is installed learns a tiny problem."""

import json
import sys

import pytest
from harness.environments import DIRECTORY, ENVIRONMENTS
from harness.judge import ranking_judge
from harness.runner import Conditions, run_all
from harness.synthetic import Documents, make_documents

TINY = Documents(
    n_train=300, n_test=40, n_features=400, n_labels=12, n_groups=3, words_per_document=40
)


def rivals():
    import extreme

    return [entrant for entrant in extreme.ENTRANTS if entrant.environment != "main"]


def is_installed(environment):
    """Whether using it would build nothing."""
    stamp = DIRECTORY / environment / "requirements.json"
    wanted = {"python": sys.version, "requirements": ENVIRONMENTS[environment]}
    return stamp.exists() and json.loads(stamp.read_text()) == wanted


@pytest.mark.parametrize("rival", rivals(), ids=lambda rival: rival.name)
def test_an_installed_rival_beats_guessing(rival):
    if not is_installed(rival.environment):
        pytest.skip(f"environment {rival.environment} is not installed")
    conditions = Conditions(request={"k": 5}, timeout_seconds=60)
    (outcome,) = run_all("tiny", make_documents(TINY, 0), [rival], ranking_judge(), conditions)
    assert outcome.error is None
    assert outcome.figure("P@1") > 2.0 / TINY.n_labels
