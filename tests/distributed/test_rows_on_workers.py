"""Rows that lie on workers: the optimum of one machine, rounds and bytes counted, refusals."""

import itertools
import signal
import threading
import time

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from distributed import Client
from sklearn.exceptions import ConvergenceWarning

from sublearn.distributed import RowBlocks, fit_by_rows
from sublearn.distributed.row_blocks import RowBlock, RowLoss
from sublearn.distributed.row_bounds import RowTask, as_point, dual_rays
from sublearn.distributed.row_coordinates import Coordinates, column_moments
from sublearn.distributed.row_exchange import Exchange, answer, solve_together
from sublearn.errors import ClusterError, ParameterError
from sublearn.extreme import PDSparseClassifier, PPDSparseClassifier
from sublearn.io import load_svmlight, save_svmlight
from sublearn.linear import (
    GroupLinearRegression,
    SparseLinearRegression,
    SparseLogisticRegression,
)
from sublearn.optim import linear_objective

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = sp.random(240, 40, 0.3, "csr", random_state=rng, data_rvs=rng.standard_normal)
    z = X @ np.where(np.arange(40) < 5, 2.0, 0.0)
    return X, np.where(z + rng.normal(size=240) > 0.3, 2, 1), z + 0.1 * rng.normal(size=240)


def delayed(client, X, y, n_blocks=3):
    cut = np.linspace(0, X.shape[0], n_blocks + 1).astype(int)
    parts = [(X[a:b], y[a:b]) for a, b in itertools.pairwise(cut)]
    return RowBlocks.from_delayed(client, [dask.delayed(part) for part in parts])


@pytest.mark.parametrize(
    "options", [{}, {"l2": 0.05}, {"fit_intercept": False}, {"l2": 0.1, "fit_intercept": False}]
)
def test_logistic_regression_reaches_the_optimum_of_one_machine(client, data, options):
    X, y, _ = data
    model = SparseLogisticRegression(0.01, tol=1e-8, **options)
    alone = model.fit(X, y)
    objective, coef, intercept = alone.objective_, alone.coef_.copy(), alone.intercept_.copy()
    found = fit_by_rows(model, delayed(client, X, y))
    assert found.certificate_ <= 1e-8
    assert found.objective_ == pytest.approx(objective, rel=2e-8)
    np.testing.assert_allclose(found.coef_, coef, atol=2e-3)
    np.testing.assert_allclose(found.intercept_, intercept, atol=2e-3)
    assert found.classes_.tolist() == [1, 2]
    assert found.predict(X).tolist() == alone.predict(X).tolist()


@pytest.mark.parametrize("options", [{}, {"l2": 0.1, "fit_intercept": False}])
def test_rounds_are_the_outer_iterations_and_the_start(client, data, options):
    X, y, _ = data
    model = fit_by_rows(SparseLogisticRegression(0.02, **options), delayed(client, X, y))
    assert model.trace_["round"].tolist() == list(range(1, model.n_iter_ + 2))
    assert model.certificate_ <= model.tol


def test_a_callback_sees_finished_problems_and_may_stop_them(client, data):
    X, y, z = data
    seen = []
    classes = np.digitize(z, [-0.5, 0.5])
    model = SparseLogisticRegression(0.02, callback=lambda event: seen.append(event))
    fit_by_rows(model, delayed(client, X, classes))
    assert (seen[-1].n_done, seen[-1].n_total) == (3, 3)
    assert seen[-1].objective == pytest.approx(model.objective_)
    hasty = SparseLogisticRegression(1e-6, tol=1e-14, max_iter=10**6, callback=lambda _: True)
    with pytest.warns(ConvergenceWarning, match="the callback asked to stop"):
        fit_by_rows(hasty, delayed(client, X, y))


def test_bytes_are_counted(client, data):
    X, y, _ = data
    rows = delayed(client, X, y)
    trace = fit_by_rows(SparseLogisticRegression(0.02, l2=0.1, fit_intercept=False), rows).trace_
    sizes = 8 * (X.shape[1] + 1) * len(rows) * trace["round"]
    assert trace["bytes_received"].tolist() == sizes.tolist()
    assert (np.diff(trace["bytes_sent"]) >= 0).all()
    assert trace["bytes_sent"][0] == 0  # a point of zeros


