"""Latent features and max-cut: quality and CPU seconds, this library and its rivals.

Every run is in a process of its own with one thread. Binary factorisations X = Z W without an
intercept are judged by the root mean square of X - Z W, which the benchmark computes, at each K.
Rivals with random starts repeat them and keep their best; they have as many CPU seconds at each K
as this library took there, at least 4. The rivals are the benchmark's own code, in
judges/binary_factors.py.
"""

from __future__ import annotations

import lzma
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp
from harness.bench import Bench
from harness.dense_sets import letters, mnist
from harness.entrant import Entrant
from harness.growth import exponent
from harness.problem import Split
from harness.runner import Case
from harness.table import Cell, Figures, Table
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from sublearn.fitting.progress import Progress
from sublearn.latent import LatentFeatureLasso
from sublearn.latent.codes import best_codes
from sublearn.latent.feature_count import largest_fall
from sublearn.latent.feature_learning import FeatureLearner

LEAST = 4.0  # CPU seconds of a rival
LIMIT, CUT_LIMIT = 600.0, 120.0
SIZES = (4, 10, 20, 35, 50)
RIVALS = ("bp_means", "gibbs", "variational", "exhaustive")
NOTHING = {"nothing": np.zeros(1)}

#: n, d, K, noise and pixels of a feature in the recipes of table 1 of the paper.
RECIPES: Mapping[str, tuple[int, int, int, float, int]] = {
    "Syn0": (100, 196, 4, 0.0, 8),
    "Syn1": (1000, 1000, 35, 0.01, 1000),
    "Syn2": (1000, 900, 14, 0.1, 49),
    "Syn3": (1000, 900, 35, 0.1, 36),
}
REAL = ("lfl_tabletop", "lfl_yale", "lfl_mnist1000", "lfl_yeast", "lfl_blocks")


# --- data --------------------------------------------------------------------------------------


def recipe(n: int, d: int, k: int, noise: float, n_pixels: int, seed: int) -> Split:
    """Features that are square patches of normal numbers in an image, half of them in each row."""
    rng = np.random.default_rng(seed)
    W = np.zeros((k, d))
    height, side = int(np.ceil(np.sqrt(n_pixels))), int(np.sqrt(d))
    for feature in W:
        if n_pixels == d:
            feature[:] = rng.normal(size=d)
            continue
        image = np.zeros((side, side))
        top, left = rng.integers(0, side - height + 1, size=2)
        image[top : top + height, left : left + height] = rng.normal(size=(height, height))
        feature[: side * side] = image.ravel()
    Z = (rng.random((n, k)) < 0.5).astype(np.int8)
    X = Z @ W + noise * rng.normal(size=(n, d))
    return Split({"X": X}, NOTHING, {"X": X, "Z": Z, "W": W})


def real(directory: Path, name: str) -> Split:
    """One of the authors' matrices."""
    (path,) = (directory / name).glob("*.mat")
    content = scipy.io.loadmat(path)
    X = np.asarray(content["data" if "data" in content else "pics"], dtype=np.float64)
    return Split({"X": X}, NOTHING, {"X": X})


