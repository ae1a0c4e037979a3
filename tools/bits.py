"""Objectives, certificates and predictions of every estimator on small real data, bit for bit.

A change that is to keep behaviour keeps this table::

    python3 tools/bits.py --write before.json      at the commit before
    python3 tools/bits.py --compare before.json    after the change, on the same machine

Each row fits one estimator, or calls one function, with a fixed seed and two threads. Numbers are
compared by their bits, predictions by a digest of their bytes. The last bits depend on the
processor and on BLAS (`ARCHITECTURE.md` says where), so a table is for one machine and is not kept
in the repository. The data sets are read from ../shared/data, or from where SUBLEARN_DATA says.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import lzma
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from sublearn.io import load_arff, load_conll, load_hmc, load_quickstart, load_svmlight

DATA = Path(os.environ.get("SUBLEARN_DATA", Path(__file__).resolve().parents[2] / "shared/data"))
COMMON: dict[str, Any] = {"random_state": 0, "n_jobs": 2}
ROWS: dict[str, Callable[[], dict[str, Any]]] = {}


def row(function: Callable[[], Any]) -> Callable[[], Any]:
    """Put a function into the table under its own name."""
    ROWS[function.__name__] = function
    return function


# --- what is compared ----------------------------------------------------------------------------


def of_model(model: Any, *predictions: Any) -> dict[str, Any]:
    """The figures that a fitted model reports, and a digest of what it predicts."""
    found = {}
    for name in ("objective_", "certificate_", "n_iter_"):
        if getattr(model, name, None) is not None:
            found[name] = bits(getattr(model, name))
    return found | {"predictions": digest(predictions)}


def bits(value: Any) -> Any:
    """A number by its bits, readable; an array by its digest."""
    array = np.asarray(value)
    if array.ndim:
        return digest(array)
    return int(array) if array.dtype.kind in "iu" else float(array).hex()


def digest(value: Any) -> str:
    """Sixteen letters that stand for the bytes of arrays, matrices, strings and lists of them."""
    state = hashlib.sha256()
    _feed(state, value)
    return state.hexdigest()[:16]


def _feed(state: Any, value: Any) -> None:
    if sp.issparse(value):
        csr = value.tocsr()
        csr.sort_indices()
        return _feed(
            state, [list(csr.shape), csr.indptr.astype(int), csr.indices.astype(int), csr.data]
        )
    if hasattr(value, "to_numpy"):
        value = value.to_numpy()
    if isinstance(value, (list, tuple)):
        state.update(f"list of {len(value)}".encode())
        for item in value:
            _feed(state, item)
        return None
    array = np.asarray(value)
    if array.dtype.kind in "OUT":
        return state.update(repr(array.tolist()).encode())
    state.update(f"{array.dtype.str}{array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return None


# --- data ----------------------------------------------------------------------------------------


def svm(name: str, n_rows: int, *, multilabel: bool = False, n_features: int | None = None) -> Any:
    data = load_svmlight(DATA / name, multilabel=multilabel, n_features=n_features)
    return data.X[:n_rows], data.Y[:n_rows]


def digits(n: int) -> tuple[np.ndarray, np.ndarray]:
    with lzma.open(DATA / "mnist" / "t10k-images-idx3-ubyte.xz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
    with lzma.open(DATA / "mnist" / "t10k-labels-idx1-ubyte.xz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    return (images[:n] / np.float32(255)).astype(np.float32), labels[:n].astype(int)


def table(name: str, **options: Any) -> list[list[str]]:
    with lzma.open(DATA / name, "rt", encoding="utf-8") as file:
        return list(csv.reader(file, **options))


def matlab(name: str, key: str) -> np.ndarray:
    from scipy.io import loadmat

    return np.asarray(loadmat(DATA / name)[key], dtype=float)


# --- very many labels ----------------------------------------------------------------------------


def _labelled(estimator: Any, X: Any, Y: Any, n: int) -> dict[str, Any]:
    model = estimator.fit(X[:n], Y[:n])
    return of_model(model, model.predict(X[n:]), model.predict_top_k(X[n:], k=3))


@row
def ppd_sparse() -> dict[str, Any]:
    from sublearn.extreme import PPDSparseClassifier

    X, Y = svm("rcv1sub1/rcv1sub1.svm.xz", 900, multilabel=True)
    return _labelled(PPDSparseClassifier(**COMMON), X, Y, 700)


@row
def ppd_sparse_hinge_multiclass() -> dict[str, Any]:
    from sublearn.extreme import PPDSparseClassifier

    X, Y = svm("sector/sector.heldout.svm.xz", 865)
    return _labelled(PPDSparseClassifier(loss="hinge", **COMMON), X, Y, 700)


@row
def pd_sparse() -> dict[str, Any]:
    from sublearn.extreme import PDSparseClassifier

    X, Y = svm("rcv1sub1/rcv1sub1.svm.xz", 900, multilabel=True)
    return _labelled(PDSparseClassifier(max_iter=10, **COMMON), X, Y, 700)


@row
def text_tagger() -> dict[str, Any]:
    from sublearn.extreme import PPDSparseClassifier, TextTagger

    data = load_quickstart()
    model = TextTagger(PPDSparseClassifier(**COMMON))
    model.fit(data.train_texts[:500], data.train_labels[:500])
    texts = data.test_texts[:200]
    return of_model(model.classifier_, model.predict(texts), model.predict_top_k(texts, k=3))


@row
def label_reranker() -> dict[str, Any]:
    from sublearn.extreme import LabelReranker, PPDSparseClassifier, TextTagger

    data = load_quickstart()
    model = LabelReranker(TextTagger(PPDSparseClassifier(**COMMON), analyzer="word"), **COMMON)
    model.fit(data.train_texts[:500], data.train_labels[:500])
    texts = data.test_texts[:200]
    return of_model(model, model.predict(texts), model.predict_top_k(texts, k=3))


@row
def dense_extreme() -> dict[str, Any]:
    from sublearn.embed import DenseExtremeClassifier

    return _labelled(DenseExtremeClassifier(max_iter=2, **COMMON), *digits(900), 700)


@row
def embedding_extreme() -> dict[str, Any]:
    from sublearn.embed import EmbeddingExtremeClassifier

    X, Y = svm("sector/sector.heldout.svm.xz", 865)
    model = EmbeddingExtremeClassifier(n_components=16, max_iter=2, **COMMON)
    return _labelled(model, X, Y, 700)


# --- linear models -------------------------------------------------------------------------------


@row
def logistic() -> dict[str, Any]:
    from sublearn.linear import SparseLogisticRegression

    X, y = svm("a9a/a9a.xz", 1500)
    model = SparseLogisticRegression(0.005, n_jobs=2).fit(X[:1000], y[:1000])
    return of_model(model, model.coef_, model.predict_proba(X[1000:]))


@row
def logistic_one_vs_rest_cv() -> dict[str, Any]:
    from sublearn.linear import SparseLogisticRegression

    X, y = svm("vowel/vowel.scale", 528)
    model = SparseLogisticRegression("cv", l1s=10, cv=3, n_jobs=2).fit(X, y)
    return of_model(model, model.coef_, model.predict_proba(X))


@row
def multinomial() -> dict[str, Any]:
    from sublearn.linear import SparseLogisticRegression

    X, y = svm("vowel/vowel.scale", 528)
    model = SparseLogisticRegression(0.003, multinomial=True, n_jobs=2).fit(X, y)
    return of_model(model, model.coef_, model.predict_proba(X))


def _genes() -> tuple[np.ndarray, np.ndarray]:
    lines = table("gene_alon/alon.csv.xz")
    lines = [line for line in lines if _is_number(line[1])]
    X = np.array([[float(value) for value in line[1:]] for line in lines])
    X = np.log(np.maximum(X, 1.0))
    y = np.array([line[0] for line in lines])
    return X - X.mean(axis=0), y


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@row
def lasso_of_genes() -> dict[str, Any]:
    from sublearn.linear import SparseLinearRegression

    X, _ = _genes()
    found = {}
    for solver in ("auto", "newton", "lhac"):
        model = SparseLinearRegression(0.05, solver=solver, n_jobs=2).fit(X[:, 1:], X[:, 0])
        own = of_model(model, model.coef_, model.predict(X[:, 1:]))
        found |= {f"{solver}.{name}": value for name, value in own.items()}
    return found


@row
def linear_losses() -> dict[str, Any]:
    from sublearn.linear import SparseLinearRegression

    X, y = svm("a9a/a9a.xz", 800)
    found = {}
    for loss, target in (("huber", y), ("poisson", y + 1)):
        model = SparseLinearRegression(0.01, l2=0.1, loss=loss, n_jobs=2).fit(X, target)
        own = of_model(model, model.coef_, model.predict(X))
        found |= {f"{loss}.{name}": value for name, value in own.items()}
    return found


@row
def groups_of_features() -> dict[str, Any]:
    from sublearn.linear import GroupLinearRegression, GroupLogisticRegression

    X, y = svm("a9a/a9a.xz", 800)
    groups = np.arange(X.shape[1]) // 5
    found = {}
    for kind, target in ((GroupLinearRegression, y), (GroupLogisticRegression, y > 0)):
        model = kind(0.01, feature_groups=groups, within_share=0.2, n_jobs=2).fit(X, target)
        own = of_model(model, model.coef_, model.predict(X))
        found |= {f"{kind.__name__}.{name}": value for name, value in own.items()}
    return found


@row
def concave_penalty() -> dict[str, Any]:
    from sublearn.linear import SparseLinearRegression

    X, y = svm("a9a/a9a.xz", 800)
    model = SparseLinearRegression(0.02, penalty_weights="mcp", n_jobs=2).fit(X, y)
    return of_model(model, model.coef_, model.predict(X))


@row
def coefficient_path() -> dict[str, Any]:
    from sublearn.linear import SparseLinearRegression

    X, _ = _genes()
    path = SparseLinearRegression(n_jobs=2).fit_path(X[:, 1:300], X[:, 0])
    return {"path": digest([path.l1s, path.coefs])}


def _returns(n_stocks: int) -> np.ndarray:
    lines = table("stockdata/stockdata.csv.xz")[1:]
    prices = np.array([[float(value) for value in line[:n_stocks]] for line in lines])
    return np.diff(np.log(prices), axis=0)


@row
def inverse_covariance() -> dict[str, Any]:
    from sublearn.linear import SparseInverseCovariance

    X = _returns(40)
    model = SparseInverseCovariance(0.2, n_jobs=2)
    model.fit(X / X.std(axis=0))
    return of_model(model, model.precision_)


# --- solvers -------------------------------------------------------------------------------------


@row
def lhac_and_minimise_linear() -> dict[str, Any]:
    from sublearn.optim import lhac, linear_objective, minimise_linear

    X, y = svm("a9a/a9a.xz", 600)
    objective = linear_objective(X, y, "logistic")
    found = {}
    for name, answer in {
        "lhac": lhac(objective, np.zeros(X.shape[1]), 0.01),
        "newton": minimise_linear(X, y, "logistic", 0.01),
        "interior_point": minimise_linear(X, y, "squared", 0.01, solver="interior_point"),
    }.items():
        found[name] = digest([answer.x, answer.objective, answer.certificate, answer.n_iter])
    return found


# --- graphs and structured outputs ---------------------------------------------------------------


@row
def map_inference() -> dict[str, Any]:
    from sublearn.graph import read_uai, solve_map

    found = {}
    for name in ("protein_small/pdb1mjc", "segmentation/segmentation_12", "grids/grids_26"):
        result = solve_map(read_uai(DATA / f"uai_{name}.uai.xz"), max_iter=100, random_state=0)
        found[name] = digest([result.assignment, result.score, result.bound, result.n_iter])
    return found


@row
def chain_svm() -> dict[str, Any]:
    from sublearn.structured import ChainSVM, word_features

    tokens, tags = load_conll(DATA / "conll2000" / "train.txt.xz")
    sentences = [word_features(sentence) for sentence in tokens[:150]]
    model = ChainSVM(0.1, max_iter=6, **COMMON).fit(sentences[:100], tags[:100])
    return of_model(model, model.predict(sentences[100:]))


@row
def structural_svm() -> dict[str, Any]:
    from sublearn.structured import Sample, StructuralSVM

    words: dict[str, list[list[str]]] = {}
    for line in table("ocr_letters/letter.data.xz", delimiter="\t")[:700]:
        words.setdefault(line[3], []).append(line)
    samples, labels = [], []
    for lines in words.values():
        pixels = np.array([[float(value) for value in line[6:134]] for line in lines])
        n = len(lines)
        samples.append(
            Sample(pixels, {"next": np.column_stack([np.arange(n - 1), np.arange(1, n)])})
        )
        labels.append(np.array([line[1] for line in lines]))
    model = StructuralSVM(0.1, max_iter=6, **COMMON).fit(samples[:60], labels[:60])
    return of_model(model, [list(map(str, tags)) for tags in model.predict(samples[60:])])


@row
def pairwise_multilabel() -> dict[str, Any]:
    from sublearn.structured import PairwiseMultilabelSVM

    data = load_arff(
        DATA / "emotions" / "emotions-train.arff.xz", labels=DATA / "emotions" / "emotions.xml"
    )
    X = data.X.toarray() if sp.issparse(data.X) else data.X
    model = PairwiseMultilabelSVM(0.1, max_iter=20, **COMMON).fit(X[:300], data.Y[:300])
    return of_model(model, *model.predict_with_bounds(X[300:]))


# --- search and word vectors ---------------------------------------------------------------------


@row
def mips_index() -> dict[str, Any]:
    from sublearn.embed import MIPSIndex

    X, _ = digits(2000)
    index = MIPSIndex(**COMMON).fit(X)
    exact = MIPSIndex(n_probe=None, **COMMON).fit(X)
    return {"search": digest(index.search(X[:50], 5)), "exact": digest(exact.search(X[:50], 5))}


@row
def skip_gram() -> dict[str, Any]:
    from sublearn.embed import SkipGram

    tokens, _ = load_conll(DATA / "conll2000" / "train.txt.xz")
    sentences = [[columns[0] for columns in sentence] for sentence in tokens[:1500]]
    model = SkipGram(n_components=16, min_count=3, max_iter=2, **COMMON).fit(sentences)
    return of_model(model, model.transform(["the", "of", "stock"]))


# --- latent structure ----------------------------------------------------------------------------


@row
def latent_feature_lasso() -> dict[str, Any]:
    from sublearn.latent import LatentFeatureLasso

    X = matlab("lfl_blocks/block_image_set.mat", "data")[:200]
    model = LatentFeatureLasso(4, max_iter=15, **COMMON).fit(X)
    return of_model(model, model.transform(X), model.components_)


@row
def mix_lasso() -> dict[str, Any]:
    from sublearn.latent import MixLassoRegressor

    data = np.loadtxt(DATA / "tonedata" / "tonedata.txt", skiprows=1)
    model = MixLassoRegressor(2, max_iter=15, **COMMON).fit(data[:, :1], data[:, 1])
    return of_model(model, model.predict(data[:, :1]))


@row
def boolean_quadratic_and_max_cut() -> dict[str, Any]:
    from sublearn.latent import solve_boolean_quadratic, solve_max_cut

    C = np.corrcoef(_returns(60), rowvar=False)
    first = solve_boolean_quadratic(C - 0.3, **COMMON)
    second = solve_max_cut(np.abs(C) - np.eye(len(C)), **COMMON)
    return {
        "boolean_quadratic": digest([first.z, first.value, first.bound]),
        "max_cut": digest([second.side, second.cut, second.bound]),
    }


# --- taxonomies ----------------------------------------------------------------------------------


def _images() -> tuple[Any, np.ndarray, list[Any]]:
    from sublearn.hierarchy import Taxonomy

    path = DATA / "hmc_imclef07a" / "imclef07a_train.arff.xz"
    data = load_hmc(path)
    return Taxonomy.from_hmc(path), data.X[:400], data.labels[:400]


@row
def hierarchical_classifier() -> dict[str, Any]:
    from sublearn.hierarchy import HierarchicalClassifier

    taxonomy, X, y = _images()
    y = [labels[-1] if isinstance(labels, (list, tuple)) else labels for labels in y]
    model = HierarchicalClassifier(taxonomy, n_jobs=2).fit(X[:300], y[:300])
    return of_model(model, model.predict(X[300:]))


@row
def hierarchical_multilabel() -> dict[str, Any]:
    from sublearn.hierarchy import HierarchicalMultilabelClassifier

    taxonomy, X, y = _images()
    model = HierarchicalMultilabelClassifier(taxonomy, l1=0.003, **COMMON).fit(X[:300], y[:300])
    return of_model(model, model.predict(X[300:]))


@row
def projection() -> dict[str, Any]:
    from sublearn.hierarchy import project_hierarchy

    taxonomy, X, _ = _images()
    scores = np.tile(X, 2)[:20, : taxonomy.n_labels]
    return {"projection": digest(project_hierarchy(scores, taxonomy, 0.5))}


# --- loads and networks --------------------------------------------------------------------------


@row
def load_forecaster() -> dict[str, Any]:
    from sublearn.forecast import LoadFeatures, LoadForecaster, LocalKernels

    y = np.array([float(line[-1]) for line in table("load_taylor/taylor.csv.xz")[1:]])[:1500]
    features = LoadFeatures(steps_per_day=48)
    kernels = LocalKernels(n_components=60, relevance_rows=200)
    model = LoadForecaster(48, features=features, kernels=kernels, **COMMON).fit(y)
    return of_model(model, model.predict())


@row
def deep_trim_digits() -> dict[str, Any]:
    import torch

    from sublearn.trim import L1Search, deep_trim

    X, y = digits(600)
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(784, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
    search = L1Search(max_stages=2)
    data = (torch.from_numpy(X), torch.from_numpy(y))
    result = deep_trim(net, data, search=search, random_state=0)
    weights = [p.detach().numpy() for p in result.module.parameters()]
    return {"weights": digest(weights)}


# --- the command ---------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="file for the table")
    parser.add_argument("--compare", type=Path, help="a table to compare with")
    parser.add_argument("--only", nargs="+", choices=sorted(ROWS), help="rows to compute")
    options = parser.parse_args()
    found = {}
    for name in options.only or ROWS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found[name] = ROWS[name]()
        print(f"{name:28} " + "  ".join(f"{k} {v}" for k, v in found[name].items()), flush=True)
    if options.write:
        options.write.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return report_changes(json.loads(options.compare.read_text()), found) if options.compare else 0


def report_changes(before: dict[str, Any], after: dict[str, Any]) -> int:
    """Print each figure that differs; 1 if there is one."""
    changed = [
        f"{name}.{key}: {before[name].get(key)} -> {value}"
        for name in after.keys() & before.keys()
        for key, value in after[name].items()
        if before[name].get(key) != value
    ]
    print("\n".join(sorted(changed)) or f"{len(after)} rows, every bit the same")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