def test_columns_far_from_zero_and_of_any_size_take_few_rounds(client, data):
    X, y, _ = data
    dense = 5.0 + X.toarray() * np.where(np.arange(40) % 2, 1.0, 300.0)
    model = SparseLogisticRegression(0.01, tol=1e-6)
    objective = model.fit(dense, y).objective_
    found = fit_by_rows(model, delayed(client, dense, y))
    assert found.objective_ == pytest.approx(objective, rel=2e-6)
    assert found.trace_["round"][-1] < 100


@pytest.mark.parametrize(
    "options",
    [{}, {"loss": "huber"}, {"positive": True, "fit_intercept": False}],
)
def test_regressions_reach_the_optimum_of_one_machine(client, data, options):
    X, _, y = data
    model = SparseLinearRegression(0.02, **options)
    objective = model.fit(X, y).objective_
    found = fit_by_rows(model, delayed(client, X, y))
    assert found.objective_ == pytest.approx(objective, rel=1e-5)


def test_several_classes_share_their_rounds(client, data):
    X, _, z = data
    y = np.array(["low", "mid", "high"])[np.digitize(z, [-0.5, 0.5])]
    model = SparseLogisticRegression(0.02)
    coef = model.fit(X, y).coef_.copy()
    found = fit_by_rows(model, delayed(client, X, y))
    np.testing.assert_allclose(found.coef_, coef, atol=5e-3)
    own = [found.trace_["round"][found.trace_["output"] == k] for k in range(3)]
    assert max(rounds[-1] for rounds in own) < sum(len(rounds) for rounds in own)


@pytest.mark.parametrize("form", ["indicator", "names", "two classes"])
def test_ppd_sparse_by_rows_reaches_the_optimum_of_its_problem(client, labels, form):
    X, Y = labels[0].astype(np.float64), labels[1][:, :5]
    y = {"indicator": Y, "names": np.array(list("abc"))[np.arange(400) % 3],
         "two classes": np.arange(400) % 2}[form]  # fmt: skip
    model = PPDSparseClassifier(tol=1e-6, random_state=0)
    alone = model.fit(X, y)
    objective, scores = alone.objective_, alone.decision_function(X)
    found = fit_by_rows(model, delayed(client, X, y))
    assert found.objective_ == pytest.approx(objective, rel=2e-6)
    assert found.certificate_ <= 1e-6
    np.testing.assert_allclose(found.decision_function(X), scores, atol=2e-2)
    assert {"round", "bytes_sent", "bytes_received"} <= set(found.trace_.columns)


def test_pruned_weights_by_rows_have_their_own_figures(client, labels):
    X, Y = labels[0].astype(np.float64), labels[1][:, :3]
    model = PPDSparseClassifier(tol=1e-6, prune=0.1, random_state=0)
    alone = model.fit(X, Y)
    objective, certificate = alone.objective_, alone.certificate_
    found = fit_by_rows(model, delayed(client, X, Y))
    assert np.abs(found.coef_.data).min() > 0.1
    assert found.objective_ == pytest.approx(objective, rel=1e-3)
    assert certificate > 1e-3
    assert found.certificate_ == pytest.approx(certificate, rel=0.05)


def test_svmlight_files_and_dask_arrays_hold_the_same_rows(client, data, tmp_path):
    X, y, _ = data
    files = [tmp_path / f"{k}.svm" for k in range(2)]
    for k, file in enumerate(files):
        save_svmlight(file, X[k::2], y[k::2])
    by_file = RowBlocks.from_svmlight(client, files, n_features=40, parts_per_file=2,
                                      dtype=np.float64)  # fmt: skip
    blocks = da.from_array(X.toarray(), chunks=(80, 40)).map_blocks(sp.csr_matrix)
    by_array = RowBlocks.from_dask(client, blocks, da.from_array(y, chunks=80))
    assert (len(by_file), len(by_array)) == (4, 3)
    for rows in (by_file, by_array):
        assert (rows.n_rows, rows.n_features) == X.shape
        assert rows.counts.tolist() == [(y == 1).sum(), (y == 2).sum()]
        found = fit_by_rows(SparseLogisticRegression(0.01, tol=1e-9), rows)
        np.testing.assert_allclose(
            found.coef_, SparseLogisticRegression(0.01, tol=1e-9).fit(X, y).coef_, atol=1e-3
        )
    assert "240 rows, 40 features, 4 blocks" in repr(by_file)


