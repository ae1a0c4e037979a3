"""Journals of killed fits that were damaged or made up: solved again or refused, never believed."""

import json
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from sublearn.errors import ModelFileError
from sublearn.extreme import PPDSparseClassifier, fit_journal, ppd_solve
from sublearn.extreme.fit_journal import FitJournal, write_part
from sublearn.io import save_bundle

N_PARTS = 3


def problem():
    rng = np.random.default_rng(0)
    X = sp.random(40, 12, 0.4, "csr", random_state=rng, data_rvs=rng.standard_normal)
    Y = np.asarray(X @ rng.normal(size=(12, 24))) > 0.7
    Y[:, 7] = Y[:, 3]  # a twin
    return X, Y


def fit(path, random_state=0):
    X, Y = problem()
    return PPDSparseClassifier(random_state=random_state, model_path=path).fit(X, Y)


def content(model):
    weights = model.model_.weights
    arrays = (weights.data, weights.indices, weights.indptr, model.intercept_)
    return [array.tobytes() for array in arrays], model.objective_, model.certificate_


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(ppd_solve, "_JOURNAL_BLOCKS", 1)


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    """A journal with all its parts, which nothing is left to solve of."""
    path = tmp_path_factory.mktemp("complete") / "m"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ppd_solve, "_JOURNAL_BLOCKS", 1)
        patch.setattr(FitJournal, "remove", lambda self: None)
        fit(path)
    folder = path.with_name("m.parts")
    assert len(list(folder.glob("part-*"))) == N_PARTS
    return folder


@pytest.fixture(scope="module")
def expected():
    return content(fit(None))


@pytest.fixture
def journal(complete, tmp_path):
    """A copy to be damaged, beside the path of the next fit."""
    return shutil.copytree(complete, tmp_path / "m.parts")


def part(folder, number):
    return folder / f"part-{number:06d}.safetensors"


def mutate(data, rng):
    """One of the things that happen to files."""
    data, how = bytearray(data), rng.integers(6)
    at = int(rng.integers(len(data)))
    if how == 0:
        data[at] ^= 1 << int(rng.integers(8))
    elif how == 1:
        del data[at:]
    elif how == 2:
        data[at : at + 8] = rng.bytes(8)
    elif how == 3:
        data[at : at + 512] = bytes(len(data[at : at + 512]))  # a block that was not written
    elif how == 4:
        del data[at : at + int(rng.integers(1, 64))]
    else:
        data[at:at] = rng.bytes(int(rng.integers(1, 64)))
    return bytes(data)


def test_damaged_parts_are_solved_again(journal, tmp_path, complete, expected):
    rng = np.random.default_rng(0)
    for _ in range(250):
        shutil.copytree(complete, journal, dirs_exist_ok=True)
        for number in rng.choice(N_PARTS, int(rng.integers(1, N_PARTS + 1)), replace=False):
            file = part(journal, number)
            file.write_bytes(mutate(file.read_bytes(), rng))
        assert content(fit(tmp_path / "m")) == expected
        assert os.listdir(tmp_path) == ["m"]


@pytest.mark.parametrize("random_state", [0, None])
def test_a_damaged_plan_is_refused_by_name_or_makes_no_difference(
    journal, tmp_path, complete, expected, random_state
):
    rng = np.random.default_rng(1)
    refusals = []
    for _ in range(150):
        shutil.copytree(complete, journal, dirs_exist_ok=True)
        text = mutate((complete / "plan.json").read_bytes(), rng)
        (journal / "plan.json").write_bytes(text)
        try:
            model = fit(tmp_path / "m", random_state)
        except ValueError as error:
            refusals.append(str(error))
        else:
            seed = json.loads(text)["seed"]  # another one is as good, for all parts together
            assert content(model) == (expected if seed == 0 else content(fit(None, seed)))
    assert len(refusals) > 100
    assert all(str(journal) in refusal for refusal in refusals)


SEEDS = ["null", '"0"', "-1", "true", "1.5", "1e400", "NaN", str(2**63), "9" * 5000, "[]", "{}"]


@pytest.mark.parametrize("seed", SEEDS)
def test_refuses_a_plan_whose_seed_is_none(journal, tmp_path, seed):
    plan = journal / "plan.json"
    plan.write_text(plan.read_text().replace('"seed": 0', f'"seed": {seed}'))
    with pytest.raises(ModelFileError, match=r"plan\.json: not the plan of a fit"):
        fit(tmp_path / "m", random_state=None)


def test_refuses_a_plan_without_a_seed_that_is_deep_or_no_file(journal, tmp_path):
    plan = journal / "plan.json"
    without = json.loads(plan.read_text())
    del without["seed"]
    for text in (json.dumps(without), "[" * 10**5, " " * 2**21 + "{}", "\xff"):
        plan.write_text(text, encoding="latin-1")
        with pytest.raises(ModelFileError, match=r"plan\.json: not the plan of a fit"):
            fit(tmp_path / "m", random_state=None)
    for make in (plan.mkdir, *([lambda: os.mkfifo(plan)] if hasattr(os, "mkfifo") else [])):
        plan.rmdir() if plan.is_dir() else plan.unlink()
        make()
        with pytest.raises(ModelFileError, match=r"plan\.json: not the plan of a fit"):
            fit(tmp_path / "m")


