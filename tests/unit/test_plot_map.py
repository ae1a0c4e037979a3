"""plot_map: the image has a colour for each label, the legend names those that occur."""

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from sublearn.graph import FactorGraph, plot_map, potts

LABELS = np.array([0, 0, 2, 2, 0, 2])


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_labels_become_colours_and_a_legend():
    graph = FactorGraph.grid(np.zeros((2, 3, 4)), potts(4))
    ax = plot_map(graph, LABELS)
    colours = ax.images[0].get_array()
    assert colours.shape == (2, 3, 3)
    same = (colours == colours[0, 0]).all(axis=2)
    np.testing.assert_array_equal(same, LABELS.reshape(2, 3) == 0)
    assert legend_of(ax) == ["0", "2"]


def test_an_image_lies_below_and_labels_have_names():
    _, axes = plt.subplots()
    names = ["sky", "tree", "water"]
    ax = plot_map((2, 3), LABELS.reshape(2, 3), image=np.eye(2, 3), label_names=names, ax=axes)
    assert ax is axes
    assert len(ax.images) == 2
    assert ax.images[1].get_alpha() == 0.55
    assert legend_of(ax) == ["sky", "water"]


def test_colours_may_be_chosen():
    ax = plot_map((1, 2), [1, 0], colours=["red", "blue"])
    assert ax.images[0].get_array()[0].tolist() == [[0, 0, 1], [1, 0, 0]]


def test_many_labels_keep_distinct_colours():
    labels = np.arange(40)
    colours = plot_map((4, 10), labels).images[0].get_array().reshape(40, 3)
    assert len(np.unique(colours, axis=0)) == 40


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        ((FactorGraph([2, 2]), [0, 1]), {}, "must be made by FactorGraph.grid or be"),
        (((2, 0), []), {}, r"must be a grid or \(height, width\), got \(2, 0\)"),
        (((2, 3), [0, 1]), {}, "must be 6 integers for a grid of 2 x 3, got shape"),
        (((1, 1), [-1]), {}, "must not be negative, got -1"),
        (((1, 1), [0.5]), {}, "must be 1 integers"),
        (
            ((1, 1), [3]),
            {"label_names": ["a"]},
            "label_names must have one for each of 4 labels, got 1",
        ),
        (((1, 1), [3]), {"colours": ["r"]}, "colours must have one for each of 4 labels, got 1"),
        (((1, 1), [0]), {"image": np.zeros((2, 2))}, r"image must have shape \(1, 1\)"),
    ],
)
def test_refuses(arguments, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        plot_map(*arguments, **options)
