"""Annif with this library as its backend, and with two of its own, on library records.

Needs `pip install annif omikuji` beside this package.
"""

from __future__ import annotations

import lzma
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from harness.bench import Bench
from harness.table import Figures, Table

PROJECTS = Path(__file__).resolve().parents[1] / "examples" / "annif" / "projects.cfg"
BACKENDS = ("tfidf", "omikuji", "sublearn")
METRICS = ("F1@5", "Precision@1", "Precision@3", "Precision@5", "NDCG@10")
FEW = 10_000


class Annif:
    """The command in a folder of its own, with a vocabulary and the corpora."""

    def __init__(self, folder: Path, data: Path, n_train: int | None):
        self.folder = folder
        write_vocabulary(data / "yso_en_labels.tsv.xz", folder / "vocab.tsv")
        write_corpus(data / "yso_en_train.raw.tsv.xz", folder / "train.tsv", n_train)
        write_corpus(data / "yso_en_test.raw.tsv.xz", folder / "test.tsv", None)
        write_empty_sentence_model(folder / "nltk")
        shutil.copy(PROJECTS, folder / "projects.cfg")
        self.run("load-vocab", "subjects", "vocab.tsv", "--language", "en")

    def run(self, *arguments: str) -> tuple[str, float]:
        """What a command printed, and the CPU seconds of its processes."""
        settings = {
            "ANNIF_PROJECTS": "projects.cfg",
            "ANNIF_CONFIG": "sublearn.plugins.annif.Config",
            "NLTK_DATA": str(self.folder / "nltk"),
            **dict.fromkeys(("OMP_NUM_THREADS", "RAYON_NUM_THREADS"), "1"),
        }
        start = child_seconds()
        done = subprocess.run(
            [sys.executable, "-m", "annif.cli", *arguments],
            cwd=self.folder, env=os.environ | settings, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise OSError(done.stderr.strip().splitlines()[-1])
        return done.stdout, child_seconds() - start

    def judged(self, backend: str) -> list[float]:
        """Metrics, CPU seconds of training and evaluation, and megabytes on disk."""
        project = f"{backend}-en"
        _, training = self.run("train", project, "train.tsv", "-j", "1")
        options = [part for metric in METRICS for part in ("-m", metric)]
        text, evaluation = self.run("eval", project, "test.tsv", "-j", "1", *options)
        found = dict(re.findall(r"(\S+@\d+):\s+(\S+)", text))
        files = (self.folder / "data" / "projects" / project).rglob("*")
        size = sum(file.stat().st_size for file in files if file.is_file()) / 2**20
        return [*(float(found[metric]) for metric in METRICS), training, evaluation, size]


def child_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def uri(name: str) -> str:
    return f"<http://example.org/{name}>"


def write_vocabulary(source: Path, target: Path) -> None:
    with lzma.open(source, "rt", encoding="utf-8") as lines, target.open("w") as file:
        for line in lines:
            _, name, heading, *_ = line.rstrip("\n").split("\t")
            file.write(f"{uri(name)}\t{heading}\n")


def write_corpus(source: Path, target: Path, n_rows: int | None) -> None:
    """Records as Annif reads them: the text, a tab, addresses of subjects."""
    with lzma.open(source, "rt", encoding="utf-8") as lines, target.open("w") as file:
        for number, line in enumerate(lines):
            if number == n_rows:
                break
            text, _, names = line.rstrip("\n").rpartition("\t")
            file.write(f"{text}\t{' '.join(map(uri, names.split()))}\n")


def write_empty_sentence_model(folder: Path) -> None:
    """Annif's tokeniser asks NLTK for a table of sentence ends, which would be downloaded."""
    tables = folder / "tokenizers" / "punkt_tab" / "english"
    tables.mkdir(parents=True)
    for name in ("collocations.tab", "sent_starters.txt", "abbrev_types.txt", "ortho_context.tab"):
        (tables / name).touch()


def compared(bench: Bench, n_train: int | None = None) -> Figures:
    import annif.cli  # noqa: F401  # the command would fail with less to say

    with tempfile.TemporaryDirectory() as folder:
        command = Annif(Path(folder), bench.data / "yso_en", bench.size(n_train, 500))
        rows = [[backend, *command.judged(backend)] for backend in BACKENDS]
    columns = {"backend": "", **dict.fromkeys(METRICS, ".4f>")}
    return Figures({**columns, "training, s": ".0f<", "evaluation, s": ".0f<", "MB": ".0f<"}, rows)


NOTE = (
    "The projects of `examples/annif/projects.cfg`, trained by `annif train -j 1` and judged by "
    "`annif eval` on 9,995 other records; CPU seconds of the whole command, MB of the project on "
    "disk."
)
TABLES = [
    Table("all", "50,000 records, 20,578 subjects", NOTE, compared, page=None),
    Table("few", f"The first {FEW:,} records", NOTE, lambda bench: compared(bench, FEW), page=None),
]
