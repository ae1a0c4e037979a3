"""Charts: what is drawn of figures, and which pages show it."""

import os
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from harness import charts, command, pages, papers, records
from harness.pictured import pictured
from harness.scales import scale_over, told
from harness.svg import COLOURS, DASHES, marker
from harness.table import Chart, Figures, Series, Table

ROOT = Path(__file__).resolve().parents[2]
MACHINE = {
    "processor": "P", "cores": 2, "memory_gb": 4.0, "system": "Linux", "python": "3.11",
    "load_average": [1.5],
}  # fmt: skip
ORIGIN = {
    "commit": "c1c3d2dfb1e7c1c3", "modified": False, "seed": 0, "options": "",
    "date": "2026-11-16T19:49:57+00:00", "machine": MACHINE, "software": ["numpy 2"],
}  # fmt: skip
CURVE = Series("ours", [1, 10, 100], [3.0, 2.0, 1.5], [2.5, 1.9, 1.4], [3.5, 2.1, 1.6])
RIVAL = Series("theirs", [1, 10, 100], [4.0, None, 2.5])
LINES = Chart("gap", "A gap", "CPU s", "objective", [CURVE, RIVAL], log_x=True, log_y=True)
NAMED = [Series("a", ["x < 1", "y & z"], [1.0, 40.0]), Series("b", ["x < 1", "y & z"], [2.0, None])]
BARS = Chart("bars", "Ratios", "data", "ratio", NAMED, "bars", log_y=True)


def elements(chart):
    root = ET.fromstring(charts.drawn(chart))
    return [(e.tag.rpartition("}")[2], e.get("class", ""), e.text or "", e.attrib) for e in root]


def texts(chart):
    return [text for tag, _, text, _ in elements(chart) if tag == "text"]


def paths(chart, look):
    return [more["d"] for tag, kind, _, more in elements(chart) if look in kind.split()]


def xs_of(path):
    return [float(pair.split()[0]) for pair in path.strip("MZ").split("L")]


# --- scales ---------------------------------------------------------------------------------------


def test_an_axis_holds_all_values_and_marks_round_ones():
    scale = scale_over([3.0, 47.0], 6)
    assert 0 < scale(3.0) < scale(47.0) < 1
    assert scale.ticks == (10.0, 20.0, 30.0, 40.0)


def test_a_log_axis_gives_each_decade_the_same_length_and_marks_it():
    scale = scale_over([0.01, 1.0, 100.0], 6, is_log=True)
    assert scale(1.0) - scale(0.01) == pytest.approx(scale(100.0) - scale(1.0))
    assert scale.ticks == (0.01, 0.1, 1.0, 10.0, 100.0)
    assert not scale.has(0.0)
    assert len(scale_over([2.0, 2.1], 6, is_log=True).ticks) > 1


def test_an_axis_of_one_value_or_none_can_be_drawn():
    assert 0 < scale_over([5.0], 6)(5.0) < 1
    assert len(scale_over([], 6).ticks) > 1
    assert scale_over([0.0, 0.0], 6, is_log=True).ticks


def test_values_beside_an_axis_are_short():
    values = (0, 0.05, 250.0, -3.0, 1e5, 2e6, 1e-7)
    assert [told(v) for v in values] == ["0", "0.05", "250", "−3", "100,000", "2·10⁶", "10⁻⁷"]


# --- pictures -------------------------------------------------------------------------------------


def test_the_same_figures_give_the_same_bytes_also_from_a_record():
    table = Table("t", "T", "", lambda bench: None)
    figures = Figures({"a": ""}, [["1"]], charts=[LINES])
    kept = records.records_of("s", table, figures, ORIGIN)[0]["charts"][0]
    assert charts.drawn(charts.chart_of(kept)) == charts.drawn(LINES)


def test_a_chart_without_name_and_title_has_those_of_its_table():
    table = Table("t", "A title", "", lambda bench: None)
    bare = Chart("", "", "x", "y", [CURVE])
    kept = records.records_of("s", table, Figures({"a": ""}, [["1"]], charts=[bare, LINES]), ORIGIN)
    assert [(c["name"], c["title"]) for c in kept[0]["charts"]] == [
        ("t", "A title"),
        ("gap", "A gap"),
    ]