def test_the_answer_of_a_block_is_its_share(data):
    X, y, _ = data
    block, x = RowBlock(X.tocsc(), y), np.linspace(-1, 1, 41)
    loss = RowLoss("logistic", 1.0, 1 / 240, True, 2)
    points = [as_point(x), as_point(np.zeros(41))]
    found = answer(block, [loss, loss], points, [None, points[0]], True)
    value, gradient = linear_objective(
        X, np.where(y == 2, 1, -1), fit_intercept=True
    ).value_and_gradient(x)
    np.testing.assert_allclose(found[:42], np.append(gradient, value), rtol=1e-12)
    assert found[83] == pytest.approx(np.log(2))
    np.testing.assert_array_equal(found[84:-80], dual_rays(block, loss, points[0]))
    dense = X.toarray()
    np.testing.assert_allclose(found[-80:], np.concatenate([dense.sum(0), (dense**2).sum(0)]))
    np.testing.assert_allclose(column_moments(RowBlock(dense, y)), found[-80:])


@pytest.mark.parametrize("name", ["logistic", "squared", "huber"])
@pytest.mark.parametrize("options", [{}, {"l2": 0.05}, {"fit_intercept": False}])
def test_bounds_lie_below_the_optimum_and_meet_it(data, name, options):
    X, classes, numbers = data
    is_classes, has_intercept = name == "logistic", options.get("fit_intercept", True)
    kind = {} if is_classes else {"loss": name}
    estimator = SparseLogisticRegression if is_classes else SparseLinearRegression
    y = classes if is_classes else numbers
    best = estimator(0.02, tol=1e-10, **kind, **options).fit(X, y)
    loss = RowLoss(name, 1.35, 1 / 240, has_intercept, 2 if is_classes else None)
    ones = np.append(np.ones(40), [0.0] * has_intercept)
    task = RowTask(loss, 0.02 * ones, options.get("l2", 0.0) * ones, 0 * ones, 1e-6, 100)
    block = RowBlock(X.tocsc(), y)
    optimum = np.append(best.coef_, best.intercept_)[: len(ones)]
    rng = np.random.default_rng(0)
    gaps = []
    for size in (1.0, 0.1, 0.0):
        point = as_point(optimum + size * rng.normal(size=len(ones)))
        share = answer(block, [loss], [point], [point], False)
        gaps.append(best.objective_ - task.bound(share[: len(ones)], share[len(ones) + 1 :]))
    assert min(gaps) >= -1e-9
    assert gaps[-1] <= 1e-4 * best.objective_


def test_coordinates_go_there_and_back(data):
    X, y, _ = data
    loss = RowLoss("logistic", 1.0, 1 / 240, True, 2)
    ones = np.append(np.ones(40), 0.0)
    task = RowTask(loss, 0.02 * ones, 0 * ones, 0 * ones, 1e-6, 100)
    found = Coordinates.of_columns(task, column_moments(RowBlock(X.tocsc(), y)), 240)
    u, step = np.random.default_rng(0).normal(size=(2, 41))
    np.testing.assert_allclose(found.from_x(found.to_x(u)), u, rtol=1e-12)
    gradient = np.linspace(-1, 1, 41)  # of a linear function of x
    change = gradient @ (found.to_x(u + step) - found.to_x(u))
    assert change == pytest.approx(found.gradient(gradient) @ step)


