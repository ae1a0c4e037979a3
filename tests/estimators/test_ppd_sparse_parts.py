"""A fit in parts: the model of one process, whoever solved what, in which order and how often."""

import json
import os

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import cross_val_score

import sublearn
from sublearn.errors import ParameterError
from sublearn.extreme import PPDSparseClassifier, TextTagger
from sublearn.parts import Part, join_parts, parse_part, parts_of, solve_part

N_PARTS = 4


def problem():
    rng = np.random.default_rng(0)
    X = sp.random(80, 20, 0.3, "csr", random_state=rng, data_rvs=rng.standard_normal)
    return X, sp.csr_matrix(np.asarray(X @ rng.normal(size=(20, 150))) > 0.8)


def dense_labels():
    """As scikit-learn's cross-validation takes them."""
    X, Y = problem()
    return X, Y.toarray().astype(int)


def classifier(path, **params):
    return PPDSparseClassifier(model_path=path, **{"random_state": 0} | params)


def solve(path, number, n_parts=N_PARTS, **params):
    with solve_part(number, n_parts) as part:
        classifier(path, **params).fit(*problem())
    return part


def join(path, **params):
    with join_parts():
        return classifier(path, **params).fit(*problem())


def content(model):
    weights = model.model_.weights
    arrays = (weights.data, weights.indices, weights.indptr, model.intercept_)
    return [np.asarray(array).tobytes() for array in arrays], model.objective_, model.certificate_


@pytest.fixture(scope="module")
def whole():
    return content(classifier(None).fit(*problem()))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.model"


# --- the model ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n_parts", [1, 3, 24])
def test_joins_to_the_model_of_one_process_to_the_last_bit(path, whole, n_parts):
    order = np.random.default_rng(n_parts).permutation(n_parts) + 1
    parts = [solve(path, int(number), n_parts) for number in order]
    assert all(part.is_done for part in parts)
    assert sum(part.n_labels for part in parts) == sum(part.n_solved for part in parts) > 100
    assert content(join(path)) == whole
    assert content(sublearn.load(path)) == whole
    assert os.listdir(path.parent) == ["m.model"]


def test_a_part_that_is_there_is_not_solved_again_and_a_damaged_one_is(path, whole):
    for number in range(1, N_PARTS + 1):
        solve(path, number)
    assert solve(path, 2).n_solved == 0
    file = sorted(path.with_name("m.model.parts").glob("part-*"))[1]
    file.write_bytes(file.read_bytes()[:-8])
    assert solve(path, 1).n_solved == 0
    assert solve(path, 2).n_solved == solve(path, 2).n_labels > 0
    assert content(join(path)) == whole


def test_a_fit_outside_of_the_statement_solves_what_is_missing(path, whole):
    solve(path, 3)
    assert content(classifier(path).fit(*problem())) == whole
    assert os.listdir(path.parent) == ["m.model"]


def test_a_model_that_waits_for_its_parts_stays_unfitted(path):
    model = classifier(path)
    with solve_part(1, 2):
        model.fit(*problem())
    assert not model.__sklearn_is_fitted__()


def test_parts_stay_until_the_end_of_the_statement_that_joins(path, whole):
    solve(path, 1, 1)

    def join_and_stop():
        with join_parts():
            classifier(path).fit(*problem())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        join_and_stop()
    assert path.with_name("m.model.parts").exists()
    assert content(join(path)) == whole


def test_a_stopped_part_says_that_it_is_not_done_and_goes_on(path, whole):
    with solve_part(1, 1) as part:
        classifier(path, callback=lambda event: True).fit(*problem())
    assert not part.is_done
    assert solve(path, 1, 1).is_done
    assert content(join(path)) == whole


def test_a_tagger_of_texts_is_fitted_in_parts(path):
    texts = [f"{a} {b} common" for a in ("sea", "sun", "sky") for b in ("red", "blue", "green")]
    labels = [text.split()[:2] for text in texts]

    def tagger(file=None):
        return TextTagger(classifier(file), analyzer="word")

    for number in (2, 1):
        with solve_part(number, 2):
            tagger(path).fit(texts, labels)
    with join_parts():
        joined = tagger(path).fit(texts, labels)
    alone = tagger().fit(texts, labels)
    assert content(joined.classifier_) == content(alone.classifier_)


# --- cuts --------------------------------------------------------------------------------------


def test_parts_cover_all_blocks_once_at_nearly_the_same_cost():
    costs = np.random.default_rng(0).uniform(1, 3, 500)
    cuts = [Part(number, 7).blocks(costs) for number in range(1, 8)]
    assert [block for cut in cuts for block in cut] == list(range(500))
    shares = [costs[cut.start : cut.stop].sum() for cut in cuts]
    assert max(shares) - min(shares) <= 2 * costs.max()


