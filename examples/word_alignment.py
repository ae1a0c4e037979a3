"""Alignment of words: which word of a sentence became which word of its translation.

    pip install '.[plot]'
    python examples/word_alignment.py alignment.png

Sentences of an English treebank (SUBLEARN_DATA/ud_english_ewt, else ../shared/data) are translated
into a made-up language: every word gets another name, some words get the same one, adjectives
follow their nouns, and a word in twelve is left out. So the true links are known. A link of two
words is a node with label 0 or 1 and features: how often the two occur in the same pair of
sentences (Dice's coefficient) and how far apart they stand. Edges connect links of one word, and
links of neighbouring words; their feature is the lower one of the two coefficients. One model has
the edges, one has not. The picture shows a pair of sentences, what each model says, and the learnt
tables.
"""

import lzma
from collections import Counter

import numpy as np
from map_pictures import BLUE, ORANGE, find_data, plt
from pictures import read_options

from sublearn.structured import Passes, Sample, StructuralSVM

LONGEST = 12  # words of a sentence
COSTS = [[0, 1], [3, 0]]  # a link that is missed costs three links that are not there


def main():
    options = read_options(__doc__, "alignment.png", "fewer sentences and passes")
    path = find_data("ud_english_ewt/en_ewt-ud-train.conllu.xz")
    if path is None:
        return
    rng = np.random.default_rng(0)
    n_known, n_train, n_test = (500, 15, 15) if options.small else (4000, 80, 80)
    pairs = [translate(words, rng) for words in read_sentences(path)[:n_known]]
    dice = dice_of(pairs)
    train, test = pairs[:n_train], pairs[n_train : n_train + n_test]
    models = {}
    for name, has_edges in (("links alone", False), ("with pairs of links", True)):
        X, y = ([as_sample(pair, dice, has_edges) for pair in part] for part in (train, test))
        model = StructuralSVM(
            C=1.0, max_iter=10 if options.small else 60, random_state=0,
            passes=Passes(evaluate_every=0),
        )  # fmt: skip
        model.fit(X, [truth for _, _, truth in train], costs=COSTS)
        found = model.predict(y)
        f1 = f1_of(found, test)
        n_edges = sum(len(edges) for sample in X for edges in sample.edges.values())
        print(
            f"{name}: F1 of links {100 * f1:.1f} %, {n_edges:,} edges in training, "
            f"{model.trace_['seconds'][-1]:.1f} s"
        )
        models[name] = (model, found)
    draw(models, test, options.picture)
    print(f"wrote {options.picture}")


def read_sentences(path):
    """Lists of (word, part of speech), of 5 to `LONGEST` words."""
    sentences, words = [], []
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            cells = line.rstrip("\n").split("\t")
            if len(cells) == 10 and cells[0].isdigit() and cells[3] != "PUNCT":
                words.append((cells[1].lower(), cells[3]))
            elif not line.strip():
                if 5 <= len(words) <= LONGEST:
                    sentences.append(words)
                words = []
    return sentences


