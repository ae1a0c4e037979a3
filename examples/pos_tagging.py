"""Parts of speech with 472 tags: from the raw text of the Brown corpus to a tagger.

    pip install '.[plot]'
    python examples/pos_tagging.py tagger.png

57,340 sentences in 500 files (SUBLEARN_DATA/brown, else ../shared/data); every fifth file is the
test set. Features are strings: the word, its neighbours, beginnings and endings. A tenth of the
training sentences is held out: the model of the best pass is kept. The picture shows accuracy by
pass and the learnt scores of neighbouring tags.
"""

import lzma
import time
from functools import cache

import numpy as np
from map_pictures import BLUE, find_data, two_axes
from pictures import read_options

from sublearn.structured import ChainSVM, Passes

SHOWN = 30
SENTENCE = "They refuse to permit us to obtain the refuse permit ."


def main():
    options = read_options(__doc__, "tagger.png", "40 files, three passes")
    path = find_data("brown/brown.conll.xz")
    if path is None:
        return
    files = read_files(path, 40 if options.small else 500)
    train = [s for n, sentences in enumerate(files) if n % 5 for s in sentences]
    test = [s for sentences in files[::5] for s in sentences]
    X, y = zip(*map(split, train), strict=True)
    model = ChainSVM(
        C=0.1, early_stopping=True, passes=Passes(evaluate_every=0),
        max_iter=3 if options.small else 15, random_state=0, n_jobs=-1,
    )  # fmt: skip
    start = time.perf_counter()
    model.fit(X, y)
    print(
        f"{sum(map(len, y)):,} words, {len(model.classes_)} tags, {len(model.feature_names_):,} "
        f"features: {model.n_iter_} passes in {time.perf_counter() - start:.0f} s, "
        f"{model.coef_.nnz:,} weights"
    )
    start = time.perf_counter()
    X, y = zip(*map(split, test), strict=True)
    accuracy = model.score(X, y)
    speed = sum(map(len, y)) / (time.perf_counter() - start)
    print(f"test files: {100 * accuracy:.2f} % of words right, {speed:,.0f} words a second")
    sentence = SENTENCE.split()
    tags = model.predict_one(features(sentence))
    print(" ".join(f"{word}/{tag}" for word, tag in zip(sentence, tags, strict=True)))
    draw(model, y, options.picture)
    print(f"wrote {options.picture}")


def read_files(path, n_files):
    """Sentences of each file, as lists of [word, tag]."""
    files, sentence = [], []
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in map(str.rstrip, lines):
            if line.startswith("# file"):
                if len(files) == n_files:
                    break
                files.append([])
            elif line:
                sentence.append(line.split("\t"))
            elif sentence:
                files[-1].append(sentence)
                sentence = []
    return files


def split(sentence):
    words, tags = zip(*sentence, strict=True)
    return features(words), tags


def features(words):
    """For each word its own features, and those of its neighbours."""
    around = ["", *words, ""]
    return [
        [*of_word(word), beside("before", around[t]), beside("after", around[t + 2])]
        for t, word in enumerate(words)
    ]


@cache
def of_word(word):
    """Strings that are made once and shared by all places where the word stands."""
    low = word.lower()
    found = [f"word={low}"]
    found += [f"end={low[-n:]}" for n in range(1, min(len(low), 4) + 1)]
    found += [f"begin={low[:n]}" for n in range(1, min(len(low), 3) + 1)]
    if word[0].isupper():
        found.append("capital")
    if any(letter.isdigit() for letter in word):
        found.append("digit")
    return (*found, "hyphen") if "-" in word else tuple(found)


@cache
def beside(where, word):
    return f"{where}={word.lower()}"


def draw(model, tags, path):
    figure, (left, right) = two_axes(height=5.2)
    passes = np.arange(1, model.n_iter_ + 1)
    left.plot(passes, 100 * model.trace_["held_out"], "o-", color=BLUE)
    left.set(xlabel="pass", ylabel="% of held-out words right")
    left.xaxis.get_major_locator().set_params(integer=True)
    left.set_title(f"{len(model.classes_)} tags", loc="left")
    names, counts = np.unique(np.concatenate(tags), return_counts=True)
    usual = sorted(set(names[np.argsort(-counts)[:SHOWN]]) & set(model.classes_))
    places = np.searchsorted(model.classes_, usual)
    table = model.transitions_[np.ix_(places, places)]
    largest = np.abs(table).max()
    shown = right.imshow(table, cmap="RdBu", vmin=-largest, vmax=largest)
    right.set_xticks(range(len(usual)), usual, rotation=90, fontsize=7)
    right.set_yticks(range(len(usual)), usual, fontsize=7)
    right.set(xlabel="next tag", ylabel="tag")
    right.set_title("learnt scores of neighbours, usual tags", loc="left")
    figure.colorbar(shown, ax=right, shrink=0.8)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
