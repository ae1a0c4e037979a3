"""A PPD-Sparse fit from problem to solution: part by part, with or without a journal."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from sublearn import _core
from sublearn.execution import Hints, asked_for, map_blocks, n_places_elsewhere
from sublearn.extreme.fit_journal import FitJournal, is_journal_of, write_part
from sublearn.extreme.linear_labels import LinearLabels
from sublearn.extreme.ppd_problem import Chunk, PPDProblem, Weighed
from sublearn.fitting.progress import Progress
from sublearn.parts import Join, Part, parts_of
from sublearn.trace import Solution, Status, Trace
from sublearn.typing import JsonObject

__all__ = ["gather_weights", "learn_more", "solve_one_part", "solve_parts"]

_JOURNAL_BLOCKS = 64  # blocks of labels between two entries of a journal
_PARTS_PER_PLACE = 16  # if parts go to other processes: the last ones end at about the same time
_TRACE_ROWS = 100
_SHOWN = 20  # numbers of missing parts in a message
_SUMMED = ("primal", "dual", "nnz_primal", "nnz_dual", "work")


def solve_parts(
    problem: PPDProblem,
    settings: JsonObject,
    journal: FitJournal | None,
    watch: Callable[[Callable[[], None], Progress], None],
) -> tuple[LinearLabels, Solution, bool]:
    """The model, how it was found, and whether a stop was asked for.

    Parts that the journal has are read, not solved. `watch` runs a job under the eyes of the user,
    as that of `FittedModel` does.
    """
    progress = Progress(len(problem.order))
    solver = _PartSolver(problem, settings, progress.core)
    chunks: list[Chunk] = []

    def job() -> None:
        if journal is not None and isinstance(asked_for(), Join):
            _read_finished(solver, journal, chunks)
            _refuse_missing(problem, journal, chunks)
        elif n_places_elsewhere():
            _solve_elsewhere(solver, journal, chunks)
        elif journal is None:
            chunks.append(solver(problem.part(0, problem.n_blocks)))
        else:
            _solve_with_journal(solver, journal, chunks)

    watch(job, progress)
    was_stopped = progress.stop_requested
    if journal is None:
        by_feature = gather_weights(_joined(chunks, problem), problem.n_features)
    else:
        by_feature = journal.gather_weights(chunks, (problem.n_features, problem.n_labels))
    reports, bias = _gather_reports(chunks, problem.n_labels)
    is_done = (reports["converged"] != 0) | (problem.counts == 0)
    solution = _summarise(reports, is_done, settings["max_iter"] if was_stopped else 0)
    return LinearLabels(by_feature, bias), solution, was_stopped


def solve_one_part(
    problem: PPDProblem,
    settings: JsonObject,
    journal: FitJournal,
    part: Part,
    watch: Callable[[Callable[[], None], Progress], None],
) -> None:
    """Solve what the journal lacks of a part, and say in `part` how it went."""
    costs = problem.block_costs()
    blocks = part.blocks(costs)
    labels = problem.part(blocks.start, blocks.stop)
    part.n_labels = len(problem.order[labels])
    progress = Progress(part.n_labels)
    solver = _PartSolver(problem, settings, progress.core)
    chunks: list[Chunk] = []

    def job() -> None:
        seconds = _read_finished(solver, journal, chunks, blocks)
        is_ours = np.zeros(problem.n_blocks, dtype=bool)
        is_ours[blocks.start : blocks.stop] = True
        left = _parts_left(problem, chunks, np.zeros(problem.n_blocks), is_ours)
        part.n_solved = sum(len(problem.order[one]) for one in left)
        _solve_into(solver, journal, left, chunks, seconds)

    watch(job, progress)
    part.is_done = not progress.stop_requested


def learn_more(
    data: Weighed,
    model: LinearLabels,
    settings: JsonObject,
    watch: Callable[[Callable[[], None], Progress], None],
) -> tuple[LinearLabels, Solution]:
    """A model that has learnt from further rows as well, and how it was found.

    The duals of the rows seen before stay as they are: they are known by what they add to v, which
    is w + l1 sign(w) where a weight is not zero and is taken for 0 elsewhere, and to the bias.
    Labels that a stop kept from being reached, which have no weights and a bias of -1 then, keep
    those that they had.
    """
    v = sp.csr_matrix(model.weights.T)
    v.data = v.data + np.sign(v.data) * v.dtype.type(settings["l1"])
    problem = PPDProblem(*data, held=(v, model.bias))
    found, solution, was_stopped = solve_parts(problem, settings, None, watch)
    n_weights = np.bincount(found.lists.labels, minlength=found.n_labels)
    return found.with_labels_of(
        model, was_stopped & (n_weights == 0) & (found.bias == -1)
    ), solution


@dataclass(frozen=True, eq=False)
class _PartSolver:
    """Solves parts of a problem. In another process it has one thread and a monitor of its own."""

    problem: PPDProblem
    settings: JsonObject
    monitor: _core.Monitor

    def __call__(self, part: slice) -> Chunk:
        return self.problem.solve(part, self.settings, self.monitor)

    def __reduce__(self) -> tuple[Callable[..., _PartSolver], tuple[object, ...]]:
        return _elsewhere, (self.problem, self.settings | {"n_threads": 1})


def _elsewhere(problem: PPDProblem, settings: JsonObject) -> _PartSolver:
    return _PartSolver(problem, settings, _core.Monitor())


def _read_finished(
    solver: _PartSolver, journal: FitJournal, chunks: list[Chunk], blocks: range | None = None
) -> float:
    """Take the parts that the journal has, or has of `blocks`; the time that was spent on them."""
    found = [chunk for _, chunk in journal.finished(solver.problem, blocks)]
    for chunk in found:
        solver.monitor.add_done(len(solver.problem.solved_of(chunk)))
    chunks.extend(found)
    return max((float(chunk.reports["seconds"].max()) for chunk in found), default=0.0)


def _parts_left(
    problem: PPDProblem,
    chunks: Sequence[Chunk],
    costs: np.ndarray,
    is_wanted: np.ndarray | None = None,
) -> list[slice]:
    """What no chunk has, cut by blocks: at most `_JOURNAL_BLOCKS`, or costs of 1 in total.

    Of the blocks that `is_wanted` marks, if it is given.
    """
    is_left = np.ones(len(problem.order), dtype=bool)
    if is_wanted is not None:
        is_left = np.repeat(is_wanted, problem.n_lanes)[: len(problem.order)]
    place = np.full(problem.n_labels, -1)
    place[problem.order] = np.arange(len(problem.order))
    for chunk in chunks:
        is_left[place[problem.solved_of(chunk)]] = False
    parts, begin, spent = [], -1, 0.0
    for block in range(problem.n_blocks + 1):
        is_open = begin >= 0
        is_next = block < problem.n_blocks and is_left[problem.part(block, block + 1)].all()
        is_full = is_open and (block - begin >= _JOURNAL_BLOCKS or spent >= 1.0)
        if is_open and (not is_next or is_full):
            parts.append(problem.part(begin, block))
            is_open = False
        if is_next:
            begin, spent = (begin, spent) if is_open else (block, 0.0)
            spent += costs[block]
        else:
            begin = -1
    return parts


def _solve_with_journal(solver: _PartSolver, journal: FitJournal, chunks: list[Chunk]) -> None:
    problem = solver.problem
    seconds = _read_finished(solver, journal, chunks)  # also of a fit that was killed
    left = _parts_left(problem, chunks, np.zeros(problem.n_blocks))
    _solve_into(solver, journal, left, chunks, seconds)


def _solve_into(
    solver: _PartSolver,
    journal: FitJournal,
    parts: Sequence[slice],
    chunks: list[Chunk],
    seconds: float,
) -> None:
    """Solve parts one after another; each is on disk before the next is begun."""
    problem, monitor = solver.problem, solver.monitor
    for part in parts:
        began = time.perf_counter()
        chunk = solver(part).later(seconds)
        if monitor.stop_requested:  # what a stop cut short is in the model all the same
            chunks.append(chunk)
            return
        chunks.append(journal.keep(problem.first_block(part), chunk))
        seconds += time.perf_counter() - began


def _refuse_missing(problem: PPDProblem, journal: FitJournal, chunks: Sequence[Chunk]) -> None:
    """Raise if a part of the fit has not been written."""
    costs = problem.block_costs()
    left = _parts_left(problem, chunks, np.zeros(problem.n_blocks))
    if not left:
        return
    blocks = [b for one in left for b in range(*_blocks(problem, one).indices(problem.n_blocks))]
    n_labels = sum(len(problem.order[one]) for one in left)
    words = f"{n_labels:,} of {len(problem.order):,} labels are missing in {journal.folder}"
    if journal.n_parts is not None:
        numbers = parts_of(blocks, costs, journal.n_parts)
        shown = ", ".join(map(str, numbers[:_SHOWN])) + (", ..." if numbers[_SHOWN:] else "")
        words += f", of part {shown} of {journal.n_parts}"
    raise ValueError(f"join_parts: every part must be there: {words}; run what is missing again")


# --- in other processes ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _PartWriter:
    """Solves a part and writes it into the journal, where this process sees its folder."""

    solver: _PartSolver
    journal_folder: Path | None
    plan: JsonObject | None
    seconds_before: float
    began: float  # on the clock of the day, the only one that processes share

    def __call__(self, part: slice) -> _Solved:
        offset = self.seconds_before + max(time.time() - self.began, 0.0)
        chunk = self.solver(part).later(offset)
        first = self.solver.problem.first_block(part)
        folder, plan = self.journal_folder, self.plan
        if folder is None or plan is None or self.solver.monitor.stop_requested:
            return _Solved(first, chunk, False)
        if not is_journal_of(folder, plan):
            return _Solved(first, chunk, False)
        write_part(folder, plan, first, chunk)
        return _Solved(first, chunk.without_weights(), True)


class _Solved(NamedTuple):
    first_block: int
    chunk: Chunk
    is_written: bool


def _solve_elsewhere(solver: _PartSolver, journal: FitJournal | None, chunks: list[Chunk]) -> None:
    """Parts as blocks of `map_blocks`; each is written, or kept, as it comes."""
    problem, monitor = solver.problem, solver.monitor
    seconds = 0.0 if journal is None else _read_finished(solver, journal, chunks)
    costs = problem.block_costs()
    share = costs.sum() / (_PARTS_PER_PLACE * n_places_elsewhere())
    parts = _parts_left(problem, chunks, costs / share)

    def arrived(solved: _Solved) -> None:
        chunk, reports = solved.chunk, solved.chunk.reports
        gap = float((reports["primal"] - reports["dual"]).sum())
        monitor.add(float(reports["primal"].sum()), gap, int(reports["nnz_primal"].sum()),
                    int(reports["nnz_dual"].sum()), int(reports["work"].sum()))  # fmt: skip
        monitor.add_done(len(problem.solved_of(chunk)))
        if journal is not None:
            keep = journal.count if solved.is_written else journal.keep
            chunk = keep(solved.first_block, chunk)
        chunks.append(chunk)

    folder, plan = (None, None) if journal is None else (journal.folder.resolve(), journal.plan)
    writer = _PartWriter(solver, folder, plan, seconds, time.time())
    hints = Hints(lambda part: costs[_blocks(problem, part)].sum(), arrived,
                  lambda: monitor.stop_requested)  # fmt: skip
    rest = map_blocks(writer, parts, hints=hints)
    chunks.extend(solved.chunk for solved in rest if solved is not None)


def _blocks(problem: PPDProblem, part: slice) -> slice:
    first = problem.first_block(part)
    return slice(first, first + -(-(part.stop - part.start) // problem.n_lanes))


# --- all parts together ------------------------------------------------------------------------


def _gather_reports(
    chunks: Sequence[Chunk], n_labels: int
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Report columns and biases of all labels; zeros, and a bias of -1, for those in no chunk."""
    first = chunks[0]
    columns = {name: np.zeros(n_labels, values.dtype) for name, values in first.reports.items()}
    bias = np.full(n_labels, -1, dtype=first.bias.dtype)
    for chunk in chunks:
        bias[chunk.labels] = chunk.bias
        for name, values in chunk.reports.items():
            columns[name][chunk.labels] = values
    return columns, bias


