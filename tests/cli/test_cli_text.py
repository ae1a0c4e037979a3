"""Raw text on the command line: fit, predict, evaluate, calibrate, explain, inspect."""

import gzip
import json

import numpy as np
import pytest

import sublearn as package
from sublearn.extreme import PPDSparseClassifier, TextTagger
from sublearn.io import load_quickstart

RECORDS = load_quickstart(600)


def lines(texts, labels, separator="|"):
    pairs = zip(texts, labels, strict=True)
    return "".join(f"{separator.join(names)}\t{text}\n" for text, names in pairs)


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    paths = {name: folder / f"{name}.tsv" for name in ("train", "heldout", "test")}
    paths["train"].write_text(lines(RECORDS.train_texts, RECORDS.train_labels))
    paths["heldout"].write_text(lines(RECORDS.test_texts[:400], RECORDS.test_labels[:400]))
    paths["test"].write_text(lines(RECORDS.test_texts[400:700], RECORDS.test_labels[400:700]))
    return paths


@pytest.fixture(scope="module")
def tags(sublearn, texts, tmp_path_factory):
    path = tmp_path_factory.mktemp("tags") / "tags.model"
    done = sublearn(
        "fit", "--text", texts["train"], "-m", path, "--separator", "|", "--min-df", 2, "-q"
    )
    assert done.code == 0, done
    return path


@pytest.fixture(scope="module")
def calibrated(sublearn, texts, tags):
    path = tags.with_name("calibrated.model")
    done = sublearn("calibrate", tags, texts["heldout"], "-o", path, "--json")
    assert done.code == 0, done
    found = json.loads(done.out)
    assert found["method"] == "sigmoid"
    own, shared = found["labels_with_own_map"], found["labels_that_share_one"]
    assert own + shared == found["labels"]
    return path


def test_fits_the_model_that_python_fits(tags):
    model = package.load(tags)
    assert isinstance(model, TextTagger)
    classifier = PPDSparseClassifier(random_state=0, n_jobs=-1)
    same = TextTagger(classifier, min_df=2).fit(RECORDS.train_texts, RECORDS.train_labels)
    new = RECORDS.test_texts[:50]
    for left, right in zip(model.predict_top_k(new), same.predict_top_k(new), strict=True):
        np.testing.assert_array_equal(left, right)
    assert model.notes_ == {"separator": "|", "columns": "labels,text"}


def test_tells_what_the_fit_cost(sublearn, texts, tmp_path):
    done = sublearn("fit", "--text", texts["train"], "-m", tmp_path / "m", "--separator", "|",
                    "--vectorizer", "hashing", "--n-hashes", 1024, "--ngram-range", "1,2",
                    "--l1", 1, "--json")  # fmt: skip
    assert done.code == 0, done
    figures = json.loads(done.out)
    assert (figures["rows"], figures["features"]) == (600, 1024)
    assert package.load(tmp_path / "m").ngram_range == (1, 2)


def test_reads_json_lines_and_characters(sublearn, tmp_path):
    records = zip(RECORDS.train_texts[:100], RECORDS.train_labels[:100], strict=True)
    rows = [json.dumps({"text": text, "labels": labels}) for text, labels in records]
    with gzip.open(tmp_path / "r.jsonl.gz", "wt") as stream:
        stream.write("\n".join(rows))
    options = ["--analyzer", "char_wb", "--ngram-range", "2,4", "--max-features", 300, "-q"]
    done = sublearn("fit", "--text", tmp_path / "r.jsonl.gz", "-m", tmp_path / "m", *options)
    assert done.code == 0, done
    assert package.load(tmp_path / "m").coef_.shape[1] == 300


def test_predicts_texts_with_and_without_labels(sublearn, texts, tags, tmp_path):
    done = sublearn("predict", tags, texts["test"], "-k", 2, "--text", "--format", "jsonl")
    assert done.code == 0, done
    rows = [json.loads(line) for line in done.out.splitlines()]
    labels, scores = package.load(tags).predict_top_k(RECORDS.test_texts[400:700], 2)
    assert [row["labels"] for row in rows] == labels.tolist()
    np.testing.assert_allclose([row["scores"] for row in rows], scores, rtol=1e-6)
    (tmp_path / "plain.txt").write_text("\n".join(RECORDS.test_texts[400:700]))
    plain = sublearn("predict", tags, tmp_path / "plain.txt", "-k", 2, "--format", "jsonl")
    assert plain.out == done.out


