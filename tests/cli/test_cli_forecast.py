"""`sublearn fit --method forecast` and `sublearn forecast` on a small CSV file."""

import csv
import io
import json

import numpy as np
import pytest

import sublearn as package
from sublearn.forecast import TubeLoss
from sublearn.kinds.load_files import read_loads


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Ten weeks of hours with a temperature, and the day after."""
    folder = tmp_path_factory.mktemp("loads")
    t = np.arange(24 * 7 * 5)
    temperature = 10 * np.sin(t / 100)
    load = 100 + 20 * np.sin(2 * np.pi * t / 24) + temperature
    times = np.datetime64("2022-01-03T00:00") + t.astype("timedelta64[h]")
    for name, rows in (("loads", slice(None, -24)), ("new", slice(-24, None))):
        lines = ["time,load,temperature"]
        table = zip(times[rows], load[rows], temperature[rows], strict=True)
        lines += [f"{when},{y:.4f},{x:.4f}" for when, y, x in table]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    future = "\n".join(["temperature", *(f"{x:.4f}" for x in temperature[-24:])])
    (folder / "future.csv").write_text(future + "\n")
    (folder / "plain.csv").write_text("load\n" + "\n".join(f"{y:.4f}" for y in load) + "\n")
    return folder


@pytest.fixture(scope="module")
def model(sublearn, files):
    path = files / "loads.model"
    done = sublearn("fit", files / "loads.csv", "--model", path, "--method", "forecast",
                    "--horizon", 3, "--n-jobs", 1, "--json", "-q")  # fmt: skip
    assert done.code == 0, done
    figures = json.loads(done.out)
    assert (figures["series"], figures["columns"]) == (1, 1)
    return path


def test_forecasts_come_as_csv_with_times_and_intervals(sublearn, files, model):
    done = sublearn("forecast", model, "--future", files / "future.csv", "--coverage", 0.8)
    assert done.code == 0, done
    rows = list(csv.reader(io.StringIO(done.out)))
    assert rows[0] == ["time", "load", "load low", "load high"]
    assert rows[1][0] == "2022-02-06 00:00:00"
    assert len(rows) == 4
    for _, load, low, high in rows[1:]:
        assert float(low) <= float(load) <= float(high)
    y, _ = read_loads(files / "new.csv", None)
    found = np.array([float(row[1]) for row in rows[1:]])
    assert np.abs(found - y.to_numpy()[:3]).max() < 5.0


def test_commands_for_rows_refuse_a_model_of_loads_and_inspect_shows_it(
    sublearn, files, model, tmp_path
):
    (tmp_path / "rows.txt").write_text("1 1 1\n0 0:1\n")
    done = sublearn("predict", model, tmp_path / "rows.txt")
    assert done.code == 2
    assert "got a LoadForecaster; use `sublearn forecast`" in done.err
    assert "it gives forecasts" in done.err
    done = sublearn("inspect", model, "--json")
    found = json.loads(done.out)
    assert (found["class"], found["n_series_in"], found["n_features_in"]) == (
        "LoadForecaster",
        1,
        1,
    )
    assert found["feature_names_in"].startswith("1 ")
    for option in ("--label", "--labels"):
        done = sublearn("inspect", model, option, "a")
        assert (done.code, f"{option}: needs weights by label" in done.err) == (2, True)


def test_an_update_moves_the_model_on(sublearn, files, model, tmp_path):
    copied = tmp_path / "copy.model"
    copied.write_bytes(model.read_bytes())
    done = sublearn("forecast", copied, "--update", files / "new.csv", "--future",
                    files / "future.csv", "--horizon", 2, "-o", tmp_path / "out.csv")  # fmt: skip
    assert done.code == 0, done
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[1].startswith("2022-02-07 00:00:00,")
    assert len(lines) == 3
    again = package.load(copied)
    assert str(again.predict(1, np.zeros((1, 1))).index[0]) == "2022-02-07 00:00:00"


def test_an_update_reads_the_columns_that_were_loads(sublearn, files, tmp_path):
    for name in ("loads", "new"):
        rows = csv.reader(io.StringIO((files / f"{name}.csv").read_text()))
        swapped = "".join(f"{when},{x},{y}\n" for when, y, x in rows)
        (tmp_path / f"{name}.csv").write_text(swapped)
    options = ["--method", "forecast", "--horizon", 3, "--target", "load", "--n-jobs", 1, "-q"]
    path = tmp_path / "m"
    assert sublearn("fit", tmp_path / "loads.csv", "--model", path, *options).code == 0
    done = sublearn("forecast", path, "--update", tmp_path / "new.csv")
    assert (done.code, "updated" in done.err) == (0, True), done
    assert package.load(path).notes_["target"] == "load"  # the model was saved again
    done = sublearn("forecast", path, "--future", files / "future.csv")
    assert done.code == 0, done
    first = float(list(csv.reader(io.StringIO(done.out)))[1][1])
    assert 60 < first < 140  # a load; temperatures lie between -10 and 10


def test_an_update_without_columns_to_come_is_an_update_alone(sublearn, files, model, tmp_path):
    copied = tmp_path / "copy.model"
    copied.write_bytes(model.read_bytes())
    done = sublearn("forecast", copied, "--update", files / "new.csv")
    assert (done.code, done.out) == (0, "")
    assert "a forecast needs --future" in done.err
    done = sublearn("forecast", copied, "--future", files / "future.csv", "--horizon", 1)
    assert done.out.splitlines()[1].startswith("2022-02-07 00:00:00,")


def test_what_is_refused_leaves_the_model_as_it_was(sublearn, files, model, tmp_path):
    copied = tmp_path / "copy.model"
    copied.write_bytes(model.read_bytes())
    (tmp_path / "short.csv").write_text("temperature\n1\n2\n")
    (tmp_path / "wind.csv").write_text("time,wind\n2022-02-07 00:00,1\n")
    (tmp_path / "late.csv").write_text("time,temperature\n2022-02-09 00:00,1\n")
    for name, words in (
        ("short", "short.csv: 3 rows are needed for the forecast, got 2"),
        ("wind", "X must have the columns of fit in their order, temperature, got wind"),
        ("late", "X must have the times of y, got 2022-02-09"),
    ):
        n = 3 if name == "short" else 1
        done = sublearn("forecast", copied, "--update", files / "new.csv", "--horizon", n,
                        "--future", tmp_path / f"{name}.csv")  # fmt: skip
        assert done.code == 1
        assert words in done.err
        assert copied.read_bytes() == model.read_bytes()


def test_clocks_that_change_holidays_and_a_quantile(sublearn, tmp_path):
    """Local hours around the last Sunday of October: 2 o'clock stands twice."""
    pd = pytest.importorskip("pandas")
    times = pd.date_range("2021-10-10", periods=24 * 30, freq="h", tz="Europe/Berlin")
    load = 100 + 20 * np.sin(2 * np.pi * times.hour / 24)
    lines = [f"{when:%Y-%m-%d %H:%M},{y:.4f}" for when, y in zip(times, load, strict=True)]
    (tmp_path / "loads.csv").write_text("\n".join(["time,load", *lines]))
    (tmp_path / "days.csv").write_text("date,name\n2021-11-01,All Saints\n")
    call = ("fit", tmp_path / "loads.csv", "--model", tmp_path / "m", "--method", "forecast", "-q")
    refused = sublearn(*call)
    assert (refused.code, "2021-10-31T02:00 which stands twice" in refused.err) == (1, True)
    done = sublearn(*call, "--time-zone", "Europe/Berlin", "--horizon", 1, "--quantile", 0.9,
                    "--holidays", tmp_path / "days.csv")  # fmt: skip
    assert done.code == 0, done
    model = package.load(tmp_path / "m")
    assert (model.time_zone_, model.loss) == ("Europe/Berlin", TubeLoss.quantile(0.9))
    assert model.holidays == ["2021-11-01"]
    done = sublearn("forecast", tmp_path / "m")
    assert done.out.splitlines()[1].startswith(str(times[-1] + pd.Timedelta("1h")))
    nowhere = sublearn(*call, "--time-zone", "Europe/Nowhere")
    assert (nowhere.code, "Europe/Nowhere" in nowhere.err) == (1, True)


