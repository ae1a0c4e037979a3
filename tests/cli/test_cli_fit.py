"""`sublearn fit`, and `inspect` of what it wrote."""

import inspect
import json
import os
import signal
import subprocess
import time

import numpy as np
import pytest
from tiny_data import N_FEATURES, N_LABELS, N_ROWS, command_line, environment

import sublearn as package
from sublearn.cli.fitting import class_of
from sublearn.cli.methods import METHODS
from sublearn.cli.params import params_of
from sublearn.extreme import PPDSparseClassifier, TextTagger


def test_fit_prints_a_table_and_writes_a_model(sublearn, files, tmp_path):
    done = sublearn("fit", files["txt"], "--model", tmp_path / "m")
    assert done.code == 0, done
    assert f"{N_ROWS} rows, {N_FEATURES} features, {N_LABELS} labels" in done.out
    assert isinstance(package.load(tmp_path / "m"), PPDSparseClassifier)
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_quiet_says_nothing(sublearn, files, tmp_path):
    done = sublearn("fit", files["txt"], "--model", tmp_path / "m", "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_json_is_one_object_and_alone_on_standard_output(sublearn, files, tmp_path):
    done = sublearn("fit", files["txt"], "--model", tmp_path / "m", "--json")
    figures = json.loads(done.out)
    coef = package.load(tmp_path / "m").coef_
    assert (figures["rows"], figures["features"], figures["labels"]) == (
        N_ROWS,
        N_FEATURES,
        N_LABELS,
    )
    assert figures["weights"] == coef.nnz
    assert figures["model_bytes"] == (tmp_path / "m").stat().st_size
    assert 0 < figures["duals"] <= N_ROWS * N_LABELS


def test_options_reach_the_estimator(sublearn, files, tmp_path):
    options = {
        "C": 0.5,
        "l1": 0.2,
        "loss": "hinge",
        "fit-intercept": "fixed",
        "tol": 0.05,
        "max-iter": 300,
    }
    flags = [part for name, value in options.items() for part in (f"--{name}", value)]
    done = sublearn(
        "fit", files["txt"], "-m", tmp_path / "m", *flags, "--random-state", 7, "--n-jobs", 1, "-q"
    )
    assert done.code == 0, done
    params = package.load(tmp_path / "m").get_params()
    assert {name: params[name.replace("-", "_")] for name in options} == options
    assert (params["random_state"], params["n_jobs"]) == (7, 1)


def test_class_weights_reach_both_methods_and_early_stopping_one(sublearn, files, tmp_path):
    for method, flags in (("ppd-sparse", []), ("pd-sparse", ["--early-stopping", 3])):
        path = tmp_path / method
        options = ("--method", method, "--class-weight", "balanced", *flags)
        done = sublearn("fit", files["txt"], "-m", path, *options, "-q")
        assert done.code == 0, done
        assert package.load(path).get_params()["class_weight"] == "balanced"
    assert package.load(tmp_path / "pd-sparse").get_params()["early_stopping"] == 3
    done = sublearn("fit", "ppd-sparse", files["txt"], "-m", tmp_path / "x", "--early-stopping", 3)
    assert done.code != 0
    assert "No such option: --early-stopping" in done.err


def test_fewer_bits_make_a_smaller_file(sublearn, files, tmp_path):
    for bits in (32, 8):
        done = sublearn("fit", files["txt"], "-m", tmp_path / f"{bits}", "--bits", bits, "-q")
        assert done.code == 0, done
    assert (tmp_path / "8").stat().st_size < (tmp_path / "32").stat().st_size
    done = sublearn("fit", files["txt"], "-m", tmp_path / "x", "--bits", 12)
    assert done.code != 0
    assert "must be 8, 16 or 32, got 12" in done.err


@pytest.mark.parametrize("name", METHODS)
def test_the_help_of_a_method_fits_a_screen_and_shows_the_defaults_of_the_estimator(sublearn, name):
    done = sublearn("fit", name, "--help")
    assert done.code == 0, done
    assert f"Example: sublearn fit {name}" in done.out
    assert len(done.out.splitlines()) <= 40
    parameters = inspect.signature(class_of(name)).parameters
    for first in METHODS[name].first:
        flag = f"--{first.replace('_', '-')} "
        assert flag in done.out
        default = parameters[first].default if first in parameters else None
        if isinstance(default, (str, float, int)):
            assert f"[{default}]" in done.out
    whole = sublearn("fit", name, "--help-all").out
    assert whole.count("--") > done.out.count("--")


@pytest.mark.parametrize("name", METHODS)
def test_every_parameter_that_a_word_can_say_is_an_option(name):
    method = METHODS[name]
    params = params_of(class_of(name))
    within = params_of(TextTagger).keys() | params_of(PPDSparseClassifier).keys()
    assert set(method.first) <= params.keys() | within
    assert class_of(name)._kind == method.kind
    for param in params.values():
        assert param.help.strip("."), f"{param.name} has no help"
        if param.default is not None and not isinstance(param.default, tuple):
            assert param.parse(str(param.default)) == param.default


def test_rows_are_scaled_unless_told_otherwise(sublearn, files, tmp_path):
    for flag in ("--normalize", "--no-normalize"):
        sublearn("fit", files["txt"], "--model", tmp_path / flag, "-q", flag)
    scaled, plain = (package.load(tmp_path / f) for f in ("--normalize", "--no-normalize"))
    assert (scaled.notes_["normalize"], plain.notes_["normalize"]) == (True, False)
    assert not np.array_equal(scaled.coef_.toarray(), plain.coef_.toarray())


@pytest.mark.parametrize("ending", ["svm", "npz", "arff"])
def test_every_format_gives_the_same_weights(sublearn, files, tmp_path, ending):
    labels = ["--labels", N_LABELS] if ending == "arff" else []
    options = ("-q", "--tol", 1e-6, "--max-iter", 1000)
    done = sublearn("fit", files[ending], "--model", tmp_path / "m", *options, *labels)
    assert done.code == 0, done
    sublearn("fit", files["txt"], "--model", tmp_path / "expected", *options)
    expected, found = package.load(tmp_path / "expected"), package.load(tmp_path / "m")
    names = found.classes_.tolist()
    order = range(N_LABELS)
    if ending != "svm":
        order = [
            names.index(("topic {}" if ending == "npz" else "topic{}").format(k)) for k in order
        ]
    np.testing.assert_allclose(
        found.coef_.toarray()[list(order)], expected.coef_.toarray(), atol=5e-3
    )


def test_a_name_without_ending_needs_the_format(sublearn, files, model, tmp_path):
    plain = tmp_path / "train"
    plain.write_bytes(files["svm"].read_bytes())
    done = sublearn("fit", plain, "--model", tmp_path / "m")
    assert done.code == 2
    assert "--data-format" in done.err
    options = ("--data-format", "libsvm")
    assert sublearn("fit", plain, "--model", tmp_path / "m", "-q", *options).code == 0
    assert sublearn("predict", model, plain, *options).code == 0
    assert sublearn("evaluate", model, plain, *options).code == 0
    found = json.loads(sublearn("inspect", plain, *options, "--json").out)
    assert found["rows"] == N_ROWS
    assert sublearn("convert", plain, tmp_path / "new.npz", *options).code == 0


def test_an_unknown_format_exits_2(sublearn, files, tmp_path):
    done = sublearn("fit", files["txt"], "--model", tmp_path / "m", "--data-format", "xls")
    assert done.code == 2
    assert "xls" in done.err


def test_an_arff_file_without_labels_exits_2(sublearn, files, tmp_path):
    done = sublearn("fit", files["arff"], "--model", tmp_path / "m")
    assert done.code == 2
    assert "--labels" in done.err


def test_an_unknown_method_exits_2_and_lists_the_known(sublearn, files, tmp_path):
    done = sublearn("fit", files["txt"], "--model", tmp_path / "m", "--method", "magic")
    assert done.code == 2
    assert all(name in done.err for name in METHODS)


def test_a_folder_that_is_not_there_is_refused_before_the_fit(sublearn, files, tmp_path):
    done = sublearn("fit", files["txt"], "--model", tmp_path / "nowhere" / "m")
    assert done.code == 2
    assert "folder" in done.err


@pytest.fixture
def big_file(tmp_path):
    """Rows of noise with labels that cannot be separated: minutes of work for a tiny tolerance."""
    rng = np.random.default_rng(0)
    from scipy import sparse

    from sublearn.io import save_npz

    X = sparse.random(8000, 2000, 0.02, "csr", np.float32, random_state=rng)
    Y = sparse.random(8000, 3000, 0.01, "csr", random_state=rng)
    Y.data[:] = 1
    save_npz(tmp_path / "big.npz", X, Y)
    return tmp_path / "big.npz"


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as POSIX has them")
def test_ctrl_c_ends_a_running_fit_and_leaves_no_file(big_file, tmp_path):
    target = tmp_path / "out"
    target.mkdir()
    line = command_line(
        "fit", big_file, "--model", target / "m", "--tol", 1e-9, "--max-iter", 100000, "--l1", 0.001
    )
    env = environment() | {"FORCE_COLOR": "1", "TERM": "xterm"}
    process = subprocess.Popen(
        line, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    )
    try:
        first = process.stderr.read(1)  # the progress bar appears: the solver is running
        assert first
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "interrupted" in err
    assert out == ""
    assert list(target.iterdir()) == []


def test_inspect_tells_what_a_model_is(sublearn, model):
    done = sublearn("inspect", model, "--json")
    found = json.loads(done.out)
    coef = package.load(model).coef_
    assert found["class"] == "PPDSparseClassifier"
    assert (found["labels"], found["features"]) == (N_LABELS, N_FEATURES)
    assert found["weights_not_zero"] == coef.nnz
    assert found["notes"]["normalize"] is True
    assert found["parameters"]["C"] == 1.0
    assert "PPDSparseClassifier" in sublearn("inspect", model).out


def test_inspect_names_the_features_that_speak_for_a_label(sublearn, files, tmp_path):
    sublearn("fit", files["npz"], "--model", tmp_path / "m", "-q")
    done = sublearn("inspect", tmp_path / "m", "--label", "topic 3", "--top", 2, "--json")
    weights = json.loads(done.out)["top_weights"]["topic 3"]
    assert {name for name, _ in weights} == {"word6", "word7"}
    assert "word6" in sublearn("inspect", tmp_path / "m", "--label", "topic 3").out


def test_inspect_refuses_a_label_the_model_does_not_know(sublearn, model):
    done = sublearn("inspect", model, "--label", "owls")
    assert done.code == 2
    assert "owls" in done.err


@pytest.mark.parametrize("ending", ["txt", "svm", "npz"])
def test_inspect_tells_what_a_data_file_holds(sublearn, files, ending):
    found = json.loads(sublearn("inspect", files[ending], "--json").out)
    assert (found["rows"], found["features"], found["labels"]) == (N_ROWS, N_FEATURES, N_LABELS)
    assert found["labels_without_rows"] == 0


def test_inspect_of_a_cut_model_exits_1_and_says_so(sublearn, model, tmp_path):
    cut = tmp_path / "cut.model"
    cut.write_bytes(model.read_bytes()[:-100])
    done = sublearn("inspect", cut)
    assert done.code == 1
    assert "truncated" in done.err
    assert done.err.count("\n") == 1