def _joined(chunks: Sequence[Chunk], problem: PPDProblem) -> Chunk:
    """One chunk with the labels of several; labels of none have no weights, as after a stop."""
    if len(chunks) == 1 and len(chunks[0].labels) == problem.n_labels:
        return chunks[0]
    first = chunks[0]
    is_there = np.zeros(problem.n_labels, dtype=bool)
    for chunk in chunks:
        is_there[chunk.labels] = True
    others = np.flatnonzero(~is_there).astype(first.labels.dtype)
    lengths = [np.diff(chunk.indptr) for chunk in chunks] + [np.zeros(len(others), dtype=np.int64)]
    rest = np.full(len(others), -1, dtype=first.bias.dtype)
    return Chunk(
        np.concatenate([*(chunk.labels for chunk in chunks), others]),
        np.concatenate([[0], *lengths]).cumsum(),
        np.concatenate([chunk.features for chunk in chunks]),
        np.concatenate([chunk.values for chunk in chunks]),
        np.concatenate([*(chunk.bias for chunk in chunks), rest]),
        {},
    )


def gather_weights(chunk: Chunk, n_features: int) -> sp.csr_matrix:
    """The weights of a chunk that holds all labels, one row per feature."""
    place = np.empty(len(chunk.labels), dtype=np.int32)
    place[chunk.labels] = np.arange(len(place), dtype=np.int32)
    indptr, labels, values = _core.lists_by_feature(
        chunk.indptr, chunk.features, chunk.values, place, n_features
    )
    return sp.csr_matrix((values, labels, indptr), shape=(n_features, len(place)))


