"""Pictures are true to their numbers."""

import re

import pytest

from sublearn.cli.charts import Axis, bars, dots, lines


def test_bars_on_both_sides_have_one_scale():
    picture = bars("weights", [("a", 4.0), ("b", -2.0), ("c", 1.0)])
    widths = [float(w) for w in re.findall(r'<rect [^>]*width="([\d.]+)"', picture)]
    assert widths == pytest.approx([4 * widths[2], 2 * widths[2], widths[2]], rel=0.02)
    ends = [float(x) for x in re.findall(r'<rect x="([\d.]+)"', picture)]
    assert ends[0] == ends[2] == pytest.approx(ends[1] + widths[1], abs=0.2)


@pytest.mark.parametrize(
    "axis",
    [
        Axis.of("x", [3.0, 4.0]),
        Axis.of("x", [1e-3, 1e4], is_log=True),
        Axis.of("x", [30, 40], is_log=True),
        Axis.of("x", [5.0]),
        Axis.of("x", [float("nan")]),
    ],
)
def test_ticks_stand_on_the_axis(axis):
    ticks = axis.ticks()
    assert len(ticks) > 1
    assert all(0 <= axis.place(tick) <= 1 for tick in ticks)


def test_names_are_escaped_and_what_is_not_finite_is_left_out():
    axes = Axis.of("x", [0, 1]), Axis.of("y", [0, 1])
    picture = lines("a < b", *axes, [("<i>", [0, 1, 2], [0.0, float("nan"), 1.0])])
    assert "<i>" not in picture
    assert len(re.search(r'points="([^"]*)"', picture)[1].split()) == 2
    assert "&lt;script&gt;" in dots("t", *axes, [(0.5, 0.5, "<script>", 1)], is_named=True)
