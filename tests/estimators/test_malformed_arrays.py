"""Whatever takes a sparse matrix refuses one that lies about itself, by name, and lives.

SciPy checks a matrix when it is built, so the arrays are changed afterwards, as a user's code may.
Arrays that are merely unusual (byte order, alignment, strides, index types) give the same answer
as plain ones.
"""

import functools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from sublearn import metrics
from sublearn.embed import DenseExtremeClassifier, EmbeddingExtremeClassifier, MIPSIndex
from sublearn.extreme import PDSparseClassifier, PPDSparseClassifier
from sublearn.graph import FactorGraph, solve_map, sparse_table
from sublearn.hierarchy import (
    HierarchicalClassifier,
    HierarchicalMultilabelClassifier,
    Taxonomy,
    leaf_reduce,
    project_hierarchy,
)
from sublearn.latent import (
    LatentFeatureLasso,
    MixLassoRegressor,
    solve_boolean_quadratic,
    solve_max_cut,
)
from sublearn.linear import (
    SparseInverseCovariance,
    SparseLinearRegression,
    SparseLogisticRegression,
)
from sublearn.optim import lhac, linear_objective, minimise_linear, multinomial_objective
from sublearn.structured import ChainSVM, PairwiseMultilabelSVM, Sample, StructuralSVM
from sublearn.validation.values import LARGEST

RNG = np.random.default_rng(0)
N, D, L = 30, 8, 4
X = sp.random(N, D, density=0.5, format="csr", random_state=0) + sp.eye(N, D, format="csr")
X = sp.csr_matrix(X)
CODES = np.arange(N) % L
SIGNS = np.where(np.arange(N) % 2, 1, -1)
TARGETS = RNG.normal(size=N)
Y = sp.csr_matrix((np.ones(N, dtype=np.int8), (np.arange(N), CODES)), shape=(N, L))
GRAPH = sp.csr_matrix(np.ones((6, 6)) - np.eye(6))
TREE = Taxonomy.from_paths(["a.b", "a.c"])
PATHS = TREE.encode([["a.b"], ["a.c"], ["a.b", "a.c"]] * 10)
NAMES = [TREE.names[1 + k % 2] for k in range(N)]
PLAIN = X
SCORES = sp.csr_matrix(RNG.random((N, L)))

PPD = PPDSparseClassifier(max_iter=5, random_state=0)
PD = PDSparseClassifier(max_iter=3, random_state=0)
LOGISTIC = SparseLogisticRegression(l1=0.05)
REGRESSION = SparseLinearRegression(l1=0.1)
HICLASS = HierarchicalClassifier(TREE)
HML = HierarchicalMultilabelClassifier(TREE, random_state=0)
PAIRWISE = PairwiseMultilabelSVM(max_iter=3, random_state=0)
CHAIN = ChainSVM(max_iter=3, random_state=0)
EMBEDDING = EmbeddingExtremeClassifier(n_components=4, max_iter=2, random_state=0)
DENSE = DenseExtremeClassifier(max_iter=2, random_state=0)
LATENT = LatentFeatureLasso(n_components=3, max_iter=3, random_state=0)
MIXTURE = MixLassoRegressor(n_components=2, max_iter=3, random_state=0)
STRUCTURAL = StructuralSVM(max_iter=3, random_state=0)


def solve_pair(unary, table):
    graph = FactorGraph(unary=[unary, unary])
    graph.add_factor([0, 1], table)
    return solve_map(graph, random_state=0).assignment