@pytest.mark.parametrize("n_parts", [1, 3, 50])
def test_parts_of_a_file_hold_each_row_once(tmp_path, n_parts):
    rng = np.random.default_rng(0)
    X, y = sp.random(20, 6, 0.4, "csr", random_state=rng), np.arange(20)
    save_svmlight(tmp_path / "rows", X, y)
    parts = [load_svmlight(tmp_path / "rows", n_features=6, multilabel=False, part=(k, n_parts),
                           dtype=np.float64) for k in range(n_parts)]  # fmt: skip
    assert np.concatenate([part.Y for part in parts]).tolist() == y.tolist()
    np.testing.assert_allclose(sp.vstack([part.X for part in parts]).toarray(), X.toarray())


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "options", "message"),
    [
        ((2, 2), {"n_features": 3, "multilabel": False}, "0 <= k < n"),
        ("first", {"n_features": 3, "multilabel": False}, "be a pair"),
        ((0, 2), {"multilabel": False}, "where n_features"),
        ((0, 2), {"n_features": 3}, "where n_features"),
    ],
)
def test_a_part_that_cannot_be_read_is_refused(tmp_path, part, options, message):
    (tmp_path / "rows").write_text("1 1:1\n")
    with pytest.raises(ValueError, match=f"load_svmlight.part must.*{message}"):
        load_svmlight(tmp_path / "rows", part=part, **options)


def test_a_part_of_a_compressed_file_is_refused(tmp_path):
    save_svmlight(tmp_path / "rows.gz", sp.eye(3, format="csr"), np.arange(3))
    with pytest.raises(ValueError, match="must be None for a compressed file"):
        load_svmlight(tmp_path / "rows.gz", n_features=3, multilabel=False, part=(0, 2))


