"""The examples on data that do not come with the package."""

import lzma
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(folder, *arguments, script="yso_tagger", **variables):
    return subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / f"{script}.py", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ
        | {"SUBLEARN_DATA": str(folder), "SUBLEARN_DATA_HOME": str(folder / "no home")}
        | variables,
    )


def test_the_tagger_of_library_records_draws_its_picture(shared_data, tmp_path):
    done = run(shared_data, tmp_path / "tagger.png", "--small")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "tagger.png").read_bytes().startswith(b"\x89PNG")
    assert "(bias)" in done.stdout


@pytest.mark.parametrize(
    ("script", "function"),
    [
        ("yso_tagger", 'sublearn.datasets.fetch_yso("en")'),
        ("load_zones", "sublearn.datasets.fetch_gefcom2012()"),
        ("map_proteins", 'sublearn.datasets.fetch_uai("pdb1etl")'),
    ],
)
def test_examples_say_how_to_download_their_data(script, function, tmp_path):
    done = run(tmp_path, tmp_path / "picture.png", "--small", script=script)
    assert done.returncode == 1
    assert "set SUBLEARN_DATA to where" in done.stderr
    assert function in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "picture.png").exists()


def test_an_example_takes_what_was_downloaded(shared_data, tmp_path):
    names = ["pdb1etl", "pdb2erl", "pdb1mjc", "pdb1ctj"]
    home = tmp_path / "home"
    (home / "uai").mkdir(parents=True)
    for name in names:  # as `fetch_uai` leaves them
        packed = (shared_data / "uai_protein_small" / f"{name}.uai.xz").read_bytes()
        (home / "uai" / f"{name}.uai").write_bytes(lzma.decompress(packed))
    done = run(tmp_path, tmp_path / "proteins.png", "--small", script="map_proteins",
               SUBLEARN_DATA_HOME=str(home))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "proteins.png").read_bytes().startswith(b"\x89PNG")


def test_the_tagger_by_dense_vectors_draws_its_picture(shared_data, tmp_path):
    done = run(shared_data, tmp_path / "dense.png", "--small", script="dense_tagger")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "dense.png").read_bytes().startswith(b"\x89PNG")
    assert "20,578 labels" in done.stdout


def test_the_tagger_by_dense_vectors_says_that_its_records_are_missing(tmp_path):
    done = run(tmp_path, tmp_path / "dense.png", script="dense_tagger")
    assert (done.returncode, done.stderr) == (0, "")
    assert "set SUBLEARN_DATA" in done.stdout


def test_proxies_bring_pictures_of_new_people_together(tmp_path):
    pytest.importorskip("torch", reason="examples/proxies.py needs PyTorch")
    done = run(tmp_path, tmp_path / "proxies.png", "--small", script="proxies")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "proxies.png").read_bytes().startswith(b"\x89PNG")


def test_a_learnt_distance_finds_digits_in_any_light(tmp_path):
    done = run(tmp_path, tmp_path / "digits.png", "--small", script="digit_metric")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "digits.png").read_bytes().startswith(b"\x89PNG")
    shares = {line[:22].strip(): float(line.split()[-1]) for line in done.stdout.splitlines()[:4]}
    assert shares["distances, NCA"] > shares["pixels"] + 20


@pytest.mark.parametrize("name", ["stock_network", "gene_network"])
def test_networks_are_drawn(name, shared_data, tmp_path):
    done = run(shared_data, tmp_path / "network.png", "--small", script=name)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "network.png").read_bytes().startswith(b"\x89PNG")
    assert "links" in done.stdout


@pytest.mark.parametrize("name", ["stock_network", "gene_network"])
def test_networks_say_that_their_data_is_missing(name, tmp_path):
    done = run(tmp_path, tmp_path / "network.png", script=name)
    assert (done.returncode, done.stderr) == (0, "")
    assert "set SUBLEARN_DATA" in done.stdout


@pytest.mark.parametrize("name", ["tone_perception", "unmixed_stocks"])
def test_mixtures_are_separated_and_drawn(name, shared_data, tmp_path):
    done = run(shared_data, tmp_path / "mixture.png", "--small", script=name)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "mixture.png").read_bytes().startswith(b"\x89PNG")
    assert "wrote" in done.stdout


@pytest.mark.parametrize("name", ["tone_perception", "unmixed_stocks"])
def test_mixtures_say_that_their_data_is_missing(name, tmp_path):
    done = run(tmp_path, tmp_path / "mixture.png", script=name)
    assert (done.returncode, done.stderr) == (0, "")
    assert "set SUBLEARN_DATA" in done.stdout


STRUCTURED = ["pos_tagging", "ocr_words", "word_alignment", "learned_segmentation"]


@pytest.mark.parametrize("name", STRUCTURED)
def test_structured_outputs_are_learnt_and_drawn(name, shared_data, tmp_path):
    done = run(shared_data, tmp_path / "tags.png", "--small", script=name)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "tags.png").read_bytes().startswith(b"\x89PNG")
    assert "wrote" in done.stdout


@pytest.mark.parametrize("name", STRUCTURED[:3])
def test_examples_of_sequences_say_that_their_data_is_missing(name, tmp_path):
    done = run(tmp_path, tmp_path / "tags.png", script=name)
    assert (done.returncode, done.stderr) == (0, "")
    assert "set SUBLEARN_DATA" in done.stdout


MAPS = ["segmentation", "alignment", "proteins", "matching", "multilabel"]


@pytest.mark.parametrize("name", MAPS)
def test_assignments_are_drawn(name, shared_data, tmp_path):
    done = run(shared_data, tmp_path / "map.png", "--small", script=f"map_{name}")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    assert "no assignment above" in done.stdout


@pytest.mark.parametrize("name", ["alignment", "multilabel"])
def test_problems_that_are_missing_are_named(name, tmp_path):
    done = run(tmp_path, tmp_path / "map.png", script=f"map_{name}")
    assert (done.returncode, done.stderr) == (0, "")
    assert "set SUBLEARN_DATA" in done.stdout


@pytest.mark.parametrize("name", ["image_codes", "news_groups"])
def test_taxonomies_are_learned_and_drawn(name, shared_data, tmp_path):
    done = run(shared_data, tmp_path / "tree.png", "--small", script=name)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "tree.png").read_bytes().startswith(b"\x89PNG")
    assert "right" in done.stdout


def test_curves_of_weights_are_drawn(shared_data, tmp_path):
    done = run(shared_data, tmp_path / "curves.png", "--small", script="weight_curves")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert "held out" in done.stdout


def test_taxonomies_say_that_their_data_is_missing(tmp_path):
    done = run(tmp_path, tmp_path / "tree.png", script="news_topics")
    assert (done.returncode, done.stderr) == (0, "")
    assert "set SUBLEARN_DATA" in done.stdout


def test_the_forecast_of_zones_draws_its_picture(shared_data, tmp_path):
    done = run(shared_data, tmp_path / "zones.png", "--small", script="load_zones")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "zones.png").read_bytes().startswith(b"\x89PNG")
    assert "forecast too low" in done.stdout
