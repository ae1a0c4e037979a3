"""`sublearn map`: what it prints and writes, and its refusals."""

import json
import lzma
import math

import pytest

MODEL = "MARKOV 3 2 2 2 3 1 0 2 0 1 2 1 2\n2 0.4 0.6\n4 0.9 0.1 0.1 0.9\n4 0.2 0.8 0.7 0.3\n"
BEST = 0.6 * 0.9 * 0.7  # of 1 1 0


@pytest.fixture
def problem(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "small.uai.xz"
    path.write_bytes(lzma.compress(MODEL.encode()))
    return path


def test_prints_the_figures_and_writes_the_assignment(sublearn, problem, tmp_path):
    done = sublearn("map", problem, "--time-limit", 20, "--n-jobs", 1, "--random-state", 3)
    assert done.code == 0, done
    assert (tmp_path / "small.uai.map").read_text() == "MAP\n3 1 1 0\n"
    assert f"{math.log(BEST):.6f}" in done.out
    assert f"{math.log10(BEST):.6f}" in done.out
    assert all(word in done.out for word in ("score log10", "bound", "gap", "status", "seconds"))


def test_json_and_evidence(sublearn, problem, tmp_path):
    (tmp_path / "e.evid").write_text("1 1 0")
    target = tmp_path / "out.map"
    done = sublearn("map", problem, "--evidence", tmp_path / "e.evid", "--output", target, "--json")
    assert done.code == 0, done
    found = json.loads(done.out)
    best = 0.4 * 0.9 * 0.8
    assert found["score"] == pytest.approx(math.log(best))
    assert found["score_log10"] == pytest.approx(math.log10(best))
    assert found["bound"] >= found["score"] - 1e-9
    assert target.read_text() == "MAP\n3 0 0 1\n"


def test_quiet_prints_nothing(sublearn, problem):
    done = sublearn("map", problem, "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_an_assignment_that_exists_is_not_replaced_unless_told(sublearn, problem, tmp_path):
    kept = tmp_path / "small.uai.map"
    kept.write_text("mine")
    done = sublearn("map", problem)
    assert done.code == 2
    assert "must be given where small.uai.map exists already" in done.err
    assert kept.read_text() == "mine"
    assert sublearn("map", problem, "--output", kept, "--quiet").code == 0
    assert kept.read_text() == "MAP\n3 1 1 0\n"


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--tables", "cubic"], 2, "must be linear, log or log10, got cubic"),
        (["--output", "nowhere/a.map"], 2, "must be in a folder that can be written"),
        (["--time-limit", "-1"], 2, "--time-limit"),
        (["--evidence", "nowhere.evid"], 2, "nowhere.evid"),
    ],
)
def test_refusals(sublearn, problem, arguments, code, sentence):
    done = sublearn("map", problem, *arguments)
    assert done.code == code
    assert sentence in done.err


def test_a_damaged_file_is_one_sentence(sublearn, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "cut.uai"
    path.write_text(MODEL[:60])
    done = sublearn("map", path)
    assert done.code == 1
    assert "line 3, column" in done.err
    assert not (tmp_path / "cut.uai.map").exists()
