"""Maximum inner-product search over rows that come, go and change."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sublearn import _core
from sublearn.embed.blas_threads import blas_threads
from sublearn.embed.clustering import assign, by_cluster, count_clusters, spherical_kmeans
from sublearn.embed.faiss_index import FaissIndex
from sublearn.embed.padding import ROW_NUMBERS, aligned, padded_width
from sublearn.errors import ParameterError
from sublearn.execution import all_or_nothing
from sublearn.io.fields import Fields, Floats, Integers, Offsets, Size
from sublearn.io.limits import check_expansion
from sublearn.io.models import SavedModel
from sublearn.trace import attend
from sublearn.typing import Seed, State
from sublearn.validation import (
    Either,
    Interval,
    JobCount,
    NonNegative,
    OneOf,
    OrNone,
    Positive,
    RandomState,
    Rule,
    as_n_threads,
    as_seed,
    check_argument,
    check_params,
)
from sublearn.validation.values import LARGEST, as_native, refuse_large, show

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["MIPSIndex"]

_BLOCK_OPERATIONS = 1e9  # of a change at a time
_FLOAT32 = np.dtype(np.float32)
_QUERIES_AT_ONCE = 256  # of those that tune
_NO_SCALES = np.zeros(0, dtype=np.float32)
_FIELDS_32: Fields = {"rows": Floats("rows", "stride", finite=True, bits=32)}
_FIELDS_8: Fields = {
    "rows": Integers("rows", "stride", low=-127, dtype=np.int8),
    "scales": Floats("rows", finite=True, bits=32, low=0.0),
}

_Index: TypeAlias = "_core.MipsIndex | _core.MipsIndex8 | FaissIndex"


class MIPSIndex(SavedModel, BaseEstimator):
    r"""The rows of a matrix that have the largest inner products with a query.

    Rows are kept in spherical clusters: each with the unit centre :math:`\mu_c` that has the
    largest inner product with it. A query meets the C centres, then the rows of the `n_probe`
    clusters whose centres it likes best, O((C + n_probe K / C) D) instead of O(K D). Exact search
    (``n_probe=None``) scans clusters by a bound on all their rows,

    .. math::
        \langle q, w \rangle \le \|q\| \max_{w \in c} \|w\| \cos(\max(0, \theta_{q c} - \theta_c))

    with :math:`\theta_c` the widest angle of the cluster, until no bound is above the k-th best
    row.

    Parameters
    ----------
    n_clusters : "auto" or int, default="auto"
        Number of clusters C; "auto" takes about twice the square root of the number of rows.
    n_probe : int or None, default=8
        Clusters that a query looks at; None makes every search exact. :meth:`tune` finds the
        number that a recall needs.
    balance : float or None, default=2.0
        No cluster has more than this many times the mean number of rows when the index is built;
        None lets rows go where they like.
    max_iter : int, default=10
        Rounds of spherical k-means, each on a mini-batch of the rows.
    storage : {"float32", "int8"}, default="float32"
        How rows are kept. "int8" takes a quarter of the memory and reads a quarter of it: each row
        has a scale s, its largest number over 127, and numbers are rounded to multiples of it. A
        score is off by at most :math:`s \|q\|_1 / 2`; exact search is exact for the rounded rows.
    backend : {"sublearn", "faiss"}, default="sublearn"
        Who keeps and scans the rows. "faiss" (extra ``faiss``) has an inverted file of the same
        clusters, without bounds: its exact search scans all rows, and they are float32.
    n_jobs : int or None, default=None
        Threads.
    random_state : int, Generator, RandomState or None, default=None
        Of the clustering.

    Attributes
    ----------
    n_rows_ : int
        Rows in the index.
    n_clusters_, n_probe_ : int
        As used; `n_probe_` is 0 for exact search.
    n_features_in_ : int
        Numbers in a row.
    work_ : int
        Inner products that the last search computed, those with centres included.

    Notes
    -----
    Any number of threads may search while others add, remove or update rows: all queries of a
    search see the index as it is before or after each such call, however many rows it changes.
    Changed rows find their clusters beforehand: searches wait only while rows are copied.

    Queries get the same answer, to the last bit, alone and in any batch: all sums run in one order.

    References
    ----------
    .. [1] I. E. H. Yen, "Sublinear-Time Learning and Inference for High-Dimensional Models",
       thesis, Carnegie Mellon University, 2018, section 3.3.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.random.default_rng(0).normal(size=(1000, 20))
    >>> index = MIPSIndex(random_state=0).fit(rows)
    >>> ids, scores = index.search(rows[:2], k=3, n_probe=None)
    >>> bool((scores[:, 0] == (rows[:2] @ rows.T).max(axis=1).astype(np.float32)).all())
    True
    """

    _kind: ClassVar[str] = "vectors"

    _rules: ClassVar[dict[str, Rule]] = {
        "n_clusters": Either(OneOf("auto"), Positive(int)),
        "n_probe": OrNone(Positive(int)),
        "balance": OrNone(Positive(float)),
        "max_iter": Positive(int),
        "storage": OneOf("float32", "int8"),
        "backend": OneOf("sublearn", "faiss"),
        "n_jobs": JobCount(),
        "random_state": RandomState(),
    }
    _FORMER_PARAMS: ClassVar[dict[str, str | None]] = {"n_iter": "max_iter"}

    def __init__(
        self,
        n_clusters: int | str = "auto",
        n_probe: int | None = 8,
        *,
        balance: float | None = 2.0,
        max_iter: int = 10,
        storage: str = "float32",
        backend: str = "sublearn",
        n_jobs: int | None = None,
        random_state: Seed = None,
    ):
        self.n_clusters = n_clusters
        self.n_probe = n_probe
        self.balance = balance
        self.max_iter = max_iter
        self.storage = storage
        self.backend = backend
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: ArrayLike, y: object = None) -> MIPSIndex:
        """Index the rows of a matrix; row i has the id i.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            The rows, as float32.
        y : None
            Not used.

        Returns
        -------
        MIPSIndex
        """
        check_params(self)
        if self.storage == "int8" and self.backend == "faiss":
            raise ParameterError(
                'MIPSIndex.storage must be "float32" with backend="faiss", got "int8"'
            )
        rows = self._rows("X", X, least=1)
        self.n_features_in_ = rows.shape[1]
        self.n_clusters_ = self._count_clusters(len(rows))
        self.n_probe_ = 0 if self.n_probe is None else self.n_probe
        rng = np.random.default_rng(as_seed(self.random_state))
        with blas_threads(as_n_threads(self.n_jobs)):
            centres = spherical_kmeans(rows, self.n_clusters_, self.max_iter, rng)
            clusters, _ = assign(rows, centres, self.balance)
        begin, order = by_cluster(clusters, self.n_clusters_)
        self._centres = aligned(centres)
        ordered = aligned(rows[order])
        kept = _core.quantise_rows(ordered) if self.storage == "int8" else (ordered,)
        self._set(begin, order, *kept, n_ids=len(rows))
        return self

    # --- searching -------------------------------------------------------------------------------

    def search(
        self, queries: ArrayLike, k: int = 10, *, n_probe: int | str | None = "fitted"
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k rows of largest inner product with each query.

        Parameters
        ----------
        queries : array of shape (n_queries, n_features), or (n_features,)
            What to search for.
        k : int
            Rows for each query, at most those in the index.
        n_probe : int, None or "fitted"
            Clusters to look at; None is exact; by default `n_probe_`.

        Returns
        -------
        ids, scores : ndarrays of shape (n_queries, k), or (k,)
            Best first; equal scores by id.
        """
        wide = self._queries(queries)
        if not Positive(int).accepts(k) or k > self.n_rows_:
            raise self._too_many(k)
        ids, scores, self.work_ = self._search(wide, k, self._probes(n_probe))
        if len(ids) and ids[0, -1] < 0:  # another thread has removed rows
            raise self._too_many(k)
        ids = ids.astype(np.int64)
        return (ids[0], scores[0]) if np.ndim(queries) == 1 else (ids, scores)

    def search_above(
        self, queries: ArrayLike, threshold: float
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """All rows whose inner product with a query is above a threshold; exact.

        Parameters
        ----------
        queries : array of shape (n_queries, n_features)
            What to search for.
        threshold : float
            The bar.

        Returns
        -------
        list of (ids, scores)
            For each query, best first.
        """
        wide, n_threads = self._queries(queries), as_n_threads(self.n_jobs)
        if not isinstance(threshold, (int, float, np.number)) or np.isnan(threshold):
            raise ParameterError(
                f"MIPSIndex.search_above: threshold must be a number, got {show(threshold)}"
            )
        begin, ids, scores, self.work_ = attend(
            lambda monitor: self._index.search_above(wide, float(threshold), n_threads, monitor),
            float(wide.size) * self.n_rows_,
        )
        return [(ids[a:b].astype(np.int64), scores[a:b]) for a, b in pairwise(begin)]

    def recall(
        self, queries: ArrayLike, k: int = 10, *, n_probe: int | str | None = "fitted"
    ) -> float:
        """Share of the k best rows of the queries that a search finds."""
        self._queries(queries, least=1)
        found, _ = self.search(queries, k, n_probe=n_probe)
        truth, _ = self.search(queries, k, n_probe=None)
        pairs = zip(np.atleast_2d(found), np.atleast_2d(truth), strict=True)
        return float(np.mean([len(np.intersect1d(a, b)) / k for a, b in pairs]))

    def tune(self, queries: ArrayLike, k: int = 10, recall: float = 0.95) -> MIPSIndex:
        """Set `n_probe_` to the fewest clusters that give a recall on sample queries.

        Parameters
        ----------
        queries : array of shape (n_queries, n_features)
            Queries like those to come; some hundred.
        k : int
            Rows that are asked for.
        recall : float
            Share of the k best that is to be found, in 0 .. 1.

        Returns
        -------
        MIPSIndex
        """
        check_is_fitted(self)
        check_argument("MIPSIndex.tune.recall", recall, Interval(float, 0, 1, "right"))

        wide = self._queries(queries, least=1)
        ids, _ = self.search(wide[:, : self.n_features_in_], k, n_probe=None)
        best = np.ascontiguousarray(ids, dtype=np.int32)
        enough = np.flatnonzero(self._found_by_clusters(wide, best) >= recall * best.size - 1e-9)
        self.n_probe_ = int(enough[0]) + 1
        return self

    def _found_by_clusters(self, wide: np.ndarray, best: np.ndarray) -> np.ndarray:
        """How many of the best rows of queries searches of 1, 2, ... clusters find; one pass.

        A row is found once its cluster is among those looked at: one order of the clusters of each
        query says it for every number of them.
        """
        sizes, found = self._index.sizes(), np.zeros(self.n_clusters_, dtype=np.int64)
        for at in range(0, len(best), _QUERIES_AT_ONCE):
            part, theirs = wide[at : at + _QUERIES_AT_ONCE], best[at : at + _QUERIES_AT_ONCE]
            scores = np.empty((len(part), self.n_clusters_), dtype=np.float32)
            _core.inner_products(self._centres, part, scores)
            scores[:, sizes == 0] = -np.inf  # not looked at
            order = np.argsort(-scores, axis=1, kind="stable")
            rank = np.empty_like(order)
            np.put_along_axis(rank, order, np.arange(self.n_clusters_)[None, :], axis=1)
            clusters = self._index.clusters_of(theirs.ravel()).reshape(theirs.shape)
            needed = np.take_along_axis(rank, clusters.astype(np.int64), axis=1)
            found += np.cumsum(np.bincount(needed.ravel(), minlength=self.n_clusters_))
            # Clusters with fewer than k rows together are followed by an exact search.
            n_short = (np.cumsum(sizes[order], axis=1) < best.shape[1]).sum(axis=1)
            for n_probe in range(1, int(n_short.max()) + 1):
                found[n_probe - 1] += (needed[n_short >= n_probe] >= n_probe).sum()
        return found

    # --- changes ---------------------------------------------------------------------------------

    def update(self, ids: ArrayLike, rows: ArrayLike) -> MIPSIndex:
        """Give rows other values; each finds its cluster at C inner products.

        Parameters
        ----------
        ids : array of int
            Rows of the index.
        rows : array of shape (n_ids, n_features)
            Their new values.

        Returns
        -------
        MIPSIndex
        """
        numbers, wide = self._known_ids("update", ids), self._new_rows(rows)
        if len(wide) != len(numbers):
            raise ParameterError(
                f"MIPSIndex.update: rows must have a row for each of {len(numbers)} ids, "
                f"got {len(wide)}"
            )
        self._index.update(numbers, wide, self._nearest(wide))
        return self

    def add(self, rows: ArrayLike) -> np.ndarray:
        """Add rows.

        Parameters
        ----------
        rows : array of shape (n_new, n_features)
            Their values.

        Returns
        -------
        ndarray of int64
            Their ids, from the largest so far on.
        """
        wide = self._new_rows(rows)
        clusters = self._nearest(wide)
        ids = np.arange(self._index.n_ids, self._index.n_ids + len(wide), dtype=np.int32)
        self._index.add(ids, wide, clusters)
        self.n_rows_ = self._index.n_rows
        return ids.astype(np.int64)

    def remove(self, ids: ArrayLike) -> MIPSIndex:
        """Take rows out; their ids are not used again.

        Parameters
        ----------
        ids : array of int
            Rows of the index.

        Returns
        -------
        MIPSIndex
        """
        self._index.remove(self._known_ids("remove", ids))
        self.n_rows_ = self._index.n_rows
        return self

    def ids(self) -> np.ndarray:
        """The ids of all rows, ascending."""
        check_is_fitted(self)
        return np.sort(self._index.packed()[1]).astype(np.int64)

    def rows(self, ids: ArrayLike) -> np.ndarray:
        """The values of rows, as they are searched."""
        return self._values("rows", ids)[1][:, : self.n_features_in_]

    # --- inside ----------------------------------------------------------------------------------

    def _search(self, wide: np.ndarray, k: int, n_probe: int) -> tuple[np.ndarray, np.ndarray, int]:
        n_threads = as_n_threads(self.n_jobs)
        share = 2 * n_probe / self.n_clusters_ if n_probe else 1.0  # clusters are not of one size
        n_products = self.n_clusters_ + share * self.n_rows_
        return attend(
            lambda monitor: self._index.search(wide, int(k), n_probe, n_threads, monitor),
            wide.size * n_products,
        )

    def _nearest(self, wide: np.ndarray) -> np.ndarray:
        """The clusters of new rows, found before a change; Ctrl-C comes between blocks of rows."""
        size = max(1, int(_BLOCK_OPERATIONS / (self.n_clusters_ * self.n_features_in_)))
        blocks = [self._index.nearest(wide[at : at + size]) for at in range(0, len(wide), size)]
        return np.concatenate([np.empty(0, dtype=np.int32), *blocks])

    def _too_many(self, k: object) -> ParameterError:
        return ParameterError(
            f"MIPSIndex.search: k must be an integer from 1 to the {self.n_rows_} rows of the "
            f"index, got {show(k)}"
        )

    def _probes(self, n_probe: int | str | None) -> int:
        if isinstance(n_probe, str) and n_probe == "fitted":
            return min(self.n_probe_, self.n_clusters_)
        check_argument("MIPSIndex.search.n_probe", n_probe, self._rules["n_probe"])
        return 0 if n_probe is None else min(int(n_probe), self.n_clusters_)

    def _count_clusters(self, n_rows: int) -> int:
        if self.n_clusters == "auto":
            return count_clusters(n_rows)
        if int(self.n_clusters) > n_rows:
            raise ParameterError(
                f"MIPSIndex.n_clusters must be at most the number of rows, {n_rows}, "
                f"got {self.n_clusters}"
            )
        return int(self.n_clusters)

    def _set(
        self,
        begin: np.ndarray,
        ids: np.ndarray,
        rows: np.ndarray,
        scales: np.ndarray | None = None,
        *,
        n_ids: int,
    ) -> None:
        given = self._centres, begin, ids, rows
        if self.backend == "faiss":
            self._index: _Index = FaissIndex(*given, n_ids)
        elif scales is not None:
            self._index = _core.MipsIndex8(*given, np.ascontiguousarray(scales), n_ids)
        else:
            self._index = _core.MipsIndex(*given, _NO_SCALES, n_ids)
        self.n_rows_ = self._index.n_rows

    def _packed(self) -> tuple[np.ndarray, ...]:
        """What `_set` takes: begin, ids and rows; scales where there are any."""
        return self._index.packed()[: 4 if self.storage == "int8" else 3]

    def _queries(self, queries: ArrayLike, *, least: int = 0) -> np.ndarray:
        """Queries as padded rows; a vector is one of them."""
        plain = self._plain(queries)
        if plain is not None and len(plain) >= least:
            return plain
        check_is_fitted(self)
        rows = np.atleast_2d(queries) if np.ndim(queries) == 1 else queries
        return aligned(self._rows("queries", rows, least=least, width=self.n_features_in_))

    def _plain(self, queries: ArrayLike) -> np.ndarray | None:
        """Queries that need no copy: to look closer would take as long as a search."""
        if self.__dict__.get("_index") is None or type(queries) is not np.ndarray:
            return None
        width, flags = self.n_features_in_, queries.flags
        is_plain = flags.c_contiguous and flags.aligned and queries.dtype == _FLOAT32
        if not is_plain or queries.ndim not in (1, 2) or queries.shape[-1] != width:
            return None
        rows = queries.reshape(-1, width)
        if not len(rows) or not np.abs(rows).max() <= LARGEST[_FLOAT32]:  # nor is NaN
            return None
        return rows if width % ROW_NUMBERS == 0 else aligned(rows)

    def _new_rows(self, rows: ArrayLike) -> np.ndarray:
        check_is_fitted(self)
        return aligned(self._rows("rows", rows, least=0, width=self.n_features_in_))

    def _rows(
        self, name: str, rows: ArrayLike, *, least: int, width: int | None = None
    ) -> np.ndarray:
        try:
            if sp.issparse(rows) or np.iscomplexobj(rows):
                raise TypeError("not dense, or not real")
            with np.errstate(over="ignore"):  # infinity is refused below
                array = np.asarray(rows, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise ParameterError(
                f"MIPSIndex: {name} must be a dense matrix of real numbers, got {show(rows)}"
            ) from error
        if array.ndim != 2 or len(array) < least or array.shape[1] != (width or array.shape[1]):
            parts = [f"{width} columns"] * bool(width) + ["at least one row"] * bool(least)
            wanted = " and ".join(parts)
            raise ParameterError(
                f"MIPSIndex: {name} must be a matrix with {wanted}, got shape {np.shape(rows)}"
            )
        if array.shape[1] == 0 or not np.isfinite(array).all():
            what = "no columns" if array.shape[1] == 0 else "NaN or infinity in float32"
            raise ParameterError(f"MIPSIndex: {name} must have finite numbers, got {what}")
        refuse_large(array, f"MIPSIndex: {name}")
        return as_native(array)

    def _values(self, method: str, ids: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Ids of rows of the index as integers, and these rows."""
        check_is_fitted(self)
        numbers = _as_ids(method, ids)
        try:
            return numbers, self._index.rows_of(numbers)
        except ValueError as error:  # ids must be rows of the index
            raise ParameterError(f"MIPSIndex.{method}: {error}") from None

    def _known_ids(self, method: str, ids: ArrayLike) -> np.ndarray:
        """Before a change: asks for these rows alone, since all ids would be as long as a scan."""
        numbers, _ = self._values(method, ids)
        values, counts = np.unique(numbers, return_counts=True)
        if len(values) < len(numbers):
            twice = values[counts > 1][0]
            raise ParameterError(f"MIPSIndex.{method}: ids must differ, got {twice} twice")
        return numbers

    def _to_bundle(self) -> State:
        packed = dict(zip(("begin", "ids", "rows", "scales"), self._packed(), strict=False))
        return {
            "centres": self._centres,
            **packed,
            "n_ids": int(self._index.n_ids),
            "n_features_in_": int(self.n_features_in_),
            "n_probe_": int(self.n_probe_),
        }

    def _fields(self) -> Fields:
        return {
            "n_features_in_": Size("features", low=1),
            "n_ids": Size("ids"),
            "n_probe_": NonNegative(int),
            "centres": Floats("clusters", "stride", finite=True, bits=32),
            "begin": Offsets("clusters", "rows"),
            "ids": Integers("rows", high="ids", dtype=np.int32),
            **(_FIELDS_8 if self.storage == "int8" else _FIELDS_32),
        }

    def _restore(self, state: State) -> None:
        stride = padded_width(state["n_features_in_"])
        if state["centres"].shape[1] != stride:
            raise ValueError(
                f"centres must have {stride} columns for {state['n_features_in_']} features, "
                f"got {state['centres'].shape[1]}"
            )
        check_expansion("n_ids", 8 * state["n_ids"], state["rows"].nbytes)
        self.n_features_in_, self.n_probe_ = state["n_features_in_"], state["n_probe_"]
        self._centres = np.ascontiguousarray(state["centres"])
        self.n_clusters_ = len(self._centres)
        kept = (state[name] for name in ("begin", "ids", "rows", "scales") if name in state)
        self._set(*kept, n_ids=state["n_ids"])

    def __getstate__(self) -> State:
        state = dict(super().__getstate__())
        if state.pop("_index", None) is not None:  # neither the core's nor faiss's is pickled
            state["_kept"] = self._packed(), int(self._index.n_ids)
        return state

    def __setstate__(self, state: State) -> None:
        kept = state.pop("_kept", None)
        super().__setstate__(state)
        if kept is not None:
            self._set(*kept[0], n_ids=kept[1])


def _as_ids(method: str, ids: ArrayLike) -> np.ndarray:
    numbers = np.atleast_1d(np.asarray(ids))
    if numbers.ndim != 1 or (len(numbers) and not np.issubdtype(numbers.dtype, np.integer)):
        raise ParameterError(f"MIPSIndex.{method}: ids must be integers, got {show(ids)}")
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < 2**31 - 1:
        raise ParameterError(
            f"MIPSIndex.{method}: ids must be in 0 .. 2^31 - 2, got {numbers.min()} and "
            f"{numbers.max()}"
        )
    return as_native(np.ascontiguousarray(numbers, dtype=np.int32))
