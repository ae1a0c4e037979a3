"""What every fit has: progress that is watched, and an end that is kept."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

from sublearn.fitting.held_out import split_rows
from sublearn.fitting.labels import as_k, best_labels
from sublearn.fitting.model import FittedModel
from sublearn.fitting.progress import Progress
from sublearn.interruption import Abandoned, Work
from sublearn.io.fields import check_fields
from sublearn.trace import Solution, Status, Trace, watch

# --- progress ------------------------------------------------------------------------------------


def figures(progress):
    return progress.objective, progress.gap, progress.nnz_primal, progress.nnz_dual, progress.work


def test_rounds_of_one_solve_are_counted_and_solves_of_many():
    one, many = Progress.of_solves(1, 50), Progress.of_solves(7, 50)
    assert (one.n_total, many.n_total) == (50, 7)
    for progress in (one, many):
        progress.finish_solve()
        with progress.monitor() as monitor:
            monitor.add_done(3)
    assert (one.n_done, many.n_done) == (3, 1)


def test_rounds_add_up_over_calls_that_run_and_that_ended():
    progress = Progress(20)
    progress.core.add_done(1)
    with progress.monitor() as first, progress.monitor() as second:
        first.add_done(2)
        second.add_done(4)
        assert progress.n_done == 7
    assert progress.n_done == 7


def test_figures_are_those_of_the_call_that_began_last_until_a_loop_tells_its_own():
    progress = Progress()
    progress.core.add(1.0, 0.5, 2, 3, 4)
    assert figures(progress) == (1.0, 0.5, 2, 3, 4)
    with progress.monitor() as monitor:
        monitor.add(8.0, 0.25, 1, 1, 1)
        assert figures(progress) == (8.0, 0.25, 1, 1, 1)
    progress.tell(objective=2.0)
    progress.add(work=5)
    progress.add(work=5, n_done=2)
    assert figures(progress) == (2.0, 0, 0, 0, 10)
    assert progress.n_done == 2


def test_a_stop_reaches_what_runs_and_what_begins_later():
    progress = Progress()
    assert not progress.stop_requested
    with progress.monitor() as running:
        progress.request_stop()
        assert running.stop_requested
    with progress.monitor() as later:
        assert later.stop_requested
    assert progress.stop_requested
    assert progress.core.stop_requested


def test_work_that_is_not_wanted_is_abandoned_where_it_asks():
    work, progress = Work(), Progress()
    with work.under_way():
        work.abandon()
        with pytest.raises(Abandoned):
            progress.stop_requested  # noqa: B018


def test_another_process_has_counters_of_its_own():
    progress = Progress(9, n_done=4, objective=1.0)
    progress.request_stop()
    other = pickle.loads(pickle.dumps(progress))
    assert (other.n_done, other.objective, other.stop_requested) == (0, 0, False)


def test_results_from_another_process_are_counted_when_they_arrive():
    progress = Progress.of_solves(6, 1)
    assert progress.hints(n_solves=2).arrived("result") == "result"
    assert progress.n_done == 2


def test_what_a_loop_tells_is_what_a_callback_sees():
    seen, progress = [], Progress(3, n_done=0)

    def job():
        progress.add(n_done=3)
        progress.tell(objective=4.0, gap=1.0, nnz_primal=2)

    watch(job, progress, n_total=progress.n_total, callback=seen.append)
    last = seen[-1]
    assert (last.n_done, last.n_total, last.objective, last.certificate) == (3, 3, 4.0, 0.25)


# --- the end of a fit ----------------------------------------------------------------------------


class Model(FittedModel, BaseEstimator):
    _STORED = ("coef_", "extra_")

    def __init__(self, tol=0.1, callback=None, verbose=0):
        self.tol, self.callback, self.verbose = tol, callback, verbose

    def fit(self, status=Status.CONVERGED, warns=True):
        progress = Progress(1)
        trace = Trace({"objective": [3.0, 2.0]})
        found = self._watch(lambda: Solution(status, 2.0, 0.25, 1, trace), progress)
        self._keep_solution(found, warns=warns)
        self.coef_, self.n_features_in_ = np.ones(2), 2
        return self


def test_a_solution_becomes_the_attributes_of_a_fitted_model():
    with pytest.raises(NotFittedError):
        check_is_fitted(Model())
    model = Model().fit()
    check_is_fitted(model)
    assert (model.objective_, model.certificate_, model.n_iter_) == (2.0, 0.25, 1)
    assert len(model.trace_) == 2


def test_what_did_not_converge_is_warned_of_unless_that_was_wanted():
    with pytest.warns(ConvergenceWarning, match=r"Model: .*certificate 0\.25, asked for tol=0\.1"):
        Model().fit(Status.MAX_ITER)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Model().fit(Status.MAX_ITER, warns=False)


def test_figures_features_and_attributes_that_are_there_come_back_from_their_state():
    model, other = Model().fit(), Model()
    state = model._to_bundle()
    assert set(state) == {
        "coef_", "objective_", "certificate_", "n_iter_", "n_features_in_", "trace_",
    }  # fmt: skip
    assert state["trace_"] == {"objective": [3.0, 2.0]}
    coef = state.pop("coef_")
    check_fields(state, other._fields())
    other._restore(state | {"coef_": coef})
    assert other.trace_ == model.trace_
    assert other._to_bundle().keys() == model._to_bundle().keys()


# --- labels --------------------------------------------------------------------------------------


def test_the_best_labels_stand_first_and_equal_ones_in_order():
    scores = np.array([[1.0, 3.0, 3.0], [2.0, 1.0, 0.0]])
    labels, values = best_labels(np.array(["a", "b", "c"]), scores, 2)
    assert labels.tolist() == [["b", "c"], ["a", "b"]]
    assert values.tolist() == [[3.0, 3.0], [2.0, 1.0]]
    assert best_labels(np.arange(3), scores, 1, -scores)[1].tolist() == [[-3.0], [-2.0]]


def test_the_number_of_labels_is_positive_and_at_most_that_of_all():
    assert (as_k(5, 3), as_k(5, 30), as_k(np.int64(7), 30)) == (3, 5, 7)
    for k in (0, 1.0, True, None):
        with pytest.raises(ValueError, match=r"predict_top_k\.k must be a positive integer, got"):
            as_k(k, 30)


@pytest.mark.parametrize("fraction", [0.001, 0.25, 0.999])
def test_rows_are_split_into_increasing_parts_neither_of_them_empty(fraction):
    train, held_out = split_rows(20, fraction, np.random.default_rng(0))
    assert len(train) > 0
    assert len(held_out) > 0
    assert sorted([*train, *held_out]) == list(range(20))
    assert (np.diff(train) > 0).all()
    assert (np.diff(held_out) > 0).all()