def fitted(model, *data, **options):
    """A clone, fitted; that it has not converged is no matter here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return type(model)(**model.get_params(deep=False)).fit(*data, **options)


@functools.cache
def known(name):
    """A fitted model, for calls that leave it as it is."""
    return {
        "ppd": lambda: fitted(PPD, X, CODES),
        "ppd of Y": lambda: fitted(PPD, X, Y),
        "pd": lambda: fitted(PD, X, CODES),
        "logistic": lambda: fitted(LOGISTIC, X, CODES),
        "regression": lambda: fitted(REGRESSION, X, TARGETS),
        "hiclass": lambda: fitted(HICLASS, X, NAMES),
        "hml": lambda: fitted(HML, X, PATHS),
        "pairwise": lambda: fitted(PAIRWISE, X, Y),
        "embedding": lambda: fitted(EMBEDDING, X, CODES),
        "latent": lambda: fitted(LATENT, X),
    }[name]()


def samples(matrix):
    return [Sample(matrix, {"edge": [[0, 1]]}), Sample(X, {"edge": [[1, 2]]})]


def gradient_at_ones(objective):
    return objective.value_and_gradient(np.ones(objective.size))[1]


LENGTHS = [N // 2, N - N // 2]
GRAPH_TAGS = [CODES, CODES]

#: What takes a sparse matrix of features: the matrix, and a call with it whose answer is compared.
FEATURES = {
    "ppd fit": lambda X: fitted(PPD, X, CODES).coef_,
    "ppd partial_fit": lambda X: fitted(PPD, PLAIN, Y).partial_fit(X, sp.csr_matrix(Y)).coef_,
    "ppd predict": lambda X: known("ppd").predict_top_k(X, 2)[1],
    "pd fit": lambda X: fitted(PD, X, CODES).coef_,
    "pd eval_set": lambda X: fitted(PD, PLAIN, CODES, eval_set=(X, CODES)).coef_,
    "pd predict": lambda X: known("pd").decision_function(X),
    "logistic fit": lambda X: fitted(LOGISTIC, X, SIGNS).coef_,
    "logistic predict": lambda X: known("logistic").decision_function(X),
    "regression fit": lambda X: fitted(REGRESSION, X, TARGETS).coef_,
    "regression predict": lambda X: known("regression").predict(X),
    "hiclass fit": lambda X: fitted(HICLASS, X, NAMES).coef_,
    "hiclass predict": lambda X: known("hiclass").predict(X),
    "hml fit": lambda X: fitted(HML, X, PATHS).coef_,
    "hml predict": lambda X: known("hml").predict(X),
    "pairwise fit": lambda X: fitted(PAIRWISE, X, Y).coef_,
    "pairwise predict": lambda X: known("pairwise").predict(X),
    "chain fit": lambda X: fitted(CHAIN, X, CODES, lengths=LENGTHS).coef_,
    "chain fit to a list": lambda X: fitted(CHAIN, [X, PLAIN], [CODES, CODES]).coef_,
    "structural fit": lambda X: fitted(STRUCTURAL, samples(X), GRAPH_TAGS).coef_,
    "embedding fit": lambda X: fitted(EMBEDDING, X, CODES).weights_,
    "embedding predict": lambda X: known("embedding").predict_top_k(X, 2)[1],
    "latent features fit": lambda X: fitted(LATENT, X).components_,
    "latent features transform": lambda X: known("latent").transform(X),
    "mixture fit": lambda X: fitted(MIXTURE, X, TARGETS).coef_,
    "latent features path": lambda X: LATENT.fit_path(X, l1s=2).objectives,
    "linear_objective": lambda X: gradient_at_ones(linear_objective(X, SIGNS)),
    "minimise_linear": lambda X: minimise_linear(X, SIGNS, l1=0.01).x,
    "multinomial_objective": lambda X: gradient_at_ones(multinomial_objective(X, CODES, L)),
}

CODED = sp.csr_matrix(np.eye(2, known("latent").n_components_))

#: What takes sparse labels, scores or graphs.
OTHERS = {
    "ppd fit y": (Y, lambda y: fitted(PPD, X, y).coef_),
    "ppd partial_fit y": (Y, lambda y: fitted(PPD, X, Y).partial_fit(X, y).coef_),
    "pd fit y": (Y, lambda y: fitted(PD, X, y).coef_),
    "pd eval_set y": (Y, lambda y: fitted(PD, X, Y, eval_set=(X, y)).coef_),
    "ppd score y": (Y, lambda y: known("ppd of Y").score(X, y)),
    "ppd calibrate y": (Y, lambda y: fitted(PPD, X, Y).calibrate(X, y).predict_proba(X)),
    "pairwise fit y": (Y, lambda y: fitted(PAIRWISE, X, y).coef_),
    "dense fit y": (Y, lambda y: fitted(DENSE, X.toarray(), y).weights_),
    "embedding fit y": (Y, lambda y: fitted(EMBEDDING, X, y).weights_),
    "hml fit y": (PATHS, lambda y: fitted(HML, X, y).coef_),
    "taxonomy encode": (PATHS, lambda y: TREE.encode(y)),
    "taxonomy close": (PATHS, lambda y: TREE.close(y)),
    "taxonomy is_consistent": (PATHS, lambda y: TREE.is_consistent(y)),
    "precision y_true": (Y, lambda y: metrics.precision_at_k(y, SCORES, 2)),
    "precision y_pred": (SCORES, lambda y: metrics.precision_at_k(Y, y, 2)),
    "psp y_true": (Y, lambda y: metrics.psp_at_k(y, SCORES, np.full(L, 0.5), 2)),
    "propensities": (Y, lambda y: metrics.propensities(y)),
    "f1 y_true": (Y, lambda y: metrics.f1_macro(y, Y)),
    "hamming y_pred": (Y, lambda y: metrics.hamming_loss(Y, y)),
    "hierarchical_f1": (PATHS, lambda y: metrics.hierarchical_f1(PATHS, y, TREE)),
    "brier y_true": (Y, lambda y: metrics.brier_score(y, None, SCORES.toarray())),
    "boolean quadratic": (GRAPH, lambda C: solve_boolean_quadratic(C, random_state=0).value),
    "max cut": (GRAPH, lambda C: solve_max_cut(C, random_state=0).cut),
    "sparse_table": (GRAPH, lambda C: sparse_table(C).to_array()),
    "inverse_transform": (
        CODED,
        lambda Z: known("latent").inverse_transform(Z),
    ),
}


CASES = {name: (X, call) for name, call in FEATURES.items()} | OTHERS

#: What a refusal calls the matrix where it is not X.
NAMED = {
    "pd eval_set": r"eval_set\[0\] .*X",
    "structural fit": r"X\[0\]\.features",
    "chain fit to a list": r"X\[0\]",
    "pd eval_set y": r"eval_set\[1\]",
    "taxonomy close": "Y",
    "taxonomy is_consistent": "Y",
    "precision y_true": "y_true",
    "precision y_pred": "y_pred",
    "psp y_true": "y_true",
    "f1 y_true": "y_true",
    "hamming y_pred": "y_pred",
    "hierarchical_f1": "y_pred",
    "brier y_true": "y_true",
    "boolean quadratic": "quadratic",
    "max cut": "graph",
    "sparse_table": "values",
    "inverse_transform": "X",
}


def named(case):
    return NAMED.get(case, "X" if case in FEATURES else "y")


def broken(matrix, **arrays):
    """A copy whose arrays were changed after SciPy looked at them."""
    out = matrix.copy()
    for part, array in arrays.items():
        setattr(out, part, array)
    return out


def changed(array, at, value):
    out = array.copy()
    out[at] = value
    return out


def unaligned(array):
    """The same numbers one byte behind where their type may begin."""
    raw = np.empty(array.nbytes + 1, dtype=np.uint8)
    out = raw[1:].view(array.dtype).reshape(array.shape)
    out[...] = array
    assert not out.flags.aligned
    return out


def swapped(array):
    return array.astype(array.dtype.newbyteorder())


def strided(array):
    return np.repeat(array, 2)[::2]


MALFORMED = {
    "an index too large": lambda m: broken(m, indices=changed(m.indices, 0, m.shape[1] + 5)),
    "an index far too large": lambda m: broken(m, indices=changed(m.indices, -1, 2**31 - 1)),
    "a negative index": lambda m: broken(m, indices=changed(m.indices, 1, -1)),
    "an index beyond 32 bits": lambda m: broken(
        m, indices=changed(m.indices.astype(np.int64), 0, 2**32)
    ),
    "offsets that decrease": lambda m: broken(m, indptr=changed(m.indptr, 1, m.nnz + 100)),
    "offsets that end at 0": lambda m: broken(
        m, indptr=np.r_[0, np.full(m.shape[0] - 1, 2_000_000_000), 0].astype(np.int32)
    ),
    "offsets that end below 0": lambda m: broken(m, indptr=changed(m.indptr, -1, -5)),
    "offsets that start above 0": lambda m: broken(m, indptr=changed(m.indptr, 0, 1)),
    "offsets beyond the entries": lambda m: broken(m, indptr=changed(m.indptr, -1, m.nnz + 9)),
    "too few offsets": lambda m: broken(m, indptr=m.indptr[:-1]),
    "too many offsets": lambda m: broken(m, indptr=np.append(m.indptr, m.nnz)),
    "no offsets": lambda m: broken(m, indptr=m.indptr[:0]),
    "offsets in a list": lambda m: broken(m, indptr=m.indptr.tolist()),
    "offsets of float": lambda m: broken(m, indptr=m.indptr.astype(float)),
    "indices of float": lambda m: broken(m, indices=m.indices.astype(float)),
    "indices of bool": lambda m: broken(m, indices=m.indices.astype(bool)),
    "indices of objects": lambda m: broken(m, indices=m.indices.astype(object)),
    "indices of uint64": lambda m: broken(
        m, indices=changed(m.indices.astype(np.uint64), 0, 2**64 - 1)
    ),
    "indices in two dimensions": lambda m: broken(m, indices=m.indices[:, None]),
    "too few values": lambda m: broken(m, data=m.data[:-1]),
    "too many values": lambda m: broken(m, data=np.append(m.data, m.data[:1])),
    "values in two dimensions": lambda m: broken(m, data=m.data[:, None]),
    "a column of CSC too large": lambda m: broken(
        m.tocsc(), indices=changed(m.tocsc().indices, 0, m.shape[0])
    ),
    "offsets of CSC that end at 0": lambda m: broken(
        m.tocsc(), indptr=np.r_[0, np.full(m.shape[1] - 1, 2_000_000_000), 0].astype(np.int32)
    ),
    "a row of COO too large": lambda m: broken(m.tocoo(), row=changed(m.tocoo().row, 0, 10**9)),
    "a negative column of COO": lambda m: broken(m.tocoo(), col=changed(m.tocoo().col, 0, -7)),
    "too few columns of COO": lambda m: broken(m.tocoo(), col=m.tocoo().col[:-1]),
    "a block of BSR outside": lambda m: broken(
        m.tobsr((1, 1)), indices=changed(m.tobsr((1, 1)).indices, 0, m.shape[1])
    ),
    "blocks of BSR that do not fit": lambda m: broken(
        m.tobsr((1, 1)), data=np.ones((m.nnz, 7, 7), dtype=m.dtype)
    ),
    "an id of LIL too large": lambda m: with_list(m.tolil(), "rows", [10**6]),
    "an id of LIL that is none": lambda m: with_list(m.tolil(), "rows", ["a"]),
    "lists of LIL of two lengths": lambda m: with_list(m.tolil(), "data", [1.0] * 50),
    "a list of LIL that is none": lambda m: with_list(m.tolil(), "rows", None),
    "offsets of DIA that are too few": lambda m: broken(m.todia(), offsets=m.todia().offsets[:-1]),
    "a key of DOK outside": lambda m: with_key(m.todok(), (10**6, 0)),
}


def with_list(lil, part, items):
    getattr(lil, part)[0] = items
    return lil


def with_key(dok, key):
    (dok._dict if hasattr(dok, "_dict") else dok)[key] = 1
    return dok


UNUSUAL = {
    "unaligned": lambda m: broken(
        m,
        data=unaligned(m.data) if m.data.itemsize > 1 else m.data,
        indices=unaligned(m.indices),
        indptr=unaligned(m.indptr),
    ),
    "byte-swapped": lambda m: broken(
        m, data=swapped(m.data), indices=swapped(m.indices), indptr=swapped(m.indptr)
    ),
    "strided": lambda m: broken(
        m, data=strided(m.data), indices=strided(m.indices), indptr=strided(m.indptr)
    ),
    "of two index types": lambda m: broken(m, indptr=m.indptr.astype(np.int64)),
    "of uint16 indices": lambda m: broken(m, indices=m.indices.astype(np.uint16)),
    "with entries to spare": lambda m: broken(
        m, data=np.append(m.data, m.data[:1]), indices=np.append(m.indices, 10**6).astype(np.int32)
    ),
    "read-only": lambda m: read_only(m),
}


def read_only(matrix):
    out = matrix.copy()
    for array in (out.data, out.indices, out.indptr):
        array.flags.writeable = False
    return out


def as_array(answer):
    return answer.toarray() if sp.issparse(answer) else np.asarray(answer)


@pytest.mark.parametrize("what", MALFORMED)
@pytest.mark.parametrize("case", CASES)
def test_refuses_a_matrix_that_lies_about_itself(case, what):
    matrix, call = CASES[case]
    with pytest.raises((ValueError, TypeError)) as refusal:
        call(MALFORMED[what](matrix))
    refusal.match(rf"(^|[ .]){named(case)}(\.\w+)?( and .*)? must ")


@pytest.mark.parametrize("how", UNUSUAL)
@pytest.mark.parametrize("case", CASES)
def test_answers_for_unusual_arrays_as_for_plain_ones(case, how):
    matrix, call = CASES[case]
    unusual = UNUSUAL[how](matrix)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        np.testing.assert_array_equal(as_array(call(unusual)), as_array(call(matrix)))


# --- dense arrays --------------------------------------------------------------------------------

ROWS = X.toarray()
WEIGHTS = 1.0 + np.arange(N) % 3
VECTORS = RNG.normal(size=(N, D)).astype(np.float32)
COVARIANCE = np.cov(ROWS.T)


def index(rows, queries):
    return MIPSIndex(n_clusters=3, random_state=0).fit(rows).search(queries, 3)[1]


#: What takes dense arrays, and the arrays.
DENSE_CASES = {
    "ppd": (lambda X, y, w: fitted(PPD, X, y, sample_weight=w).coef_, ROWS, CODES, WEIGHTS),
    "ppd indicator": (lambda X, y: fitted(PPD, X, y).coef_, ROWS, Y.toarray()),
    "ppd predict": (lambda X: fitted(PPD, ROWS, CODES).predict_top_k(X, 2)[1], ROWS),
    "pd": (lambda X, y: fitted(PD, X, y).coef_, ROWS, CODES),
    "logistic": (lambda X, y, w: fitted(LOGISTIC, X, y, w).coef_, ROWS, SIGNS, WEIGHTS),
    "multinomial": (lambda X, y: fitted(LOGISTIC, X, y).coef_, ROWS, CODES),
    "regression": (lambda X, y, w: fitted(REGRESSION, X, y, w).coef_, ROWS, TARGETS, WEIGHTS),
    "regression predict": (lambda X: fitted(REGRESSION, ROWS, TARGETS).predict(X), ROWS),
    "hiclass": (lambda X: fitted(HICLASS, X, NAMES).coef_, ROWS),
    "hml": (lambda X, y: fitted(HML, X, y).coef_, ROWS, PATHS.toarray()),
    "pairwise": (lambda X, y: fitted(PAIRWISE, X, y).coef_, ROWS, Y.toarray()),
    "chain": (lambda X, y: fitted(CHAIN, X, y, lengths=LENGTHS).coef_, ROWS, CODES),
    "structural": (lambda X: fitted(STRUCTURAL, samples(X), GRAPH_TAGS).coef_, ROWS),
    "dense": (lambda X, y: fitted(DENSE, X, y).weights_, ROWS, CODES),
    "dense float32": (lambda X, y: fitted(DENSE, X, y).weights_, VECTORS, CODES),
    "embedding": (lambda X, y: fitted(EMBEDDING, X, y).weights_, ROWS, CODES),
    "latent features": (lambda X: fitted(LATENT, X).components_, ROWS),
    "mixture": (lambda X, y: fitted(MIXTURE, X, y).coef_, ROWS, TARGETS),
    "latent features path": (lambda X: LATENT.fit_path(X, l1s=2).objectives, ROWS),
    "inverse covariance": (
        lambda X: fitted(SparseInverseCovariance(l1=0.1), X).precision_, ROWS,
    ),
    "precomputed covariance": (
        lambda S: fitted(SparseInverseCovariance(l1=0.1, covariance="precomputed"), S).precision_,
        COVARIANCE,
    ),
    "index": (index, VECTORS, VECTORS),
    "index of float64": (index, ROWS, ROWS),
    "linear_objective": (
        lambda X, y, w: gradient_at_ones(linear_objective(X, y, weights=w)),
        ROWS, SIGNS.astype(float), WEIGHTS,
    ),
    "minimise_linear": (lambda X, y: minimise_linear(X, y, l1=0.01).x, ROWS, SIGNS.astype(float)),
    "lhac": (lambda x, l1: lhac(linear_objective(ROWS, SIGNS), x, l1=l1).x, np.ones(D), np.ones(D)),
    "factor graph": (solve_pair, np.arange(3.0), np.eye(3)),
    "boolean quadratic": (
        lambda C: solve_boolean_quadratic(C, random_state=0).value, GRAPH.toarray(),
    ),
    "projection": (lambda u, phi: project_hierarchy(u, TREE, phi), np.ones((2, 3)), np.ones(3)),
    "leaf_reduce": (lambda u: leaf_reduce(u, TREE, 0.5), PATHS.toarray().astype(float)),
    "precision": (lambda y, s: metrics.precision_at_k(y, s, 2), Y.toarray(), SCORES.toarray()),
}  # fmt: skip


def fortran(array):
    return np.asfortranarray(array)


def frozen(array):
    out = array.copy()
    out.flags.writeable = False
    return out


def packed(array):
    """A field of packed records, as numpy.genfromtxt and files of other programs give it."""
    record = np.zeros(len(array), dtype=[("flag", "i1"), ("x", array.dtype, array.shape[1:])])
    record["x"] = array
    return record["x"]


LAYOUTS = {
    "unaligned": lambda a: unaligned(a) if a.itemsize > 1 else a,
    "byte-swapped": swapped,
    "in packed records": packed,
    "in Fortran order": fortran,
    "read-only": frozen,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", DENSE_CASES)
def test_answers_for_any_layout_of_dense_arrays_as_for_plain_ones(case, layout):
    call, *arrays = DENSE_CASES[case]
    found, expected = call(*map(LAYOUTS[layout], arrays)), call(*arrays)
    # In another order sums round differently.
    rtol = 1e-9 if layout == "in Fortran order" else 0
    np.testing.assert_allclose(as_array(found), as_array(expected), rtol=rtol)


# --- values --------------------------------------------------------------------------------------


def with_value(value, dtype=np.float64):
    rows = ROWS.astype(dtype)
    rows[0, 0] = value
    return rows


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200, -1e308])
@pytest.mark.parametrize("case", [*FEATURES, "dense fit"])
def test_refuses_numbers_that_cannot_be_squared(case, value):
    if case == "dense fit":
        rows, call = with_value(value), lambda X: fitted(DENSE, X, CODES)
    else:
        rows, call = sp.csr_matrix(with_value(value)), FEATURES[case]
    with pytest.raises(ValueError, match=r"\bX\b|features|eval_set"):
        call(rows)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("model", [PPD, PD, PAIRWISE], ids=lambda m: type(m).__name__)
def test_certificates_are_finite_up_to_the_largest_number_taken(model, dtype, sign):
    rows = with_value(sign * LARGEST[np.dtype(dtype)], dtype)
    found = fitted(model, rows, Y)
    assert np.isfinite(found.objective_)
    assert np.isfinite(found.certificate_)
    assert found.predict(rows).shape == Y.shape
    with pytest.raises(ValueError, match=rf"X must be at most 1e\+\d+ in size in {dtype.__name__}"):
        fitted(model, rows * dtype(2), Y)


def test_a_model_in_float32_refuses_numbers_that_only_float64_holds():
    model = fitted(PPD, ROWS.astype(np.float32), CODES)
    for value in (1e30, 1e60):
        with pytest.raises(ValueError, match=r"X must be at most 1e\+15 in size in the precision"):
            model.predict(with_value(value))


@pytest.mark.parametrize("value", [1e16, 1e30])
def test_an_index_refuses_numbers_whose_products_overflow(value):
    with pytest.raises(ValueError, match=r"X must be at most 1e\+15 in size in float32"):
        index(with_value(value), ROWS)
    with pytest.raises(ValueError, match=r"queries must be at most 1e\+15 in size in float32"):
        index(ROWS, with_value(value))
    assert np.isfinite(index(with_value(1e15), with_value(-1e15))).all()


def test_refuses_text_in_two_dimensions_as_labels():
    for y in (np.full((N, 2), "a"), np.full((N, 2), "a", dtype=object), np.full((N, 2), b"1")):
        with pytest.raises(ValueError, match=r"y must hold only 0 and 1 in an indicator matrix"):
            fitted(PPD, X, y)
