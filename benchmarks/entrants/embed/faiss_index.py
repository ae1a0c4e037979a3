"""faiss: a scan, or with "n_lists" an inverted file."""

import faiss
from entrants.embed.searched import sweep


def solve(data, task, keep):
    faiss.omp_set_num_threads(task.threads)
    k, width = task.request["k"], data["rows"].shape[1]
    index = faiss.IndexFlatIP(width)
    if "n_lists" in task.settings:
        n_lists = task.settings["n_lists"]
        index = faiss.IndexIVFFlat(index, width, n_lists, faiss.METRIC_INNER_PRODUCT)
        index.train(data["rows"])
    index.add(data["rows"])
    keep.tell(build_seconds=keep.seconds)

    def search(effort):
        index.nprobe = effort
        return index.search(data["queries"], k)[1]

    sweep(search, task, keep)
