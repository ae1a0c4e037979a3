"""HML: sets of labels that agree with a taxonomy, and weights that are learned for a metric."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ShuffleSplit
from sklearn.multiclass import OneVsRestClassifier
from taxonomy_rows import FORMS, TAXONOMY, label_rows

import sublearn
from sublearn.extreme import PPDSparseClassifier
from sublearn.fitting.progress import Progress
from sublearn.hierarchy import (
    GroupWeights,
    HierarchicalMultilabelClassifier,
    Taxonomy,
    hierarchy_support,
    leaf_reduce,
    project_hierarchy,
    root_map,
)
from sublearn.hierarchy.group_weights import (
    HeldOutSets,
    WeightSearch,
    is_sure_gain,
    row_sizes,
)
from sublearn.hierarchy.score_maps import with_leaves
from sublearn.hierarchy.set_metrics import METRICS, RowGroups, Truth, count_sets
from sublearn.hierarchy.stage_one import make_folds
from sublearn.metrics import f1_macro, f1_micro, f1_samples, hamming_loss, jaccard_samples
from sublearn.optim import minimise_linear

KEPT, SWEPT = GroupWeights(None), GroupWeights("sweep")


def make(**params):
    return HierarchicalMultilabelClassifier(TAXONOMY, **({"l1": 1e-3, "random_state": 0} | params))


@pytest.mark.parametrize("loss", ["logistic", "squared", "hinge"])
def test_predicts_sets_that_agree_with_the_taxonomy(loss):
    X, lists = label_rows()
    model = make(loss=loss, tol=1e-2).fit(X, lists)
    X_new, new = label_rows(seed=1)
    found = model.predict(X_new)
    assert TAXONOMY.is_consistent(TAXONOMY.encode(found, closed=False))
    assert model.score(X_new, new) > 0.85
    truth = TAXONOMY.encode(new).toarray()
    u = model.label_scores(X_new)
    for flat in (u >= 0.5, leaf_reduce(u, TAXONOMY, 0.5), root_map(u, TAXONOMY, 0.5)):
        assert model.score(X_new, new) >= f1_samples(truth, flat)
    np.testing.assert_array_equal(
        TAXONOMY.encode(found).toarray(),
        hierarchy_support(u / row_sizes(u, model.unit_), TAXONOMY, model.phi_),
    )
    assert not model.projected_scores(X_new)[~TAXONOMY.encode(found).toarray()].any()


def test_scores_of_the_hinge_loss_are_0_and_1_on_its_margins():
    X, lists = label_rows(60)
    model = make(loss="hinge", group_weights=KEPT, tol=1e-2).fit(X, lists)
    z = X @ model.coef_.T.toarray() + model.intercept_
    np.testing.assert_allclose(model.label_scores(X), np.maximum((1 + z) / 2, 0), atol=1e-12)
    t, objective = 0, np.abs(model.coef_[[0]].toarray()).sum() * 1e-3
    y = np.where(TAXONOMY.encode(lists).toarray()[:, t], 1.0, -1.0)
    objective += np.maximum(1 - y * z[:, t], 0).mean()
    best = minimise_linear(X, y, "hinge", l1=1e-3, fit_intercept=True, tol=1e-4).objective
    assert best <= objective * (1 + 1e-4)
    assert objective <= best * 1.011


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_stage_one_is_the_optimum_of_each_label(loss):
    X, lists = label_rows()
    model = make(loss=loss, group_weights=KEPT, tol=1e-9).fit(X, lists)
    Y = TAXONOMY.encode(lists).toarray()
    for t in (0, 4):
        y = np.where(Y[:, t], 1.0, -1.0 if loss == "logistic" else 0.0)
        found = minimise_linear(X, y, loss, l1=1e-3, fit_intercept=True, tol=1e-10)
        np.testing.assert_allclose(model.coef_[[t]].toarray()[0], found.x, atol=1e-5)
        assert model.intercept_[t] == pytest.approx(found.intercept, abs=1e-5)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("solver", ["derivative_free", "sweep", "subgradient", "trust_region"])
def test_weights_are_learned_for_a_metric(metric, solver):
    X, lists = label_rows(120)
    start = make(group_weights=KEPT).fit(X, lists)
    how = GroupWeights(solver, max_iter=10)
    model = make(group_weights=how, metric=metric).fit(X, lists)
    scores = model.trace_["score"]
    assert (np.diff(scores) >= -1e-12).all()
    assert scores[-1] == pytest.approx(model.held_out_score_)
    assert (model.phi_ >= 0).all()
    assert not np.array_equal(model.phi_, start.phi_)
    np.testing.assert_array_equal(start.phi_, 0.5)


def test_the_trust_region_searches_the_weights_of_all_labels():
    X, lists = label_rows(120)
    how = GroupWeights("trust_region", unit="one", leaves=False, max_iter=25)
    model = make(group_weights=how).fit(X, lists)
    stages, n = model.trace_["stage"], model.trace_["n_evaluations"]
    assert set(stages) == {0, 5}
    first, last = n[stages == 0][-1], n[-1]
    assert TAXONOMY.n_labels + 1 <= last - first <= TAXONOMY.n_labels + 1 + 26
    assert len(np.unique(model.phi_)) > 1
    assert not model.takes_in_leaves_
    assert make(group_weights=GroupWeights("sweep", leaves=True)).fit(X, lists).takes_in_leaves_


@pytest.mark.parametrize("unit", ["one", "row"])
def test_weights_are_in_the_unit_asked_for(unit):
    X, lists = label_rows(120)
    model = make(group_weights=GroupWeights("sweep", unit=unit)).fit(X, lists)
    u = model.label_scores(X)
    sizes = np.linalg.norm(u, axis=1, keepdims=True) if unit == "row" else np.ones((len(u), 1))
    for i in range(0, len(u), 30):  # the operator itself, with the weights of this row
        v = project_hierarchy(u[i], TAXONOMY, sizes[i] * model.phi_)
        np.testing.assert_allclose(model.projected_scores(X[i : i + 1])[0], v, atol=1e-12)
    found = TAXONOMY.encode(model.predict(X)).toarray()
    np.testing.assert_array_equal(found, hierarchy_support(u / sizes, TAXONOMY, model.phi_))


def test_auto_takes_the_unit_that_held_out_rows_surely_prefer():
    X, lists = label_rows(400)
    assert make(group_weights=SWEPT).fit(X, lists).unit_ == "one"  # nothing to gain here
    faint = X * np.random.default_rng(0).choice([0.15, 1.0], (len(X), 1))
    how = {"loss": "squared", "fit_intercept": False}  # scores as faint as rows
    model, one = (
        make(**how, group_weights=GroupWeights("sweep", unit=unit)).fit(faint, lists)
        for unit in ("auto", "one")
    )
    assert model.unit_ == "row"
    assert model.held_out_score_ > one.held_out_score_ + 0.02
    assert make(group_weights=KEPT).fit(X, lists).unit_ == "one"
    assert make(group_weights=GroupWeights(None, unit="row")).fit(X, lists).unit_ == "row"


def test_the_weights_of_each_step_are_kept_but_not_in_files(tmp_path):
    X, lists = label_rows(120)
    model = make(group_weights=GroupWeights(max_iter=10)).fit(X, lists)
    assert model.phi_trace_.shape == (len(model.trace_["score"]), TAXONOMY.n_labels)
    np.testing.assert_array_equal(model.phi_trace_[-1], model.phi_)
    model.save(tmp_path / "m")
    loaded = sublearn.load(tmp_path / "m")
    assert not hasattr(loaded, "phi_trace_")  # as large as the steps are many, and only of a fit
    np.testing.assert_array_equal(loaded.trace_["score"], model.trace_["score"])
    np.testing.assert_array_equal(loaded.fit(X, lists).phi_trace_, model.phi_trace_)


JUDGES = {
    "f1_samples": f1_samples,
    "f1_micro": f1_micro,
    "f1_macro": f1_macro,
    "jaccard": jaccard_samples,
    "hamming": lambda truth, found: 1 - hamming_loss(truth, found),
}


@pytest.mark.parametrize("metric", METRICS)
def test_counts_give_the_metrics_of_all_rows_and_without_each_group(metric):
    rng = np.random.default_rng(0)
    truth, found = rng.random((37, 5)) < 0.4, rng.random((37, 5)) < 0.4
    groups = RowGroups.make(37, 4)
    values = METRICS[metric](count_sets(found, truth, groups), Truth.of(truth, groups))
    assert values[0] == pytest.approx(JUDGES[metric](truth, found))
    for g in range(4):
        keep = np.ones(37, dtype=bool)
        keep[groups.first[g] : groups.first[g + 1]] = False
        assert values[1 + g] == pytest.approx(JUDGES[metric](truth[keep], found[keep]))


@pytest.mark.parametrize("taxonomy", [TAXONOMY, Taxonomy([-1, 0, 0, [1, 2], -1, 4, 4, -1, -1])])
@pytest.mark.parametrize("metric", METRICS)
def test_a_step_of_one_label_is_judged_as_if_all_were_counted(taxonomy, metric, monkeypatch):
    # At a looser one sets at the border depend on what is projected along with them.
    monkeypatch.setattr("sublearn.hierarchy.group_weights._PROJECTION_TOL", 1e-9)
    rng, n = np.random.default_rng(0), taxonomy.n_labels
    truth = taxonomy.close(rng.random((50, n)) < 0.2).toarray()
    data = HeldOutSets(rng.random((50, n)), truth, taxonomy, metric)
    search = WeightSearch(data, np.full(n, 0.5), Progress())
    for part in data.components:
        own = search.phi[part.columns]
        for t in range(len(part.columns)):
            for factor in (0.5, 2.0):
                phi = search.phi.copy()
                phi[part.columns[t]] *= factor
                felt = part.where_felt(t, min(factor, 1.0) * own[t])
                old = data.part_counts(felt, own)
                new = data.part_counts(felt, phi[part.columns])
                quick = data.value(search.counts.replace(old, new, felt.rows, felt.columns))
                np.testing.assert_allclose(quick, data.value(data.counts(phi)))


def test_a_gain_must_be_above_its_error():
    assert is_sure_gain(np.array([0.1, *[0.1] * 10]))
    assert not is_sure_gain(np.array([0.0, *[0.0] * 10]))
    assert not is_sure_gain(np.array([0.01, 0.0, *[0.0111] * 9]))  # all of it from one group


PAIRS = [(np.arange(20), np.arange(20, 30))]


@pytest.mark.parametrize("cv", [2, 1000, PAIRS, ShuffleSplit(1, test_size=0.3, random_state=0)])
def test_rows_are_held_out_as_asked(cv):
    X, lists = label_rows(30)
    model = make(cv=cv, group_weights=SWEPT).fit(X, lists)
    assert 0 < model.held_out_score_ <= 1


def test_models_of_a_fold_learn_from_its_training_rows_alone():
    X, lists = label_rows(90)
    Y = TAXONOMY.encode(lists)
    folds = [(np.arange(30), np.arange(60, 90)), (np.arange(90) < 60, np.arange(80, 90))]
    stage = make()._stage_one
    _, scores, truth = stage.held_out_scores(X, Y, make_folds(X, Y, folds, 0), Progress())
    np.testing.assert_array_equal(truth, Y.toarray()[[*range(60, 90), *range(80, 90)]])
    for at, (train, held_out) in zip((slice(0, 30), slice(30, 40)), folds, strict=True):
        model, _ = stage.fit(np.asfortranarray(X[train]), Y[train], Progress())
        np.testing.assert_array_equal(scores[at], stage.scores(model, X[held_out]))


def test_auto_holds_out_as_many_parts_as_have_enough_rows():
    for n_rows, n_folds in ((100, 4), (5_000, 3), (12_000, 1), (100_000, 1)):
        X = np.zeros((n_rows, 1))
        folds = make_folds(X, X, "auto", 0)
        assert len(folds) == n_folds
        for train, held_out in folds:
            assert len(held_out) == n_rows // 4
            assert set(train) | set(held_out) == set(range(n_rows))


def test_scores_of_inner_labels_can_take_in_their_leaves():
    u = np.array([[0.5, 0.2, 0.9, 0.3, 0.4]])
    tree = Taxonomy([-1, 0, 1, 1, 0])
    below, every = 1 - 0.1 * 0.7, 1 - 0.1 * 0.7 * 0.6
    expected = [np.sqrt(0.5 * every), np.sqrt(0.2 * below), 0.9, 0.3, 0.4]
    np.testing.assert_allclose(with_leaves(u, tree)[0], expected)


def test_leaves_are_taken_in_where_held_out_rows_surely_prefer_it(tmp_path):
    X, lists = label_rows(400)
    model = make(group_weights=SWEPT).fit(X, lists)
    truth = TAXONOMY.encode(lists).toarray()
    noise = np.random.default_rng(0).uniform(size=truth.shape)
    inner = np.unique(TAXONOMY.indices)
    for columns, takes_in_leaves in ((inner, True), (TAXONOMY.leaves, False)):
        scores = 0.2 + 0.6 * truth
        scores[:, columns] = noise[:, columns]  # these say nothing
        search = model._begin_search(scores, truth, np.full(9, 0.5), Progress())
        assert search.data.takes_in_leaves == takes_in_leaves
    plain, model.takes_in_leaves_ = model.label_scores(X), True
    np.testing.assert_allclose(model.label_scores(X), with_leaves(plain, TAXONOMY))
    model.save(tmp_path / "m")
    loaded = sublearn.load(tmp_path / "m")
    assert loaded.takes_in_leaves_
    np.testing.assert_allclose(loaded.projected_scores(X), model.projected_scores(X))


@pytest.mark.parametrize("estimator", [PPDSparseClassifier(random_state=0), None])
def test_progress_moves_to_its_end_in_both_stages(estimator, monkeypatch):
    monkeypatch.setattr("sublearn.trace._POLL_SECONDS", 1e-4)  # the fit takes milliseconds
    X, lists = label_rows(200)
    events = []
    make(estimator=estimator, callback=events.append).fit(X, lists)
    assert events[-1].n_done == events[-1].n_total == (4 + 1 + 2) * TAXONOMY.n_labels
    assert len({event.n_done for event in events}) > 1


def test_margins_become_probabilities_by_held_out_rows(tmp_path):
    X, lists = label_rows(300)
    model = make(estimator=PPDSparseClassifier(random_state=0)).fit(X, lists)
    X_new, new = label_rows(600, seed=1)
    truth, u = TAXONOMY.encode(new).toarray(), model.label_scores(X_new)
    by_line = -np.log(np.where(truth, u, 1 - u)).mean()
    raw = expit(model._other.decision_function(X_new))
    assert by_line < -np.log(np.where(truth, raw, 1 - raw)).mean()
    assert model._other.callback is None
    model.save(tmp_path / "m")
    np.testing.assert_allclose(sublearn.load(tmp_path / "m").label_scores(X_new), u, rtol=1e-6)


def test_labels_come_back_as_they_came():
    X, lists = label_rows(120)
    dense = TAXONOMY.encode(lists).toarray().astype(int)
    by_name = make().fit(X, lists).predict(X)
    found = make().fit(X, dense).predict(X)
    assert found.dtype.kind == "i"
    np.testing.assert_array_equal(found, TAXONOMY.encode(by_name).toarray())
    sparse = make().fit(X, sp.csr_matrix(dense)).predict(X)
    assert sp.issparse(sparse)
    np.testing.assert_array_equal(sparse.toarray(), found)
    ends = [row[-1] for row in lists]
    single = make().fit(X, ends).predict(X)
    assert set(single) <= set(ends)
    assert np.mean(single == np.array(ends)) > 0.4


def test_no_label_stands_above_its_ancestors():
    X, lists = label_rows(120)
    model = make().fit(X, lists)
    labels, _ = model.predict_top_k(X, k=TAXONOMY.n_labels)
    for row in labels.tolist():
        for at, name in enumerate(row):
            assert all(row.index(other) < at for other in TAXONOMY.ancestors(name))


@pytest.mark.parametrize(
    "estimator",
    [
        OneVsRestClassifier(LogisticRegression(solver="liblinear")),
        RandomForestClassifier(20, random_state=0),
        PPDSparseClassifier(l1=0.01, random_state=0),
    ],
)
def test_any_classifier_can_be_stage_one(estimator):
    X, lists = label_rows(120)
    model = make(estimator=estimator, group_weights=SWEPT).fit(X, lists)
    assert model.score(X, lists) > 0.8
    assert TAXONOMY.is_consistent(TAXONOMY.encode(model.predict(X), closed=False))


def test_a_graph_of_labels_is_respected():
    taxonomy = Taxonomy([-1, 0, 0, [1, 2]], names=list("abcd"))
    rng = np.random.default_rng(0)
    lists = [[["a"], ["b"], ["c"], ["d"]][k] for k in rng.integers(4, size=120)]
    X = taxonomy.encode(lists).toarray() + 0.3 * rng.normal(size=(120, 4))
    model = HierarchicalMultilabelClassifier(taxonomy, l1=1e-3, random_state=0).fit(X, lists)
    assert model.score(X, lists) > 0.9
    assert taxonomy.is_consistent(taxonomy.encode(model.predict(X), closed=False))


def test_labels_without_rows_are_never_predicted():
    X, lists = label_rows(120)
    short = [[name for name in row if not name.startswith("b")] for row in lists]
    model = make().fit(X, short)
    assert not {name for row in model.predict(X) for name in row} & {"b", "b.z", "b.w"}


@pytest.mark.parametrize("estimator", [RandomForestClassifier(5, random_state=0)])
def test_labels_without_rows_are_not_learned_by_other_classifiers_either(estimator):
    X, lists = label_rows(120)
    short = [[name for name in row if not name.startswith("b")] for row in lists]
    model = make(estimator=estimator, group_weights=SWEPT).fit(X, short)
    assert not model.label_scores(X)[:, [TAXONOMY.position(n) for n in ("b", "b.z", "b.w")]].any()


def test_names_of_columns_decide_about_labels():
    X, lists = label_rows(100)
    table = pd.DataFrame(TAXONOMY.encode(lists).toarray().astype(int), columns=TAXONOMY.names)
    plain = make(group_weights=SWEPT).fit(X, table)
    turned = make(group_weights=SWEPT).fit(X, table[TAXONOMY.names[::-1]])
    np.testing.assert_array_equal(turned.predict(X), plain.predict(X))
    assert turned.score(X, table[TAXONOMY.names[::-1]]) == plain.score(X, lists)


def test_an_estimator_of_one_label_is_refused_with_a_hint():
    X, lists = label_rows(60)
    with pytest.raises(ValueError, match="must take an indicator matrix, as OneVsRestClassifier"):
        make(estimator=LogisticRegression()).fit(X, lists)


def test_a_score_refuses_other_lengths():
    X, lists = label_rows(60)
    model = make(group_weights=KEPT).fit(X, lists)
    with pytest.raises(ValueError, match=r"y must have one row per sample \(60\), got 3"):
        model.score(X, lists[:3])
    with pytest.raises(ValueError, match="sample_weight must have one weight for each of 60"):
        model.score(X, lists, sample_weight=[1, 2])


@pytest.mark.parametrize("form", FORMS)
def test_takes_features_of_any_form(form):
    X, lists = label_rows(100)
    plain = make(group_weights=SWEPT, tol=1e-8).fit(X, lists)
    model = make(group_weights=SWEPT, tol=1e-8).fit(FORMS[form](X), lists)
    np.testing.assert_allclose(model.coef_.toarray(), plain.coef_.toarray(), atol=1e-4)
    assert model.predict(FORMS[form](X)) == plain.predict(X)


def test_a_splitter_is_not_stored(tmp_path):
    X, lists = label_rows(60)
    make(cv=ShuffleSplit(2, random_state=0), group_weights=SWEPT).fit(X, lists).save(tmp_path / "m")
    assert sublearn.load(tmp_path / "m").cv == "auto"


def test_parameters_of_earlier_versions_are_translated():
    stored = {"method": "dfo", "phi": [0.1, 0.2], "unit": "row", "max_iter_weights": 7}
    current = HierarchicalMultilabelClassifier._current_params
    expected = GroupWeights("derivative_free", init=(0.1, 0.2), unit="row", max_iter=7)
    assert current(stored | {"held_out": 3}) == {"group_weights": expected, "cv": 3}
    assert current({"method": "none"})["group_weights"].solver is None
    share = current({"held_out": 0.3, "random_state": 5})["cv"]
    assert (share.get_n_splits(), share.test_size, share.random_state) == (1, 0.3, 5)


@pytest.mark.parametrize(
    ("params", "y", "sentence"),
    [
        ({}, [["a"], ["z"]], "y must hold labels of the taxonomy, got 'z'"),
        ({}, np.eye(2, 3), "a column for each of the 9 labels of the taxonomy, got 3"),
        (
            {"group_weights": GroupWeights(init=[0.5, 0.5])},
            [["a"], ["b"]],
            "^GroupWeights.init must be a number or 9 of them, got shape",
        ),
        (
            {"group_weights": "sweep"},
            [["a"], ["b"]],
            "group_weights must be an instance of GroupWeights or",
        ),
        ({"l1": 0.0}, [["a"], ["b"]], "l1 must be a positive number"),
        ({"cv": 1}, [["a"], ["b"]], "cv must be 'auto' or an integer of at least 2, a splitter or"),
        (
            {"cv": 0.5},
            [["a"], ["b"]],
            "cv must be 'auto' or an integer of at least 2, a splitter or",
        ),
        ({"cv": [([], [1])]}, [["a"], ["b"]], "cv must give folds with rows on both sides"),
        ({"metric": "accuracy"}, [["a"], ["b"]], "metric must be 'f1_samples'"),
    ],
)
def test_refuses_bad_input(params, y, sentence):
    with pytest.raises(ValueError, match=sentence):
        make(**params).fit(np.eye(2), y)


NUMBERS = "^GroupWeights.init must be a non-negative number or an array of one for each label, got"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"solver": "dfo"}, "^GroupWeights.solver must be 'derivative_free', 'sweep', 'trust_"),
        ({"leaves": "some"}, "^GroupWeights.leaves must be 'auto' or"),
        ({"unit": "norm"}, "^GroupWeights.unit must be 'auto', 'one' or 'row', got 'norm'"),
        ({"max_iter": -1}, "^GroupWeights.max_iter must be a non-negative integer, got -1"),
        ({"init": -0.5}, NUMBERS),
        ({"init": [0.5, np.nan]}, NUMBERS),
        ({"init": [[0.5], [0.5, 0.5]]}, NUMBERS),
        ({"init": "big"}, NUMBERS),
        ({"init": None}, NUMBERS),
    ],
)
def test_refuses_bad_settings_of_group_weights(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        GroupWeights(**settings)
