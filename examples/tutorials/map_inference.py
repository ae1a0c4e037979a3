# %% [markdown]
# # MAP inference, for people who know UAI files
#
# You have a Markov network in a `.uai` file and want its most probable assignment. In this tutorial
# you solve one, watch the score and its upper bound meet, and see what the gap between them tells.
#
# We make a file first: a noisy picture of stripes, whose neighbouring pixels like to agree.

# %%
from pathlib import Path

import numpy as np

from sublearn.graph import FactorGraph, potts, write_uai

rng = np.random.default_rng(0)
height, width, n_labels = 40, 60, 6
i, j = np.mgrid[:height, :width]
truth = ((i + 2 * j) // 25) % n_labels
noise = 1.2 * rng.normal(size=(height, width, n_labels))
graph = FactorGraph.grid(np.eye(n_labels)[truth] + noise, potts(n_labels, 0.8))
write_uai(graph, "stripes.uai")
print(Path("stripes.uai").read_text()[:60])

# %% [markdown]
# ## Solve it
#
# `read_graph` takes files of the UAI competitions, and of weighted constraint problems. `solve_map`
# needs no choice of an algorithm: several take turns.

# %%
from sublearn.graph import read_graph, solve_map

graph = read_graph("stripes.uai")
result = solve_map(graph, time_limit=5, random_state=0)
print(f"score {result.score:.4f}, no assignment exceeds {result.bound:.4f}")
print(f"gap {result.gap:.1e}; found by {result.found_by}, bounded by {result.bounded_by}")

# %% [markdown]
# ## Read the picture
#
# The blue line is the best assignment so far. The orange line is an upper bound that holds for
# **every** assignment. Where they meet, the search is over, and the result is proved to be the
# best.

# %%
result.plot()

# %% [markdown]
# A gap that stays open is honest as well: it says how much better an assignment could be at most.
# With `tol` you say what gap is small enough, with `time_limit` when to stop.
#
# ## Look at the assignment
#
# On the left each pixel has the label that it likes best by itself, on the right the MAP
# assignment.

# %%
import matplotlib.pyplot as plt

from sublearn.graph import plot_map

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
alone = (np.eye(n_labels)[truth] + noise).argmax(axis=2).ravel()
for ax, labels in ((left, alone), (right, result.assignment)):
    plot_map((height, width), labels, ax=ax)
    ax.set_title(f"{np.mean(labels == truth.ravel()):.0%} of the pixels are right")

# %% [markdown]
# ## Fix what you know
#
# Evidence is a dictionary. The rest is solved anew, from the last assignment on.

# %%
known = graph.condition({0: 3, 1: 3})
again = solve_map(known, time_limit=5, init=None, random_state=0)
print(f"score {again.score:.4f} with two pixels fixed, {result.score:.4f} without")

# %% [markdown]
# ## What to try on your data
#
# - On the command line: `sublearn map network.uai --evidence network.uai.evid --time-limit 60`.
# - Large tables that repeat: make them once with `potts`, `truncated_linear`, `sparse_table` or
#   `low_rank`. A million factors may share one.
# - More than one answer: `n_best_assignments` gives the n best, `max_marginals` says how sure each
#   variable is; see [MAP inference](../methods/map_inference.md).
# - If the bound stands still, the problem is hard for all solvers. toulbar2 may prove more, given
#   hours.