REFUSED = {
    "another estimator": (PDSparseClassifier(), "estimator must be a SparseLogisticRegression"),
    "groups of features": (GroupLinearRegression(), "estimator must be a SparseLogisticRegression"),
    "an l1 by folds": (SparseLogisticRegression("cv"), "l1 must be a positive number"),
    "another solver": (SparseLogisticRegression(solver="cd1"), "solver must be 'auto' or 'lhac'"),
    "class weights": (SparseLogisticRegression(class_weight="balanced"), "class_weight must be"),
    "the hinge loss": (PPDSparseClassifier(loss="hinge"), "loss must be 'squared_hinge'"),
    "the Poisson loss": (SparseLinearRegression(loss="poisson"), "loss must be 'squared'"),
    "a bounded intercept": (SparseLinearRegression(positive=True), "fit_intercept must be False"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(client, data, name):
    model, message = REFUSED[name]
    with pytest.raises(ParameterError, match=f"fit_by_rows: .*{message}"):
        fit_by_rows(model, delayed(client, data[0], data[1], 1))


def test_refuses_blocks_that_do_not_fit(client, data):
    X, y, _ = data
    with pytest.raises(ValueError, match="one number of features, got"):
        RowBlocks.from_delayed(client, [dask.delayed((X, y)), dask.delayed((X[:, :7], y))])
    with pytest.raises(ValueError, match="as many rows in y as in X"):
        RowBlocks.from_delayed(client, [dask.delayed((X, y[:5]))])
    with pytest.raises(ParameterError, match="X must have one block of columns"):
        RowBlocks.from_dask(client, da.zeros((8, 8), chunks=4), da.zeros(8, chunks=4))
    with pytest.raises(ParameterError, match="y must be cut by rows as X is"):
        RowBlocks.from_dask(client, da.zeros((8, 8), chunks=(4, 8)), da.zeros(8, chunks=2))
    with pytest.raises(FileNotFoundError):
        RowBlocks.from_svmlight(client, "no/such/file", n_features=3)
    with pytest.raises(ParameterError, match="parts_per_file must be a positive integer"):
        RowBlocks.from_svmlight(client, "rows", n_features=3, parts_per_file=0)
    with pytest.raises(ParameterError, match="from_dask: X must be a Dask array, got"):
        RowBlocks.from_dask(client, X.toarray(), da.from_array(y))


def bad_part(client, X, y):
    return RowBlocks.from_delayed(client, [dask.delayed((X, y))])


BAD_ROWS = {
    "y must be finite": lambda c, X, y: bad_part(c, X, np.where(y > 1, np.nan, 1.0)),
    "X must hold numbers, got": lambda c, X, y: bad_part(c, X.toarray().astype(str), y),
    "X must be a matrix": lambda c, X, y: bad_part(c, X.toarray()[0], y[:40]),
    r"a pair \(X, y\), got": lambda c, X, y: RowBlocks.from_delayed(c, [dask.delayed(X)]),
    "one kind of y, got names and numbers": lambda c, X, y: RowBlocks.from_delayed(
        c, [(X, y), (X, y.astype(str))]
    ),
    "rows must be RowBlocks": lambda c, X, y: fit_by_rows(PPDSparseClassifier(), X),
    "at least two classes": lambda c, X, y: fit_by_rows(
        PPDSparseClassifier(), bad_part(c, X, np.ones(240))
    ),
    "y must hold numbers, got '1'": lambda c, X, y: fit_by_rows(
        SparseLinearRegression(0.1), bad_part(c, X, y.astype(str))
    ),
}


@pytest.mark.parametrize("message", BAD_ROWS)
def test_rows_that_mean_nothing_are_named(client, data, message):
    with pytest.raises(ValueError, match=message):
        BAD_ROWS[message](client, *data[:2])


def test_two_classes_may_be_names_of_any_type(client, data):
    X, y, _ = data
    names = np.where(y > 1, "yes", "no").astype(object)
    found = fit_by_rows(PPDSparseClassifier(), delayed(client, X, names))
    alone = fit_by_rows(PPDSparseClassifier(), delayed(client, X, y))
    assert found.predict(X).tolist() == np.where(alone.predict(X) > 1, "yes", "no").tolist()


def test_frames_and_lists_are_rows_and_stored_zeros_no_labels(client, data):
    pandas = pytest.importorskip("pandas")
    X, y, _ = data
    dense, labels = X.toarray(), sp.csc_matrix(np.stack([y > 1, y < 2], axis=1).astype(float))
    labels.data[:3] = 0
    parts = [(pandas.DataFrame(dense), labels), (dense.tolist(), labels)]
    rows = RowBlocks.from_delayed(client, [dask.delayed(part) for part in parts])
    assert (rows.n_rows, rows.n_features) == (480, 40)
    assert rows.counts.tolist() == [2 * ((y > 1).sum() - 3), 2 * (y < 2).sum()]


@pytest.fixture(params=[True, False], ids=["waits end", "waits go on"])
def interrupts_waits(request):
    """Whether a signal ends a wait of the system; Python says yes, some libraries' handlers no.

    The handler is Python's own in any case: libraries that other tests use set up theirs.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.siginterrupt(signal.SIGINT, request.param)
    yield
    signal.siginterrupt(signal.SIGINT, True)


@pytest.mark.usefixtures("interrupts_waits")
def test_an_interrupt_ends_all_solvers(client, data):
    exchange = Exchange(delayed(client, data[0], data[2]), 2)
    end = time.monotonic() + 90
    loss = RowLoss("squared", 1.0, 1.0, False)

    def solve(_):
        while (
            time.monotonic() < end
        ):  # an interrupt that is missed is a failure, not a test for ever
            exchange.ask(loss, np.zeros(40))
            has_asked.set()

    def press_ctrl_c():
        has_asked.wait(60)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    has_asked = threading.Event()
    killer = threading.Thread(target=press_ctrl_c)
    killer.start()
    with pytest.raises(KeyboardInterrupt):
        solve_together(exchange, 2, solve, range(2))
    killer.join()
    assert not [t for t in threading.enumerate() if t.name == "sublearn-rows"]


def test_a_closed_client_is_named(servers, data):
    with Client(servers, set_as_default=False) as client:
        rows = delayed(client, data[0], data[1])
    with pytest.raises(ClusterError, match="the client is closed"):
        fit_by_rows(SparseLogisticRegression(0.1), rows)
