"""The pieces of benchmarks/structured.py: data, features, judges, the measured process."""

import functools
import itertools
import lzma
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import structured as bench
from harness import chains
from harness.bench import Bench
from harness.chains import Chains, Split, primal
from harness.environments import is_installed
from harness.runner import Outcome, Run
from judges.bcfw import Bcfw
from judges.chains import Model, objective, sequences, viterbi
from judges.compiled import CompiledBcfw, CompiledSoftBcfw, CompiledSubgradient
from judges.soft_bcfw import SoftBcfw
from judges.subgradient import Subgradient

from sublearn.structured import ChainSVM

C = 0.3
N_FEATURES, N_LABELS = 4, 3


def tiny(seed=0):
    rng = np.random.default_rng(seed)
    lengths = np.array([3, 1, 4, 2, 3])
    X = sp.csr_matrix(rng.normal(size=(lengths.sum(), N_FEATURES)).round(2).astype(np.float32))
    return Chains(X, rng.integers(N_LABELS, size=lengths.sum()), lengths)


def data_of(part):
    return sequences(part.X, part.y, part.lengths)


def enumerated(model, data):
    """The objective by looking at every tagging."""
    total = 0.5 * model.squared_norm()
    for s in data:
        taggings = (np.array(y) for y in itertools.product(range(N_LABELS), repeat=len(s.y)))
        worst = max((y != s.y).sum() + model.score(s, y) for y in taggings)
        total += C * (worst - model.score(s, s.y))
    return total


def visits(judge, n_passes, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(n_passes):
        for i in rng.permutation(len(judge.data)):
            judge.step(int(i))
    return judge


@functools.cache
def optimum(seed):
    """A value that the gap of BCFW, with the objective by enumeration, proves."""
    data = data_of(tiny(seed))
    judge = visits(Bcfw(data, N_FEATURES, N_LABELS, C), 1000)
    value, bound = enumerated(judge.model, data), judge.dual()
    assert bound <= value <= bound + 5e-3 * value
    return value


@pytest.mark.parametrize("seed", range(3))
def test_viterbi_is_the_best_of_all_taggings(seed):
    rng = np.random.default_rng(seed)
    scores, table = rng.normal(size=(5, 3)), rng.normal(size=(3, 3))

    def score(y):
        return scores[np.arange(5), y].sum() + table[y[:-1], y[1:]].sum()

    y, value = viterbi(scores, table)
    best = max(score(np.array(z)) for z in itertools.product(range(3), repeat=5))
    assert value == pytest.approx(best)
    assert score(y) == pytest.approx(best)


def test_the_objective_is_the_same_by_all_three_ways():
    part = tiny()
    rng = np.random.default_rng(1)
    model = Model(rng.normal(size=(N_FEATURES, N_LABELS)), rng.normal(size=(N_LABELS, N_LABELS)))
    expected = enumerated(model, data_of(part))
    assert objective(model, data_of(part), C) == pytest.approx(expected)
    assert primal(part, sp.csr_matrix(model.W), model.T, C) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(3))
def test_bcfw_raises_its_dual_to_the_optimum_of_the_library(seed):
    part = tiny(seed)
    judge = Bcfw(data_of(part), N_FEATURES, N_LABELS, C)
    duals = [judge.dual()]
    for _ in range(20):
        visits(judge, 1)
        duals.append(judge.dual())
    assert (np.diff(duals) >= -1e-9).all()
    ours = ChainSVM(
        C=C, fit_intercept=False, end_features=False, max_iter=5000, tol=1e-3, random_state=0
    ).fit(part.X, part.y.tolist(), lengths=part.lengths)
    assert ours.objective_ == pytest.approx(optimum(seed), rel=1e-2)


def test_weights_of_bcfw_are_those_of_its_marginals():
    part = tiny()
    judge = visits(Bcfw(data_of(part), N_FEATURES, N_LABELS, C), 5)
    again = Model.zero(N_FEATURES, N_LABELS)
    for s, block in zip(judge.data, judge.blocks, strict=True):
        again.W[np.ix_(s.columns, block.labels)] += C * s.x.T @ block.nodes
        np.add.at(again.T, tuple(block.states.T), C * block.values)
        assert block.nodes.sum() == pytest.approx(0.0)
    assert pytest.approx(judge.model.W) == again.W
    assert pytest.approx(judge.model.T) == again.T