def test_a_file_without_texts_gives_no_lines(sublearn, tags, tmp_path):
    (tmp_path / "none.tsv").write_text("")
    done = sublearn("predict", tags, tmp_path / "none.tsv")
    assert (done.code, done.out) == (0, "")


def test_evaluates_and_judges_probabilities_of_a_calibrated_model(
    sublearn, texts, tags, calibrated
):
    plain = json.loads(sublearn("evaluate", tags, texts["test"], "--json").out)
    done = sublearn(
        "evaluate", calibrated, texts["test"], "--text", "--train", texts["train"], "--json"
    )
    assert done.code == 0, done
    found = json.loads(done.out)
    assert found["rows"] == 300
    assert found["P@1"] == plain["P@1"] > 0.02
    assert 0 <= found["ECE@5"] < 0.1
    assert "PSP@1" in found
    assert "ECE@5" not in plain


def test_writes_probabilities(sublearn, texts, calibrated):
    done = sublearn(
        "predict", calibrated, texts["test"], "--probabilities", "-k", 1, "--format", "jsonl"
    )
    assert done.code == 0, done
    found = [json.loads(line)["scores"][0] for line in done.out.splitlines()]
    _, expected = package.load(calibrated).predict_proba_top_k(RECORDS.test_texts[400:700], 1)
    np.testing.assert_allclose(found, expected[:, 0], rtol=1e-6)


def test_calibrates_in_place_and_keeps_the_notes(sublearn, texts, tags, tmp_path):
    path = tmp_path / "own.model"
    path.write_bytes(tags.read_bytes())
    options = ["--method", "isotonic", "--min-positives", 5]
    done = sublearn("calibrate", path, texts["heldout"], *options)
    assert done.code == 0, done
    assert "labels that share one" in done.out
    model = package.load(path)
    assert model.classifier_.calibration_.method == "isotonic"
    assert model.notes_["separator"] == "|"


def test_calibrates_a_model_of_numbers(sublearn, model, files, tmp_path):
    done = sublearn("calibrate", model, files["txt"], "-o", tmp_path / "m", "-q")
    assert (done.code, done.out) == (0, "")
    rows = sublearn("predict", tmp_path / "m", files["txt"], "--probabilities").out.splitlines()
    assert all(0 <= float(pair.rsplit(":", 1)[1]) <= 1 for pair in rows[0].split("\t"))


# --- explain ---------------------------------------------------------------------------------


def test_explains_a_text(sublearn, tags):
    text = RECORDS.test_texts[0]
    model = package.load(tags)
    label = model.predict_top_k([text], 1)[0][0, 0]
    done = sublearn("explain", tags, "--text", text, "-k", 3)
    assert done.code == 0, done
    assert done.out.rstrip("\n") == str(model.explain(text, label, 3))


def test_explains_rows_and_several_labels(sublearn, tags, texts):
    model = package.load(tags)
    names = model.classes_[:2].tolist()
    options = ["--row", 2, "--label", names[0], "--label", names[1], "--json"]
    done = sublearn("explain", tags, texts["test"], *options)
    assert done.code == 0, done
    found = json.loads(done.out)["explanations"]
    expected = [model.explain(RECORDS.test_texts[401], name).to_dict() for name in names]
    assert found == json.loads(json.dumps(expected))


def test_explains_numbers_with_the_names_of_the_file(sublearn, files, tmp_path):
    sublearn("fit", files["npz"], "-m", tmp_path / "m", "-q")
    done = sublearn("explain", tmp_path / "m", files["npz"], "--row", 1, "--label", "topic 0")
    assert done.code == 0, done
    assert done.out.startswith("topic 0: score ")
    assert "word0" in done.out


# --- inspect ---------------------------------------------------------------------------------


def test_inspects_each_label_of_a_text_model(sublearn, tags):
    done = sublearn("inspect", tags, "--labels", "all", "--top", 2, "--json")
    assert done.code == 0, done
    found = json.loads(done.out)
    entries, model = found["each_label"], package.load(tags)
    assert found["classifier"]["class"] == "PPDSparseClassifier"
    assert len(entries) == len(model.classes_)
    positives = [entry["positives"] for entry in entries]
    assert positives == sorted(positives, reverse=True)
    row = model.classes_.tolist().index(entries[0]["label"])
    weights = model.coef_.tocsr()[row]
    assert entries[0]["weights"] == weights.nnz
    assert entries[0]["bias"] == pytest.approx(model.intercept_[row])
    best = np.argmax(np.abs(weights.data))
    assert entries[0]["strongest"][0][0] == model.feature_names_[weights.indices[best]]
    assert len(entries[0]["strongest"]) == 2


