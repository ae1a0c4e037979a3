"""Mixed regression: samples that each method needs, prices unmixed, growth.

Recipes are those of table 4.2 of the thesis. A method succeeds if the root mean square error of its
parameters is below 1e-3 (each true component against the nearest found one). It needs N samples if
that is the first size of a ladder with factor 1.4 at which 2 of 2 data sets succeed; rivals get
twice the samples that we need, and as many as we need if they succeed with those. Every rival is
told the number of components and has 100 restarts; those of soft EM and of alternating minimisation
end after 6 CPU seconds, and the number made is shown. Ours is told the
number too, except for the real data.
"""

from __future__ import annotations

import io
import lzma
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from harness.bench import Bench
from harness.growth import fit_exponent
from harness.table import Cell, Chart, Figures, Series, Table
from harness.timing import cpu_timed
from judges.mixtures import (
    alternating_minimisation,
    hard_em,
    random_starts,
    soft_em,
    tensor_starts,
)

from sublearn.latent import Kernel, MixLassoRegressor, MixtureSearch

BUDGET = 6.0
N_RESTARTS = 100
N_SETS = 2
SUCCESS = 1e-3
COMPANIES = ("IBM", "MSFT", "NVDA", "AAPL")


@dataclass(frozen=True)
class Recipe:
    """A row of table 4.2 with the first size that is tried."""

    name: str
    n_features: int
    n_components: int
    inputs: str  # "normal" or "uniform"
    is_general: bool
    noise: float
    first: int

    def draw(self, n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Inputs, targets and true weights."""
        rng = np.random.default_rng([seed, n, int(self.name[3:])])
        shape = (n, self.n_features)
        X = rng.normal(size=shape) if self.inputs == "normal" else rng.uniform(-1, 1, size=shape)
        W = rng.normal(size=(self.n_components, self.n_features))
        Z = np.eye(self.n_components)[rng.integers(self.n_components, size=n)]
        if self.is_general:
            Z = (rng.random((n, self.n_components)) < 0.5).astype(float)
        return X, (Z * (X @ W.T)).sum(axis=1) + self.noise * rng.normal(size=n), W


def recipes() -> list[Recipe]:
    """Syn1 to Syn12."""
    shapes = ((100, 3, False, 850), (20, 10, False, 1400), (20, 3, True, 400))
    settings = [(noise, inputs) for noise in (0.0, 0.1) for inputs in ("normal", "uniform")]
    return [
        Recipe(f"Syn{3 * i + j + 1}", D, K, inputs, is_general, noise, first)
        for i, (noise, inputs) in enumerate(settings)
        for j, (D, K, is_general, first) in enumerate(shapes)
    ]


def parameter_error(found: np.ndarray, W: np.ndarray) -> float:
    """As in the paper: each true component against the nearest found one."""
    return float(np.sqrt(((found[:, None] - W[None]) ** 2).sum(axis=2).min(axis=0).sum() / W.size))


def ours(recipe: Recipe, X: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, str]:
    """MixLassoRegressor as a user would call it."""
    model = MixLassoRegressor(
        recipe.n_components, mixture="generalised" if recipe.is_general else "standard",
        fit_intercept=False, random_state=seed,
    )  # fmt: skip
    return model.fit(X, y).coef_, f"certificate {model.certificate_:.2f}"


def rivals(recipe: Recipe) -> dict[str, Callable[..., tuple[np.ndarray, str]]]:
    """Those that can be applied."""
    size = (recipe.n_components, recipe.n_features)

    def em(recipe: Recipe, X: Any, y: Any, seed: int) -> tuple[np.ndarray, str]:
        found, _, n = hard_em(
            X, y, random_starts(*size, N_RESTARTS, seed), is_general=recipe.is_general
        )
        return found, f"{n} restarts"

    def soft(recipe: Recipe, X: Any, y: Any, seed: int) -> tuple[np.ndarray, str]:
        found, _, n = soft_em(X, y, random_starts(*size, N_RESTARTS, seed), BUDGET)
        return found, f"{n} restarts"

    def alternate(recipe: Recipe, X: Any, y: Any, seed: int) -> tuple[np.ndarray, str]:
        starts = random_starts(*size, N_RESTARTS, seed)
        found, _, n = alternating_minimisation(X, y, starts, BUDGET)
        return found, f"{n} restarts"

    def tensor(recipe: Recipe, X: Any, y: Any, seed: int) -> tuple[np.ndarray, str]:
        found, _, _ = soft_em(X, y, tensor_starts(X, y, recipe.n_components, seed))
        return found, "one start"

    if recipe.is_general:
        return {"EM": em}
    return {"EM": em, "soft EM": soft, "alternating": alternate, "tensor and soft EM": tensor}


# --- samples -----------------------------------------------------------------------------------


def samples(recipe: Recipe) -> Callable[[Bench], Figures]:
    """What each method needs on a noiseless recipe."""

    def measure(bench: Bench) -> Figures:
        rows: list[list[Cell]] = []
        n = recipe.first
        while True:
            found = _tries(bench, recipe, ours, n)
            rows.append(_row("sublearn", n, n, found))
            if _succeeds(found) or n > bench.size(8, 0) * recipe.first:
                break
            n = int(round(1.4 * n, -1))
        for name, rival in bench.some(rivals(recipe).items(), 0):
            for factor in (2, 1):  # if twice our rows are too few, so are fewer
                found = _tries(bench, recipe, rival, factor * n)
                rows.append(_row(name, factor * n, n, found))
                if not _succeeds(found):
                    break
        return Figures(
            {"method": "", "N": "d<", "N / ours": ".1f", "succeed": "", "median error": ".1e",
             "CPU s": ".3g<", "how": ""}, rows,
        )  # fmt: skip

    return measure


Try = tuple[float, float, str]  # error, CPU seconds, remark


def _tries(bench: Bench, recipe: Recipe, method: Any, n: int) -> list[Try]:
    found: list[Try] = []
    for i in bench.some(range(N_SETS)):
        if found and found[-1][0] >= SUCCESS:
            break  # one failure decides
        X, y, W = recipe.draw(n, 100 * bench.seed + i)
        (coef, remark), seconds = cpu_timed(partial(method, recipe, X, y, bench.seed + i))
        found.append((parameter_error(coef, W), seconds, remark))
        bench.say(f"{recipe.name} N={n} {found[-1]}")
    return found


def _succeeds(found: list[Try]) -> bool:
    return sum(error < SUCCESS for error, _, _ in found) >= N_SETS


def _row(name: str, n: int, ours_n: int, found: list[Try]) -> list[Cell]:
    errors, seconds, remarks = zip(*found, strict=True)
    n_good = sum(error < SUCCESS for error in errors)
    return [
        name, n, n / ours_n, f"{n_good} of {len(found)}", float(np.median(errors)),
        float(np.median(seconds)), remarks[-1],
    ]  # fmt: skip


def noisy(recipe: Recipe) -> Callable[[Bench], Figures]:
    """Errors with noise, on one data set of a size at which we succeed without."""

    def measure(bench: Bench) -> Figures:
        n = int(round(1.4 * recipe.first, -1))
        rows: list[list[Cell]] = []
        compared = {"sublearn": ours, **rivals(recipe)}
        for name, method in bench.some(compared.items()):
            X, y, W = recipe.draw(n, bench.seed)
            (coef, remark), seconds = cpu_timed(partial(method, recipe, X, y, bench.seed))
            rows.append([name, n, parameter_error(coef, W), seconds, remark])
            bench.say(f"{recipe.name} {rows[-1]}")
        columns = {"method": "", "N": "d", "error": ".2e<", "CPU s": ".3g<", "how": ""}
        return Figures(columns, rows)

    return measure


# --- curves ------------------------------------------------------------------------------------


def curves(bench: Bench) -> Figures:
    """Syn13 and Syn14: four polynomials of degree 6 in one variable."""
    rows: list[list[Cell]] = []
    for name, noise in bench.some((("Syn13", 0.0), ("Syn14", 0.1))):
        for n in bench.some((100, 200, 400)):
            rng = np.random.default_rng([bench.seed, n])
            x = rng.uniform(-1, 1, size=(n, 1))
            W = rng.uniform(-4, 4, size=(4, 6))
            truth = (x ** np.arange(1, 7) * W[rng.integers(4, size=n)]).sum(axis=1)
            y = truth + noise * rng.normal(size=n)
            fits = (
                ("sublearn", partial(our_curves, x, y, 6, 1.0, 1.0, bench.seed)),
                ("EM", partial(em_curves, x, y, 6, bench.seed)),
            )
            for method, fit in fits:
                values, seconds = cpu_timed(fit)
                rows.append([name, n, method, rms(nearest(values, y) - truth), seconds])
    return Figures(
        {"recipe": "", "N": "d", "method": "", "RMSE to the truth": ".2e<", "CPU s": ".3g<"}, rows
    )


def stocks(bench: Bench) -> Figures:
    """Prices of four companies, as if their names were lost."""
    rows: list[list[Cell]] = []
    for n_weeks in bench.some((100, 200, 300)):
        x, y, _ = mixed_prices(bench.data, n_weeks)
        hard = MixtureSearch(refine="hard")  # which is for that error
        fits = (
            ("sublearn", partial(our_curves, x, y, 8, 2.0, 2.0, bench.seed, hard)),
            ("EM", partial(em_curves, x, y, 8, bench.seed)),
        )
        for method, fit in fits:
            values, seconds = cpu_timed(fit)
            rows.append([n_weeks, method, rms(nearest(values, y) - y), seconds])
    return Figures({"time steps": "d", "method": "", "RMSE": ".3f<", "CPU s": ".3g<"}, rows)


def mixed_prices(data: Path, n_steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Time in [-1, 1], price and company; every fourth trading day, 300 of them in the data."""
    with lzma.open(data / "stockdata" / "stockdata.csv.xz", "rt") as file:
        names = file.readline().replace('"', "").strip().split(",")
        table = np.loadtxt(io.StringIO(file.read()), delimiter=",")
    columns = [names.index(company) for company in COMPANIES]
    prices = _without_splits(table[:, columns])[: 4 * n_steps : 4]
    times = np.linspace(-1, 1, len(prices))
    label = np.tile(np.arange(len(columns)), len(prices))
    return np.repeat(times, len(columns))[:, None], prices.ravel(), label


def _without_splits(prices: np.ndarray) -> np.ndarray:
    """Closing prices as if every share had always been what it is at the end.

    A stock that closes below 0.7 of the day before was split, 2 for 1 or 3 for 2.
    """
    prices = prices.copy()
    for day, company in np.argwhere(prices[1:] < 0.7 * prices[:-1]):
        ratio = prices[day, company] / prices[day + 1, company]
        prices[: day + 1, company] /= np.round(2 * ratio) / 2
    return prices


def companies_curve(x: np.ndarray, y: np.ndarray, values: np.ndarray, n: int, method: str) -> Chart:
    """Mixed prices and the four curves through them."""
    at = np.unique(x[:, 0], return_index=True)[1]
    lines = [
        Series(f"curve {k + 1}", list(map(float, x[at, 0])), list(map(float, curve[at])))
        for k, curve in enumerate(values.T)
    ]
    prices = Series("prices", list(map(float, x[:, 0])), list(map(float, y)))
    name = "".join(c if c.isalnum() else "-" for c in method.lower())
    return Chart(
        f"prices-{n}-{name}", f"{method}, {n} time steps", "time", "price", [prices, *lines],
        kind="points",
    )  # fmt: skip


def our_curves(
    x: np.ndarray, y: np.ndarray, degree: int, gamma: float, coef0: float, seed: int,
    search: MixtureSearch | None = None,
) -> np.ndarray:  # fmt: skip
    """Values of four polynomials at each row."""
    kernel = Kernel("poly", degree=degree, gamma=gamma, coef0=coef0)
    model = MixLassoRegressor(4, kernel=kernel, search=search, random_state=seed)
    return model.fit(x, y).predict_components(x)


def em_curves(x: np.ndarray, y: np.ndarray, degree: int, seed: int) -> np.ndarray:
    """EM from random assignments on an orthogonal basis of the same polynomials."""
    basis = np.polynomial.legendre.legvander(x[:, 0], degree)
    rng = np.random.default_rng(seed)
    starts = []
    for _ in range(N_RESTARTS):
        label = rng.integers(4, size=len(y))
        starts.append([
            np.linalg.lstsq(basis[label == k], y[label == k], rcond=None)[0] for k in range(4)
        ])  # fmt: skip
    W, _, _ = hard_em(basis, y, np.array(starts))
    return basis @ W.T


def nearest(values: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Of each row the value that is closest to its target."""
    return values[np.arange(len(y)), np.abs(values - y[:, None]).argmin(axis=1)]


def rms(values: np.ndarray) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(np.square(values))))


# --- real mixtures, growth ---------------------------------------------------------------------


def real_data(data: Path) -> Iterator[tuple[str, int, np.ndarray, np.ndarray]]:
    """Name, components in the literature, inputs and targets."""
    tone = np.loadtxt(data / "tonedata" / "tonedata.txt", skiprows=1)
    yield "tonedata", 2, tone[:, :1], tone[:, 1]
    no = np.loadtxt(data / "mixtools" / "nodata.csv", skiprows=1, delimiter=",")
    yield "NOdata, equivalence ratio by NO", 2, no[:, :1], no[:, 1]
    co2 = np.genfromtxt(
        data / "mixtools" / "co2data.csv", skip_header=1, delimiter=",", usecols=(0, 1)
    )
    yield "CO2data, emission by GNP", 2, co2[:, :1], co2[:, 1]


def sizes(bench: Bench) -> Figures:
    """How many components are found, over three seeds."""
    rows: list[list[Cell]] = []
    for name, expected, X, y in bench.some(real_data(bench.data)):
        laps = [
            cpu_timed(partial(MixLassoRegressor(random_state=bench.seed + i).fit, X, y))
            for i in bench.some(range(3))
        ]
        models, seconds = zip(*laps, strict=True)
        found = ", ".join(str(model.n_components_) for model in models)
        lines = "; ".join(
            f"{b:.2f} {w:+.2f} x"
            for w, b in zip(models[0].coef_[:, 0], models[0].intercept_, strict=True)
        )
        rows.append([name, expected, found, lines, models[0].outlier_share_, np.mean(seconds)])
    return Figures(
        {"data": "", "in the literature": "d", "found": "", "lines": "", "outliers": ".2f",
         "CPU s": ".3g<"}, rows,
    )  # fmt: skip


def growth(bench: Bench) -> Figures:
    """CPU seconds of fits with the default number of starts."""
    base = {"N": 600, "D": 10, "K": 3}
    axes = {"N": (300, 600, 1200, 2400), "D": (5, 10, 20, 40), "K": (2, 4, 8)}
    rows: list[list[Cell]] = []
    for axis, every in bench.some(axes.items()):
        costs, values = [], bench.some(every, 2)
        for value in values:
            at = {**base, axis: value}
            recipe = Recipe("Syn0", at["D"], at["K"], "normal", False, 0.1, 0)
            X, y, _ = recipe.draw(at["N"], bench.seed)
            model = MixLassoRegressor(at["K"], random_state=bench.seed)
            costs.append(cpu_timed(partial(model.fit, X, y))[1])
        shown = ", ".join(f"{v}: {c:.2f}" for v, c in zip(values, costs, strict=True))
        rows.append([axis, shown, fit_exponent(values, costs)])
    return Figures({"axis": "", "CPU s by size": "", "exponent": ".2f<"}, rows)


def _of_recipe(recipe: Recipe) -> Table:
    kind = "generalised" if recipe.is_general else "standard"
    noise = f"noise of {recipe.noise}" if recipe.noise else "no noise"
    title = (
        f"{recipe.name}: {recipe.n_features} features, {recipe.n_components} components, "
        f"{recipe.inputs} inputs, {kind}, {noise}"
    )
    if recipe.noise:
        note = "Root mean square error of the parameters on one data set."
        return Table(recipe.name, title, note, noisy(recipe))
    note = (
        "Data sets on which the parameters are found, with the rows that we need and with twice as "
        "many."
    )
    return Table(recipe.name, title, note, samples(recipe))


TABLES = [
    Table(
        "sizes", "Number of components found, data of R packages",
        "`n_components=\"auto\"` with three seeds; lines of the first.", sizes,
    ),
    Table(
        "stocks", "Prices of four companies unmixed",
        "IBM, Microsoft, Nvidia and Apple, 2003 on, every fourth trading day, splits undone; "
        "polynomials of degree 8, kernel (2xx' + 2)^8. The RMSE is that of each price to the "
        "nearest curve. EM: the best of 100 restarts.", stocks,
    ),
    Table(
        "curves", "Four polynomials of degree 6 (Syn13 without, Syn14 with noise)",
        "RMSE of the nearest curve's values to the true function values.", curves,
    ),
    Table(
        "growth", "Growth of a fit", "Standard mixtures with noise 0.1; 600 rows, 10 features "
        "and 3 components unless said.", growth,
    ),
    *(_of_recipe(recipe) for recipe in recipes()),
]  # fmt: skip