def _summarise(reports: dict[str, np.ndarray], is_done: np.ndarray, cut_below: int) -> Solution:
    """Totals over labels; one that is not done was cut short if it made fewer searches."""
    status = Status.CONVERGED
    if not is_done.all():
        was_cut = (reports["n_iter"] < cut_below) & ~is_done
        status = Status.STOPPED if was_cut.any() else Status.MAX_ITER
    objective = float(reports["primal"].sum())
    gap = max(float((reports["primal"] - reports["dual"]).sum()), 0.0)  # rounding of float32
    if status is Status.STOPPED:
        certificate = float("inf")  # nothing is known of the labels that were not reached
    else:
        certificate = gap / objective if objective != 0 else 0.0
    n_iter = int(reports["n_iter"].max())
    return Solution(status, objective, certificate, n_iter, _trace_of(reports))


def _trace_of(reports: dict[str, np.ndarray]) -> Trace:
    """Running totals in the order in which labels were finished, at most `_TRACE_ROWS` rows."""
    order = np.argsort(reports["seconds"], kind="stable")
    order = order[reports["n_iter"][order] > 0]
    n_rows = min(_TRACE_ROWS, len(order))
    ends = np.linspace(0, len(order), n_rows + 1).astype(int)[1:] - 1
    totals = {name: np.cumsum(reports[name][order])[ends] for name in _SUMMED}
    gap = np.maximum(totals["primal"] - totals["dual"], 0.0)
    return Trace(
        {
            "seconds": reports["seconds"][order][ends],
            "labels": ends + 1,
            "objective": totals["primal"],
            "certificate": gap / np.where(totals["primal"] > 0, totals["primal"], 1.0),
            "nnz_primal": totals["nnz_primal"],
            "nnz_dual": totals["nnz_dual"],
            "work": totals["work"],
        }
    )
