# %% [markdown]
# # Tag sequences
#
# Each line of a delivery note mixes a quantity, a product and a place, and you want to know which
# word is which. One word at a time cannot tell: "Chester" is a place or a cheese, by its
# neighbours. In this tutorial you train a tagger that decides about all words of a line together.
#
# We make up the lines, so that this runs everywhere. One word in six has lost a letter, as in notes
# that are typed in a hurry. Tags begin with B- at the first word of a span
# and I- at those that follow; O is outside.

# %%
import numpy as np

rng = np.random.default_rng(0)
products = ["Chester cheese", "olive oil", "York ham", "red apples", "Wells stout", "white bread"]
places = ["Chester", "York", "Wells", "New Town", "Saint Helens", "Bath"]
units = ["crates", "boxes", "kg", "bottles"]
frames = [
    "deliver {n} of {p} to {t}",
    "{p} , {n} , for {t}",
    "from {t} : {n} {p}",
    "{n} {p} {t} today",
]


def typed(word):
    at = rng.integers(len(word))
    return word[:at] + word[at + 1 :] if rng.random() < 1 / 6 and len(word) > 2 else word


def tagged(kind, text):
    return [(typed(word), f"{'I' if k else 'B'}-{kind}") for k, word in enumerate(text.split())]


def line():
    parts = {
        "{n}": tagged("quantity", f"{rng.integers(1, 90)} {rng.choice(units)}"),
        "{p}": tagged("product", rng.choice(products)),
        "{t}": tagged("place", rng.choice(places)),
    }
    words = rng.choice(frames).split()
    return [pair for word in words for pair in parts.get(word, [(word, "O")])]


lines = [line() for _ in range(600)]
for word, tag in lines[0]:
    print(f"{word:10} {tag}")

# %% [markdown]
# ## Features of a word
#
# A word is described by a list of names. The line gets no features of its neighbours here, so that
# all context has to come from the tags.

# %%


def features(words):
    return [[f"word={w.lower()}", f"upper={w[0].isupper()}", f"digit={w.isdigit()}"] for w in words]


X = [features([word for word, _ in line]) for line in lines]
y = [[tag for _, tag in line] for line in lines]
train, test = slice(0, 400), slice(400, 600)

# %% [markdown]
# ## Train
#
# `transitions="bio"` forbids what cannot be, such as an I-place behind a B-product.
# `early_stopping=True` holds lines out, ends when they get no better, and calibrates probabilities
# on them.

# %%
from sublearn.structured import ChainSVM

tagger = ChainSVM(transitions="bio", early_stopping=True, max_iter=60, random_state=0).fit(
    X[train], y[train]
)
print(f"{tagger.n_iter_} passes")
tagger.trace_.plot(y=["held_out"])

# %% [markdown]
# ## Use it
#
# The same word gets the tag that its line asks for:

# %%
for text in ("deliver 5 kg of Chester cheese to Bath", "deliver 5 kg of white bread to Chester"):
    words = text.split()
    tags = tagger.predict([features(words)])[0]
    print("  ".join(f"{word}/{tag}" for word, tag in zip(words, tags, strict=True)))

# %% [markdown]
# And how sure is it? Each word of the second line has the probability of its tag.

# %%
chances = tagger.predict_proba([features(words)])[0]
for word, tag, row in zip(words, tags, chances, strict=True):
    print(f"{word:8} {tag:11} {row.max():.2f}")

# %% [markdown]
# ## What does it confuse?

# %%
from sublearn.display import LabelConfusionDisplay

true = np.array([tag for tags in y[test] for tag in tags])
found = np.array([tag for tags in tagger.predict(X[test]) for tag in tags])
print(f"{np.mean(true == found):.1%} of the words have the right tag")
LabelConfusionDisplay.from_predictions(true, found[:, None])

# %% [markdown]
# ## What to try on your data
#
# - Files in CoNLL form need no Python: `sublearn fit chain train.conll --model tags.model` makes
#   features of words, their endings and their neighbours.
# - These lines are easy, since they follow four patterns. Real ones need more features: endings of
#   words, and the words around.
# - Many tags are no obstacle: thousands work, since most are never looked at.
# - If you have a graphics card and time, a fine-tuned transformer reads better. This tagger trains
#   in seconds and runs anywhere; see [Structural SVMs](../methods/structured.md).
