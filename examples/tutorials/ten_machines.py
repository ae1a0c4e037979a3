# %% [markdown]
# # One model on ten machines
#
# One machine would train for a day, and you may use ten. In this tutorial you cut a fit into ten
# parts, run each on its own, lose one, and join the rest without a scheduler or a server.
#
# All that the machines share is a folder. Here a temporary folder takes its place, and one machine
# plays all ten, one after another.

# %%
import time

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from sublearn.io import load_quickstart

data = load_quickstart(n_train=3000)
vectorizer = TfidfVectorizer(sublinear_tf=True, dtype=np.float32)
X = vectorizer.fit_transform(data.train_texts)
print(f"{X.shape[0]:,} records, {len({n for names in data.train_labels for n in names}):,} labels")

# %% [markdown]
# ## What each machine runs
#
# Every machine runs the same lines, with a number of its own. In a job array of SLURM that number
# is `SLURM_ARRAY_TASK_ID`.

# %%
from sublearn.extreme import PPDSparseClassifier
from sublearn.parts import join_parts, solve_part

model = PPDSparseClassifier(model_path="shared.model", random_state=0)


def run(number, of=10):
    start = time.process_time()
    with solve_part(number, of) as part:
        model.fit(X, data.train_labels)
    return part.n_solved, time.process_time() - start


found = {number: run(number) for number in range(1, 10)}  # the tenth machine has died
print({number: n_solved for number, (n_solved, _) in found.items()})

# %% [markdown]
# ## Join
#
# `join_parts` puts the parts together. It says which are missing:

# %%
try:
    with join_parts():
        model.fit(X, data.train_labels)
except Exception as error:
    print(f"{type(error).__name__}: {str(error).replace(str(model.model_path), 'shared.model')}")

# %% [markdown]
# So we run part ten again, alone, and join once more.

# %%
found[10] = run(10)
with join_parts():
    model.fit(X, data.train_labels)
print(f"{len(model.classes_):,} labels, certificate {model.certificate_:.1%}")

# %% [markdown]
# The model is that of one machine, to the last bit:

# %%
alone = PPDSparseClassifier(random_state=0).fit(X, data.train_labels)
(alone.coef_ != model.coef_).nnz

# %% [markdown]
# ## Was the work shared fairly?
#
# Labels are cut by their estimated cost. The shortest part has to wait for the longest one.

# %%
import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
seconds = [found[number][1] for number in sorted(found)]
ax.bar(sorted(found), seconds, color="#0072b2")
ax.axhline(np.mean(seconds), color="0.4", ls="--", lw=1, label="mean")
ax.set(xlabel="part", ylabel="seconds of one processor", xticks=sorted(found))
ax.set_title("Work of the ten parts", loc="left")
ax.legend(frameon=False)

# %% [markdown]
# ## What to try on your data
#
# - In a shell: `sublearn fit text records.tsv --model /shared/tags.model --analyzer word --part
#   3/10` on the third machine, and `sublearn join /shared/tags.model` once at the end.
# - A part that was killed goes on where it was: run the same line again.
# - With a Dask cluster, `with cluster(client):` around `fit` does the sharing, and machines may
#   come and go.
# - If rows and not labels are too many, `fit_by_rows` leaves each row where it lies; see
#   [Several machines](../distributed.md).
