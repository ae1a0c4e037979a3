"""Side chains of proteins: which rotamer does each take in the structure of least energy?

    pip install '.[plot]'
    python examples/map_proteins.py proteins.png

Problems of the UAI competitions (SUBLEARN_DATA/uai_protein_small and uai_protein_sidechain, else
../shared/data): a variable for each side chain, up to 81 rotamers, a factor for each two of them
that are near. Chains that choose alone collide, so that many take another rotamer in the best
joint choice. A gap of zero proves that there is no better structure in the model.
"""

import sys
import time

import numpy as np
from map_pictures import BLUE, DATA, GREY, best_alone, draw_trace, show_result, two_axes
from pictures import read_options

from sublearn.datasets import fetch_uai
from sublearn.errors import DownloadError
from sublearn.graph import read_uai, solve_map

SMALL = ["1etl", "2erl", "1mjc", "1ctj"]
LARGE = ["1i24", "1kwh"]


def main():
    options = read_options(__doc__, "proteins.png", "the four small proteins only")
    names = SMALL if options.small else SMALL + LARGE
    changed, result = [], None
    for name in names:
        graph = read_graph(name)
        start = time.perf_counter()
        result = solve_map(graph, time_limit=5.0, random_state=0)
        show_result(f"{name}, {graph.n_variables} side chains", result, time.perf_counter() - start)
        changed.append(np.mean(best_alone(graph) != result.assignment))
    draw(names, changed, result, options.picture)
    print(f"wrote {options.picture}")


def read_graph(name):
    """An instance from SUBLEARN_DATA, or one that was downloaded."""
    folder = "uai_protein_small" if name in SMALL else "uai_protein_sidechain"
    path = DATA / folder / f"pdb{name}.uai.xz"
    if path.exists():
        return read_uai(path)
    try:
        return fetch_uai(f"pdb{name}", download_if_missing=False).graph
    except DownloadError:
        sys.exit(
            f"no file {path}: set SUBLEARN_DATA to where the data is, or download it in Python by "
            f'sublearn.datasets.fetch_uai("pdb{name}")'
        )


def draw(names, changed, result, path):
    figure, (left, right) = two_axes()
    share = 100 * np.array(changed)
    left.barh(names, 100, color=GREY)
    left.barh(names, share, color=BLUE)
    left.invert_yaxis()
    left.set(xlabel="percent of the side chains", xlim=(0, 100))
    left.set_title("Not the rotamer that is best alone", loc="left")
    draw_trace(right, result, names[-1])
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
