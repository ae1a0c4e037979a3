"""`sublearn fit --part` and `sublearn join`: real processes, some of which die."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tiny_data import command_line, environment

import sublearn as package
from sublearn.io import load_quickstart

RECORDS = load_quickstart(600)
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
N_PARTS = 3
OPTIONS = ("--separator", "|", "--analyzer", "word", "--min-df", 2, "--n-jobs", 1, "-q")


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "records.tsv"
    rows = zip(RECORDS.train_labels, RECORDS.train_texts, strict=True)
    path.write_text("".join(f"{'|'.join(names)}\t{text}\n" for names, text in rows))
    return path


def weights(path):
    model = package.load(path)
    return model.coef_.toarray().tobytes(), model.intercept_.tobytes()


@pytest.fixture(scope="module")
def whole(sublearn, texts, tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "tags.model"
    assert sublearn("fit", "text", texts, "--model", path, *OPTIONS).code == 0
    return weights(path)


def call(texts, model, number):
    return ("fit", "text", texts, "--model", model, "--part", f"{number}/{N_PARTS}", *OPTIONS)


def test_parts_of_processes_that_are_killed_join_to_the_model_of_one(
    sublearn, texts, whole, tmp_path
):
    model, rng = tmp_path / "tags.model", np.random.default_rng(0)
    children = [
        subprocess.Popen(
            command_line(*call(texts, model, number)), env=environment(),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        for number in range(1, N_PARTS + 1)
    ]  # fmt: skip
    time.sleep(float(rng.uniform(0.5, 2.5)))
    for child in children[:2]:
        child.send_signal(signal.SIGKILL)
    assert [child.wait() for child in children] == [-signal.SIGKILL, -signal.SIGKILL, 0]
    for number in (2, 1):
        assert sublearn(*call(texts, model, number)).code == 0
    assert sublearn("join", model, "-q").code == 0
    assert weights(model) == whole
    assert os.listdir(tmp_path) == ["tags.model"]


def test_the_job_array_of_the_examples_trains_the_parts(sublearn, texts, whole, tmp_path):
    command, model = Path(sys.executable).with_name("sublearn"), tmp_path / "tags.model"
    if not command.exists():
        pytest.skip("the command is not installed beside this Python")
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    options = [str(option) for option in OPTIONS[:-1] if option not in ("--n-jobs", 1)]
    for number in range(1, N_PARTS + 1):
        task = {"SLURM_ARRAY_TASK_ID": str(number), "SLURM_ARRAY_TASK_COUNT": str(N_PARTS)}
        script = [EXAMPLES / "job_array.sh", texts, model, *options]
        subprocess.run(script, env=environment() | task | {"PATH": path}, check=True)
    assert sublearn("join", model, "-q").code == 0
    assert weights(model) == whole


def test_join_names_missing_parts_and_shows_figures(sublearn, texts, whole, tmp_path):
    model = tmp_path / "tags.model"
    done = sublearn(*call(texts, model, 2), "--json")
    shown = json.loads(done.out)
    assert (shown["part"], shown["n_parts"]) == (2, N_PARTS)
    assert shown["labels"] == shown["labels_solved_now"] > 0
    refused = sublearn("join", model)
    assert refused.code == 1
    assert "of part 1, 3 of 3; run what is missing again" in " ".join(refused.err.split())
    for number in (1, 3):
        assert sublearn(*call(texts, model, number)).code == 0
    shown = json.loads(sublearn("join", model, "-q", "--json").out)
    assert shown["model"] == str(model)
    assert weights(model) == whole


def test_join_takes_data_from_another_place(sublearn, texts, whole, tmp_path):
    model, moved = tmp_path / "tags.model", tmp_path / "moved.tsv"
    here = tmp_path / "here.tsv"
    here.write_bytes(texts.read_bytes())
    for number in range(1, N_PARTS + 1):
        assert sublearn(*call(here, model, number)).code == 0
    here.rename(moved)
    assert "here.tsv" in sublearn("join", model, "-q").err
    assert sublearn("join", model, moved, "-q").code == 0
    assert weights(model) == whole


@pytest.mark.parametrize("part", ["0/3", "4/3", "3", "a/b", "1/0"])
def test_refuses_what_is_no_part(sublearn, texts, tmp_path, part):
    done = sublearn("fit", "text", texts, "--model", tmp_path / "m", "--part", part)
    assert done.code == 2
    assert f"--part: must be K/N with 1 <= K <= N, such as 3/100, got {part}" in done.err


def test_methods_without_parts_have_no_such_option(sublearn, texts, tmp_path):
    done = sublearn("fit", "hml", texts, "--model", tmp_path / "m", "--part", "1/2")
    assert done.code == 2
    assert "No such option: --part" in done.err


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "[" * 9999, '{"method": "text", "data": "x", "options": ["a"]}',
     '{"method": "text", "data": "x", "options": ["--model=elsewhere"]}',
     '{"method": 1, "data": "x", "options": []}', '{"method": "text", "data": "x", "options": 5}'],
)  # fmt: skip
def test_refuses_a_call_that_is_none(sublearn, tmp_path, text):
    (tmp_path / "m.parts").mkdir()
    (tmp_path / "m.parts" / "call.json").write_text(text)
    done = sublearn("join", tmp_path / "m")
    assert done.code in (1, 2)
    assert "call.json: not the call of a fit in parts" in " ".join(done.err.split())


def test_refuses_a_model_without_parts(sublearn, tmp_path):
    done = sublearn("join", tmp_path / "m")
    assert "call.json: no such file; `sublearn fit --part K/N` writes it" in " ".join(
        done.err.split()
    )


def test_refuses_parts_of_another_call(sublearn, texts, tmp_path):
    model = tmp_path / "tags.model"
    assert sublearn(*call(texts, model, 1)).code == 0
    done = sublearn(*call(texts, model, 2), "--bits", "8")
    assert done.code == 2
    assert "needs the same call for all parts, got other options" in " ".join(done.err.split())


def test_a_call_of_a_method_without_parts_is_refused(sublearn, tmp_path):
    (tmp_path / "m.parts").mkdir()
    (tmp_path / "rows.svm").write_text("1 1:1\n2 2:1\n" * 10)
    words = f'{{"method": "pd-sparse", "data": "{tmp_path}/rows.svm", "options": []}}'
    (tmp_path / "m.parts" / "call.json").write_text(words)
    done = sublearn("join", tmp_path / "m")
    assert "must be one that is fitted in parts, got pd-sparse" in " ".join(done.err.split())


def test_parts_of_standard_input_are_joined_with_data(sublearn, texts, whole, tmp_path):
    model = tmp_path / "tags.model"
    for number in range(1, N_PARTS + 1):
        command = command_line(*call("-", model, number))
        with texts.open() as lines:
            subprocess.run(command, stdin=lines, env=environment(), check=True)
    done = sublearn("join", model, "-q")
    assert "DATA: must be given: the parts read it from standard input" in done.err
    assert sublearn("join", model, texts, "-q").code == 0
    assert weights(model) == whole


def test_refusals_name_what_was_typed(sublearn, texts, tmp_path):
    model, folder = tmp_path / "tags.model", tmp_path / "tags.model.parts"
    assert sublearn(*call(texts, model, 1)).code == 0
    done = sublearn("fit", "text", texts, "--model", model, *OPTIONS, "--part", "1/2")
    assert done.code == 2
    assert f"--part: must be K/{N_PARTS}, as of the parts in {folder}, got 2" in one_line(done.err)
    (folder / "cut.json").unlink()
    done = sublearn("fit", "text", texts, "--model", model, *OPTIONS, "--part", "1/2")
    assert "--model: must not have the unfinished parts of a fit in one" in one_line(done.err)
    for name in ("n_parts", "model_path"):
        assert name not in done.err


def one_line(text):
    return " ".join(text.split())
