"""The Python blocks of README.md and of the site run as they stand, and so do their commands.

The blocks of one page share a namespace, in order. A block after a line `<!-- fragment: why -->` is
not run. Pages find small data files (`train.txt`, `test.txt`, `new.txt`, and a factor graph in
`network.uai` with evidence) in the folder they run in.
After its Python, the lines of a page's bash blocks that call `sublearn` are run.
"""

import re
import shlex
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from sublearn.cli import app
from sublearn.io import save_xmc

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"(?P<fragment>^<!-- fragment: .+ -->\n)?^```python\n(?P<code>.*?)^```$", re.M | re.S
)


BASH_BLOCK = re.compile(r"^```bash\n(.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Snippet:
    """A block of code and the line of the page on which it begins."""

    code: str
    line: int


def snippets(text):
    return [
        Snippet(match["code"], text[: match.start("code")].count("\n") + 1)
        for match in BLOCK.finditer(text)
        if not match["fragment"]
    ]


def run_page(path):
    """Run a page's blocks; a traceback names the page and the line on it."""
    namespace = {"__name__": "snippets"}
    for snippet in snippets(path.read_text(encoding="utf-8")):
        source = "\n" * (snippet.line - 1) + snippet.code
        exec(compile(source, str(path), "exec"), namespace)
    return namespace


def commands(text):
    """The calls of `sublearn` in bash blocks, without what comes after a pipe or a comment sign."""
    lines = [line for block in BASH_BLOCK.findall(text) for line in block.splitlines()]
    calls = [re.split(r" [|#]", line)[0] for line in lines if line.startswith("sublearn ")]
    return [shlex.split(call)[1:] for call in calls]


@pytest.fixture
def folder_with_data(tmp_path, monkeypatch):
    """A folder of its own with data in which label k speaks through feature k."""
    rng = np.random.default_rng(0)
    for name, n_rows in (("train.txt", 80), ("test.txt", 20), ("new.txt", 5)):
        labels = rng.random((n_rows, 8)) < 0.2
        words = rng.random((n_rows, 22)) * (rng.random((n_rows, 22)) < 0.2)
        save_xmc(tmp_path / name, np.hstack([labels, words]), labels)
    records = "".join(f"{tag}\t{tag} again, text {n}\n" for n in range(8) for tag in "abc")
    for name in ("records.tsv", "new.tsv", "checked.tsv"):
        (tmp_path / name).write_text(records)
    (tmp_path / "network.uai").write_text("MARKOV 2 2 3 1 2 0 1\n6 0.1 0.5 0.4 0.3 0.0 0.7\n")
    (tmp_path / "network.uai.evid").write_text("1 0 0\n")
    (tmp_path / "topics.tsv").write_text("8\t0\t1\t2\t3\n9\t4\t5\t6\t7\n")
    (tmp_path / "test.conll").write_text("the DET\nrun NOUN\n")
    (tmp_path / "new.conll").write_text("the\ndog\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


TEXTS = {page: page.read_text(encoding="utf-8") for page in PAGES}
RUNNABLE = [page for page, text in TEXTS.items() if snippets(text) or commands(text)]


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_page_runs(page, folder_with_data, capsys):
    if any("import torch\n" in snippet.code for snippet in snippets(TEXTS[page])):
        pytest.importorskip("torch", reason="the page needs PyTorch")
    if "sublearn.serve" in TEXTS[page]:
        pytest.importorskip("uvicorn", reason="the page needs FastAPI and uvicorn")
    if "import onnxruntime\n" in TEXTS[page]:
        pytest.importorskip("onnx", reason="the page needs the extra onnx")
        pytest.importorskip("onnxruntime", reason="the page needs onnxruntime")
    run_page(page)
    for arguments in commands(TEXTS[page]):
        with warnings.catch_warnings():  # the command line shows warnings its own way
            code = app.run(arguments)
        assert code == 0, f"sublearn {shlex.join(arguments)}: {capsys.readouterr().err}"


def test_the_page_of_the_command_line_names_every_command():
    text = TEXTS[ROOT / "docs" / "command_line.md"]
    named = re.findall(r"^\| `sublearn ([\w-]+)`", text, re.M)
    found = app.build()
    known = [*found.registered_commands, *found.registered_groups]
    assert sorted(named) == sorted(command.name for command in known)


@pytest.mark.parametrize(
    "module",
    [
        "extreme",
        "linear",
        "graph",
        "hierarchy",
        "io",
        "metrics",
        "optim",
        "embed",
        "latent",
        "trim",
        "distributed",
        "parts",
        "serve",
        "structured",
        "forecast",
        "validation",
        "trace",
        "errors",
        "datasets",
    ],
)
def test_every_module_that_users_import_has_a_page(module):
    assert f"::: sublearn.{module}\n" in TEXTS[ROOT / "docs" / "api" / f"{module}.md"]
    assert f"api/{module}.md" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_the_pages_that_newcomers_read_are_among_them():
    names = {page.relative_to(ROOT).as_posix() for page in RUNNABLE}
    assert {
        "README.md",
        "docs/index.md",
        "docs/getting_started.md",
        "docs/command_line.md",
    } <= names


def test_the_first_example_learns_and_certifies(folder_with_data):
    found = run_page(ROOT / "README.md")
    assert found["labels"].shape == (20, 5)
    assert found["tagger"].predict(["Surveys of statistics"]) == [["statistics"]]
    assert found["model"].certificate_ <= found["model"].tol
    assert found["precision_at_k"](found["Y_test"], found["labels"], k=1) > 0.5
    assert (folder_with_data / "model.safetensors").is_file()


def test_getting_started_gives_the_headings_it_promises(folder_with_data):
    found = run_page(ROOT / "docs" / "getting_started.md")
    assert found["pipeline"].predict(found["texts"]) == [sorted(h) for h in found["headings"]]


def test_blocks_share_a_namespace_and_errors_name_the_line(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n```python\na = 1\n```\n\n```python\nb = a + 1\n\n1 / (b - 2)\n```\n")
    with pytest.raises(ZeroDivisionError) as stopped:
        run_page(page)
    last = stopped.traceback[-1]
    assert (Path(last.path), last.lineno + 1) == (page, 10)


def test_a_fragment_with_a_reason_is_not_run():
    block = "```python\nnonsense\n```\n"
    assert snippets(f"<!-- fragment: an excerpt -->\n{block}") == []
    assert snippets(f"<!-- fragment: -->\n{block}") == [Snippet("nonsense\n", 3)]
    assert snippets("```bash\nls\n```\n") == []
