"""`sublearn fit --method chain`, and `predict`, `evaluate` and `inspect` with its model."""

import json

import pytest

import sublearn as package
from sublearn.structured import ChainSVM, word_features

SENTENCES = ["the/D dog/N runs/V", "a/D run/N", "dogs/N run/V", "the/D dogs/N run/V"]


def conll(sentences, *, has_tags=True):
    rows = [[token.split("/") for token in sentence.split()] for sentence in sentences]
    return "\n".join(
        "".join("\t".join(token[: 1 + has_tags]) + "\n" for token in row) for row in rows
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokens")
    (folder / "train.conll").write_text(conll(5 * SENTENCES))
    (folder / "new.conll").write_text(conll(SENTENCES[:2], has_tags=False))
    (folder / "test.conll").write_text(conll([*SENTENCES, "a/D run/UNSEEN"]))
    return folder


@pytest.fixture(scope="module")
def model(sublearn, files):
    path = files / "tagger.model"
    done = sublearn("fit", files / "train.conll", "--model", path, "--method", "chain", "--C", 1,
                    "--max-iter", 60, "--json", "-q")  # fmt: skip
    assert done.code == 0, done
    figures = json.loads(done.out)
    assert (figures["sequences"], figures["tokens"], figures["tags"]) == (20, 50, 3)
    assert figures["certificate"] <= 0.01
    return path


def test_tags_come_as_the_last_column(sublearn, files, model, tmp_path):
    done = sublearn("predict", model, files / "new.conll")
    assert done.code == 0, done
    assert done.out == "the\tD\ndog\tN\nruns\tV\n\na\tD\nrun\tN\n\n"
    done = sublearn("predict", model, files / "test.conll", "-o", tmp_path / "out.jsonl")
    assert done.code == 0, done
    first = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    assert first == {"tokens": ["the", "dog", "runs"], "tags": ["D", "N", "V"]}


def test_the_model_is_that_of_python(model):
    tagger = package.load(model)
    assert tagger.predict_one(word_features(["the", "dogs"])) == ["D", "N"]


def test_evaluate_counts_tokens_and_sequences(sublearn, files, model):
    done = sublearn("evaluate", model, files / "test.conll", "--json")
    assert done.code == 0, done
    found = json.loads(done.out)
    assert found["tokens"] == 12
    assert found["token_accuracy"] == pytest.approx(11 / 12)
    assert found["sequence_accuracy"] == pytest.approx(4 / 5)
    assert found["unknown_tags"] == pytest.approx(1 / 12)
    done = sublearn("evaluate", model, files / "test.conll")
    assert "91.67" in done.out


def test_inspect_names_features(sublearn, model):
    done = sublearn("inspect", model, "--label", "D", "--json")
    assert done.code == 0, done
    names = [name for name, _ in json.loads(done.out)["top_weights"]["D"]]
    assert any("=" in name for name in names)


def test_columns_can_be_chosen(sublearn, tmp_path):
    lines = ["1\tthe\tx\tD", "2\tdog\tx\tN", "", "1\truns\tx\tV"]
    (tmp_path / "wide.conll").write_text("\n".join(lines) + "\n")
    done = sublearn("fit", tmp_path / "wide.conll", "--model", tmp_path / "m", "--method", "chain",
                    "--token-columns", "2,4", "--json", "-q")  # fmt: skip
    assert done.code == 0, done
    done = sublearn("predict", tmp_path / "m", tmp_path / "wide.conll")
    assert done.out == "the\tD\ndog\tN\n\nruns\tV\n\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "chain", "--l1", 1], "No such option: --l1"),
        (["--method", "chain", "--normalize"], "--normalize"),
        (["--method", "chain", "--min-df", 2], "--min-df"),
        (["--method", "chain", "--separator", ";"], "--separator"),
        (["--method", "forecast", "--token-columns", "1,2"], "--token-columns"),
        (["--method", "chain", "--token-columns", "1"], "--token-columns"),
        (["--method", "ppd-sparse", "--token-columns", "1,2"], "--token-columns"),
    ],
)
def test_refusals_of_fit(sublearn, files, tmp_path, options, message):
    done = sublearn("fit", files / "train.conll", "--model", tmp_path / "m", *options)
    assert (done.code, message in done.err) == (2, True), done


def test_refusals_with_a_model(sublearn, files, model, tmp_path):
    done = sublearn("predict", model, files / "new.conll", "-k", 3)
    assert (done.code, "-k" in done.err or "--k" in done.err) == (2, True)
    done = sublearn("predict", model, files / "new.conll", "-o", tmp_path / "out.npz")
    assert (done.code, "text, jsonl or csv" in done.err) == (2, True)
    done = sublearn("evaluate", model, files / "new.conll")
    assert (done.code, "must have at least 2 columns" in done.err) == (1, True)
    for command in (["explain", model, files / "test.conll", "--row", 1],
                    ["calibrate", model, files / "test.conll", "-o", tmp_path / "c"]):  # fmt: skip
        done = sublearn(*command)
        assert (done.code, "got a ChainSVM" in done.err) == (2, True)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_model_with_features_of_its_own_is_refused(sublearn, files, tmp_path):
    ChainSVM(max_iter=1).fit([[["a"], ["b"]]], [["x", "y"]]).save(tmp_path / "own.model")
    for command in ("predict", "evaluate"):
        done = sublearn(command, tmp_path / "own.model", files / "test.conll")
        assert (done.code, "must be from `sublearn fit chain`" in done.err) == (2, True)
