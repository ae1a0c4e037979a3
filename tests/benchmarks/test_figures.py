"""Figures about the library alone: records, their tables, and the pages that include them."""

import json
import os
import re
import time
from pathlib import Path

import numpy as np
import pytest
from harness.figures import Figures, Measurement, main, median_ms, ms_per_row
from harness.machine import group_seconds
from harness.provenance import TITLE
from harness.synthetic import Documents, make_documents

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^--8<-- "(measured/[\w.]+)"$', re.MULTILINE)

MEASUREMENTS = [
    Measurement(
        "first",
        "A first thing",
        "Said of it.",
        lambda directory, seed: Figures(
            {"data": "", "share": ".2f", "count": ","}, [["a", 0.126, 1234], ["b", None, 5]]
        ),
    ),
    Measurement(
        "second",
        "A second thing",
        "And of this.",
        lambda directory, seed: Figures({"data": "", "seed": "d"}, [["c", seed]]),
    ),
]


def test_a_table_prints_numbers_in_the_form_of_their_column(capsys):
    assert main("Things", MEASUREMENTS, ["--only", "first"]) == 0
    printed = capsys.readouterr().out
    assert "### A first thing\n\nSaid of it.\n\n" in printed
    assert "| data | share | count |\n| --- | ---: | ---: |" in printed
    assert "| `a` | 0.13 | 1,234 |\n| `b` | - | 5 |" in printed
    assert "A second thing" not in printed


def test_a_page_from_a_record_is_the_page_of_the_run(tmp_path):
    record, run, again = tmp_path / "r.json", tmp_path / "run.md", tmp_path / "folder" / "again.md"
    main("Things", MEASUREMENTS, ["--seed", "7", "--json", str(record), "--markdown", str(run)])
    main("Things", MEASUREMENTS, ["--records", str(record), "--markdown", str(again)])
    assert again.read_text() == run.read_text()
    assert "| `c` | 7 |" in run.read_text()
    assert "commit: " in run.read_text()
    content = json.loads(record.read_text())
    assert [part["name"] for part in content["tables"]] == ["first", "second"]
    assert content["tables"][0]["rows"][0] == ["a", 0.126, 1234]


def test_a_page_may_show_some_tables_of_a_record(tmp_path, capsys):
    record = tmp_path / "r.json"
    main("Things", MEASUREMENTS, ["--json", str(record)])
    capsys.readouterr()
    main("Things", MEASUREMENTS, ["--only", "second", "--records", str(record)])
    printed = capsys.readouterr().out
    assert "A second thing" in printed
    assert "A first thing" not in printed


def test_resuming_measures_only_what_the_record_lacks(tmp_path, capsys):
    record = tmp_path / "r.json"
    main("Things", MEASUREMENTS, ["--json", str(record), "--only", "first"])
    content = json.loads(record.read_text())
    content["tables"][0]["rows"] = [["kept", 0.5, 1]]
    record.write_text(json.dumps(content))
    main("Things", MEASUREMENTS, ["--json", str(record), "--resume"])
    tables = json.loads(record.read_text())["tables"]
    assert [part["name"] for part in tables] == ["first", "second"]
    assert tables[0]["rows"] == [["kept", 0.5, 1]]


def test_refuses_to_resume_a_record_of_another_seed(tmp_path):
    record = tmp_path / "r.json"
    main("Things", MEASUREMENTS, ["--json", str(record), "--only", "first"])
    with pytest.raises(SystemExit, match="of another commit or seed"):
        main("Things", MEASUREMENTS, ["--json", str(record), "--resume", "--seed", "3"])


def test_refuses_a_measurement_that_is_not_there(capsys):
    with pytest.raises(SystemExit):
        main("Things", MEASUREMENTS, ["--only", "third"])
    assert "third" in capsys.readouterr().err


def test_times_are_for_each_row_and_for_each_call():
    calls = []
    assert ms_per_row(lambda: calls.append(1), n_rows=10, repeat=3) >= 0
    assert median_ms([lambda: calls.append(1)] * 4) >= 0
    assert len(calls) == 7


def test_counts_the_cpu_seconds_of_a_group_of_processes():
    before = group_seconds(os.getpgrp())
    if before is None:
        pytest.skip("only Linux tells")
    start = time.process_time()
    while time.process_time() - start < 0.2:
        pass
    assert group_seconds(os.getpgrp()) >= before + 0.1


def test_settings_are_chosen_on_training_rows_alone():
    from tuning import DEFAULT, folded, validated

    size = Documents(n_train=80, n_test=10, n_features=200, n_labels=6, n_groups=2)
    split = make_documents(size, 0)
    train_only = type(split)(split.train, test={}, truth={})
    row = validated(train_only, DEFAULT, folds=4, held=2, seed=0)
    assert row[: len(DEFAULT)] == list(DEFAULT.values())
    assert 0 <= row[-2] <= 1
    held = np.concatenate([test for _, test in folded(80, 4, 4, seed=0)])
    assert sorted(held.tolist()) == list(range(80))


def test_a_drawn_model_of_a_million_labels_predicts():
    from serving import MILLION, WEIGHTS_PER_FEATURE, two_features, wide_model

    model = wide_model(3, seed=0)
    assert model.coef_.shape == (MILLION, 3)
    assert model.coef_.nnz == 3 * WEIGHTS_PER_FEATURE
    labels, scores = model.predict_top_k(two_features(3, 0), k=5)
    assert labels.shape == (1, 5)
    assert (np.diff(scores[0]) <= 0).all()


def pages():
    return [path for path in sorted((ROOT / "docs").rglob("*.md")) if "--8<--" in path.read_text()]


def test_every_included_table_exists_and_names_the_script_that_wrote_it():
    found = [name for page in pages() for name in INCLUDE.findall(page.read_text())]
    assert found
    for name in found:
        first = (ROOT / "docs" / name).read_text().splitlines()[0]
        script = re.fullmatch(r"<!-- Written by (benchmarks/\w+\.py) with .*-->", first)
        assert script is not None, name
        assert (ROOT / script[1]).exists(), name


def test_no_table_is_written_and_not_included():
    included = {name for page in pages() for name in INCLUDE.findall(page.read_text())}
    written = {f"measured/{path.name}" for path in (ROOT / "docs" / "measured").glob("*.md")}
    assert written == included


def test_a_table_that_goes_on_in_another_record_is_one_table(tmp_path, capsys):
    records = [tmp_path / "a.json", tmp_path / "b.json"]
    for record in records:
        main("Things", MEASUREMENTS, ["--only", "first", "--json", str(record)])
    capsys.readouterr()
    page = tmp_path / "page.md"
    main("Things", MEASUREMENTS, ["--records", *map(str, records), "--markdown", str(page)])
    alone = tmp_path / "alone.md"
    main("Things", MEASUREMENTS, ["--records", str(records[0]), "--markdown", str(alone)])
    headings = [line for line in page.read_text().splitlines() if line.startswith("### ")]
    assert headings == [line for line in alone.read_text().splitlines() if line.startswith("### ")]
    figures = page.read_text().partition(TITLE)[0]
    rows = [line for line in figures.splitlines() if line.startswith("|")]
    of_one = [line for line in alone.read_text().splitlines() if line.startswith("|")]
    assert len(rows) == 2 * len(of_one) - 2  # one head and one ruler
