"""`sublearn datasets`: the list, and a set that lies at a mirror on this machine."""

import json
import lzma

import pytest


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    folder = tmp_path / "mirror"
    monkeypatch.setenv("SUBLEARN_DATA_MIRROR", folder.as_uri())
    monkeypatch.setenv("SUBLEARN_DATA_HOME", str(tmp_path / "home"))
    return folder


def test_all_sets_are_listed(sublearn):
    done = sublearn("datasets")
    assert done.code == 0, done
    assert "wiki10-31k" in done.out
    found = json.loads(sublearn("datasets", "--json").out)["datasets"]
    assert {one["call"] for one in found} >= {'fetch_extreme("eurlex-4k")', "fetch_gnd()"}


def test_a_set_is_downloaded_into_the_folder_that_is_named(sublearn, mirror, tmp_path, shared_data):
    (mirror / "uai").mkdir(parents=True)
    packed = (shared_data / "uai_protein_small" / "pdb1etl.uai.xz").read_bytes()
    (mirror / "uai" / "pdb1etl.uai").write_bytes(lzma.decompress(packed))
    done = sublearn("datasets", "uai", "--data-home", tmp_path / "here")
    assert done.code == 0, done
    assert 'fetch_uai("pdb1etl")' in done.out
    assert (tmp_path / "here" / "uai" / "pdb1etl.uai").is_file()
    again = sublearn("datasets", "uai", "--data-home", tmp_path / "here", "--json")
    assert json.loads(again.out)["folder"] == str(tmp_path / "here" / "uai")


def test_refuses_an_unknown_set(sublearn):
    done = sublearn("datasets", "mnist")
    assert done.code == 2
    assert "NAME: must be one of eurlex-4k, " in done.err


def test_says_what_to_do_where_a_set_cannot_be_had(sublearn, mirror):
    done = sublearn("datasets", "gefcom2012")
    assert done.code == 1
    assert "cannot be reached" in done.err
    assert "connect to a network, or put the file at" in " ".join(done.err.split())
