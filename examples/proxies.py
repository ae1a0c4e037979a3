"""Learn a metric with one proxy for each identity: pictures of the same one come together.

    pip install '.[plot,torch]'
    python examples/proxies.py proxies.png

Generated pictures: 64 numbers, of which few say who it is, bent by a network that no one knows.
A small PyTorch network learns vectors on the sphere by proxy-NCA: softmax of -|f(x) - proxy|^2 over
all proxies. `SearchedOutput` looks only at the proxies that are near. The measure: of identities
that training has never seen, how often is the nearest other picture of the same one?
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from pictures import BLUES, ORANGE, read_options

try:
    import torch
except ImportError:
    torch = None

RADIUS = 3.0  # of the sphere: the larger, the sharper the softmax


def main():
    options = read_options(__doc__, "proxies.png", "500 identities instead of 4,000")
    if torch is None:
        print("PyTorch is missing: pip install 'sublearn[torch]'")
        return 0
    torch.manual_seed(0)
    torch.set_num_threads(1)
    n_people = 500 if options.small else 4000
    X, y, new_X, new_y = pictures(n_people)
    before = found(new_X, new_y)
    body = torch.nn.Sequential(
        torch.nn.Linear(64, 128), torch.nn.Tanh(), torch.nn.Linear(128, 32), torch.nn.Flatten()
    )
    course = train(body, X, y, n_people, new_X, new_y)
    print(f"nearest picture is of the same one: {before:.1%} before, {course[-1]:.1%} after")
    with torch.no_grad():
        vectors = torch.nn.functional.normalize(body(new_X)).numpy()
    draw(course, before, new_X.numpy(), vectors, new_y, options.picture)
    return 0


def pictures(n_people, n_new=200, n_each=8):
    """Pictures of people to learn from, and of others."""
    rng = np.random.default_rng(0)
    bend = rng.normal(size=(72, 64)) / 4

    def take(count):
        who = np.repeat(np.arange(count), n_each)
        person = rng.normal(size=(count, 8))[who]
        circumstances = 1.5 * rng.normal(size=(len(who), 64))
        return torch.from_numpy(
            np.tanh(np.hstack([3 * person, circumstances]) @ bend).astype("f4")
        ), who

    return *take(n_people), *take(n_new)


def train(body, X, y, n_people, new_X, new_y, n_epochs=8, batch=128):
    from sublearn.embed import LabelSearch
    from sublearn.embed.torch_layer import SearchedOutput

    search = LabelSearch(n_warm=2)
    proxies = SearchedOutput(32, n_people, loss="nca", search=search, random_state=0)
    with torch.no_grad():
        proxies.weight.copy_(on_sphere(torch.randn(n_people, 32)))
    proxies.refresh()
    optimizers = [
        torch.optim.Adam(body.parameters(), lr=3e-3),
        torch.optim.SGD(proxies.parameters(), lr=10.0),
    ]
    targets, course = torch.from_numpy(y), []
    for _ in range(n_epochs):
        for part in torch.randperm(len(X)).split(batch):
            vectors = on_sphere(body(X[part]))
            for optimizer in optimizers:
                optimizer.zero_grad()
            proxies(vectors, targets[part]).backward()
            for optimizer in optimizers:
                optimizer.step()
            to_sphere(proxies)
        with torch.no_grad():
            course.append(found(body(new_X), new_y))
    return course


def on_sphere(rows):
    return RADIUS * torch.nn.functional.normalize(rows)


def to_sphere(proxies):
    """Proxies that have moved go back to the sphere."""
    with torch.no_grad():
        moved = proxies.weight.grad.coalesce().indices()[0]
        proxies.weight[moved] = on_sphere(proxies.weight[moved])


def found(X, who):
    """Share of pictures whose nearest other one is of the same person."""
    vectors = torch.nn.functional.normalize(X)
    cosines = vectors @ vectors.T
    cosines.fill_diagonal_(-2)
    return float(np.mean(who[cosines.argmax(dim=1).numpy()] == who))


def draw(course, before, X, vectors, who, picture):
    figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
    axes[0].plot(
        range(len(course) + 1), [100 * before, *(100 * c for c in course)], "o-", c=BLUES[1]
    )
    axes[0].set_xlabel("epochs")
    axes[0].set_ylabel("nearest picture is of the same one, %")
    axes[0].set_title("identities that training has never seen")
    for ax, rows, title in ((axes[1], X, "pictures as they are"), (axes[2], vectors, "vectors")):
        some = who < 12
        shown = rows[some] - rows[some].mean(axis=0)
        plane = shown @ np.linalg.svd(shown, full_matrices=False)[2][:2].T
        ax.scatter(*plane.T, c=who[some], cmap="tab20", s=20)
        ax.set_title(f"{title}, twelve new people")
        ax.set_xticks([])
        ax.set_yticks([])
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].axhline(100 * before, color=ORANGE, lw=1, ls=":")
    figure.savefig(picture, dpi=150)
    print(f"wrote {picture}")


if __name__ == "__main__":
    sys.exit(main())