@pytest.mark.parametrize(("sort", "key"), [("weights", "weights"), ("bias", "bias")])
def test_inspect_sorts_and_cuts(sublearn, tags, sort, key):
    options = ["--labels", "all", "--sort", sort, "--limit", 7, "--json"]
    entries = json.loads(sublearn("inspect", tags, *options).out)["each_label"]
    values = [entry[key] for entry in entries]
    assert len(values) == 7
    assert values == sorted(values, reverse=True)


def test_inspects_chosen_labels_of_a_model_of_numbers(sublearn, model):
    done = sublearn("inspect", model, "--labels", "3, 1", "--sort", "name")
    assert done.code == 0, done
    assert "strongest features" in done.out
    found = json.loads(sublearn("inspect", model, "--labels", "3,1", "--json").out)
    assert {entry["label"] for entry in found["each_label"]} == {"1", "3"}
    assert all(entry["positives"] > 0 for entry in found["each_label"])


# --- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--ngram-range", "2"], "TextTagger.ngram_range must be a pair of positive integers"),
        (["--ngram-range", "2,1"], "TextTagger.ngram_range must be a pair of positive integers"),
        (["--vectorizer", "count"], "TextTagger.vectorizer must be 'tfidf' or 'hashing'"),
        (["--columns", "text"], "--columns: must be labels,text or text,labels, got text"),
        (["--separator", ""], "--separator: must have characters, got none"),
        (["--n-hashes", "8"], "TextTagger.n_hashes must be None for vectorizer='tfidf'"),
        (["--labels", "3"], "No such option: --labels"),
        (["--zero-based"], "No such option: --zero-based"),
        (["--no-normalize"], "No such option: --no-normalize"),
    ],
)
def test_fit_refuses_with_exit_code_2(sublearn, texts, tmp_path, options, words):
    done = sublearn("fit", "--text", texts["train"], "-m", tmp_path / "m", *options)
    assert done.code == 2, done
    assert words in done.err
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("option", ["--vectorizer", "--ngram-range", "--min-df", "--separator"])
def test_options_of_text_need_text(sublearn, files, tmp_path, option):
    done = sublearn("fit", files["txt"], "-m", tmp_path / "m", option, "1")
    assert done.code == 2, done
    assert option in done.err


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("columns", [(), ("--columns", "labels,text")])
def test_fit_warns_of_sentences_for_labels_unless_the_order_is_given(sublearn, tmp_path, columns):
    path = tmp_path / "swapped.tsv"
    path.write_text("A survey, its data\tp1\nSailing, a handbook\tp2\nLighthouses, a list\tp1\n")
    done = sublearn("fit", "--text", path, "-m", tmp_path / "m", "-q", *columns)
    assert done.code == 0, done
    assert ("say --columns text,labels" in done.err) == (not columns)


def test_fit_does_not_warn_of_labels_that_are_labels(sublearn, texts, tmp_path):
    done = sublearn("fit", "--text", texts["train"], "-m", tmp_path / "m", "--separator", "|", "-q")
    assert (done.code, done.err) == (0, "")


