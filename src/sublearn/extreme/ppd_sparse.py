"""One-versus-rest classification with very many labels: PPD-Sparse as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from sublearn import _core  # type: ignore[attr-defined,unused-ignore]
from sublearn.errors import ParameterError
from sublearn.extreme.linear_classifier import LinearLabelClassifier
from sublearn.extreme.linear_labels import LinearLabels
from sublearn.trace import Callback, Solution, Status, Trace, watch
from sublearn.validation import (
    CallableOrNone,
    EncodedLabels,
    JobCount,
    LabelKind,
    NonNegative,
    OneOf,
    Positive,
    RandomState,
    Rule,
    Verbosity,
    as_n_threads,
    as_seed,
    check_features,
    check_params,
    encode_labels,
)

__all__ = ["PPDSparseClassifier"]

_TRACE_ROWS = 100
_MOST_SEARCHES = 2**31 - 1  # the core counts searches with 32 bits


class PPDSparseClassifier(LinearLabelClassifier):
    r"""Linear one-versus-rest classifier, sparse in its weights and in its support vectors.

    For each label on its own, with :math:`y_i = 1` for the samples that carry it and -1 for the
    others, minimises (after equation 2.30 of [1]_)

    .. math::
        \tfrac12 \|w\|^2 + \tfrac12 b^2 + l_1 \|w\|_1
        + \sum_i C \, \ell\bigl(y_i (\langle w, x_i \rangle + b)\bigr),
        \qquad \ell(z) = \max(0, 1 - z)^2 \text{ or } \max(0, 1 - z).

    A label touches its positives and the few other samples that it would confuse with them:
    violating samples are found by inverted lists over the non-zero weights (search), optimised by
    dual coordinate descent (correct), and dropped when their dual variable is back at zero
    (shrink). Labels are solved in blocks of one cache line (16 in float32, 8 in float64), which
    share every matrix entry that is read.

    Rows of very different length learn at very different rates: scale them to unit length
    (`sklearn.preprocessing.normalize`, or tf-idf, which does it).

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss.
    l1 : float, default=0.1
        Weight of the l1 penalty; larger gives fewer non-zero weights. In the paper:
        :math:`\lambda`.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        The loss :math:`\ell`.
    bias : {"learned", "fixed"}, default="learned"
        "learned" adds a bias per label that is free of l1, as in the paper. "fixed" sets it to -1
        for all labels: a sample that shares no feature with a label's weights is then never part
        of its problem. That takes fewer passes, but labels of different frequency are ranked less
        well: `benchmarks/extreme.py --entrants sublearn sublearn-fixed` shows by how much.
    search : {"exact", "sparsified"}, default="exact"
        How violating samples are found. "sparsified" makes every other search with an eighth of
        the weights, drawn at random without bias (theorem 5). It finds the same model up to `tol`;
        whether it is faster is what `benchmarks/extreme.py --entrants sublearn
        sublearn-sparsified` measures.
    tol : float, default=0.01
        A label is done when its duality gap is at most `tol` times its objective.
    max_iter : int, default=100
        Limit on the searches per label.
    prune : float, default=0.0
        Weights of at most this size are dropped after the fit. The certificate speaks of the
        weights before that.
    n_jobs : int or None, default=None
        Threads; None means 1, -1 all processors. The model does not depend on it.
    random_state : int, RandomState instance, Generator or None, default=None
        Order in which samples are visited, the negatives to start with, and the draws of a
        sparsified search. The same seed gives the same model.
    verbose : int, default=0
        1 draws a progress bar on standard error.
    callback : callable or None, default=None
        Gets a :class:`sublearn.trace.Event` about ten times a second; a true return value stops the
        fit, and labels not yet reached then score -1 everywhere.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, or column numbers if `y` was an indicator matrix.
    coef_ : sparse matrix of shape (n_classes, n_features)
        Weights; one row if there are two classes and `y` is one-dimensional.
    intercept_ : ndarray of shape (n_classes,)
        Biases.
    objective_ : float
        Sum of the objectives of all labels that some sample carries. The others are not trained:
        they have no weights and a bias of -1.
    certificate_ : float
        Duality gap of the whole problem divided by `objective_`: the weights found are at most this
        far from optimal. Infinite if the callback stopped the fit.
    n_iter_ : int
        Largest number of searches that a label took.
    trace_ : Trace
        At most 100 rows. Columns seconds, labels, objective, certificate, nnz_primal, nnz_dual,
        work, each of all labels finished so far; `work` counts matrix entries visited.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if `X` was a data frame with string column names.

    Notes
    -----
    The dual of a label (2.31), whose value the certificate is computed from, is the maximum over
    :math:`0 \le \alpha_i` (:math:`\le C` for the hinge loss) of

    .. math::
        \sum_i \bigl(\alpha_i - \tfrac{\alpha_i^2}{4C}\bigr)
        - \tfrac12 \|\mathrm{soft}(v, l_1)\|^2 - \tfrac12 b^2,
        \quad v = \sum_i y_i \alpha_i x_i, \quad b = \sum_i y_i \alpha_i

    without the quadratic term for the hinge loss. At the optimum :math:`w = \mathrm{soft}(v, l_1)`.
    With float32 data sums over weights and samples are accurate to about 1e-6 relative; ask for a
    smaller `tol` in float64 only.

    References
    ----------
    .. [1] I. E.-H. Yen, "Sublinear-Time Learning and Inference for High-Dimensional Models",
       thesis, Carnegie Mellon University, 2018, section 2.2.

    Examples
    --------
    >>> import numpy as np
    >>> from sublearn.extreme import PPDSparseClassifier
    >>> X = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.6, 0.8], [0.0, 0.0, 1.0]])
    >>> model = PPDSparseClassifier(random_state=0).fit(X, ["a", "b", "b", "c"])
    >>> model.predict(X).tolist()
    ['a', 'b', 'b', 'c']
    >>> labels, scores = model.predict_top_k(X[2:3], k=2)
    >>> labels.tolist()
    [['b', 'c']]
    """

    _rules: ClassVar[dict[str, Rule]] = {
        "C": Positive(float),
        "l1": NonNegative(float),
        "loss": OneOf("squared_hinge", "hinge"),
        "bias": OneOf("learned", "fixed"),
        "search": OneOf("exact", "sparsified"),
        "tol": Positive(float),
        "max_iter": Positive(int),
        "prune": NonNegative(float),
        "n_jobs": JobCount(),
        "random_state": RandomState(),
        "verbose": Verbosity(),
        "callback": CallableOrNone(),
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        l1: float = 0.1,
        loss: str = "squared_hinge",
        bias: str = "learned",
        search: str = "exact",
        tol: float = 0.01,
        max_iter: int = 100,
        prune: float = 0.0,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ):
        self.C = C
        self.l1 = l1
        self.loss = loss
        self.bias = bias
        self.search = search
        self.tol = tol
        self.max_iter = max_iter
        self.prune = prune
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def fit(self, X: Any, y: Any) -> PPDSparseClassifier:
        """Learn the weights of all labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features. A dense matrix is stored as a sparse one during the fit.
        y : array-like, sparse matrix, or list of label lists
            Labels: one per sample (1-D), an indicator matrix of shape (n_samples, n_labels), or for
            each sample a list of its labels.

        Returns
        -------
        PPDSparseClassifier
            Itself, fitted.
        """
        check_params(self)
        self.__dict__.pop("model_", None)  # must not outlive the features that the next line sets
        X = check_features(self, X, reset=True)
        self._refuse_vanishing_C(X.dtype)
        labels = encode_labels(y, X.shape[0], estimator_name=type(self).__name__)
        weights, bias, reports = self._solve(X, _drop_complement(labels))
        solution = self._summarise(reports, _drop_complement(labels).counts())
        solution.warn_unless_converged(self, self.tol)

        self.classes_ = labels.classes
        self.label_kind_ = labels.kind.name
        self.model_ = LinearLabels(_pruned(weights, self.prune), bias)
        self.objective_ = solution.objective
        self.certificate_ = solution.certificate
        self.n_iter_ = solution.n_iter
        self.trace_ = solution.trace
        return self

    def _refuse_vanishing_C(self, dtype: np.dtype) -> None:
        """The dual needs 1 / (2 C), which must not be infinite."""
        smallest = float(np.finfo(dtype).tiny)
        if smallest > self.C:
            raise ParameterError(
                f"{type(self).__name__}.C must be at least {smallest:.3g} for {dtype} data, "
                f"got {self.C}"
            )

    def _solve(
        self, X: sp.csr_matrix, labels: EncodedLabels
    ) -> tuple[sp.csr_matrix, np.ndarray, dict[str, np.ndarray]]:
        settings = _core.PPDSettings()
        settings.l1 = float(self.l1)
        settings.tol = float(self.tol)
        settings.max_iter = min(int(self.max_iter), _MOST_SEARCHES)
        settings.learn_bias = self.bias == "learned"
        settings.search = getattr(_core.PPDSearch, self.search)
        settings.seed = as_seed(self.random_state)
        settings.n_threads = as_n_threads(self.n_jobs)
        monitor = _core.Monitor()
        n_labels = len(labels.indptr) - 1

        def job() -> tuple[Any, np.ndarray, dict[str, np.ndarray]]:
            return _core.fit_ppd_sparse(
                X.indptr, X.indices, X.data, X.shape[1],
                labels.indptr, labels.rows, self.loss, float(self.C), settings, monitor,
            )  # fmt: skip

        by_feature, bias, reports = watch(
            job,
            monitor,
            n_total=n_labels,
            callback=self.callback,
            verbose=self.verbose,
            title="PPD-Sparse",
        )
        reports["was_stopped"] = np.array(monitor.stop_requested)
        return _as_csr(by_feature, (X.shape[1], n_labels)), bias, reports

    def _summarise(self, reports: dict[str, np.ndarray], counts: np.ndarray) -> Solution:
        is_done = (reports["converged"] != 0) | (counts == 0)
        status = Status.CONVERGED
        if not is_done.all():
            was_cut = reports["was_stopped"] & (reports["n_iter"] < self.max_iter) & ~is_done
            status = Status.STOPPED if was_cut.any() else Status.MAX_ITER
        objective = float(reports["primal"].sum())
        gap = float((reports["primal"] - reports["dual"]).sum())
        if status is Status.STOPPED:
            certificate = float("inf")  # nothing is known of the labels that were not reached
        else:
            certificate = gap / objective if objective != 0 else 0.0
        return Solution(
            status=status,
            objective=objective,
            certificate=certificate,
            n_iter=int(reports["n_iter"].max()),
            trace=_trace(reports),
        )


def _drop_complement(labels: EncodedLabels) -> EncodedLabels:
    """With two classes in a 1-D `y` one problem is enough: the second class against the first."""
    if labels.kind is not LabelKind.BINARY:
        return labels
    first, last = labels.indptr[1], labels.indptr[2]
    return EncodedLabels(
        indptr=np.array([0, last - first], dtype=np.int64),
        rows=labels.rows[first:last],
        classes=labels.classes[1:],
        kind=labels.kind,
        n_samples=labels.n_samples,
    )


def _as_csr(arrays: tuple[Any, Any, Any], shape: tuple[int, int]) -> sp.csr_matrix:
    indptr, indices, values = arrays
    return sp.csr_matrix((values, indices, indptr), shape=shape)


def _pruned(weights: sp.csr_matrix, size: float) -> sp.csr_matrix:
    if size > 0:
        weights.data[np.abs(weights.data) <= size] = 0
        weights.eliminate_zeros()
    return weights


def _trace(reports: dict[str, np.ndarray]) -> Trace:
    """Running totals in the order in which labels were finished, at most `_TRACE_ROWS` rows."""
    order = np.argsort(reports["seconds"], kind="stable")
    order = order[reports["n_iter"][order] > 0]
    n_rows = min(_TRACE_ROWS, len(order))
    ends = np.linspace(0, len(order), n_rows + 1).astype(int)[1:] - 1
    totals = {name: np.cumsum(reports[name][order])[ends] for name in _SUMMED}
    gap = totals["primal"] - totals["dual"]
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


_SUMMED = ("primal", "dual", "nnz_primal", "nnz_dual", "work")
