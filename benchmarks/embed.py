"""Dense vectors: search by inner product and word vectors, this library and its rivals.

Searches: 200,000 rows of 128 numbers, 2,000 queries, the ten best rows of each, one thread. Every
index is searched with more and more effort; a row of the table is the cheapest setting that reaches
a recall.

Word vectors (`pip install gensim fasttext-wheel`): every method sees the same sentences,
vocabulary, window and number of dimensions. The objective is (3.45) of Yen's thesis, in nats for
each pair of words, with exact sums over all contexts for 500 words drawn by frequency. Every method
goes on for no less CPU time than our first row had. One thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from harness.bench import Bench
from harness.entrant import Entrant
from harness.growth import fit_exponent
from harness.problem import Split
from harness.runner import Case, Lap, Outcome
from harness.table import Cell, Figures, Table
from harness.timing import median_cpu
from harness.vectors import Vectors, clustered_vectors
from harness.word_contest import EVERY, LARGE, MIDDLE, generated_contest, real_contest

from sublearn.embed import MIPSIndex

N_ROWS, N_GRAPH_ROWS = 200_000, 20_000
RECALLS = (0.8, 0.95, 0.99)
K = 10
LIMIT = 1200.0


# --- indexes -----------------------------------------------------------------------------------


def index(
    name: str, script: str, efforts: Sequence[int], environment: str = "main", **settings: int
) -> Entrant:
    own = {"efforts": list(efforts), **settings}
    return Entrant(name, f"embed/{script}.py", own, environment=environment)


def faiss(n_lists: int) -> Entrant:
    efforts = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32)
    return index(f"faiss IVF, {n_lists} lists", "faiss_index", efforts, "faiss", n_lists=n_lists)


OURS = index("sublearn", "sublearn_index", range(1, 17))
DOUBLED = (10, 20, 40, 80, 160, 320, 640)
CLUSTERS = [OURS, index("faiss flat", "faiss_index", [0], "faiss"), faiss(894)]
#: Graphs take long to build: they are compared on fewer rows.
GRAPHS = [
    OURS,
    faiss(447),
    index("hnswlib", "hnswlib_graph", DOUBLED, "hnswlib"),
    index("usearch", "usearch_graph", DOUBLED, "usearch"),
]


def judge(truth: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, float]:
    return {"recall": truth["vectors"].recall(answer["answer"])}


def race(n_rows: int, indexes: Sequence[Entrant]) -> Callable[[Bench], Figures]:
    """All indexes on the same rows."""

    def measure(bench: Bench) -> Figures:
        data = clustered_vectors(bench.size(n_rows, 2_000))
        arrays = {"rows": data.rows, "queries": data.queries}
        split = Split(arrays, {"nothing": np.zeros(1)}, {"vectors": data})
        case = Case(f"{n_rows} rows", lambda: split, judge, {"k": K})
        found = bench.compete(case, bench.chosen(indexes), bench.limit(LIMIT, 20.0))
        rows = [row_of(target, o, found[0], data) for target in RECALLS for o in found]
        return Figures(COLUMNS, rows)

    return measure


COLUMNS = {
    "recall@10 asked": ".2f",
    "index": "",
    "effort": "d",
    "recall@10": ".3f",
    "us a query": ".1f<",
    "ratio to ours": ".2f",
    "build s": ".1f<",
}


def cheapest(outcome: Outcome, target: float) -> Lap | None:
    good = [lap for lap in outcome.laps if (lap["recall"] or 0.0) >= target]
    return min(good, key=lambda lap: lap["search_seconds"] or 0.0, default=None)


def row_of(target: float, outcome: Outcome, ours: Outcome, data: Vectors) -> list[Cell]:
    best, own = cheapest(outcome, target), cheapest(ours, target)
    built = outcome.figure("build_seconds")
    if best is None:
        most = max((lap["recall"] or 0.0 for lap in outcome.laps), default=None)
        return [target, outcome.name, None, most, outcome.end(), None, built]
    ratio = best["search_seconds"] / own["search_seconds"] if own else None
    us = 1e6 * best["search_seconds"] / len(data.queries)
    return [target, outcome.name, int(best["effort"]), best["recall"], us, ratio, built]


def microseconds(call: Callable[[], Any], n_queries: int) -> float:
    """CPU microseconds for each query, median of a few calls; of one that takes long."""
    return 1e6 * median_cpu(call, 3, 2.0) / n_queries


def thresholds(bench: Bench) -> Figures:
    """All rows above a threshold: exact in this library by bounds, in faiss by a scan."""
    rows: list[list[Cell]] = []
    for dim in (16, 128):
        data = clustered_vectors(bench.size(N_ROWS // 4, 2_000), dim, n_queries=200)
        index = MIPSIndex(n_jobs=1, random_state=0).fit(data.rows)
        bar = float(np.quantile(data.scores[:, -1], 0.9))
        n_found = sum(len(part) for part, _ in index.search_above(data.queries, bar))
        share = index.work_ / (len(data.queries) * len(data.rows))
        ours = microseconds(partial(index.search_above, data.queries, bar), 200)
        row: list[Cell] = [dim, n_found / 200, 100 * share, ours]
        try:
            theirs = scanned(data, bar, n_found)
            rows.append([*row, theirs, theirs / ours])
        except ImportError:
            rows.append([*row, "not installed", None])
    columns = {
        "dimensions": "d",
        "rows a query": ".1f",
        "inner products, % of rows": ".1f",
        "sublearn us a query": ".0f<",
        "faiss flat us a query": ".0f",
        "times faster": ".1f",
    }
    return Figures(columns, rows)


def scanned(data: Vectors, bar: float, n_found: int) -> float:
    """Microseconds of faiss, which must find as many."""
    import faiss

    faiss.omp_set_num_threads(1)
    flat = faiss.IndexFlatIP(data.rows.shape[1])
    flat.add(data.rows)
    assert flat.range_search(data.queries, bar)[0][-1] == n_found
    return microseconds(partial(flat.range_search, data.queries, bar), len(data.queries))


def exact(bench: Bench) -> Figures:
    """All inner products of a batch: NumPy's product, with its selection, faiss, and ours."""
    data = clustered_vectors(bench.size(N_ROWS // 2, 2_000), 96, n_queries=512)
    rows, queries = data.rows, data.queries
    index = MIPSIndex(n_jobs=1, random_state=0).fit(rows)

    def selected() -> None:
        for part in np.array_split(queries, 4):
            np.argpartition(-(part @ rows.T), K, axis=1)

    found = {"sublearn": microseconds(lambda: index.search(queries, K, n_probe=None), 512)}
    found["NumPy, product alone"] = microseconds(lambda: queries @ rows.T, 512)
    found["NumPy, product and argpartition"] = microseconds(selected, 512)
    tuning = microseconds(lambda: index.tune(queries[:200], K, 0.95), 200)
    found["sublearn, tune"] = tuning
    cells: list[list[Cell]] = [[name, us, us / found["sublearn"]] for name, us in found.items()]
    return Figures({"exact search": "", "us a query": ".1f<", "ratio to ours": ".2f"}, cells)


def storages(bench: Bench) -> Figures:
    """Rows of float32 and of 8-bit numbers: memory, recall, time; faiss beside them."""
    data = clustered_vectors(bench.size(N_ROWS, 2_000))
    few = data.queries[:300]
    rows: list[list[Cell]] = []
    for storage in ("float32", "int8"):
        index = MIPSIndex(n_jobs=1, storage=storage, random_state=0).fit(data.rows)
        index.tune(few, K, 0.95)
        recall = data.recall(index.search(data.queries, K)[0])
        kept = sum(part.nbytes for part in index._packed()) / 2**20
        batch = microseconds(partial(index.search, data.queries, K), len(data.queries))
        single = microseconds(lambda i=index: [i.search(q, K) for q in few], len(few))
        rows.append([f"sublearn, {storage}", kept, index.n_probe_, recall, batch, single])
    try:
        rows += [_faiss_storage(data, few, name) for name in ("Flat", "SQ8")]
    except ImportError:
        bench.say("faiss is not installed")
    columns = {"rows": "", "MB": ".1f<", "clusters looked at": "d", "recall@10": ".3f>",
               "us a query, batch": ".1f<", "us a query, alone": ".1f<"}  # fmt: skip
    return Figures(columns, rows)


def _faiss_storage(data: Vectors, few: np.ndarray, name: str) -> list[Cell]:
    """An inverted file of faiss with as many lists, at the fewest probes that have the recall."""
    import faiss

    faiss.omp_set_num_threads(1)
    n_rows, dim = data.rows.shape
    index = faiss.index_factory(
        dim, f"IVF{round(2 * n_rows**0.5)},{name}", faiss.METRIC_INNER_PRODUCT
    )
    index.train(data.rows)
    index.add(data.rows)
    for n_probe in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64):
        index.nprobe = n_probe
        recall = data.recall(index.search(data.queries, K)[1])
        if recall >= 0.95:
            break
    batch = microseconds(lambda: index.search(data.queries, K), len(data.queries))
    single = microseconds(lambda: [index.search(q[None], K) for q in few], len(few))
    megabytes = n_rows * (index.code_size + 8) / 2**20
    return [f"faiss IVF, {name}", megabytes, n_probe, recall, batch, single]


def growth(bench: Bench) -> Figures:
    """Time of a query and of an update of a row while the number of rows doubles."""
    sizes = [bench.size(N_ROWS, 8_000) // part for part in (8, 4, 2, 1)]
    queries, products, updates = [], [], []
    for n_rows in sizes:
        data = clustered_vectors(n_rows, n_queries=1000)
        index = MIPSIndex(n_jobs=1, random_state=0).fit(data.rows).tune(data.queries[:300], K, 0.95)
        queries.append(microseconds(lambda i=index, d=data: i.search(d.queries, K), 1000))
        products.append(index.work_ / 1000)
        changed = np.random.default_rng(bench.seed).permutation(n_rows)[:1000].astype(np.int32)
        index.update(changed, data.rows[changed])  # the first change of a cluster copies it
        updates.append(
            microseconds(lambda i=index, d=data, c=changed: i.update(c, d.rows[c]), 1000)
        )
        bench.say(f"{n_rows} rows: {queries[-1]:.1f} us, {updates[-1]:.1f} us an update")
    rows: list[list[Cell]] = [
        [name, *costs, fit_exponent(sizes, costs)]
        for name, costs in (
            ("query, us", queries),
            ("query, inner products", products),
            ("update of a row, us", updates),
        )
    ]
    return Figures(
        {"cost": ""} | {f"{n:,} rows": ".1f<" for n in sizes} | {"exponent": ".2f"}, rows
    )


TABLES = [
    Table(
        "search",
        f"Search by inner product, {N_ROWS:,} rows of 128 numbers",
        "CPU microseconds of a query at the cheapest setting that has the recall, one thread, "
        "median of 3 runs of 2,000 queries, and the ratio to ours. Effort is what the index calls "
        "so: clusters to look at, or the length of the list of candidates. Where a recall was not "
        "reached, the best one stands alone.",
        race(N_ROWS, CLUSTERS),
    ),
    Table(
        "graphs",
        f"Clusters and graphs, {N_GRAPH_ROWS:,} rows",
        "As above; graphs with 16 links and 100 candidates at each insertion.",
        race(N_GRAPH_ROWS, GRAPHS),
    ),
    Table(
        "exact",
        f"Exact search in batches, {N_ROWS // 2:,} rows of 96 numbers",
        "512 queries, the ten best rows of each, one thread. The last row is the time of `tune` on "
        "200 queries, for each of them.",
        exact,
    ),
    Table(
        "storage",
        f"Rows of 8-bit numbers, {N_ROWS:,} rows of 128",
        "At the fewest clusters whose recall@10 is 0.95 of the best rows that each index keeps, "
        "CPU microseconds of one thread; recall is against the exact best rows of the data.",
        storages,
        page="embed_storage",
    ),
    Table(
        "thresholds",
        f"All rows above a threshold, {N_ROWS // 4:,} rows",
        "Exact. The threshold is passed by the tenth row of one query in ten.",
        thresholds,
    ),
    Table(
        "growth",
        "Growth with the number of rows",
        "At a recall@10 of 0.95, rows in a hundredth as many clusters; one thread.",
        growth,
    ),
    Table(
        "skipgram",
        f"Word vectors of 20news, brown and reuters21578, every {EVERY}th text",
        "Exact objective (3.45), lower is better, after the CPU seconds that each method took. "
        "*noise put back*: log-frequencies of the noise added to the scores, which negative "
        "sampling leaves out.",
        real_contest,
        page="embed_words",
    ),
    *(
        Table(
            f"skipgram-{size.n_words // 1000}k",
            f"Word vectors of a generated corpus, {size.n_words:,} words and "
            f"{size.n_tokens:,} tokens",
            "As above.",
            partial(generated_contest, size=size),
            page="embed_words",
        )
        for size in (LARGE, MIDDLE)
    ),
]