def test_fit_names_the_line_that_is_no_record(sublearn, tmp_path):
    (tmp_path / "r.tsv").write_text("a\tFirst text\nsecond without a tab\n")
    done = sublearn("fit", "--text", tmp_path / "r.tsv", "-m", tmp_path / "m")
    assert done.code == 1
    assert "r.tsv:2: must have a tab between labels and text" in done.err
    (tmp_path / "r.tsv").write_text("")
    done = sublearn("fit", "--text", tmp_path / "r.tsv", "-m", tmp_path / "m")
    assert done.code == 1
    assert "must have at least one row, got 0" in done.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["predict", "{tags}", "{test}", "--probabilities"], "--probabilities: needs a model with"),
        (["predict", "{tags}", "{test}", "--labels", "3"], "--labels: is for data of numbers"),
        (["predict", "{model}", "{data}", "--text"], "--text: needs a model that was fitted to"),
        (["predict", "{model}", "{data}", "--columns", "x"], "--columns: is for text"),
        (["calibrate", "{tags}", "{test}", "--method", "x"], "--method: must be one of sigmoid"),
        (["explain", "{tags}"], "DATA: must be a data file, or --text given"),
        (["explain", "{tags}", "{test}"], "--row: must say which row of DATA"),
        (["explain", "{tags}", "{test}", "--text", "x"], "DATA: must not be given with --text"),
        (["explain", "{tags}", "--text", "x", "--row", "1"], "--row: needs DATA, got --text"),
        (["explain", "{tags}", "{test}", "--row", "999"], "--row: must be at most 300, got 999"),
        (["explain", "{model}", "--text", "x"], "--text: needs a model that was fitted to text"),
        (["explain", "{tags}", "--text", "x", "--label", "zz"], "--label: must be one of the"),
        (["inspect", "{tags}", "--labels", "zz"], "--labels: must be one of the model's"),
        (["inspect", "{tags}", "--labels", "all", "--sort", "x"], "--sort: must be one of"),
        (["inspect", "{tags}", "--sort", "bias"], "--sort: needs --labels of a model"),
        (["inspect", "{tags}", "--limit", "3"], "--limit: needs --labels of a model"),
        (["inspect", "{data}", "--limit", "3"], "--limit: needs --labels of a model"),
        (["inspect", "{data}", "--label", "3"], "--label: needs a model, got a data file"),
        (["inspect", "{data}", "--top", "3"], "--top: needs a model, got a data file"),
        (["predict", "{tags}", "{test}", "--separator", ""], "--separator: must have characters"),
    ],
)
def test_refuses_by_the_name_of_the_argument(sublearn, tags, texts, model, files, arguments, words):
    places = {"tags": tags, "test": texts["test"], "model": model, "data": files["txt"]}
    done = sublearn(*(argument.format(**places) for argument in arguments))
    assert done.code == 2, done
    assert words in done.err.replace("Invalid value for ", "")
    assert done.err.count("\n") == 1


def test_positives_that_nobody_counted_cannot_be_sorted_by(sublearn, tmp_path):
    X, y = np.eye(4), ["a", "b", "a", "b"]
    PPDSparseClassifier(random_state=0).fit(X, y).save(tmp_path / "m")
    done = sublearn("inspect", tmp_path / "m", "--labels", "all", "--sort", "positives")
    assert done.code == 2
    assert "--sort: positives needs a model that knows them" in done.err
    found = json.loads(sublearn("inspect", tmp_path / "m", "--labels", "all", "--json").out)
    assert found["each_label"][0]["positives"] is None


@pytest.fixture
def gaps(tmp_path):
    """Six lines, of which three have no text; the last but one has labels all the same."""
    path = tmp_path / "gaps.tsv"
    text = RECORDS.test_texts[0], RECORDS.test_texts[1]
    path.write_text(f"x\t{text[0]}\n\n\t\n{text[1]}\na|b\t \n{text[0]}\n")
    return path


def test_every_line_has_its_answer_and_that_of_an_empty_one_is_empty(sublearn, tags, gaps):
    done = sublearn("predict", tags, gaps, "-k", 2)
    assert done.code == 0, done
    answers = done.out.split("\n")[:-1]
    assert [bool(answer) for answer in answers] == [True, False, False, True, False, True]
    assert answers[0] == answers[5]
    assert "gaps.tsv: 3 of 6 rows are empty, and so are their answers" in done.err
    labels, _ = package.load(tags).predict_top_k(RECORDS.test_texts[1:2], 2)
    assert [pair.rpartition(":")[0] for pair in answers[3].split("\t")] == labels[0].tolist()


def test_empty_answers_are_marked_in_every_format(sublearn, tags, gaps, tmp_path):
    expected = [False, True, True, False, True, False]
    done = sublearn("predict", tags, gaps, "--format", "jsonl")
    found = [json.loads(line) for line in done.out.splitlines()]
    assert [one.get("empty", False) for one in found] == expected
    assert found[1] == {"labels": [], "scores": [], "empty": True}
    sublearn("predict", tags, gaps, "-o", tmp_path / "p.npz")
    with np.load(tmp_path / "p.npz") as arrays:
        assert arrays["is_empty"].tolist() == expected
        assert np.isnan(arrays["scores"]).all(axis=1).tolist() == expected
        assert (arrays["labels"] == "").all(axis=1).tolist() == expected


