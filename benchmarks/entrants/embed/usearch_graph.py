"""usearch, 16 links and 100 candidates at each insertion."""

import numpy as np
from entrants.embed.searched import sweep
from usearch.index import Index


def solve(data, task, keep):
    rows, k = data["rows"], task.request["k"]
    index = Index(ndim=rows.shape[1], metric="ip", dtype="f32", connectivity=16, expansion_add=100)
    index.add(np.arange(len(rows)), rows, threads=task.threads)
    keep.tell(build_seconds=keep.seconds)

    def search(effort):
        index.expansion_search = effort
        return index.search(data["queries"], k, threads=task.threads).keys

    sweep(search, task, keep)
