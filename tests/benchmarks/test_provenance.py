"""Where and how figures were taken, of one run and of several."""

import pytest
from harness.provenance import TITLE, joined_page, written

RUN = {
    "date": "2026-11-16T19:49:57+00:00",
    "commit": "c1c3d2dfb1e7",
    "system": "Linux, load average 8.8 at the end",
    "options": "`--only speed`",
    "seed": "0",
}
LATER = RUN | {"date": "2026-11-17T01:02:03+00:00", "options": "`--only growth --size 3`"}
COMMENT = "<!-- Written by benchmarks/a.py with --markdown; do not edit. -->"


def page(title, figure, section):
    table = f"### {title}\n\n| a | b |\n| --- | ---: |\n| `x` | {figure} |"
    return f"{COMMENT}\n\n{table}\n\n{TITLE}\n\n{section}\n"


def test_one_run_is_a_list():
    assert written([RUN]).splitlines()[:2] == [f"- date: {RUN['date']}", "- commit: c1c3d2dfb1e7"]


def test_of_several_runs_a_table_has_what_differs():
    text = written([RUN, LATER])
    assert "- commit: c1c3d2dfb1e7\n- system: Linux\n- load: 8.8\n- seed: 0" in text
    assert text.endswith(
        "| tables | date (UTC) | options |\n"
        "| --- | --- | --- |\n"
        "| `speed` | 2026-11-16 19:49 |  |\n"
        "| `growth` | 2026-11-17 01:02 | `--only growth --size 3` |"
    )


def test_names_of_tables_that_are_given_count_and_files_of_a_run_do_not():
    odd = RUN | {"tables": "`a`, `b`", "options": "`--runs results/x.jsonl --limit 3 --resume`"}
    assert "| `a`, `b` | `--limit 3` |" in written([odd, RUN])


def test_pages_put_together_become_one_and_stay_so():
    first, second = page("One", "1.5", written([RUN])), page("Two", "2.5", written([LATER]))
    joined = joined_page(first + "\n" + second)
    assert joined.count(COMMENT) == joined.count(TITLE) == 1
    assert joined.index("| `x` | 1.5 |") < joined.index("| `x` | 2.5 |") < joined.index(TITLE)
    assert joined.endswith(written([RUN, LATER]) + "\n")
    assert joined_page(joined) == joined


def test_a_table_and_a_list_are_joined_too():
    named = [RUN | {"tables": "`a`"}, LATER | {"tables": "`b`"}]
    third = RUN | {"options": "`--only c`", "commit": "0123456789ab"}
    text = joined_page(page("One", "1", written(named)) + page("Two", "2", written([third])))
    rows = [line for line in text.splitlines() if line.startswith("| `")][2:]
    assert [row.split(" | ")[0] for row in rows] == ["| `a`", "| `b`", "| `c`"]
    assert rows[2].count("0123456789ab") == 1


def test_one_page_of_one_run_stays_as_it_is():
    text = page("One", "1", written([RUN]))
    assert joined_page(text) == text


def test_a_page_without_the_section_is_refused():
    with pytest.raises(ValueError, match="Where and how"):
        joined_page("# nothing")
