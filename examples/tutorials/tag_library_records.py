# %% [markdown]
# # Tag library records
#
# A library has titles and abstracts, and each record needs a few subject headings out of thousands.
# In this tutorial you train a tagger on such records, look at its suggestions, and ask it why.
#
# The records come with the package: 13,000 titles with 3,861 subject headings.

# %%
from sublearn.io import load_quickstart

data = load_quickstart()
print(len(data.train_texts), "records to learn from,", len(data.test_texts), "to test on")
print(data.train_texts[0])
print(data.train_labels[0])

# %% [markdown]
# ## Train
#
# A `TextTagger` takes raw texts and lists of labels. It counts words, weighs them, and learns one
# sparse linear classifier for each heading.

# %%
from sublearn.extreme import TextTagger

tagger = TextTagger(analyzer="word", stop_words="english").fit(data.train_texts, data.train_labels)
print(len(tagger.classes_), "headings")

# %% [markdown]
# The fit ends by a **certificate**: an upper bound on how far the objective is from the best value
# that exists. In the picture it stays below the dashed line, the tolerance `tol`. There is no doubt
# left whether more iterations would have helped.

# %%
from sublearn.display import TraceDisplay

TraceDisplay.from_estimator(tagger.classifier_)

# %% [markdown]
# ## Ask for tags
#
# `predict_top_k` gives the best headings of each text, best first, with their scores.

# %%
text = "Renewable energy and climate policy in the European Union"
labels, scores = tagger.predict_top_k([text], k=4)
for label, score in zip(labels[0], scores[0], strict=True):
    print(f"{score:+.2f}  {label}")

# %% [markdown]
# ## Ask why
#
# A score is a sum, so it can be taken apart. Blue bars speak for the heading, orange ones against.

# %%
explanation = tagger.explain(text, labels[0, 0])
explanation.plot()

# %% [markdown]
# In the text itself:

# %%
explanation.highlight(text)

# %% [markdown]
# ## How good is it?
#
# P@k is the share of right headings among the k best. Records have few headings each, so P@5 cannot
# reach 1.

# %%
from sublearn.metrics import precision_at_k

found, _ = tagger.predict_top_k(data.test_texts, k=5)
precisions = precision_at_k(data.test_labels, found, k=[1, 3, 5])
for k, value in zip([1, 3, 5], precisions, strict=True):
    print(f"P@{k}  {value:.1%}")

# %% [markdown]
# Which headings does it take for which others? Rows are true headings, columns what was predicted
# in their place. Often the two are near: a good suggestion that the cataloguer did not choose.

# %%
from sublearn.display import LabelConfusionDisplay

LabelConfusionDisplay.from_estimator(tagger, data.test_texts, data.test_labels, k=3, n_labels=10)

# %% [markdown]
# ## Keep it
#
# A saved model is a file without pickle: to open one from a stranger runs no code of theirs.

# %%
import sublearn

tagger.save("tags.model")
sublearn.load("tags.model").predict_top_k([text], k=1)[0].tolist()

# %% [markdown]
# ## What to try on your data
#
# - Put your records into a file, a line each: labels with commas between, a tab, the text. Then
#   `sublearn fit text records.tsv --model tags.model` does all of the above.
# - Leave `analyzer` out: the tagger tries words and pieces of words, and keeps the better one.
# - Give `TextTagger(decision=...)` a rule, so that `predict` answers with as many headings as a
#   text deserves; see [Probabilities](../probabilities.md).
# - A heading that is always missed has often too few records. `explain` one of its records.
