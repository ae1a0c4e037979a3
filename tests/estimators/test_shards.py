"""Models in shards: the answers of one file to the last bit, ties too, and folders that lie."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

import sublearn
from sublearn.errors import ModelFileError
from sublearn.extreme import (
    PDSparseClassifier,
    PPDSparseClassifier,
    TextTagger,
    load_shards,
    save_shards,
)
from sublearn.extreme.linear_labels import LinearLabels


def problem(dtype=np.float32, n_labels=70):
    rng = np.random.default_rng(0)
    X = sp.random(150, 40, 0.3, "csr", random_state=rng, data_rvs=rng.standard_normal)
    Y = np.asarray(X @ rng.normal(size=(40, n_labels))) > 1.3
    Y[:, 50:60] = Y[:, 10:20]  # twins: equal scores in different shards
    return X.astype(dtype), sp.csr_matrix(Y)


@pytest.fixture(scope="module")
def model():
    return PPDSparseClassifier(random_state=0).fit(*problem())


@pytest.fixture
def folder(model, tmp_path):
    save_shards(model, tmp_path / "shards", 5)
    return tmp_path / "shards"


def assert_same_answers(one, many, X):
    for k in (1, 3, 70, 500):
        (ids, scores), (other_ids, other_scores) = one.predict_top_k(X, k), many.predict_top_k(X, k)
        assert ids.tolist() == other_ids.tolist()
        assert scores.tobytes() == other_scores.tobytes()
        assert scores.dtype == other_scores.dtype
    assert one.decision_function(X).tobytes() == many.decision_function(X).tobytes()
    found, other = one.predict(X), many.predict(X)
    assert (found != other).nnz == 0 if sp.issparse(found) else (found == other).all()


@pytest.mark.parametrize("n_shards", [1, 2, 7, 70])
@pytest.mark.parametrize("bits", [None, 8, 16, 32])
def test_answers_are_those_of_one_file_to_the_last_bit(model, tmp_path, n_shards, bits):
    X, _ = problem()
    whole = model if bits is None else model.compress(bits)
    save_shards(whole, tmp_path / "shards", n_shards)
    for mapped in (True, False):
        assert_same_answers(whole, sublearn.load(tmp_path / "shards", mapped=mapped), X)
    many = load_shards(tmp_path / "shards" / "shards.json").set_params(n_jobs=3)
    assert_same_answers(whole, many, X)
    assert_same_answers(whole, many, X[:2])
    assert many.model_.work > 0


def test_equal_scores_stand_in_the_order_of_the_labels(model, folder):
    X, _ = problem()
    ids, scores = load_shards(folder).predict_top_k(X, 70)
    ties = scores[:, 1:] == scores[:, :-1]
    assert ties.sum() > 500
    assert (ids[:, 1:] > ids[:, :-1])[ties].all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_other_classifiers_and_precisions(tmp_path, dtype):
    X, Y = problem(dtype)
    y = np.asarray(Y.argmax(axis=1)).ravel()
    whole = PDSparseClassifier(random_state=0).fit(X, y)
    save_shards(whole, tmp_path / "shards", 3)
    assert_same_answers(whole, load_shards(tmp_path / "shards"), X)


def test_a_tagger_with_thresholds_and_probabilities(tmp_path):
    texts = [f"word{k % 12} word{k % 5} more" for k in range(120)]
    tags = [[f"tag{k % 12}", f"five{k % 5}"] for k in range(120)]
    whole = TextTagger(PPDSparseClassifier(random_state=0), analyzer="word").fit(texts, tags)
    whole.calibrate(texts, tags)
    whole.tune_thresholds(texts, tags)
    save_shards(whole, tmp_path / "shards", 4)
    many = sublearn.load(tmp_path / "shards")
    assert many.predict(texts) == whole.predict(texts)
    for name in ("predict_top_k", "predict_proba_top_k"):
        (a, p), (b, q) = getattr(whole, name)(texts, 3), getattr(many, name)(texts, 3)
        assert a.tolist() == b.tolist()
        assert p.tobytes() == q.tobytes()
    assert str(many.explain(texts[0], "tag0")) == str(whole.explain(texts[0], "tag0"))


def test_goes_back_into_one_file(model, folder, tmp_path):
    many = load_shards(folder)
    many.save(tmp_path / "one.model")
    assert_same_answers(model, sublearn.load(tmp_path / "one.model"), problem()[0])
    assert_same_answers(many.compress(32), many, problem()[0])


def test_shards_have_about_the_same_size(folder):
    sizes = [file.stat().st_size for file in folder.glob("shard-*")]
    assert len(sizes) == 5
    assert max(sizes) < 1.3 * min(sizes)


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_shards", [0, -1, 71, 2.0, "2", True])
def test_refuses_a_number_of_shards_that_is_none(model, tmp_path, n_shards):
    with pytest.raises(ValueError, match=r"save_shards.n_shards must be an integer in 1..70"):
        save_shards(model, tmp_path / "shards", n_shards)


def test_refuses_models_that_have_no_labels_to_cut(tmp_path):
    two = PPDSparseClassifier().fit(np.eye(2), [0, 1])
    for wrong in (two, PPDSparseClassifier(), TextTagger(), 5):
        with pytest.raises(ValueError, match=r"save_shards.model must"):
            save_shards(wrong, tmp_path / "shards", 2)


def test_refuses_a_folder_that_is_there(model, folder):
    with pytest.raises(ValueError, match=r"save_shards.folder must be new"):
        save_shards(model, folder, 2)


def test_refuses_shards_that_are_missing_or_of_another_model(model, folder, tmp_path):
    other = PPDSparseClassifier(l1=0.5, random_state=1).fit(*problem())
    save_shards(other, tmp_path / "others", 5)
    file = folder / "shard-00002.sublearn"
    content = file.read_bytes()
    for name, message in (("shard-00002", "labels must be|biases must be those of the head"),
                          ("shard-00003", "labels must be")):  # fmt: skip
        file.write_bytes((tmp_path / "others" / f"{name}.sublearn").read_bytes())
        with pytest.raises(ModelFileError, match=message):
            load_shards(folder)
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises(ModelFileError):
        load_shards(folder)
    file.unlink()
    with pytest.raises(ModelFileError, match="every shard must be there"):
        load_shards(folder)
    model.save(file)
    with pytest.raises(ModelFileError, match="a saved LabelShard is needed, got a PPDSparse"):
        load_shards(folder)


@pytest.mark.parametrize(
    "text",
    [
        "", "5", "[]", "{}", "[" * 10_000, " " * 2**21,
        json.dumps({"format": "other", "version": 1, "ends": [70]}),
        json.dumps({"format": "sublearn shards", "version": 2, "ends": [70]}),
        *(json.dumps({"format": "sublearn shards", "version": 1, "ends": ends})
          for ends in ([], [5, 5, 70], [-1, 70], [0, 70], ["70"], [1.5, 70], 70, [60], [90],
                       [10, 20, 30, 40, 50, 60, 70])),
    ],
)  # fmt: skip
def test_refuses_descriptions_that_lie(folder, text):
    (folder / "shards.json").write_text(text)
    with pytest.raises(ModelFileError):
        load_shards(folder)


def test_refuses_a_folder_without_shards(tmp_path):
    with pytest.raises(ModelFileError, match="the description of a model in shards is needed"):
        load_shards(tmp_path)
    with pytest.raises(ModelFileError, match="one file, got a directory"):
        sublearn.load(tmp_path)


def test_lists_that_lie_are_refused_when_a_row_needs_them(model, folder):
    from sublearn.io.bundle import load_bundle, save_bundle

    file = folder / "shard-00001.sublearn"
    bundle = load_bundle(file, mapped=False)
    arrays = {name: array.copy() for name, array in bundle.arrays.items()}
    arrays["weights_labels"][:] = 2**15
    save_bundle(file, class_name="LabelShard", params={}, arrays=arrays,
                attributes=bundle.attributes)  # fmt: skip
    many = load_shards(folder)
    with pytest.raises(ValueError, match="label"):
        many.predict_top_k(problem()[0])


def test_pickles_and_is_a_linear_model(folder):
    import pickle

    many = load_shards(folder)
    assert isinstance(many.model_, LinearLabels)
    assert_same_answers(many, pickle.loads(pickle.dumps(many)), problem()[0])
