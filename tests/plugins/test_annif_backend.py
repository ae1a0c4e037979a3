"""The Annif backend, run by the real `annif` command on records that come with the package."""

import os
import re
import subprocess
import sys

import pytest

from sublearn.io import load_quickstart

pytest.importorskip("annif", reason="needs Annif: pip install annif")

PROJECTS = """
[tfidf]
language=en
backend=tfidf
analyzer=snowball(english)
vocab=headings

[ours]
language=en
backend=sublearn
analyzer=snowball(english)
vocab=headings
l1=0.3

[plain]
language=en
backend=sublearn
analyzer=snowball(english)
vocab=headings
calibration=0

[grown]
language=en
backend=sublearn
analyzer=snowball(english)
vocab=headings
allow_learn=true

[ranked]
language=en
backend=sublearn
analyzer=snowball(english)
vocab=headings
l1=0.3
rerank=1
allow_learn=true

[wrong]
language=en
backend=sublearn
analyzer=snowball(english)
vocab=headings
l1=much
"""


def uri(label, numbers):
    return f"<http://example.org/{numbers[label]}>"


def write_corpus(path, texts, labels, numbers):
    pairs = zip(texts, labels, strict=True)
    path.write_text(
        "".join(f"{text}\t{' '.join(uri(x, numbers) for x in names)}\n" for text, names in pairs)
    )


def write_empty_sentence_model(folder):
    """Annif's tokeniser asks NLTK for a table of sentence ends, which would be downloaded."""
    tables = folder / "tokenizers" / "punkt_tab" / "english"
    tables.mkdir(parents=True)
    for name in ("collocations.tab", "sent_starters.txt", "abbrev_types.txt", "ortho_context.tab"):
        (tables / name).touch()


@pytest.fixture(scope="module")
def annif(tmp_path_factory):
    """Runs `annif` in a folder with a vocabulary, a training corpus and a test corpus."""
    folder = tmp_path_factory.mktemp("annif")
    data = load_quickstart(2000)
    names = sorted({name for labels in data.train_labels for name in labels})
    numbers = {name: i for i, name in enumerate(names)}
    known = [[name for name in labels if name in numbers] for labels in data.test_labels]
    (folder / "vocab.tsv").write_text("".join(f"{uri(n, numbers)}\t{n}\n" for n in names))
    write_corpus(folder / "train.tsv", data.train_texts, data.train_labels, numbers)
    write_corpus(folder / "test.tsv", data.test_texts[:300], known[:300], numbers)
    (folder / "empty.tsv").write_text("")
    (folder / "projects.cfg").write_text(PROJECTS)
    write_empty_sentence_model(folder / "nltk")

    def run(*arguments, text=None, config="sublearn.plugins.annif.Config"):
        settings = {"ANNIF_PROJECTS": "projects.cfg", "NLTK_DATA": str(folder / "nltk")}
        settings |= {"ANNIF_CONFIG": config} if config else {}
        command = [sys.executable, "-m", "annif.cli", *arguments]
        return subprocess.run(
            command, cwd=folder, env=os.environ | settings, input=text, capture_output=True,
            text=True, timeout=300,
        )  # fmt: skip

    done = run("load-vocab", "headings", "vocab.tsv", "--language", "en")
    assert done.returncode == 0, done.stderr
    for project in ("tfidf", "ours", "plain", "grown", "ranked"):
        done = run("train", project, "train.tsv", "-j", "1")
        assert done.returncode == 0, done.stderr
    return run


def evaluate(annif, project, *options):
    metrics = ("-m", "F1@5", "-m", "Precision@1")
    done = annif("eval", project, "test.tsv", *metrics, *options)
    assert done.returncode == 0, done.stderr
    return {name: float(value) for name, value in re.findall(r"(\S+@\d):\s+(\S+)", done.stdout)}


def test_suggests_subjects_with_scores_up_to_one(annif):
    text = load_quickstart(10).test_texts[1]
    done = annif("suggest", "ours", "--limit", "5", text=text)
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(rows) == 5
    assert all(row[0].startswith("<http://example.org/") for row in rows)
    scores = [float(row[2]) for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert 0 < scores[-1] <= scores[0] <= 1


def test_learns_about_as_much_from_few_records_as_the_baseline_of_annif(annif):
    ours, baseline = evaluate(annif, "ours"), evaluate(annif, "tfidf")
    assert ours["Precision@1"] > 0.8 * baseline["Precision@1"] > 0.05
    assert ours["F1@5"] > 0.8 * baseline["F1@5"]


def test_probabilities_rank_as_scores_do(annif):
    ours, plain = evaluate(annif, "ours"), evaluate(annif, "plain")
    assert ours["Precision@1"] > 0.8 * plain["Precision@1"]


def test_a_second_stage_suggests_better(annif):
    ours, ranked = evaluate(annif, "ours"), evaluate(annif, "ranked")
    assert ranked["F1@5"] > ours["F1@5"]
    done = annif("suggest", "ranked", "--limit", "5", text=load_quickstart(10).test_texts[1])
    scores = [float(line.split("\t")[2]) for line in done.stdout.splitlines()]
    assert 0 < scores[-1] <= scores[0] <= 1
    done = annif("learn", "ranked", "test.tsv")
    assert "does not learn further" in done.stderr


def test_learns_from_further_documents(annif):
    before = evaluate(annif, "grown")
    done = annif("learn", "grown", "test.tsv")
    assert done.returncode == 0, done.stderr
    after = evaluate(annif, "grown")
    assert after["Precision@1"] > before["Precision@1"] + 0.2
    scores = [
        float(line.split("\t")[2])
        for line in annif("suggest", "grown", text="university libraries").stdout.splitlines()
    ]
    assert all(0 < score <= 1 for score in scores)


def test_several_processes_suggest_the_same(annif):
    assert evaluate(annif, "ours", "-j", "2") == evaluate(annif, "ours")


def test_a_text_without_known_words_gets_no_suggestion(annif):
    done = annif("suggest", "ours", text="zzzz qqqq")
    assert (done.returncode, done.stdout) == (0, "")


def test_is_unknown_without_the_configuration(annif):
    done = annif("train", "ours", "train.tsv", config=None)
    assert done.returncode != 0
    assert "Could not create backend sublearn" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "wrong", "train.tsv"], "l1 must be a number, got much"),
        (["train", "plain", "--cached"], "does not keep training data for reuse"),
        (["train", "plain", "empty.tsv"], "with no documents"),
        (
            ["train", "ours", "train.tsv", "-b", "sublearn.calibration=1"],
            "calibration must be from",
        ),
        (["suggest", "wrong"], "not trained"),
    ],
)
def test_refuses_with_a_sentence(annif, arguments, words):
    done = annif(*arguments, text="a text")
    assert done.returncode != 0
    assert words in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