def test_evaluation_counts_every_line_and_an_empty_one_as_missed(
    sublearn, calibrated, texts, tmp_path
):
    full, gaps = tmp_path / "full.tsv", tmp_path / "gaps.tsv"
    lines = texts["test"].read_text().splitlines()[:40]
    full.write_text("\n".join(lines))
    gaps.write_text("\n\n".join(lines))
    before, after = (
        json.loads(sublearn("evaluate", calibrated, path, "--json").out) for path in (full, gaps)
    )
    assert (before["rows"], after["rows"]) == (40, 79)
    for name in ("P@1", "nDCG@3", "R@5"):
        assert after[name] == pytest.approx(before[name] * 40 / 79)
    assert after["ECE@1"] == pytest.approx(before["ECE@1"])


def test_blank_lines_teach_nothing(sublearn, tags, texts, tmp_path):
    gaps = tmp_path / "gaps.tsv"
    gaps.write_text(texts["train"].read_text().replace("\n", "\n\n"))
    options = ["--separator", "|", "--min-df", 2, "-q"]
    done = sublearn("fit", "--text", gaps, "-m", tmp_path / "m", *options)
    assert done.code == 0, done
    assert (package.load(tmp_path / "m").coef_ != package.load(tags).coef_).nnz == 0
    held = tmp_path / "held.tsv"
    held.write_text(texts["heldout"].read_text().replace("\n", "\n\n"))
    for name, data in (("a", held), ("b", texts["heldout"])):
        assert sublearn("calibrate", tags, data, "-o", tmp_path / name, "-q").code == 0
    probabilities = [
        package.load(tmp_path / name).predict_proba_top_k(RECORDS.test_texts[:5])[1]
        for name in ("a", "b")
    ]
    np.testing.assert_array_equal(*probabilities)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_method_of_one_label_a_row_learns_from_texts(sublearn, tmp_path, n_classes):
    data, path = tmp_path / "animals.tsv", tmp_path / "m"
    kinds = {"cat": "cats sit", "dog": "dogs bark", "cow": "cows chew"}
    rows = list(kinds.items())[:n_classes]
    data.write_text("".join(f"{kind}\t{text} number {i}\n" for kind, text in rows for i in "123"))
    options = ["--method", "sparse-logistic", "--l1", 0.001]
    done = sublearn("fit", "--text", data, "-m", path, *options, "-q")
    assert done.code == 0, done
    found = sublearn("predict", path, data, "-k", 1).out.splitlines()
    assert [line.split(":")[0] for line in found] == [kind for kind, _ in rows for _ in "123"]
    assert json.loads(sublearn("evaluate", path, data, "--json").out)["P@1"] == 1
    assert "bark" in sublearn("inspect", path, "--label", "dog").out
    done = sublearn("calibrate", path, data)
    assert done.code == 2, done
    assert "can calibrate, got a SparseLogisticRegression" in done.err
    assert "bark" in sublearn("explain", path, "--text", "dogs bark", "--label", "dog").out
    more = tmp_path / "more.tsv"
    more.write_text("cat,dog\tboth\ncat\tone\n")
    done = sublearn("fit", "--text", more, "-m", tmp_path / "n", *options)
    assert done.code == 1
    assert "one for each text for this method, got ['cat', 'dog'] for text 1" in done.err


def test_a_taxonomy_is_refused_where_labels_are_plain(sublearn, texts, tmp_path):
    done = sublearn("fit", "--text", texts["train"], "-m", tmp_path / "m", "--label-paths", "/")
    assert done.code == 2
    assert "No such option: --label-paths" in done.err


def test_a_text_without_a_known_word_has_an_empty_answer(sublearn, tmp_path):
    (tmp_path / "t.tsv").write_text("a\tone two\nb\tthree four\n" * 20)
    assert sublearn("fit", "text", tmp_path / "t.tsv", "-m", tmp_path / "m", "-q").code == 0
    (tmp_path / "new.txt").write_text("one\nnobody knows\n\nfour\n")
    done = sublearn("predict", tmp_path / "m", tmp_path / "new.txt", "-k", 1, "--json")
    found = [json.loads(line) for line in done.out.splitlines()]
    assert [one["labels"] for one in found] == [["a"], [], [], ["b"]]
    assert [one.get("empty") for one in found] == [None, True, True, None]
    assert "1 of 4 rows are empty" in done.err
    assert "1 of 4 rows have nothing that the model knows" in done.err
