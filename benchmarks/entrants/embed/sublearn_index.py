"""MIPSIndex of this library."""

from entrants.embed.searched import sweep

from sublearn.embed import MIPSIndex


def solve(data, task, keep):
    k = task.request["k"]
    index = MIPSIndex(n_jobs=1, random_state=0).fit(data["rows"])
    keep.tell(build_seconds=keep.seconds)
    sweep(lambda n: index.search(data["queries"], k, n_probe=n)[0], task, keep)