def test_a_line_has_a_band_and_breaks_where_a_value_is_missing():
    (band,) = paths(LINES, "band")
    assert len(xs_of(band)) == 6
    assert len(paths(LINES, "line")) == 2 + 1  # two of the legend; no line through a single point
    assert len(paths(LINES, "f1")) == 1 + 2
    assert {"A gap", "CPU s", "objective", "ours", "theirs"} <= set(texts(LINES))


def test_equal_factors_are_equal_lengths_on_log_axes():
    first, second, third = xs_of(paths(LINES, "line")[2])
    assert second - first == pytest.approx(third - second, abs=0.2)


def test_values_that_a_log_axis_cannot_have_are_left_out():
    chart = Chart("c", "C", "x", "y", [Series("", [1, 2, 3], [0.0, 1.0, 2.0])], log_y=True)
    assert len(xs_of(paths(chart, "line")[-1])) == 2


def test_bars_say_their_values_and_names_and_what_is_missing():
    shown = texts(BARS)
    assert {"x < 1", "y & z", "40", "2", "–"} <= set(shown)
    bars = [xs_of(d) for n in (0, 1) for d in paths(BARS, f"f{n}")[1:]]
    assert [len(bar) for bar in bars] == [4, 4, 4]
    assert bars[0][0] == bars[1][0]  # from the same base
    assert max(bars[1]) > max(bars[2]) > bars[0][0]


def test_points_with_names_have_a_row_each_and_whiskers():
    series = Series("s", ["one", "two"], [1.0, 3.0], [0.5, 2.5], [1.5, 3.5])
    chart = Chart("p", "P", "data", "seconds", [series], "points")
    assert {"one", "two"} <= set(texts(chart))
    assert len(paths(chart, "whisker")) == 2 * 3


def test_refuses_series_of_unequal_lengths_and_rows_without_end():
    with pytest.raises(ValueError, match="chart c: x, y, low and high of a series must be equally"):
        charts.drawn(Chart("c", "C", "x", "y", [Series("", [1, 2], [1.0])]))
    many = [str(n) for n in range(61)]
    with pytest.raises(ValueError, match="chart c: at most 60 names, got 61"):
        charts.drawn(Chart("c", "C", "x", "y", [Series("", many, [1.0] * 61)], "bars"))


