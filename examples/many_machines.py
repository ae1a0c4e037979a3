"""Two worker processes learn 5,000 tags, and one of them is killed on the way.

    pip install '.[dask,plot]'
    python examples/many_machines.py many_machines.png

Generated documents whose tags follow a power law. The picture shows which worker solved which part
of the labels and when; where a worker is killed its part is solved again by another one. The model
is that of a fit in one process, to the last bit. A cluster of many machines differs in one line:
the `Client` is given the address of its scheduler.
"""

import os
import signal
import time

import numpy as np
import scipy.sparse as sp
from distributed import Client, LocalCluster
from pictures import BLUES, ORANGE, draw_pair, read_options

from sublearn.distributed import cluster
from sublearn.extreme import PPDSparseClassifier


def main():
    options = read_options(__doc__, "many_machines.png", "800 documents and 200 tags")
    X, Y = make_documents(800, 200) if options.small else make_documents(16_000, 5_000)
    began = time.perf_counter()
    alone = PPDSparseClassifier(random_state=0).fit(X, Y)
    print(f"one process: {time.perf_counter() - began:.1f} s")

    servers = LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    )
    with servers, Client(servers) as client:
        kill = KillOnce(next(iter(client.run(os.getpid).values())))
        began = time.time()
        with cluster(client) as blocks:
            model = PPDSparseClassifier(random_state=0, callback=kill).fit(X, Y)
        seconds = time.time() - began
    same = model.model_.weights.data.tobytes() == alone.model_.weights.data.tobytes()
    print(f"two workers, one killed after {kill.at - began:.1f} s: {seconds:.1f} s")
    print(f"{len(blocks.tasks)} parts; the same model to the last bit: {'yes' if same else 'no'}")
    draw(blocks.tasks, began, kill.at - began, seconds, options.picture)
    print(f"wrote {options.picture}")


def make_documents(n_rows, n_tags, n_words=20_000, per_row=60, seed=0):
    """Rows of words; each tag has words of its own, and few tags are frequent."""
    rng = np.random.default_rng(seed)
    odds = 1.0 / np.arange(1, n_tags + 1) ** 0.8
    tags = rng.choice(n_tags, size=(n_rows, 2), p=odds / odds.sum())
    own = rng.integers(n_words, size=(n_tags, 15))
    words = np.hstack(
        [
            own[tags].reshape(n_rows, -1)[:, rng.integers(30, size=per_row // 3)],
            (n_words * rng.random((n_rows, per_row - per_row // 3)) ** 2).astype(int),
        ]
    )
    rows = np.repeat(np.arange(n_rows), words.shape[1])
    X = sp.csr_matrix((np.ones(words.size), (rows, words.ravel())), shape=(n_rows, n_words))
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1))).ravel()
    X = sp.csr_matrix(sp.diags(1 / lengths) @ X, dtype=np.float32)
    Y = np.zeros((n_rows, n_tags), dtype=bool)
    Y[np.arange(n_rows)[:, None], tags] = True
    return X, sp.csr_matrix(Y)


class KillOnce:
    """A callback that kills a process when a third of the labels are done."""

    def __init__(self, pid):
        self.pid, self.at = pid, None

    def __call__(self, event):
        if self.at is None and 3 * event.n_done > event.n_total:
            self.at = time.time()
            os.kill(self.pid, signal.SIGKILL)


def draw(tasks, began, killed, seconds, path):
    tasks = sorted(tasks, key=lambda task: task.began)
    workers = list(dict.fromkeys(task.worker for task in tasks))

    def draw_parts(axes):
        for number, task in enumerate(tasks):
            axes.barh(
                workers.index(task.worker), task.seconds, left=task.began - began, height=0.6,
                color=BLUES[number % 3], edgecolor="white", linewidth=0.5,
            )  # fmt: skip
        axes.axvline(killed, color=ORANGE)
        axes.annotate(" one worker killed", (killed, len(workers) - 0.55), color=ORANGE)
        axes.set_yticks(range(len(workers)), [f"worker {k + 1}" for k in range(len(workers))])
        axes.set_ylim(-0.6, len(workers) - 0.2)
        axes.set_xlim(0, seconds)
        axes.set_xlabel("seconds")
        axes.set_title("Parts of the labels, most frequent first", loc="left")

    def draw_costs(axes):
        axes.plot(np.arange(1, len(tasks) + 1), [task.seconds for task in tasks], "o",
                  color=BLUES[1], markersize=4)  # fmt: skip
        axes.set_ylim(0, None)
        axes.set_xlabel("part, in the order of their beginning")
        axes.set_ylabel("seconds")
        axes.set_title("What a part takes", loc="left")

    draw_pair(draw_parts, draw_costs, path, height=3.6)


if __name__ == "__main__":
    main()