def test_parts_of_another_seed_do_not_count(journal, tmp_path):
    """A seed that was changed in the plan must not leave labels of two seeds in one model."""
    plan = journal / "plan.json"
    plan.write_text(plan.read_text().replace('"seed": 0', '"seed": 5'))
    assert content(fit(tmp_path / "m", random_state=None)) == content(fit(None, 5))


def negative(array):
    return np.full_like(array, -1)


UNSOUND = {
    "labels out of range": lambda c: replace(c, labels=c.labels + 1000),
    "negative labels": lambda c: replace(c, labels=negative(c.labels)),
    "labels twice": lambda c: replace(c, labels=np.full_like(c.labels, c.labels[0])),
    "labels as floats": lambda c: replace(c, labels=c.labels.astype(float)),
    "labels by rows": lambda c: replace(c, labels=c.labels.reshape(1, -1)),
    "no labels": lambda c: replace(c, labels=c.labels[:0]),
    "indptr that falls": lambda c: replace(
        c, indptr=np.concatenate([[0, 2**40], c.indptr[2:]]).astype(np.int64)
    ),
    "indptr without a sign": lambda c: replace(c, indptr=c.indptr.astype(np.uint64)),
    "indptr too short": lambda c: replace(c, indptr=c.indptr[:-1]),
    "indptr beyond the end": lambda c: replace(c, indptr=c.indptr * 2),
    "features out of range": lambda c: replace(c, features=c.features + 10**6),
    "negative features": lambda c: replace(c, features=negative(c.features)),
    "features as floats": lambda c: replace(c, features=c.features * np.nan),
    "values of another type": lambda c: replace(c, values=c.values.astype(np.float32)),
    "values too short": lambda c: replace(c, values=c.values[:-1]),
    "values that are not numbers": lambda c: replace(c, values=c.values * np.nan),
    "an infinite bias": lambda c: replace(c, bias=c.bias + np.inf),
    "a bias too long": lambda c: replace(c, bias=np.append(c.bias, 0.0)),
    "a report less": lambda c: replace(c, reports={"primal": c.reports["primal"]}),
    "a report more": lambda c: replace(c, reports=c.reports | {"x": c.bias}),
    "reports that are not numbers": lambda c: replace(
        c, reports=c.reports | {"dual": c.reports["dual"] * np.nan}
    ),
}


@pytest.mark.parametrize("damage", UNSOUND)
def test_parts_that_were_made_up_and_sealed_are_solved_again(journal, tmp_path, expected, damage):
    plan = json.loads((journal / "plan.json").read_text())
    for number in range(N_PARTS):
        chunk, _ = fit_journal._open_part(journal, number)
        write_part(journal, plan, number, UNSOUND[damage](chunk))
    assert content(fit(tmp_path / "m")) == expected


def test_parts_that_are_no_parts_are_passed_over(journal, tmp_path, expected):
    part(journal, 0).unlink()
    part(journal, 0).mkdir()
    part(journal, 1).write_bytes(part(journal, 2).read_bytes())
    part(journal, 2).unlink()
    if hasattr(os, "mkfifo"):
        os.mkfifo(part(journal, 2))
    save_bundle(part(journal, 7), class_name="PPDSparseChunk", params={}, arrays={}, attributes={})
    (journal / "part-x.safetensors").touch()
    (journal / f"part-{'9' * 100}.safetensors").touch()
    with pytest.raises(ValueError, match=r"part-000000\.safetensors: .*got a directory"):
        fit(tmp_path / "m")
    part(journal, 0).rmdir()
    if hasattr(os, "mkfifo"):
        with pytest.raises(ValueError, match=r"part-000002\.safetensors: a regular file is needed"):
            fit(tmp_path / "m")
        part(journal, 2).unlink()
    assert content(fit(tmp_path / "m")) == expected


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
@pytest.mark.parametrize("name", ["labels.bin", "part-000001.safetensors", "plan.json"])
def test_links_in_a_journal_are_not_written_through(journal, tmp_path, name):
    for mine in (tmp_path / "mine", tmp_path / "not there"):
        (journal / name).unlink(missing_ok=True)
        (journal / name).symlink_to(mine)
        mine.write_bytes(b"mine") if mine.name == "mine" else None
        with pytest.raises(ModelFileError, match=f"{name}: a file of a journal must not be a link"):
            fit(tmp_path / "m")
    assert (tmp_path / "mine").read_bytes() == b"mine"
    assert not (tmp_path / "not there").exists()
