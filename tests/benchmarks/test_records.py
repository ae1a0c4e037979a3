"""What is kept of a table, the pages made of it, and the comparison of two runs."""

import json
import re
import sys
from pathlib import Path

import pytest
from harness import command, compare, pages, records
from harness.bench import Bench, Journal
from harness.table import Figures, Table

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^--8<-- "(measured/[\w.]+)"$', re.MULTILINE)
MACHINE = {
    "processor": "P", "cores": 2, "memory_gb": 4.0, "system": "Linux", "python": "3.11",
    "load_average": [1.5],
}  # fmt: skip
ORIGIN = {
    "commit": "c1c3d2dfb1e7c1c3", "modified": False, "seed": 0, "options": "",
    "date": "2026-11-16T19:49:57+00:00", "machine": MACHINE, "software": ["numpy 2"],
}  # fmt: skip
FIRST = Table("first", "A first thing", "Said of it.", lambda bench: None)
SECOND = Table("second", "A second thing", "And of this.", lambda bench: None)
COLUMNS = {"data": "", "share": ".2f>", "s": ".1f<", "count": ","}


def kept(table=FIRST, rows=(("a", 0.126, 2.0, 1234), ("b", None, 4.0, 5)), **origin):
    return records.records_of("things", table, Figures(COLUMNS, rows), ORIGIN | origin)


def test_a_record_is_a_row_that_can_be_read_alone(tmp_path):
    records.append(tmp_path / "new" / "r.jsonl", kept())
    first, second = records.read(tmp_path / "new" / "r.jsonl")
    assert (first["table"], first["row"], second["row"]) == ("things/first", 0, 1)
    assert first["cells"] == ["a", 0.126, 2.0, 1234]
    assert first["origin"]["commit"] == ORIGIN["commit"]
    assert records.read(tmp_path / "none.jsonl") == []


def test_a_table_prints_numbers_in_the_form_of_their_column():
    text = pages.page_of(kept())
    assert "### A first thing\n\nSaid of it.\n\n" in text
    assert "| data | share | s | count |\n| --- | ---: | ---: | ---: |" in text
    assert "| `a` | 0.13 | 2.0 | 1,234 |\n| `b` | - | 4.0 | 5 |" in text


def test_the_last_measurement_of_a_table_counts():
    text = pages.page_of(kept() + kept(rows=[("c", 1.0, 1.0, 1)]))
    assert text.count("### A first thing") == 1
    assert "`c`" in text
    assert "`a`" not in text


def test_one_run_is_a_list():
    text = pages.page_of(kept() + kept(SECOND, date="2026-11-17T01:02:03+00:00"))
    assert "- date (UTC): 2026-11-17 01:02\n- commit: c1c3d2dfb1e7\n" in text
    assert "| tables |" not in text


def test_of_several_runs_a_table_has_what_differs():
    text = pages.page_of(kept() + kept(SECOND, options="--limit 3", modified=True))
    assert "- machine: P, 2 cores, 4.0 GB" in text
    assert text.endswith(
        "| tables | commit | options |\n| --- | --- | --- |\n"
        "| `first` | c1c3d2dfb1e7 | `none` |\n"
        "| `second` | c1c3d2dfb1e7 with changes | `--limit 3` |\n"
    )


def test_compares_figures_of_which_less_or_more_is_better():
    before = kept()
    after = kept(rows=[("a", 0.252, 2.2, 9), ("b", 0.5, 4.0, 5), ("new", 1.0, 1.0, 1)])
    found = {change.key[1:]: change.ratio for change in compare.changes(before, after)}
    assert found == {
        ("a", 1, "share"): pytest.approx(0.5),
        ("a", 1, "s"): pytest.approx(1.1),
        ("b", 1, "s"): 1.0,
    }


def test_the_best_of_repeated_measurements_is_compared():
    slow, fast = ([("a", 0.5, seconds, 1)] for seconds in (3.0, 2.0))
    found = compare.changes(kept(rows=slow) + kept(rows=fast), kept(rows=fast) + kept(rows=slow))
    assert {change.ratio for change in found} == {1.0}


def test_a_comparison_flags_what_became_worse(tmp_path, capsys):
    for name, seconds in (("before", 2.0), ("after", 2.2)):
        records.append(tmp_path / f"{name}.jsonl", kept(rows=[("a", 0.5, seconds, 1)]))
    files = [str(tmp_path / f"{name}.jsonl") for name in ("before", "after")]
    assert command.main(["--compare", *files]) == 1
    shown = capsys.readouterr().out
    assert "things/first | a | s: 2 -> 2.2, ratio 1.100  WORSE" in shown
    assert "1 of 2 figures worse than 1.05" in shown
    assert command.main(["--compare", *reversed(files)]) == 0


