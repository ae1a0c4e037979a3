"""MIPSIndex of this library."""

from entrants.embed.searched import sweep

from sublearn.embed import MIPSIndex


def solve(data, task, keep):
    k, index = task.request["k"], MIPSIndex(n_jobs=1).fit(data["rows"])
    keep.tell(build_seconds=keep.seconds)
    sweep(lambda n: index.search(data["queries"], k, n_probe=n)[0], task, keep)
