"""Newsgroups with dotted names: how sure is a classifier on its way down?

    pip install '.[plot]'
    python examples/news_groups.py news_groups.png

11,314 messages for training and 7,532 for testing (SUBLEARN_DATA/20news, else ../shared/data). The
names of the groups are paths, such as rec.sport.hockey. With optional leaves a message stops where
the next step is too uncertain. Left: the more certain, the fewer messages reach a group, and the
more of these are right. Right: the tree with its training rows.
"""

import lzma

import numpy as np
from pictures import BLUES, ORANGE, draw_pair, read_options
from sklearn.feature_extraction.text import TfidfVectorizer
from taxonomy_rows import DATA, is_missing

from sublearn.hierarchy import HierarchicalClassifier, Taxonomy
from sublearn.metrics import hierarchical_precision


def main():
    options = read_options(__doc__, "news_groups.png", "every tenth message")
    if is_missing("20news"):
        return
    step = 10 if options.small else 1
    (texts, groups), (texts_test, groups_test) = (read(part, step) for part in ("train", "test"))
    taxonomy = Taxonomy.from_paths(groups)
    print(taxonomy.draw(max_lines=8))
    words = TfidfVectorizer(sublinear_tf=True, min_df=3, stop_words="english")
    X, X_test = words.fit_transform(texts), words.transform(texts_test)
    model = HierarchicalClassifier(taxonomy, C=10.0, leaf="optional", n_jobs=-1).fit(X, groups)
    truth, leaves = np.array(groups_test), taxonomy.names[taxonomy.leaves]
    rows = []
    for threshold in np.linspace(0, 0.95, 20):
        found = model.set_params(threshold=threshold).predict(X_test)
        reached = np.isin(found, leaves)
        right = float((found[reached] == truth[reached]).mean()) if reached.any() else np.nan
        rows.append(
            (threshold, reached.mean(), right, hierarchical_precision(truth, found, taxonomy))
        )
    first, half = rows[0], rows[10]
    print(f"all messages down to a group: {100 * first[2]:.1f} % right")
    print(f"threshold {half[0]:.2f}: {100 * half[1]:.1f} % get there, {100 * half[2]:.1f} % right")
    draw_pair(
        lambda axes: draw_rates(axes, np.array(rows)),
        lambda axes: taxonomy.plot(model.counts_, ax=axes),
        options.picture,
        height=5.5,
    )
    print(f"wrote {options.picture}")


def read(part, step):
    with lzma.open(DATA / "20news" / f"20news_bydate_{part}.tsv.xz", "rt") as file:
        rows = [line.rstrip("\n").split("\t") for line in file][::step]
    return [" ".join(row[2:]) for row in rows], [row[0] for row in rows]


def draw_rates(axes, rows):
    names = ("messages that reach a group", "right among these", "right labels on all paths")
    colours = (BLUES[2], BLUES[0], ORANGE)
    for k, (name, colour) in enumerate(zip(names, colours, strict=True)):
        axes.plot(rows[:, 0], 100 * rows[:, k + 1], ".-", color=colour, label=name)
    axes.set_xlabel("threshold of a step down")
    axes.set_ylabel("percent")
    axes.legend(frameon=False)


if __name__ == "__main__":
    main()
