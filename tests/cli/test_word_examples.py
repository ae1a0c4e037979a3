"""The example of word vectors, on a few sentences in the form of its three corpora."""

import io
import lzma
import tarfile

import numpy as np
import pytest
from test_examples import run

THEMES = {
    "sports": "hockey baseball team player season coach league playoffs pitcher goal",
    "religion": "god jesus bible church faith christians islam belief prayer heaven",
    "trade": "oil wheat sugar coffee copper gold corn cocoa tin cotton",
}


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    themes = [words.split() for words in THEMES.values()]
    texts = [" ".join(rng.choice(themes[i % len(themes)], 8)) for i in range(600)]
    for name in ("20news", "brown", "reuters21578"):
        (tmp_path / name).mkdir()
    for part in ("train", "test"):
        with lzma.open(tmp_path / "20news" / f"20news_bydate_{part}.tsv.xz", "wt") as file:
            file.writelines(f"group\t1\tsubject\t{text}\n" for text in texts)
    with lzma.open(tmp_path / "brown" / "brown.conll.xz", "wt") as file:
        file.write("\n\n".join("God\tnp\nsaid\tvb\n" for _ in range(100)))
    article = f"<BODY>{texts[0]} &amp; oil</BODY>".encode() * 20
    with tarfile.open(tmp_path / "reuters21578" / "reuters21578.tar.xz", "w:xz") as archive:
        member = tarfile.TarInfo("reut2-000.sgm")
        member.size = len(article)
        archive.addfile(member, io.BytesIO(article))
    return tmp_path


def test_words_are_drawn(folder, tmp_path):
    done = run(folder, tmp_path / "words.png", script="word_vectors")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "words.png").read_bytes().startswith(b"\x89PNG")
    line = next(line for line in done.stdout.splitlines() if line.startswith("hockey: "))
    nearest = line.removeprefix("hockey: ").split(", ")
    assert sum(word in THEMES["sports"].split() for word in nearest) >= 5


def test_missing_corpora_are_named(tmp_path):
    done = run(tmp_path, tmp_path / "words.png", script="word_vectors")
    assert (done.returncode, done.stderr) == (0, "")
    assert "no 20news, brown, reuters21578 in" in done.stdout