@pytest.mark.parametrize(
    ("slow", "compiled", "settings"),
    [
        (Bcfw, CompiledBcfw, {}),
        (Subgradient, CompiledSubgradient, {}),
        (SoftBcfw, CompiledSoftBcfw, {"rho": 0.7}),
    ],
    ids=["bcfw", "subgradient", "soft-bcfw"],
)
def test_compiled_judges_take_the_same_steps(slow, compiled, settings):
    part = tiny(1)
    train = {"X": part.X, "y": part.y, "lengths": part.lengths}
    judges = (
        slow(data_of(part), N_FEATURES, N_LABELS, C, **settings),
        compiled(train, N_FEATURES, N_LABELS, C=C, **settings),
    )
    for i in [0, 1, 2, 3, 4] * 8:
        steps = [judge.step(i) for judge in judges]
        assert slow is not Bcfw or steps[1] == pytest.approx(steps[0], abs=1e-12)
    models = [j.average() if slow is Subgradient else j.model for j in judges]
    assert np.abs(models[0].W).max() > 0.01
    assert np.allclose(models[0].W, models[1].W, atol=1e-12)
    assert np.allclose(models[0].T, models[1].T, atol=1e-12)
    if slow is Bcfw:
        assert judges[1].dual() == pytest.approx(judges[0].dual(), rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_subgradients_reach_the_optimum(seed):
    data = data_of(tiny(seed))
    judge = visits(Subgradient(data, N_FEATURES, N_LABELS, C), 1000)
    best = optimum(seed)
    assert best * (1 - 5e-3) <= enumerated(judge.average(), data) <= best * 1.01


def test_subgradients_average_what_they_were():
    data = data_of(tiny())
    judge = Subgradient(data, N_FEATURES, N_LABELS, C)
    total, weights = np.zeros((N_FEATURES, N_LABELS)), 0
    for t, i in enumerate([0, 1, 2, 3, 4, 0, 1], start=1):
        judge.step(i)
        total += t * (judge.scale / t) * judge.sum.W
        weights += t
    assert pytest.approx(total / weights) == judge.average().W


@pytest.mark.parametrize("seed", range(3))
def test_soft_constraints_come_close_to_the_optimum_as_they_harden(seed):
    data = data_of(tiny(seed))
    best = optimum(seed)
    off, primals = [], []
    for rho in (0.01, 0.1, 1.0):
        judge = SoftBcfw(data, N_FEATURES, N_LABELS, C, rho)
        values = [judge.value()]
        for _ in range(10):
            visits(judge, 20)
            values.append(judge.value())
        assert (np.diff(values) <= 1e-9).all()
        # Its dual is a relaxation of that of the structural SVM, so the optimum is above.
        assert -values[-1] >= best * (1 - 1e-2)
        off.append(abs(-values[-1] / best - 1.0))
        primals.append(enumerated(judge.model, data))
    assert off[0] > off[1] > off[2]
    assert primals[0] > primals[1] > primals[2]
    assert primals[2] <= 1.01 * best


# --- data -----------------------------------------------------------------------------------------


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    with lzma.open(path, "wt", encoding="utf-8") as file:
        file.write(text)


def test_features_look_two_words_around_and_at_given_columns():
    first, second = chains.features([["The", "DT", "B"], ["dogs", "NNS", "I"]])
    assert {"bias", "w|The", "l|the", "shape|Xxx", "p|th", "s|he", "1|dogs", "-1|<s>"} <= set(first)
    assert {"1|0|NNS", "1|-1|DT", "1|1|<s>", "-1|the", "p|dogs", "s|dogs"} <= set(second)
    assert not any(name.endswith(("|B", "|I")) for name in [*first, *second])
    assert chains.shape("McDonald-1984") == "XxXxx-dd"


def test_brown_is_split_by_file(tmp_path):
    files = "".join(f"# file f{n} news\nword{n}\ttag{n % 4}\n\n" for n in range(10))
    write(tmp_path / "brown.conll.xz", files)
    split = chains.brown(tmp_path)
    assert split.train.n_tokens == 8
    assert split.test.lengths.tolist() == [1, 1]
    assert split.n_labels == 4
    assert split.train.X.shape[1] == split.test.X.shape[1]


def test_words_of_universal_dependencies_leave_out_ranges_and_empty_nodes(tmp_path):
    rows = [
        "# text = x",
        "1-2\tdel\t_\t_\t_",
        "1\tde\t_\t_\tP",
        "2\tel\t_\t_\tD",
        "2.1\t_\t_\t_\tE",
    ]
    write(tmp_path / "a.xz", "\n".join(rows) + "\n\n")
    split = chains.universal("a.xz", "a.xz")(tmp_path)
    assert split.train.y.tolist() == [0, 1]
    assert (split.train.X != split.test.X).nnz == 0


def test_given_features_are_cut_and_unseen_tags_are_mistakes(tmp_path):
    write(tmp_path / "x.xz", "\n\n".join(["A 1:1 3:2", "B 2:1", "A 1:1", "B 1:1", "C 2:5"]))
    split = chains.given("x.xz")(tmp_path)
    assert split.train.y.tolist() == [0, 1, 0, 1]
    assert split.test.y.tolist() == [-1]
    assert split.n_labels == 2
    assert split.train.X[0].toarray().tolist() == [[1, 0, 1, 0, 2]]


def test_letters_of_one_fold_are_asked(tmp_path):
    pixels = "\t".join(["1"] + ["0"] * 127)
    lines = [("a", 2, 0), ("b", -1, 0), ("c", -1, 1), ("b", -1, 2)]
    text = "".join(f"1\t{a}\t{after}\t1\t1\t{fold}\t{pixels}\n" for a, after, fold in lines)
    write(tmp_path / "letter.data.xz", text)
    split = chains.letters(1)(tmp_path)
    assert split.train.lengths.tolist() == [2, 1]
    assert split.test.y.tolist() == [-1]


def test_a_part_for_choosing_parameters_is_of_training_sequences():
    part = Chains(sp.eye(6, format="csr"), np.array([0, 1, 2, 0, 3, 1]), np.ones(6, int))
    inner = Split(part, part, 4).inner(every=5)
    assert inner.train.lengths.sum() == 5
    assert inner.n_labels == 3
    assert inner.test.y.tolist() == [-1]
    assert part.head(3).n_tokens == 3
    assert part.head(None) is part


@pytest.mark.parametrize("seed", [None, 0])
def test_tags_are_cut_into_parts_of_parts(seed):
    rng = np.random.default_rng(0)
    X = sp.csr_matrix((rng.random((400, 30)) < 0.1).astype(np.float32))
    part = Chains(X, rng.integers(3, size=400), np.full(40, 10))
    before = part
    for n_parts in (1, 2, 4, 8):
        after = chains.split_tags(part, n_parts, seed)
        # Each new tag lies in one old tag, and there are more of them.
        assert len({*zip(after.y.tolist(), before.y.tolist(), strict=True)}) == after.y.max() + 1
        assert after.y.max() + 1 == pytest.approx(3 * n_parts, abs=2)
        before = after


# --- the measured process -------------------------------------------------------------------------


def easy():
    """A tag that its features tell."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=60)
    X = sp.csr_matrix(np.column_stack([np.ones(60), np.eye(3)[y]]).astype(np.float32))
    part = Chains(X, y, np.full(12, 5))
    return Split(part, part, 3)


def followed(tagger, limit, C=None):
    return bench.follow(Bench(Path()), bench.Tagging("easy", easy, C), tagger, limit)


@pytest.mark.parametrize("tagger", bench.TAGGERS, ids=lambda tagger: tagger.name)
def test_every_installed_tagger_learns(tagger):
    if not is_installed(tagger.environment):
        pytest.skip(f"environment {tagger.environment} is not installed")
    found = followed(tagger, 0.2)
    assert found.error is None, found.error
    # CRFsuite shuffles by the C library's rand(): its perceptron misses a few now and then.
    assert found.figure("accuracy") >= 0.9
    assert found.figure("model_mb") > 0
    assert found.cheapest("accuracy", least=0.9) <= found.figure("fit_cpu_seconds")


@pytest.mark.parametrize("solver", bench.SOLVERS, ids=lambda solver: solver.name)
def test_every_solver_lowers_the_objective(solver):
    found = followed(solver, 0.3, bench.OBJECTIVE_C)
    assert found.error is None, found.error
    train = easy().train
    at_zero = primal(train, sp.csr_matrix((4, 3)), np.zeros((3, 3)), bench.OBJECTIVE_C)
    value, bound = found.figure("primal"), found.figure("bound")
    assert value < 0.9 * at_zero
    assert bound is None or bound <= value + 1e-6


def test_a_tagger_that_fails_says_why():
    found = followed(bench.ours(C=-1.0), 0.2)
    assert not found.laps
    assert "C must be" in found.error


# --- tables ---------------------------------------------------------------------------------------


def course(*pairs):
    laps = [{"fit_cpu_seconds": s, "accuracy": a, "n_iter": n} for n, (s, a) in enumerate(pairs, 1)]
    return Run(laps)


def test_time_to_an_accuracy_is_that_of_the_cheapest_fit():
    found = Outcome(bench.ours(), runs=[course((1.0, 0.5), (2.0, 0.8), (4.0, 0.7))])
    assert found.cheapest("accuracy", least=0.7) == 2.0
    assert found.cheapest("accuracy", least=0.9) is None


def test_few_sequences_with_all_tags():
    y = np.array([0, 0, 1, 2, 0, 1, 3, 0])
    X = sp.identity(8, format="csr", dtype=np.float32)
    train = Chains(X, y, np.array([2, 2, 3, 1]))
    found = Split(train, train, 4).with_all_tags()
    # {0, 1, 3} brings most, then {1, 2}; the others bring nothing.
    assert found.train.y.tolist() == [1, 2, 0, 1, 3]
    assert found.train.X.indices.tolist() == [2, 3, 4, 5, 6]
    assert found.n_labels == 4
    assert found.test.n_tokens == 8


class Told(Bench):
    """A bench on which every run has happened: `right` says how often its tags were right."""

    def __init__(self, right):
        super().__init__(Path())
        self.right = right

    def run(self, case, tagger, limit, *, stop=None):
        name = case.name.partition(",")[0]
        is_inner = case.name.endswith("inner")
        seconds, value = (1, tagger.settings["C"] == 0.3) if is_inner else self.right(name, tagger)
        return Outcome(tagger, runs=[course((seconds, float(value)))])

    def once(self, key, make):
        return [100, 7]


def test_sets_that_are_lost_come_first(monkeypatch):
    rated = {
        "conll2000": {bench.OURS: (1.0, 0.9), bench.LBFGS: (9.0, 0.8)},
        "chinese_ocr": {bench.OURS: (1.0, 0.3), bench.LBFGS: (9.0, 0.4)},
    }
    race = bench.Race((bench.OURS, bench.LBFGS))
    monkeypatch.setattr(bench, "SETS", dict.fromkeys(rated, race))
    found = bench.accuracy(Told(lambda name, tagger: rated[name][tagger.name]))
    named = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
    sets = [row["set"].partition(" ")[0] for row in named]
    assert sets == 2 * ["chinese_ocr"] + 2 * ["conll2000"]
    assert named[0]["set"] == "chinese_ocr (100 tokens, 7 tags)"
    assert named[1]["ours is ahead by"] == pytest.approx(-10.0)
    assert named[2]["CPU s to lbfgs' accuracy"] == 1.0
    assert named[0]["CPU s to lbfgs' accuracy"] is None
    assert named[0]["remark"].startswith("C = 0.3")


def test_folds_are_means_with_their_error(monkeypatch):
    def right(name, tagger):
        is_odd = int(name[-1]) % 2
        return (2.0, 0.9) if tagger.name == bench.OURS else (3.0, 0.88 if is_odd else 0.91)

    monkeypatch.setattr(bench, "FOLDS", bench.Race((bench.OURS, "crf-ap")))
    found = bench.folds(Told(right))
    mine, other = (dict(zip(found.columns, row, strict=True)) for row in found.rows)
    assert mine["% right"] == pytest.approx(90.0)
    assert other["ours is ahead by"] == pytest.approx(0.5)  # -1 and 2 points by turns
    assert other["standard error"] == pytest.approx(0.5)
    assert other["ours is ahead in"] == "5 of 10"
    assert other["CPU s"] == 3.0
