"""`sublearn shards`, and the commands that take its folder for a model."""

import asyncio
import json

import numpy as np
import pytest

from sublearn.extreme import TextTagger
from sublearn.io import load_quickstart

RECORDS = load_quickstart(300)


@pytest.fixture(scope="module")
def tags(tmp_path_factory):
    path = tmp_path_factory.mktemp("tags") / "tags.model"
    tagger = TextTagger(analyzer="word", min_df=1)
    tagger.fit(RECORDS.train_texts, RECORDS.train_labels).save(path)
    return path


@pytest.fixture
def shards(sublearn, tags, tmp_path):
    assert sublearn("shards", tags, tmp_path / "shards", "--shards", 3).code == 0
    return tmp_path / "shards" / "shards.json"


def test_predicts_from_shards_what_the_model_predicts(sublearn, tags, shards, tmp_path):
    texts = tmp_path / "texts.tsv"
    texts.write_text("".join(f"\t{text}\n" for text in RECORDS.train_texts[:20]))
    found = [sublearn("predict", model, texts) for model in (tags, shards)]
    assert found[0].code == found[1].code == 0
    assert found[0].out == found[1].out != ""


def test_serves_shards_as_a_model(tags, shards):
    pytest.importorskip("fastapi", reason="serve needs FastAPI")
    from sublearn.serve import ModelFile, create_app

    async def ask(app, body):
        answers, sent = [], [{"type": "http.request", "body": body, "more_body": False}]

        async def receive():
            return sent.pop()

        async def send(message):
            answers.append(message)

        headers = [(b"content-type", b"application/json"), (b"host", b"localhost")]
        scope = {"type": "http", "method": "POST", "path": "/predict", "raw_path": b"/predict",
                 "query_string": b"", "headers": headers,
                 "http_version": "1.1", "scheme": "http", "client": ("127.0.0.1", 1),
                 "server": ("127.0.0.1", 80), "root_path": ""}  # fmt: skip
        await app(scope, receive, send)
        return answers[0]["status"], b"".join(a.get("body", b"") for a in answers)

    body = json.dumps({"texts": RECORDS.train_texts[:3], "k": 4}).encode()
    found = [
        asyncio.run(ask(create_app({"tags": ModelFile(path, mapped=True)}), body))
        for path in (tags, shards)
    ]
    assert found[0][0] == 200
    assert found[0] == found[1]


@pytest.mark.parametrize("n_shards", [0, 10**6])
def test_refuses_a_number_of_shards_that_is_none(sublearn, tags, tmp_path, n_shards):
    done = sublearn("shards", tags, tmp_path / "shards", "--shards", n_shards)
    assert done.code == 2
    assert "--shards" in done.err


def test_refuses_a_folder_that_is_there_and_models_without_labels(sublearn, tags, tmp_path):
    done = sublearn("shards", tags, tmp_path)
    assert (done.code, "OUT: must be new" in " ".join(done.err.split())) == (2, True)
    from sublearn.embed import MIPSIndex

    MIPSIndex().fit(np.eye(3)).save(tmp_path / "index.model")
    done = sublearn("shards", tmp_path / "index.model", tmp_path / "out")
    assert (done.code, "MODEL: must be a fitted linear" in " ".join(done.err.split())) == (2, True)
