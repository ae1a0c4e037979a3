"""Handwritten words: letters read one by one, and together with their neighbours.

    pip install '.[plot]'
    python examples/ocr_words.py ocr.png

6,877 words without their first letters, 8 x 16 pixels a letter (SUBLEARN_DATA/ocr_letters, else
../shared/data): fold 0 is the test set, the others are for training. The same pixels go into two
models, with and without scores of neighbouring letters. The picture shows words that only the chain
reads right, and the learnt table: which letter follows which.
"""

import lzma
import warnings

import numpy as np
from map_pictures import BLUE, ORANGE, find_data, plt
from pictures import read_options
from sklearn.exceptions import ConvergenceWarning

from sublearn.structured import ChainSVM


def main():
    options = read_options(__doc__, "ocr.png", "every fifth word, fewer passes")
    path = find_data("ocr_letters/letter.data.xz")
    if path is None:
        return
    images, words, folds = read_words(path)
    chosen = np.arange(len(words))[:: 5 if options.small else 1]
    train, test = chosen[folds[chosen] != 0], chosen[folds[chosen] == 0]
    print(f"{len(train)} words for training, {len(test)} to be read")
    models = {}
    for name, transitions in (("letters alone", False), ("chain", True)):
        model = ChainSVM(
            C=0.05, transitions=transitions, end_features=transitions, random_state=0,
            max_iter=10 if options.small else 30,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the certificate is printed
            model.fit([images[i] for i in train], [words[i] for i in train])
        accuracy = model.score([images[i] for i in test], [words[i] for i in test])
        print(
            f"{name}: {100 * accuracy:.1f} % of letters right after {model.n_iter_} passes, "
            f"{model.trace_['seconds'][-1]:.1f} s; objective {model.objective_:.0f}, at most "
            f"{100 * model.certificate_:.1f} % above the optimum"
        )
        models[name] = model
    draw(models, [(images[i], words[i]) for i in test], options.picture)
    print(f"wrote {options.picture}")


def read_words(path):
    """Pixels of each word, a row for each letter; its letters; the fold it is in."""
    images, words, folds = [], [], []
    with lzma.open(path, "rt") as lines:
        for line in lines:
            _, letter, _, _, position, fold, *pixels = line.split()
            if position == "1":
                images.append([])
                words.append([])
                folds.append(int(fold))
            images[-1].append(np.array(pixels, dtype=np.float32))
            words[-1].append(letter)
    return [np.array(rows) for rows in images], words, np.array(folds)


def draw(models, test, path):
    figure = plt.figure(figsize=(11, 5.2), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1, 1.1])
    draw_words(left, models, test)
    draw_table(right, models["chain"])
    figure.savefig(path, dpi=150)


def draw_words(figure, models, test, n_shown=6):
    """Words that the chain reads right and single letters do not, the most wrong ones first."""
    alone, together = (model.predict([rows for rows, _ in test]) for model in models.values())
    cases = [
        (sum(a != t for a, t in zip(read, word, strict=True)), k)
        for k, (read, best, (_, word)) in enumerate(zip(alone, together, test, strict=True))
        if best == word and read != word
    ]
    axes = figure.subplots(n_shown, 1)
    figure.suptitle("read alone, read as a chain")
    for ax in axes:
        ax.axis("off")
    for ax, (_, k) in zip(axes, sorted(cases, reverse=True), strict=False):
        rows, word = test[k]
        ax.imshow(np.hstack([row.reshape(16, 8) for row in rows]), cmap="Greys", aspect="equal")
        for place, letter in enumerate(alone[k]):
            colour = ORANGE if letter != word[place] else "black"
            ax.text(8 * place + 3.5, 20, letter, color=colour, ha="center", va="center")
            ax.text(8 * place + 3.5, 26, word[place], color=BLUE, ha="center", va="center")
        ax.set_ylim(29, -1)


def draw_table(figure, model):
    ax = figure.subplots()
    largest = np.abs(model.transitions_).max()
    shown = ax.imshow(model.transitions_, cmap="RdBu", vmin=-largest, vmax=largest)
    ax.set_xticks(range(26), model.classes_)
    ax.set_yticks(range(26), model.classes_)
    ax.set(xlabel="next letter", ylabel="letter")
    ax.set_title("learnt scores of neighbours", loc="left")
    figure.colorbar(shown, ax=ax, shrink=0.8)


if __name__ == "__main__":
    main()
