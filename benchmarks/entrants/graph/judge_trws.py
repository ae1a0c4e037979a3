"""The benchmark's own TRW-S in NumPy."""

from harness.factors import FactorArrays
from judges.trws import Trws

read = FactorArrays.from_arrays


def prepare(problem, task):
    return problem, Trws(problem)


def solve(model, task, keep):
    problem, judge = model
    best, bound, n_iter, still = -float("inf"), float("inf"), 0, 0
    while keep.seconds < task.limit and still < 20:
        labels = judge.iterate()
        n_iter += 1
        score, now = problem.score(labels), judge.bound()
        still = 0 if now < bound - 1e-9 * max(1.0, abs(bound)) or score > best else still + 1
        bound = min(bound, now)
        keep.bound(bound)
        keep.tell(n_iter=n_iter, seconds_per_iteration=keep.seconds / n_iter)
        if score > best:
            best = score
            keep(labels)
        if bound <= best + 1e-9 * max(1.0, abs(best)) or score >= task.settings.get("goal", 1e300):
            break
