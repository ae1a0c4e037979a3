# %% [markdown]
# # Choose l1, and read a certificate
#
# You have many features and believe that few of them matter. Sparse logistic regression picks them:
# the larger its penalty `l1`, the fewer features keep a weight. In this tutorial you follow the
# weights while `l1` falls, let cross-validation choose, and check that the solution is a solution.
#
# The task: which words of a title say that a record is about education?

# %%
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from sublearn.io import load_quickstart

data = load_quickstart(n_train=4000)
vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=3, stop_words="english")
X = vectorizer.fit_transform(data.train_texts).tocsc()
y = np.array([any("education" in name for name in names) for names in data.train_labels])
words = vectorizer.get_feature_names_out()
print(f"{X.shape[0]:,} records, {X.shape[1]:,} words, {y.sum()} records on education")

# %% [markdown]
# ## Follow the path
#
# At the largest useful `l1` all weights are zero. `fit_path` begins there and goes down, each fit
# from the one before, so a whole path costs little more than its last point.

# %%
from sublearn.linear import SparseLogisticRegression

path = SparseLogisticRegression(tol=1e-5).fit_path(X, y, l1s=25)
path.plot(names=words)

# %% [markdown]
# The strongest words enter first. Where lines bend, another word has come in and shares the work.
#
# ## Let held-out records choose
#
# More words fit the training records better, and at some point held-out records worse.
# `l1="cv"` takes the value with the best held-out score. `l1="cv_1se"` takes the largest value that
# is within one standard error of it: fewer words, hardly worse.

# %%
model = SparseLogisticRegression("cv_1se", l1s=path.l1s, cv=3, tol=1e-5).fit(X, y)
print(f"l1 = {model.l1_:.3g}: {np.count_nonzero(model.coef_)} of {X.shape[1]:,} words")

# %% [markdown]
# ## Read the certificate
#
# `certificate_` is the relative duality gap. With 1e-5 or less, no other weights lower the
# objective by more than a hundred-thousandth of its value. It is computed from the model itself:
# you need not trust the solver.

# %%
print(f"objective {model.objective_:.6f}, certificate {model.certificate_:.1e}")

# %% [markdown]
# What does a loose certificate cost? Here are fits that end earlier, and how far their weights are
# from those of a tight one.

# %%
tight = SparseLogisticRegression(model.l1_, tol=1e-9).fit(X, y)
for tol in (1e-1, 1e-2, 1e-3, 1e-5):
    loose = SparseLogisticRegression(model.l1_, tol=tol).fit(X, y)
    away = np.abs(loose.coef_ - tight.coef_).max()
    print(f"tol {tol:.0e}: gap {loose.certificate_:.0e}, largest error of a weight {away:.0e}")

# %% [markdown]
# And the words in the end, on the path that led to them:

# %%
from sublearn.display import PathDisplay

used = np.flatnonzero(model.coef_[0])
along = path.coefs[:, used].toarray()
PathDisplay(path.l1s, along, words[used], n_names=8, chosen=model.l1_).plot()

# %% [markdown]
# ## What to try on your data
#
# - Scale columns first, unless they have one unit: `l1` counts all weights alike.
# - If `l1="cv"` picks the smallest value it was given, a warning says so: give more values, or a
#   lower end.
# - For numbers instead of classes take `SparseLinearRegression`, with its `loss` for outliers.
# - `model.sparse_coef_` is a SciPy matrix, for models with millions of features; see
#   [Sparse linear models](../methods/sparse_linear.md).
