"""Word vectors of three corpora, drawn in two dimensions.

    pip install '.[plot]'
    python examples/word_vectors.py word_vectors.png

Nine million words: the messages of 20news, the Brown corpus, the articles of Reuters-21578
(SUBLEARN_DATA, else ../shared/data). Skip-gram with its softmax over the whole vocabulary; words of
some themes are laid out by t-SNE of their cosines. Neighbours and analogies are printed.
"""

import html
import lzma
import os
import re
import tarfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from pictures import read_options
from sklearn.manifold import TSNE

from sublearn.embed import SkipGram

DATA = Path(os.environ.get("SUBLEARN_DATA", Path(__file__).parents[2] / "shared" / "data"))
SETS = ("20news", "brown", "reuters21578")
THEMES = {
    "countries": "france germany japan italy canada brazil iran iraq israel turkey russia china",
    "months": "january march april june july august september october november december",
    "family": "father mother son daughter brother sister wife husband uncle aunt",
    "computers": "windows unix disk memory file software keyboard monitor server graphics",
    "sports": "hockey baseball team player season coach league playoffs pitcher goal",
    "religion": "god jesus bible church faith christians islam belief prayer heaven",
    "trade": "oil wheat sugar coffee copper gold corn cocoa tin cotton",
    "finance": "bank shares dollar inflation rates deficit profit dividend loans stock",
    "body": "hand eyes arm head hair face mouth shoulder fingers skin",
}


def main():
    options = read_options(__doc__, "word_vectors.png", "every 20th text")
    missing = [name for name in SETS if not (DATA / name).is_dir()]
    if missing:
        print(f"no {', '.join(missing)} in {DATA}: set SUBLEARN_DATA")
        return
    texts = [*read_news(), *read_brown(), *read_reuters()][:: 20 if options.small else 1]
    model = SkipGram(100, max_iter=5, n_jobs=-1, random_state=0, verbose=1).fit(texts)
    print(
        f"{len(model.words_)} words, {model.n_pairs_} pairs: objective "
        f"{model.trace_['objective'][0]:.2f} after the first pass, {model.objective_:.2f} after "
        f"{model.n_iter_}"
    )
    for word in ("god", "oil", "hockey"):
        print(f"{word}: {', '.join(model.most_similar(word, 6)[0])}")
    draw(model, options.picture)
    print(f"wrote {options.picture}")


def read_news():
    for part in ("train", "test"):
        with lzma.open(DATA / "20news" / f"20news_bydate_{part}.tsv.xz", "rt") as file:
            for line in file:
                yield line.split("\t", 3)[3]


def read_brown():
    with lzma.open(DATA / "brown" / "brown.conll.xz", "rt") as file:
        for sentence in file.read().split("\n\n"):
            lines = [line for line in sentence.splitlines() if not line.startswith("# file")]
            yield " ".join(line.split("\t")[0] for line in lines)


def read_reuters():
    with tarfile.open(DATA / "reuters21578" / "reuters21578.tar.xz") as archive:
        for member in (m for m in archive if m.name.endswith(".sgm")):
            text = archive.extractfile(member).read().decode("latin-1")
            for body in re.findall(r"<BODY>(.*?)</BODY>", text, re.DOTALL):
                yield html.unescape(body)


def draw(model, path):
    """Each word where t-SNE puts it, in the colour of its theme."""
    known = [
        (word, i)
        for i, words in enumerate(THEMES.values())
        for word in words.split()
        if word in model
    ]
    vectors = np.array([model[word] for word, _ in known])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    layout = TSNE(perplexity=8, init="pca", random_state=0).fit_transform(vectors)
    figure, axes = plt.subplots(figsize=(13, 9), layout="constrained")
    colours = plt.get_cmap("tab10").colors
    for (word, theme), (x, y) in zip(known, layout, strict=True):
        axes.plot(x, y, "o", color=colours[theme], markersize=4)
        axes.annotate(
            word, (x, y), (3, 3), textcoords="offset points", color=colours[theme], size=9
        )
    for i, name in enumerate(THEMES):
        axes.plot([], [], "o", color=colours[i], label=name)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    axes.set_axis_off()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