def random_graph(n: int, n_edges: int, seed: int) -> sp.csr_matrix:
    """Edges of weight 1 between random pairs."""
    ends = np.random.default_rng(seed).integers(0, n, size=(n_edges, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    half = sp.coo_matrix((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n)).tocsr()
    return ((half + half.T) > 0).astype(np.float64).tocsr()


def torus(height: int, width: int, seed: int) -> sp.csr_matrix:
    """A grid whose borders meet, weights -1 and 1."""
    at = np.arange(height * width).reshape(height, width)
    ends = np.vstack([np.c_[at.ravel(), np.roll(at, 1, axis).ravel()] for axis in (0, 1)])
    weights = np.random.default_rng(seed).choice([-1.0, 1.0], size=len(ends))
    half = sp.coo_matrix((weights, (ends[:, 0], ends[:, 1])), shape=(at.size, at.size)).tocsr()
    return (half + half.T).tocsr()


GRAPHS: Mapping[str, Callable[[int], sp.csr_matrix]] = {
    "random, 800 vertices, 19,000 edges": lambda seed: random_graph(800, 19176, seed),
    "random, 7,000 vertices, 17,000 edges": lambda seed: random_graph(7000, 17148, seed),
    "torus, 20,000 vertices, weights -1 and 1": lambda seed: torus(100, 200, seed),
}


# --- judges ------------------------------------------------------------------------------------


def judge_features(truth: dict[str, Any], answer: dict[str, Any]) -> dict[str, float]:
    """RMSE to the data and, if there is a truth, to it; wrong bits of the best matches."""
    fit = answer["b"] + answer["Z"] @ answer["W"]
    out = {"rmse": float(np.sqrt(np.square(truth["X"] - fit).mean()))}
    if "Z" in truth:
        clean = truth["Z"] @ truth["W"]
        out["rmse_to_truth"] = float(np.sqrt(np.square(clean - fit).mean()))
        out["hamming"] = hamming(np.asarray(answer["Z"], float), np.asarray(truth["Z"], float))
    return out


def hamming(Z: np.ndarray, truth: np.ndarray) -> float:
    """Share of wrong bits, each true column matched with the closest found one."""
    agreements = Z.T @ truth
    distances = Z.sum(axis=0)[:, None] + truth.sum(axis=0)[None, :] - 2 * agreements
    return float(distances.min(axis=0).sum() / truth.size)


def judge_cut(truth: dict[str, Any], answer: dict[str, Any]) -> dict[str, float]:
    """Value of the relaxation at the vectors, the cut, and their distance to our bound."""
    W, V = truth["graph"], answer["vectors"]
    y = 2.0 * np.asarray(answer["side"], dtype=float) - 1.0
    relaxed = 0.25 * float(W.sum() - (V * (W @ V)).sum())
    cut = 0.25 * float(W.sum() - y @ (W @ y))
    gap = (float(answer["bound"]) - relaxed) / relaxed  # infinite without a bound
    return {"relaxed": relaxed, "cut": cut, **({"gap": gap} if np.isfinite(gap) else {})}


# --- tables -------------------------------------------------------------------------------------


def ours(n_components: Any, **settings: Any) -> Entrant:
    settings = {"n_components": n_components, **settings}
    return Entrant("sublearn", "latent/sublearn_features.py", settings)


def rival(method: str, n_components: int, seconds: float) -> Entrant:
    settings = {"method": method, "n_components": n_components, "seconds": seconds}
    return Entrant(method, "latent/judge_binary.py", settings)


def bound(method: str, n_components: int) -> Entrant:
    settings = {"method": method, "n_components": n_components}
    return Entrant(method, "latent/bound_factors.py", settings)


def synthetic(bench: Bench) -> Figures:
    """The paper's recipes at the true K, given and found, and the rivals."""
    rows: list[list[Cell]] = []
    for name, (n, d, k, noise, n_pixels) in bench.some(RECIPES.items()):
        case = Case(name, partial(recipe, n, d, k, noise, n_pixels, bench.seed), judge_features)
        floor = noise * np.sqrt((k + 1) / n)
        seconds = bench.size(LEAST, 0.5)
        entrants = {
            "sublearn": ours(k),
            "sublearn, K by the gap": ours("gap"),
            "sublearn, no intercept": ours(k, fit_intercept=False),
            **{method: rival(method, k, seconds) for method in RIVALS},
        }
        for title, entrant in bench.some(entrants.items(), 4):
            found = bench.run(case, entrant, bench.limit(LIMIT, 20.0))
            errors = [found.figure(name) for name in ("hamming", "rmse", "rmse_to_truth")]
            rows.append([name, title, *errors, floor, found.figure("fit_cpu_seconds")])
    columns = {"data": "", "method": "", "Hamming error": ".4f<", "RMSE to data": ".4f<",
               "RMSE to truth": ".5f<", "floor": ".5f", "CPU s": ".2f<"}  # fmt: skip
    return Figures(columns, rows)


def factorisations(name: str) -> Callable[[Bench], Figures]:
    """RMSE at each K of one real matrix, all methods."""

    def measure(bench: Bench) -> Figures:
        case = Case(name, lambda: real(bench.data, name), judge_features)
        X, sizes = case.split.train["X"], bench.some(SIZES)
        took = dict.fromkeys(sizes, 0.0)  # CPU seconds of ours, which rivals get as well
        least = bench.size(LEAST, 0.5)
        methods: dict[str, Callable[[int], Entrant]] = {
            "sublearn": lambda k: ours(k, fit_intercept=False),
            **{
                method: (lambda k, method=method: rival(method, k, max(least, took[k])))
                for method in RIVALS
            },
            "PCA (bound)": lambda k: bound("pca", k),
        }
        if (X >= 0).all():
            methods["NMF (not binary)"] = lambda k: bound("nmf", k)
        rows: list[list[Cell]] = []
        for title, entrant_of in bench.some(methods.items(), 2):
            errors, seconds = {}, dict.fromkeys(sizes, 0.0)
            for k in sizes:
                if k <= min(X.shape) and (title != "exhaustive" or k <= 10):
                    found = bench.run(case, entrant_of(k), bench.limit(LIMIT, 20.0))
                    errors[k] = found.figure("rmse")
                    seconds[k] = found.figure("fit_cpu_seconds") or 0.0
            took = seconds if title == "sublearn" else took
            rows.append([title, *(errors.get(k) for k in sizes), sum(seconds.values())])
        columns = {"method": ""} | {f"K = {k}": ".5f<" for k in sizes} | {"CPU s": ".1f<"}
        return Figures(columns, rows)

    return measure


# --- what each stage does ------------------------------------------------------------------------

#: Sets of the ablation and their features: the true number of the recipes, else one in the middle.
STAGED = {"Syn0": 4, "Syn1": 35, "Syn2": 14, "Syn3": 35, "lfl_tabletop": 4, "lfl_yale": 20,
          "lfl_yeast": 20, "lfl_blocks": 4}  # fmt: skip
STAGED_ROWS = 300
N_RANDOM = 5


def learner_of(X: np.ndarray, seed: int, **params: Any) -> FeatureLearner:
    """The stages of a fit without an intercept, one by one."""
    model = LatentFeatureLasso(fit_intercept=False, random_state=seed, **params)
    settings = model._settings()
    return FeatureLearner(np.array(X, dtype=np.float64), settings, Progress(n_done=0))


def stages(X: np.ndarray, k: int, seed: int) -> dict[str, tuple[np.ndarray, np.ndarray, float]]:
    """Codes, features and CPU seconds at the end of each stage, and of a fit without the first.

    Seconds are those of all stages up to this one.
    """
    found: dict[str, tuple[np.ndarray, np.ndarray, float]] = {}
    for offers, name in ((False, "algorithm 1"), (True, "with span atoms")):
        began = time.process_time()
        rough = learner_of(X, seed, span_atoms=offers, refine=False)
        offered = rough.span_atoms(k)
        fit = rough.lasso(offered, certify=False)
        found[f"{name}: convex stage alone"] = fit.Z, fit.W, time.process_time() - began
        rounded = rough.factorise(fit, offered, k)
        found[f"{name}: rounded"] = rounded.Z, rounded.W, time.process_time() - began
        began_refined = time.process_time()
        fine = learner_of(X, seed, span_atoms=offers).factorise(fit, offered, k)
        spent = time.process_time() - began_refined + found[f"{name}: convex stage alone"][2]
        found[f"{name}: refined"] = fine.Z, fine.W, spent
    began = time.process_time()
    factoriser, rng = learner_of(X, seed).factoriser, np.random.default_rng(seed)
    starts = [rng.integers(0, 2, size=(len(X), k)).astype(np.int8) for _ in range(N_RANDOM)]
    models = [factoriser.refined(factoriser.fitted(Z)) for Z in starts]
    best = min(models, key=lambda model: model.error)
    title = f"no convex stage: best of {N_RANDOM} random codes, refined"
    found[title] = best.Z, best.W, time.process_time() - began
    return found


def ablation(bench: Bench) -> Figures:
    """What the convex stage, the rounding and the refinement do."""
    rows: list[list[Cell]] = []
    for name in bench.cases(STAGED):
        k, split = STAGED[name], staged(bench, name)
        X = split.train["X"][:STAGED_ROWS]
        truth = {key: value[:STAGED_ROWS] if key != "W" else value
                 for key, value in split.truth.items()}  # fmt: skip
        with threadpool_limits(1):
            found = bench.once({"data": name}, partial(shown, X, k, bench.seed, truth))
        rows += [[name, len(X), *row] for row in found]
        bench.say(f"{name}: {len(found)} stages")
    columns = {"data": "", "rows": "d", "stage": "", "features": "d", "Hamming error": ".4f<",
               "RMSE to data": ".4f<", "RMSE to truth": ".4f<", "CPU s": ".2f<"}  # fmt: skip
    return Figures(columns, rows)


def staged(bench: Bench, name: str) -> Split:
    """A recipe or one of the authors' matrices."""
    if name not in RECIPES:
        return real(bench.data, name)
    n, d, k, noise, n_pixels = RECIPES[name]
    return recipe(n, d, k, noise, n_pixels, bench.seed)


def shown(X: np.ndarray, k: int, seed: int, truth: Mapping[str, Any]) -> list[list[Cell]]:
    """A row for each stage."""
    rows: list[list[Cell]] = []
    rows_of = learner_of(X, seed).X  # with more columns than rows a factor with the same distances
    back = np.linalg.lstsq(rows_of, X, rcond=None)[0] if rows_of.shape != X.shape else None
    for stage, (Z, W, seconds) in stages(X, k, seed).items():
        W = W if back is None else W @ back
        figures = judge_features(dict(truth), {"Z": Z, "W": W, "b": np.zeros(X.shape[1])})
        names = ("hamming", "rmse", "rmse_to_truth")
        rows.append([stage, Z.shape[1], *(figures.get(name) for name in names), seconds])
    return rows


# --- how many features ---------------------------------------------------------------------------

#: Sets whose numbers of features are counted on bootstrap samples, and rows of each.
BOOTSTRAP = {
    "lfl_yale": 165,
    "digits": 400,
    "cifar10_5k": 300,
    "lfl_tabletop": 100,
    "lfl_blocks": 300,
}
N_SAMPLES = 6


def bootstrap(bench: Bench) -> Figures:
    """How many features "bic" and "gap" find in a matrix and in bootstrap samples of its rows."""
    rows: list[list[Cell]] = []
    for name, n_rows in bench.some(BOOTSTRAP.items()):
        X, rng = pictures(bench.data, name)[:n_rows], np.random.default_rng(bench.seed + 1)
        found: dict[str, list[int]] = {"bic": [], "gap": []}
        began = time.process_time()
        for k in range(bench.size(N_SAMPLES, 2)):
            own = np.arange(len(X)) if k == 0 else rng.integers(len(X), size=len(X))
            model = LatentFeatureLasso("bic", max_iter=10, n_exchanges=0, violation_tol=10.0)
            model.set_params(random_state=bench.seed).fit(X[own])
            found["bic"].append(model.n_components_)
            found["gap"].append(largest_fall(model.gains_))
        seconds = (time.process_time() - began) / len(found["bic"])
        for how, sizes in found.items():
            spread = float(np.std(sizes) / np.mean(sizes))
            rows.append([name, how, ", ".join(map(str, sizes)), spread, seconds])
    columns = {"data": "", "chosen by": "", "features": "", "deviation / mean": ".2f<"}
    return Figures(columns | {"CPU s of a fit": ".2f"}, rows)


#: Sets that were not looked at while "bic" was made, and their rows.
FRESH = {"mnist": 200, "ocr_letters": 200, "lfl_mnist1000": 200, "lfl_yeast": 200,
         "faces, half of the rows and pixels": 82}  # fmt: skip
#: Features, noise and share of ones of generated sets with 300 rows and 100 columns.
GENERATED = [(k, noise, share) for k in (3, 8, 15) for noise in (0.1, 0.5) for share in (0.5, 0.2)]
N_FRESH = 3


def fresh(bench: Bench) -> Figures:
    """The numbers that "bic" and "gap" find on sets that were not tuned on."""
    rows: list[list[Cell]] = []
    for name, n_rows in bench.some(FRESH.items()):
        X = fresh_rows(bench.data, name, 2 * n_rows)
        for how, row in bench.once({"data": name}, partial(judged, X, bench)).items():
            rows.append([name, how, *row])
        bench.say(f"{name}: {rows[-2:]}")
    for k, noise, share in bench.some(GENERATED):
        key = {"k": k, "noise": noise, "share": share}
        row = bench.once(key, partial(counted, bench, k, noise, share))
        rows.append([f"{k} dense features, noise {noise}, {share} of the rows", *row])
    columns = {"data": "", "chosen by": "", "features": "", "deviation / mean": ".2f<"}
    return Figures(columns | {"held-out RMSE / best": ".3f<"}, rows)


def counted(bench: Bench, k: int, noise: float, share: float) -> list[Cell]:
    """The numbers found in sets with k features, some drawings of them."""
    found = []
    for draw in range(bench.size(N_FRESH, 1)):
        rng = np.random.default_rng([bench.seed, k, draw])
        Z = rng.random((300, k)) < share
        X = Z @ rng.normal(size=(k, 100)) + noise * rng.normal(size=(300, 100))
        found.append(quickly("bic", bench.seed).fit(X).n_components_)
    right = sum(size == k for size in found)
    return [f"bic, right in {right} of {len(found)}", ", ".join(map(str, found)), None, None]


def judged(X: np.ndarray, bench: Bench) -> dict[str, list[Cell]]:
    """Numbers in the first half of the rows and its bootstrap samples; error in the second half.

    Of held-out rows half of the columns give the codes and the other half is predicted. The best
    is that of sizes 1, 2, 4, 8, 16.
    """
    half, rng = len(X) // 2, np.random.default_rng(bench.seed + 1)
    train, test = X[:half], X[half:]
    is_seen = np.random.default_rng(bench.seed).random(X.shape[1]) < 0.5
    found: dict[str, list[int]] = {"bic": [], "gap": []}
    for draw in range(bench.size(N_FRESH, 2)):
        own = np.arange(half) if draw == 0 else rng.integers(half, size=half)
        model = quickly("bic", bench.seed).fit(train[own])
        found["bic"].append(model.n_components_)
        found["gap"].append(largest_fall(model.gains_))
    sizes = {2**i for i in range(bench.size(5, 2))} | {sizes[0] for sizes in found.values()}
    errors = {k: held_out(quickly(k, bench.seed).fit(train), test, is_seen) for k in sizes}
    best = min(errors.values())
    return {
        how: [", ".join(map(str, sizes)), float(np.std(sizes) / np.mean(sizes)),
              errors[sizes[0]] / best]
        for how, sizes in found.items()
    }  # fmt: skip


def held_out(model: LatentFeatureLasso, X: np.ndarray, is_seen: np.ndarray) -> float:
    """RMSE in columns that were not seen, of codes from those that were."""
    W, b = model.components_, model.intercept_
    Z = best_codes((X[:, is_seen] - b[is_seen]) @ W[:, is_seen].T, W[:, is_seen] @ W[:, is_seen].T)
    left = X[:, ~is_seen] - b[~is_seen] - Z @ W[:, ~is_seen]
    return float(np.sqrt(np.square(left).mean()))


def quickly(size: int | str, seed: int) -> LatentFeatureLasso:
    """A fit whose convex stage and exchanges are short."""
    return LatentFeatureLasso(
        size, max_iter=5, n_exchanges=0, violation_tol=10.0, random_state=seed
    )


def fresh_rows(directory: Path, name: str, n_rows: int) -> np.ndarray:
    """Rows as float64, constant columns left out."""
    if name.startswith("faces"):
        X = real(directory, "lfl_yale").train["X"][:, ::2]
    elif name in ("mnist", "ocr_letters"):
        X = {"mnist": mnist, "ocr_letters": letters}[name](directory).X
    else:
        X = real(directory, name).train["X"]
    X = np.asarray(X[np.random.default_rng(0).permutation(len(X))[:n_rows]], dtype=np.float64)
    return X[:, X.std(axis=0) > 0]


def pictures(directory: Path, name: str) -> np.ndarray:
    """Rows of pixels; scenes in grey and at half their size."""
    if name == "digits":
        return np.asarray(load_digits().data)
    if name != "cifar10_5k":
        return np.asarray(real(directory, name).train["X"])
    with lzma.open(directory / name / "train_batch.bin.xz") as file:
        pixels = np.frombuffer(file.read(), np.uint8).reshape(-1, 3073)[:, 1:]
    halved = pixels.reshape(-1, 3, 16, 2, 16, 2).mean(axis=(1, 3, 5))
    return halved.reshape(len(pixels), -1)


def max_cut(bench: Bench) -> Figures:
    """The semidefinite relaxation of max-cut, with SCS and Clarabel where 800 vertices let them."""
    rows: list[list[Cell]] = []
    for title, make in bench.some(GRAPHS.items()):
        graph = make(bench.seed)
        case = Case(title, partial(Split, {"graph": graph}, NOTHING, {"graph": graph}), judge_cut)
        entrants = CUTTERS if graph.shape[0] == 800 else CUTTERS[:1]
        found = bench.compete(case, bench.chosen(entrants), bench.limit(CUT_LIMIT, 5.0))
        names = ("relaxed", "gap", "cut", "fit_cpu_seconds", "/fit_cpu_seconds")
        rows += [[title, *outcome.row(found[0], *names)] for outcome in found]
    columns = {"graph": "", "method": "", "SDP value": ".2f", "bound above it": ".1e",
               "cut": ".0f>", "CPU s": ".3g<", "times ours": ".0f"}  # fmt: skip
    return Figures(columns, rows)


CUTTERS = [
    Entrant("sublearn", "latent/sublearn_max_cut.py", {"tol": 1e-5, "max_iter": 5000}),
    *(
        Entrant(
            f"cvxpy, {solver}", "latent/cvxpy_max_cut.py", {"solver": solver, "options": options}
        )
        for solver, options in (("SCS", {"eps": 1e-4}), ("CLARABEL", {}))
    ),
]


def growth(bench: Bench) -> Figures:
    """Our seconds while one of N, D and K doubles."""
    base = {"N": 500, "D": 200, "K": 8}
    axes = {"N": (500, 1000, 2000, 4000), "D": (200, 400, 800, 1600), "K": (4, 8, 16, 32)}
    rows: list[list[Cell]] = []
    for axis, every in bench.some(axes.items()):
        seconds, sizes = [], bench.some(every, 2)
        for size in sizes:
            at = base | {axis: size}
            load = partial(recipe, at["N"], at["D"], at["K"], 0.1, at["D"], bench.seed)
            case = Case(f"{axis}={size}", load, judge_features)
            found = bench.run(case, ours(at["K"]), bench.limit(LIMIT, 20.0))
            seconds.append(found.figure("fit_cpu_seconds"))
        shown = [f"{n:,}: {s or np.nan:.2f}" for n, s in zip(sizes, seconds, strict=True)]
        rows.append([axis, *(shown + [""] * 4)[:4], exponent(sizes, seconds)])
    columns = {"axis": "", "size: CPU s": "", " ": "", "  ": "", "   ": "", "exponent": ".2f<"}
    return Figures(columns, rows)


TABLES = [
    Table(
        "synthetic", "Planted features",
        "Recipes of table 1 of the paper at the true K. The floor is what noise leaves of an "
        "estimate with the true codes.", synthetic,
    ),
    Table(
        "ablation", "What each stage does",
        f"X = Z W without an intercept at the true K, or at one in the middle; {STAGED_ROWS} "
        "rows at most. The convex stage alone has all columns and shrunk features; rounding keeps "
        "the K largest and refits; seconds add up from stage to stage.", ablation,
    ),
    Table(
        "fresh", "The number of features on sets that were not tuned on",
        "Not looked at when the price of a feature was chosen, but for the faces, of "
        "which half of the rows and columns is taken. The first half of the rows, then bootstrap "
        "samples of it; the error is that of the second half, codes from half of the columns, over "
        "the least of K = 1, 2, 4, 8, 16 and these two.", fresh,
    ),
    Table(
        "bootstrap", "The number of features, on bootstrap samples",
        "All rows first, then samples of as many with replacement; ten steps of the convex "
        "problem, no exchanges.", bootstrap,
    ),
    *(
        Table(
            name.removeprefix("lfl_"), f"{name}: RMSE by number of features",
            "X = Z W without an intercept. At each K random rivals have our CPU seconds, at least "
            f"{LEAST:g}.",
            factorisations(name),
        )
        for name in REAL
    ),
    Table(
        "max-cut", "Max-cut",
        "Relaxation to 1e-5; after > the CPU seconds after which a run was stopped.", max_cut,
    ),
    Table(
        "growth", "Growth",
        "Dense features, N = 500, D = 200, K = 8 but for the axis that doubles.", growth,
    ),
]  # fmt: skip