def test_a_part_that_was_kept_is_not_made_again(tmp_path):
    made = []

    def make():
        made.append(1)
        return {"answer": len(made)}

    facts = {"commit": "a"}
    for _ in range(2):
        journal = Journal(tmp_path / "parts.jsonl", facts)
        assert journal.once({"k": 1}, make) == {"answer": 1}
    assert Journal(tmp_path / "parts.jsonl", {"commit": "b"}).once({"k": 1}, make)["answer"] == 2


def test_a_quick_bench_takes_few_and_small():
    full, quick = Bench(Path()), Bench(Path(), is_quick=True, cases=["b*"], limit=3.0)
    assert full.some([1, 2, 3]) == [1, 2, 3]
    assert quick.some([1, 2, 3], 2) == [1, 2]
    assert (full.size(9, 1), quick.size(9, 1)) == (9, 1)
    assert (full.limit(60.0), quick.limit(60.0)) == (60.0, 3.0)
    assert quick.cases(["a", "b1", "b2"], 2) == ["b1", "b2"]


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture
def things(tmp_path, monkeypatch):
    """A script with two tables, one of which lacks a package; the command knows it alone."""
    (tmp_path / "things.py").write_text(
        "from harness.table import Figures, Table\n"
        "def first(bench):\n"
        "    return Figures({'data': '', 's': '.1f<'}, [['a', bench.size(2.0, 1.0)]])\n"
        "def second(bench):\n"
        "    import no_such_rival\n"
        "def third(bench):\n"
        "    raise ValueError('no luck')\n"
        "TABLES = [Table(f.__name__, f.__name__, '', f) for f in (first, second, third)]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(command, "SCRIPTS", ("things",))

    def run(python, arguments, timeout):
        return str(command.main(arguments))

    monkeypatch.setattr(command, "_run", run)
    yield tmp_path / "r.jsonl"
    sys.modules.pop("things", None)


def test_lists_and_measures_what_is_named(things, capsys):
    assert command.main(["--list"]) == 0
    assert "things/second" in capsys.readouterr().out
    assert command.main(["--only", "things/first", "--json", str(things)]) == 0
    assert "| `a` | 2.0 |" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="must name tables of --list, got others"):
        command.main(["--only", "others"])


def test_what_is_not_installed_is_no_failure_and_an_error_is_one(things, capsys):
    assert command.main(["--only", "things/f*", "things/s*", "--json", str(things)]) == 0
    told = capsys.readouterr().err
    assert "things/second: missing: ModuleNotFoundError: No module named 'no_such_rival'" in told
    assert "1 ok, 1 missing, 0 failed" in told
    assert command.main(["--only", "things/third", "--json", str(things)]) == 1
    assert "things/third: failed: ValueError: no luck" in capsys.readouterr().err


def test_goes_on_where_it_was_stopped_unless_asked_otherwise(things, capsys):
    command.main(["--all", "--quick", "--json", str(things)])
    command.main(["--all", "--quick", "--json", str(things)])
    assert "2 tables to measure, 1 done before" in capsys.readouterr().err
    command.main(["--all", "--json", str(things)])
    told = capsys.readouterr().err
    assert "3 tables to measure, 0 done before" in told
    assert "things: not written, without things/second, things/third" in told
    cells = [json.loads(line)["cells"] for line in things.read_text().splitlines()]
    assert cells == [["a", 1.0], ["a", 2.0]]


def test_a_baseline_is_measured_in_turns_and_compared(things, capsys):
    name = ["--only", "things/first", "--repeat", "2", "--json", str(things)]
    command.main([*name, "--baseline", "python"])
    assert "things/first | a | s: 2 -> 2, ratio 1.000" in capsys.readouterr().out
    assert len(things.read_text().splitlines()) == 2
    assert len(things.with_suffix(".baseline.jsonl").read_text().splitlines()) == 2


# --- the scripts and the pages --------------------------------------------------------------------


@pytest.mark.parametrize("script", command.SCRIPTS)
def test_tables_have_names_of_their_own_and_say_what_they_show(script):
    found = command.tables(script)
    if found and found[0].name == "*":
        pytest.skip(found[0].title)
    assert len({table.name for table in found}) == len(found)
    assert all(table.title and callable(table.measure) for table in found)


def included():
    pages_of = (path.read_text() for path in sorted((ROOT / "docs").rglob("*.md")))
    return {name for text in pages_of for name in INCLUDE.findall(text)}


def test_every_page_is_included_and_was_written_by_the_command():
    written = {f"measured/{path.name}" for path in (ROOT / "docs" / "measured").glob("*.md")}
    assert written == included()
    for name in written:
        assert (ROOT / "docs" / name).read_text().startswith(f"{pages._HEAD}\n")


def test_every_page_has_tables_that_write_it():
    wanted = set()
    for script in command.SCRIPTS:
        for table in command.tables(script):
            if table.page is not None:
                wanted.add(pages.path_of(table.page or script))
    assert {ROOT / "docs" / name for name in included()} <= wanted