def test_times_with_an_offset_are_read_as_such(tmp_path):
    pytest.importorskip("pandas")
    lines = ["time,load", "2021-10-31T02:00+02:00,1", "2021-10-31T02:00+01:00,2"]
    (tmp_path / "loads.csv").write_text("\n".join(lines))
    for zone, first in ((None, "2021-10-31 00:00:00+00:00"), ("Europe/Berlin", "2021-10-31 02:00")):
        y, _ = read_loads(tmp_path / "loads.csv", None, zone)
        assert str(y.index[0]).startswith(first)
        assert (y.index[1] - y.index[0]).total_seconds() == 3600


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("load,load\n1,2\n", "different names, got 'load' twice"),
        ("time\n2022-01-01 00:00\n", "a column of numbers is needed"),
        ("time,load\n2022-01-01 00:00,many\n", "line 2 must hold numbers, got 'many'"),
        ("time,load\nsoon,1\n", "the first column must hold numbers or times"),
    ],
)
def test_files_that_are_no_loads_are_refused(text, words, tmp_path):
    (tmp_path / "loads.csv").write_text(text)
    with pytest.raises(ValueError, match=words):
        read_loads(tmp_path / "loads.csv", None)


def test_refusals_are_sentences(sublearn, files, model, tmp_path):
    done = sublearn("fit", files / "loads.csv", "--model", tmp_path / "m", "--method", "forecast",
                    "--target", "demand")  # fmt: skip
    assert (done.code, "demand" in done.err) == (2, True)
    done = sublearn("fit", files / "loads.csv", "--model", tmp_path / "m", "--method", "forecast",
                    "--l1", 1)  # fmt: skip
    assert done.code == 2
    assert "--l1" in done.err
    done = sublearn("fit", "chain", files / "loads.csv", "--model", tmp_path / "m", "--horizon", 3)
    assert done.code == 2
    assert "--horizon" in done.err
    done = sublearn("forecast", model)
    assert done.code == 1
    assert "X must be as in fit" in done.err
    (tmp_path / "short.csv").write_text("time,load\n2022-01-01,1,2\n")
    done = sublearn("fit", tmp_path / "short.csv", "--model", tmp_path / "m", "--method",
                    "forecast")  # fmt: skip
    assert done.code == 1
    assert "must have 2 fields" in done.err


def test_a_file_without_times_is_a_plain_series(files):
    y, X = read_loads(files / "plain.csv", "load")
    assert isinstance(y, np.ndarray)
    assert X is None