def translate(words, rng):
    """The sentence, its translation, and the true links: a row for each word of the sentence."""
    order = list(range(len(words)))
    for i in range(len(words) - 1):
        if words[i][1] == "ADJ" and words[i + 1][1] in ("NOUN", "PROPN"):
            order[i], order[i + 1] = order[i + 1], order[i]
    if words[-1][1] != "VERB" and rng.random() < 0.3:  # a part of the sentence comes first
        order = order[len(order) // 2 :] + order[: len(order) // 2]
    order = [i for i in order if rng.random() > 1 / 12] or order[:1]
    truth = np.zeros((len(words), len(order)), dtype=int)
    truth[order, np.arange(len(order))] = 1
    return [w for w, _ in words], [rename(words[i][0]) for i in order], truth


def rename(word):
    """A word of the other language: the same for some words."""
    number = sum(ord(letter) * 31**k for k, letter in enumerate(word)) % 1499
    syllables = ["ka", "lo", "mi", "ru", "ta", "ne", "so", "pi", "ge", "du", "va", "zo"]
    return "".join(syllables[number // 12**k % 12] for k in range(3))


def dice_of(pairs):
    """2 n(a, b) / (n(a) + n(b)) by counts of sentences, without looking at links."""
    left, right, both = Counter(), Counter(), Counter()
    for a, b, _ in pairs:
        left.update(set(a))
        right.update(set(b))
        both.update((x, y) for x in set(a) for y in set(b))
    return lambda x, y: 2 * both[x, y] / (left[x] + right[y])


def as_sample(pair, dice, has_edges):
    a, b, _ = pair
    n, m = len(a), len(b)
    score = np.array([[dice(x, y) for y in b] for x in a])
    i, j = np.divmod(np.arange(n * m), m)
    ranks = [score >= score.max(axis=1, keepdims=True), score >= score.max(axis=0, keepdims=True)]
    far = np.abs(i / n - j / m)
    X = np.column_stack([score.ravel(), far, *(rank.ravel() for rank in ranks)])
    if not has_edges:
        return Sample(X)
    node = np.arange(n * m).reshape(n, m)
    first, second = np.triu_indices(m, 1)
    source = np.column_stack([node[:, first].ravel(), node[:, second].ravel()])
    first, second = np.triu_indices(n, 1)
    target = np.column_stack([node[first].ravel(), node[second].ravel()])
    edges = {
        "in order": np.column_stack([node[:-1, :-1].ravel(), node[1:, 1:].ravel()]),
        "swapped": np.column_stack([node[:-1, 1:].ravel(), node[1:, :-1].ravel()]),
        "same source": source,
        "same target": target,
    }
    weaker = {
        name: np.min(score.ravel()[ends], axis=1)[:, None] for name, ends in edges.items()
    }  # of the two scores
    return Sample(X, edges, edge_features=weaker)


def f1_of(found, test):
    found = np.concatenate([np.array(labels) for labels in found])
    truth = np.concatenate([truth.ravel() for _, _, truth in test])
    return 2 * (found & truth).sum() / (found.sum() + truth.sum())


def draw(models, test, path):
    names = list(models)
    wrong = [
        [np.sum(np.array(labels) != truth.ravel()) for labels, (_, _, truth) in
         zip(models[name][1], test, strict=True)] for name in names
    ]  # fmt: skip
    k = int(np.argmax(np.subtract(*wrong)))  # where pairs of links help most
    a, b, truth = test[k]
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.6), layout="constrained")
    for axis, name in zip(axes, names, strict=False):
        found = np.array(models[name][1][k]).reshape(truth.shape)
        axis.imshow(found, cmap="Blues", vmin=0, vmax=1.6)
        rows, columns = np.nonzero(truth)
        axis.plot(columns, rows, "o", ms=13, mfc="none", mec=ORANGE, mew=2)
        axis.set_xticks(range(len(b)), b, rotation=60, ha="right")
        axis.set_yticks(range(len(a)), a)
        axis.set_title(f"{name}: {wrong[names.index(name)][k]} mistakes", loc="left")
    axes[0].set_xlabel("blue: links found; circles: true links")
    model = models[names[1]][0]
    kinds = list(model.templates_)
    ours = [[gain(model.tables_[t]), gain(model.edge_coef_[t][0])] for t in kinds]
    bars = (("table", -0.2, BLUE), ("times the weaker Dice score", 0.2, ORANGE))
    for part, (name, offset, colour) in enumerate(bars):
        values = [each[part] for each in ours]
        axes[2].barh(np.arange(len(kinds)) + offset, values, 0.38, color=colour, label=name)
    axes[2].axvline(0, color="black", lw=0.8)
    axes[2].set_yticks(range(len(kinds)), kinds)
    axes[2].legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.4, -0.08))
    axes[2].set_title("what two links at once add", loc="left")
    for side in ("top", "right"):
        axes[2].spines[side].set_visible(False)
    figure.savefig(path, dpi=150)


def gain(table):
    """Score of two links, compared with one by one: both on and both off, less one on."""
    return table[1, 1] + table[0, 0] - table[0, 1] - table[1, 0]


if __name__ == "__main__":
    main()
