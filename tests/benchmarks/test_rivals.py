"""Every rival of the extreme room that is installed learns a tiny problem."""

from pathlib import Path

import pytest
from harness.bench import Bench
from harness.environments import is_installed
from harness.judge import ranking_judge
from harness.runner import Case
from harness.synthetic import Documents, make_documents

TINY = Documents(
    n_train=300, n_test=40, n_features=400, n_labels=12, n_groups=3, words_per_document=40
)


def rivals():
    import extreme

    return [entrant for entrant in extreme.ENTRANTS if entrant.environment != "main"]


@pytest.mark.parametrize("rival", rivals(), ids=lambda rival: rival.name)
def test_an_installed_rival_beats_guessing(rival):
    if not is_installed(rival.environment):
        pytest.skip(f"environment {rival.environment} is not installed")
    case = Case("tiny", lambda: make_documents(TINY, 0), ranking_judge(), {"k": 5})
    outcome = Bench(Path()).run(case, rival, 60.0)
    assert outcome.error is None
    assert outcome.figure("P@1") > 2.0 / TINY.n_labels
