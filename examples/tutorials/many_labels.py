# %% [markdown]
# # From scikit-learn to a hundred thousand labels
#
# You know `OneVsRestClassifier`. It trains a classifier for each label on all rows, which is fine
# for ten labels and hopeless for a hundred thousand. In this tutorial you replace it, see that the
# answers agree, and go on to sizes it cannot reach.
#
# We begin with records that come with the package: 2,000 titles, and the headings that at least
# three of them have.

# %%
import time
from collections import Counter

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from sublearn.io import load_quickstart

data = load_quickstart(n_train=2000)
counts = Counter(name for names in data.train_labels for name in names)
common = {name for name, n in counts.items() if n >= 3}
train, test = (
    [[name for name in names if name in common] for names in part]
    for part in (data.train_labels, data.test_labels)
)
vectorizer = TfidfVectorizer(sublinear_tf=True, dtype=np.float32)
X, X_test = vectorizer.fit_transform(data.train_texts), vectorizer.transform(data.test_texts)
print(f"{X.shape[0]:,} records, {X.shape[1]:,} words, {len(common)} headings")

# %% [markdown]
# ## What you do today

# %%
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import MultiLabelBinarizer
from sklearn.svm import LinearSVC

from sublearn.metrics import precision_at_k

binarizer = MultiLabelBinarizer()
Y = binarizer.fit_transform(train)
start = time.process_time()
many = OneVsRestClassifier(LinearSVC()).fit(X, Y)
before = time.process_time() - start
scores = many.decision_function(X_test)
p1 = precision_at_k(test, scores, k=1, classes=binarizer.classes_)
print(f"P@1 {p1:.1%}")

# %% [markdown]
# ## What you do instead
#
# `PPDSparseClassifier` has the same `fit` and `predict`. It takes lists of labels as they are, and
# looks only at the rows and words that matter to a label.

# %%
from sublearn.extreme import PPDSparseClassifier

start = time.process_time()
model = PPDSparseClassifier(random_state=0).fit(X, train)
after = time.process_time() - start
labels, _ = model.predict_top_k(X_test, k=1)
print(f"P@1 {precision_at_k(test, labels, k=1):.1%}, {before / after:.0f} times less work")
print(f"{np.prod(many.estimators_[0].coef_.shape) * len(many.estimators_):,} weights before,")
print(f"{model.coef_.nnz:,} now")

# %% [markdown]
# ## A hundred thousand labels
#
# Now to a size where a dense model has no place in memory. We make rows in which each label speaks
# through three words of its own, among words that mean nothing.

# %%
import scipy.sparse as sp


def rows(n_labels, n_each=2):
    rng, n_words = np.random.default_rng(0), 2 * n_labels
    speaks = rng.integers(0, n_words, size=(n_labels, 3))
    y = np.repeat(np.arange(n_labels), n_each)
    noise = rng.integers(0, n_words, size=(len(y), 4))
    words = np.concatenate([speaks[y], noise], axis=1)
    at = np.repeat(np.arange(len(y)), words.shape[1]), words.ravel()
    values = np.ones(words.size, dtype=np.float32)
    return sp.csr_matrix((values, at), shape=(len(y), n_words)), y


sizes = [1_000, 10_000, 100_000]
seconds, weights = [], []
for n_labels in sizes:
    X, y = rows(n_labels)
    is_new = np.arange(len(y)) % 2 == 1  # one of two rows of each label is held out
    start = time.process_time()
    model = PPDSparseClassifier(random_state=0, tol=0.1).fit(X[~is_new], y[~is_new])
    seconds.append(time.process_time() - start)
    weights.append(model.coef_.nnz)
    asked = np.flatnonzero(is_new)[:: max(1, n_labels // 1000)]
    right = np.mean(model.predict_top_k(X[asked], k=1)[0][:, 0] == y[asked])
    print(f"{n_labels:>7,} labels: {weights[-1]:>9,} weights, {right:.0%} right")

# %% [markdown]
# ## How it grows
#
# A classifier that looks at all rows for each label needs a hundred times the work for ten times as
# many labels and rows: the dashed line. The blue line stays below it, since most rows never become
# active.

# %%
import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
ax.loglog(sizes, seconds, "o-", label="PPD-Sparse")
quadratic = seconds[0] * (np.array(sizes) / sizes[0]) ** 2
ax.loglog(sizes, quadratic, "--", color="0.5", label="all rows for each label")
ax.set(xlabel="labels", ylabel="seconds of one processor")
ax.set_title("Training time", loc="left")
ax.legend(frameon=False)

# %% [markdown]
# ## What to try on your data
#
# - Keep your vectorizer, hand the lists of labels to `fit`, and use `n_jobs=-1` for all cores. The
#   model does not depend on it.
# - Does the model not fit into memory? `model_path="my.model"` writes it while it is trained, and a
#   fit that was killed goes on.
# - For a few hundred labels and many rows of each, `LinearSVC` is as good a choice.
# - Dense vectors of a language model instead of words? See
#   [Dense features](../methods/dense_extreme.md).