def test_sixteen_series_differ_by_marker_or_dash():
    looks = {(marker(n, 0, 0), DASHES[(n + n // 8) % 8], n % 8) for n in range(16)}
    assert len(looks) == 16
    assert len({(marker(n, 0, 0), n % 8) for n in range(16)}) == 16


@pytest.mark.parametrize(("scheme", "page"), [("light", "#ffffff"), ("dark", "#1e2129")])
def test_colours_stand_out_from_their_page(scheme, page):
    def luminance(colour):
        parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    for colour in COLOURS[scheme]:
        dark, light = sorted((luminance(colour), luminance(page)))
        assert (light + 0.05) / (dark + 0.05) >= 3


def test_writes_the_pictures_of_a_page_and_removes_those_it_had_before(tmp_path):
    (tmp_path / "page-old.svg").write_text("")
    (tmp_path / "other-old.svg").write_text("")
    charts.write(tmp_path, "page", [LINES])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["other-old.svg", "page-gap.svg"]
    with pytest.raises(ValueError, match="page page: two charts have the name gap"):
        charts.write(tmp_path, "page", [LINES, LINES])


# --- which charts a page has ----------------------------------------------------------------------


def rows_of(columns, rows, name="t", **more):
    table = Table(name, "A title", "", lambda bench: None)
    return records.records_of("reproduction.s", table, Figures(columns, rows, **more), ORIGIN)


def test_ratios_of_entrants_become_bars():
    columns = {"entrant": "", "fit CPU s": ".2f<", "ratio": ".2f", "P@1": ".4f>"}
    (chart,) = pictured(
        rows_of(columns, [["a", 1.0, 1.0, 0.5], ["b", 2, 2, 0.5], ["c", 3, 3, 0.4]])
    )
    assert (chart.kind, chart.y, chart.log_y) == ("bars", "fit CPU s: ratio", True)
    assert chart.series[0].x == ["a", "b", "c"]


def test_ratios_on_several_data_sets_become_points_of_entrants():
    rows = [[d, e, 1.0, 2.0] for d in ("d1", "d2", "d3") for e in ("ours", "theirs")]
    columns = {"data": "", "entrant": "", "s": ".1f<", "ratio to best": ".1f"}
    (chart,) = pictured(rows_of(columns, rows))
    assert (chart.kind, [s.name for s in chart.series]) == ("points", ["ours", "theirs"])
    assert list(chart.series[0].x) == ["d1", "d2", "d3"]


def test_costs_over_sizes_become_lines():
    columns = {"method": "", "s, 1,000": ".2f<", "s, 2,000": ".2f<", "s, 8,000": ".2f<", "b": ".2f"}
    (chart,) = pictured(rows_of(columns, [["a", 1.0, 2.0, 8.0, 1.0], ["b", None, 1, 20, 2.0]]))
    assert (chart.kind, chart.y, chart.log_x) == ("line", "s", True)
    assert (chart.series[1].x, chart.series[1].y) == ([1000, 2000, 8000], [None, 1.0, 20.0])


def test_a_table_that_says_nothing_of_ratios_or_sizes_has_no_chart():
    columns = {"method": "", "P@1": ".2f>", "P@3": ".2f>", "P@5": ".2f>", "CPU s": ".1f<"}
    assert pictured(rows_of(columns, [["a", 0.1, 0.2, 0.3, 1.0]] * 3)) == []


def test_a_page_shows_charts_above_a_folded_table(monkeypatch):
    monkeypatch.setattr(pages, "_way_to_pictures", lambda page: "../pictures/charts")
    text = pages.page_of(
        rows_of({"n": ""}, [[str(n)] for n in range(13)], charts=[LINES]), "yen2018"
    )
    assert "\n\n![A gap](../pictures/charts/yen2018-gap.svg)\n\n??? note" in text
    assert "\n    | `12` |\n" in text
    short = pages.page_of(rows_of({"n": ""}, [["1"]], charts=[LINES]), "yen2018")
    assert ".svg)\n\n| n |" in short
    assert "svg" not in pages.page_of(rows_of({"n": ""}, [["1"]], charts=[LINES]))


def test_pictures_are_found_from_the_page_that_includes_the_tables():
    assert pages._way_to_pictures("linear") == "pictures/charts"
    assert pages._way_to_pictures("yen2018") == "../pictures/charts"


def test_a_chart_with_a_fault_is_told_and_left_out(capsys):
    uneven = Chart("c", "C", "x", "y", [Series("", [1, 2], [1.0])])
    text = pages.page_of(rows_of({"n": ""}, [["1"]], charts=[uneven, LINES]), "yen2018")
    assert text.count(".svg)") == 1
    assert "reproduction.s/t: chart c: x, y, low and high" in capsys.readouterr().err


def test_values_that_are_no_numbers_are_gaps():
    series = Series("s", [1, 2, 3], [1.0, float("nan"), 2.0], [0.5, 0.5, float("nan")], [2.0] * 3)
    whole = charts.drawn(Chart("c", "C", "x", "y", [series], "points"))
    assert "nan" not in whole
    assert whole.count('class="whisker') == 3


def test_every_picture_of_a_page_is_there_from_where_it_is_shown():
    for path in sorted((ROOT / "docs").rglob("*.md")):
        for name in re.findall(r'^--8<-- "([\w./]+)"$', path.read_text(), re.MULTILINE):
            text = (ROOT / "docs" / name).read_text()
            for link in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text):
                assert os.path.exists(path.parent / link), f"{path.name} shows {link} of {name}"


def test_every_picture_is_shown_by_a_page():
    shown = {
        Path(link).name
        for path in [
            *(ROOT / "docs" / "measured").glob("*.md"),
            ROOT / "docs/benchmarks_results.md",
        ]
        for link in re.findall(r"\]\(([^)]+\.svg)\)", path.read_text())
    }
    assert shown == {path.name for path in pages.PICTURES.glob("*.svg")}


# --- papers ---------------------------------------------------------------------------------------


@pytest.fixture
def paper(tmp_path, monkeypatch):
    """A paper with two tables, one of them with rows that are judged."""
    folder = tmp_path / "reproduction"
    folder.mkdir()
    (tmp_path / "some_papers.py").write_text(
        "from harness.table import Chart, Figures, Series, Table\n"
        "from harness.verdicts import verdict\n"
        "def first(bench):\n"
        "    def row(paper): return ['a', 1.0, paper, verdict(paper, 1.0, is_less_better=True)]\n"
        "    rows = [row(paper) for paper in (1.0, 2.0, 0.5)]\n"
        "    chart = Chart('curve', 'A curve', 'x', 'y', [Series('', [1, 2], [1.0, 2.0])])\n"
        "    columns = {'data': '', 'paper': '.1f', 'ours': '.1f<', 'verdict': ''}\n"
        "    return Figures(columns, rows, charts=[chart])\n"
        "def second(bench):\n"
        "    return Figures({'data': '', 'ours': '.1f<'}, [['a', 1.0]])\n"
        "TABLES = [Table('table_1', 'First', '', first, page='ours2000'),\n"
        "          Table('figure_2', 'Second', '', second, page='ours2000')]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import some_papers

    monkeypatch.setattr(
        command, "tables", lambda s: some_papers.TABLES if s == "reproduction.some" else []
    )
    monkeypatch.setattr(command, "SCRIPTS", ("reproduction.some",))
    monkeypatch.setattr(command, "_run", lambda p, arguments, t: str(command.main(arguments)))
    monkeypatch.setattr(papers, "PAPERS", {"ours2000": papers.Paper("Ours", ("some",))})
    for name in ("PICTURES", "_DOCS"):
        monkeypatch.setattr(pages, name, tmp_path / name)
    (tmp_path / "_DOCS" / "measured").mkdir(parents=True)
    yield tmp_path
    import sys

    sys.modules.pop("some_papers")


def test_a_paper_is_measured_by_short_names_and_its_verdicts_are_summed_up(paper, capsys):
    kept = ["--json", str(paper / "r.jsonl")]
    assert papers.main(["--list"]) == 0
    assert "  some/table_1 " in capsys.readouterr().out
    assert papers.main(["--paper", "ours", "--only", "table_*", *kept]) == 0
    told = capsys.readouterr().err
    assert "reproduction.some/table_1: 3 rows" in told
    assert "ours2000: reproduced 1, better 1, worse 1, not possible here 0 (1 of 2 tables" in told
    with pytest.raises(SystemExit, match="--only must name tables of --list, got table_9"):
        papers.main(["--only", "table_9", *kept])
    with pytest.raises(SystemExit, match="--paper must be among ours2000, got theirs"):
        papers.main(["--paper", "theirs"])


def test_the_page_of_a_paper_is_written_with_verdicts_and_what_is_lacking(paper):
    kept = ["--json", str(paper / "r.jsonl")]
    papers.main(["--only", "some/table_1", *kept])
    assert papers.main(["--render", *kept]) == 0
    text = (paper / "_DOCS" / "measured" / "ours2000.md").read_text()
    assert "Of 3 rows: reproduced 1, better 1, worse 1, not possible here 0.\n\n" in text
    assert "| First | 1 | 1 | 1 | 0 |\n| **all** | **1** | **1** | **1** | **0** |" in text
    assert "Not measured yet: `some/figure_2`." in text
    assert "![A curve](../../PICTURES/ours2000-curve.svg)" in text
    assert (paper / "PICTURES" / "ours2000-curve.svg").exists()
    papers.main(["--only", "reproduction.some/figure_2", *kept])
    command.main(["--render", *kept])
    assert "Not measured yet" not in (paper / "_DOCS" / "measured" / "ours2000.md").read_text()