def test_names_the_part_of_each_block():
    costs = np.ones(10)
    owners = [parts_of([block], costs, 4)[0] for block in range(10)]
    cuts = [Part(number, 4).blocks(costs) for number in range(1, 5)]
    assert owners == [1 + next(i for i, cut in enumerate(cuts) if b in cut) for b in range(10)]


# --- refusals ----------------------------------------------------------------------------------


def test_names_the_parts_that_are_missing(path):
    solve(path, 1)
    solve(path, 3)
    with pytest.raises(ValueError, match=r"of part 2, 4 of 4; run what is missing again"):
        join(path)
    assert not path.exists()


def test_refuses_another_number_of_parts(path):
    solve(path, 1)
    with pytest.raises(ValueError, match=r"n_parts must be 4, .*, got 5"):
        solve(path, 1, 5)


def test_refuses_other_data_or_settings_by_name(path):
    solve(path, 1)
    with pytest.raises(ValueError, match=r"differs in C; remove it to start again"):
        solve(path, 2, C=2.0)
    plan = path.with_name("m.model.parts") / "plan.json"
    plan.write_text(plan.read_text().replace(sublearn.__version__, "0.0.9"))
    with pytest.raises(ValueError, match=r"differs in sublearn; remove"):
        solve(path, 2)


def test_refuses_a_seed_that_differs_between_processes(path):
    with pytest.raises(ValueError, match="random_state must be an integer, the same for all parts"):
        solve(path, 1, random_state=None)


def test_refuses_the_parts_of_a_fit_in_one_process(path, monkeypatch):
    solve(path, 1)
    (path.with_name("m.model.parts") / "cut.json").unlink()
    with pytest.raises(ValueError, match="unfinished parts of a fit in one process"):
        solve(path, 2)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"n_parts": true}', '{"n_parts": 0}', "[" * 9999]
)
def test_a_cut_that_is_none_is_taken_for_none(path, text):
    solve(path, 1)
    (path.with_name("m.model.parts") / "cut.json").write_text(text)
    with pytest.raises(ValueError, match="unfinished parts of a fit in one process"):
        solve(path, 2)


@pytest.mark.parametrize(("number", "n_parts"), [(0, 4), (5, 4), (1.0, 4), (True, 4), (1, "4")])
def test_refuses_what_is_no_part(number, n_parts):
    with (
        pytest.raises(ParameterError, match=r"solve_part\.\w+ must be"),
        solve_part(number, n_parts),
    ):
        pass


def test_refuses_statements_without_a_fit_to_part_or_join():
    with (
        pytest.raises(ValueError, match="a fit with a model_path must be inside"),
        solve_part(1, 2),
    ):
        classifier(None).fit(*problem())
    with pytest.raises(ValueError, match="a fit with a model_path must be inside"), join_parts():
        pass


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("3/100", (3, 100)),
        ("0/0", (0, 0)),
        ("3", None),
        ("3/", None),
        ("a/b", None),
        ("-1/2", None),
    ],
)
def test_reads_a_part_from_text(text, found):
    assert parse_part(text) == found


def test_the_plan_of_all_parts_is_one_file(path):
    solve(path, 1)
    before = (path.with_name("m.model.parts") / "plan.json").read_bytes()
    solve(path, 2)
    folder = path.with_name("m.model.parts")
    assert (folder / "plan.json").read_bytes() == before
    assert json.loads((folder / "cut.json").read_text()) == {"n_parts": N_PARTS}


def test_a_join_before_any_part_is_refused_and_leaves_the_folder_to_the_parts(path, whole):
    with pytest.raises(ValueError, match="join_parts: every part must be there: none is beside"):
        join(path)
    solve(path, 1, 1)
    assert content(join(path)) == whole


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.parametrize("error_score", ["raise", np.nan])
def test_refuses_the_folds_of_a_cross_validation_whether_or_not_it_goes_on(path, error_score):
    message = "solve_part: the fit inside .* got one of a cross-validation"
    with pytest.raises(ValueError, match=message), solve_part(1, N_PARTS):
        cross_val_score(classifier(path), *dense_labels(), cv=2, error_score=error_score)
    assert not path.with_name("m.model.parts").exists()


def test_refuses_to_join_the_folds_of_a_cross_validation(path):
    for number in range(1, N_PARTS + 1):
        solve(path, number)
    with pytest.raises(ValueError, match="join_parts: the fit inside"), join_parts():
        cross_val_score(classifier(path), *dense_labels(), cv=2, error_score="raise")


def test_cross_validates_a_model_without_a_file_beside_the_part(path):
    with solve_part(1, N_PARTS) as part:
        scores = cross_val_score(classifier(None), *dense_labels(), cv=2)
        classifier(path).fit(*problem())
    assert len(scores) == 2
    assert part.is_done


def test_refuses_more_parts_than_a_million():
    with pytest.raises(ParameterError, match="n_parts must be at most 1,000,000"):
        Part(1, 10**9)
