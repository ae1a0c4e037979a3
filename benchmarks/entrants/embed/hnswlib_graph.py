"""hnswlib, 16 links and 100 candidates at each insertion."""

import hnswlib
from entrants.embed.searched import sweep


def solve(data, task, keep):
    index = hnswlib.Index("ip", data["rows"].shape[1])
    index.init_index(len(data["rows"]), ef_construction=100, M=16, random_seed=task.seed)
    index.set_num_threads(task.threads)
    index.add_items(data["rows"], num_threads=task.threads)
    keep.tell(build_seconds=keep.seconds)

    def search(effort):
        index.set_ef(effort)
        return index.knn_query(data["queries"], task.request["k"], num_threads=task.threads)[0]

    sweep(search, task, keep)
