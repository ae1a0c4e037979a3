"""Imports go one way: the rules of ARCHITECTURE.md, and the check that the code follows them.

Python files are read with `ast`, C++ files by their `#include` lines; nothing is imported or
compiled. A new room, layer or exception is one line in the tables below.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parents[2]

# --- Python: src/sublearn/<unit>/ or src/sublearn/<unit>.py ------------------------------------

CORE = {"_core"}
FOUNDATION = {
    "bars", "errors", "interruption", "trace", "typing", "execution", "validation", "metrics", "io",
    "fitting", "parts", "testing", "display",
}  # fmt: skip
SHARED_SOLVERS = {"optim"}
ROOMS = {
    "extreme", "linear", "graph", "structured", "embed", "latent", "hierarchy", "forecast", "trim",
}  # fmt: skip
KINDS = {"kinds"}  # what models are asked and answer: above the rooms, below cli and serve
OUTERMOST = {"datasets", "distributed", "serve", "cli", "plugins"}
PACKAGE = {"sublearn"}  # sublearn/__init__.py itself: the version and `load`

#: unit that imports, unit that is imported: exceptions to the table below, each with its reason.
ALLOWANCES = {
    ("structured", "graph"): "learning a structured predictor runs MAP inference",
    ("__main__", "cli"): "python -m sublearn is the command line",
    ("cli", "serve"): "sublearn serve runs the server",
    ("cli", "datasets"): "sublearn datasets lists and fetches them",
    ("plugins", "torch"): "plugins/onnx.py writes trimmed networks by PyTorch's exporter",
    ("embed", "torch"): "embed/torch_layer.py is a layer for PyTorch networks",
}

#: Who (first) may import whom (second), and the sentence shown to whoever breaks the rule.
PYTHON_RULES = [
    (CORE, set(), "the compiled core knows nothing of Python"),
    (
        PACKAGE | FOUNDATION,
        PACKAGE | CORE | FOUNDATION,
        "bars, errors, interruption, trace, typing, execution, validation, metrics, io, fitting, "
        "parts, testing, display and the package itself import no room",
    ),
    (
        SHARED_SOLVERS,
        PACKAGE | CORE | FOUNDATION,
        "optim serves the rooms and imports none of them",
    ),
    (
        ROOMS,
        PACKAGE | CORE | FOUNDATION | SHARED_SOLVERS,
        "a room imports no other room; take the other room's estimator as a parameter",
    ),
    (
        KINDS,
        PACKAGE | CORE | FOUNDATION | SHARED_SOLVERS | ROOMS,
        "kinds imports from the inside; only cli, serve and plugins import it",
    ),
    (
        OUTERMOST,
        PACKAGE | CORE | FOUNDATION | SHARED_SOLVERS | ROOMS | KINDS,
        "datasets, distributed, serve, cli and plugins import from the inside, not from each other",
    ),
]
OUTERMOST_RULE = "nothing imports datasets, distributed, serve, cli or plugins"
UNKNOWN_UNIT_RULE = "every unit has a place in the tables of tests/architecture/test_imports.py"
CYCLE_RULE = "units do not import each other in a circle"

#: Third-party packages that one unit keeps to itself.
ONLY_IN = {
    "torch": "trim",
    "dask": "distributed",
    "distributed": "distributed",
    "ray": "distributed",
    "pyarrow": "io",
    "fastapi": "serve",
    "uvicorn": "serve",
    "pydantic": "serve",
    "prometheus_client": "serve",
    "annif": "plugins",
    "huggingface_hub": "plugins",
    "mlflow": "plugins",
    "onnx": "plugins",
    "sktime": "plugins",
}

# --- C++: cpp/include/sublearn/<layer>/, cpp/src, cpp/bindings, cpp/tests, cpp/fuzz ------------

#: core <- losses, prox <- objectives, search, active <- solvers <- bindings; io on core alone.
CPP_RULES = {
    "core": {"core"},
    "losses": {"core", "losses"},
    "prox": {"core", "prox"},
    "search": {"core", "losses", "prox", "search"},
    "objectives": {"core", "losses", "prox", "objectives"},
    "active": {"core", "losses", "prox", "active"},
    "solvers": {"core", "losses", "prox", "objectives", "search", "active", "solvers"},
    "io": {"core", "io"},
    "bindings": {
        "core",
        "losses",
        "prox",
        "objectives",
        "search",
        "active",
        "solvers",
        "io",
        "bindings",
    },
    "tests": {
        "core",
        "losses",
        "prox",
        "objectives",
        "search",
        "active",
        "solvers",
        "io",
        "tests",
    },
    "fuzz": {"core", "io", "fuzz"},  # parsers and checks, nothing that computes
}
CPP_RULE = (
    "core <- losses, prox <- objectives, search, active <- solvers <- bindings; io uses core only"
)
PYTHON_IN_CPP_RULE = "only cpp/bindings knows Python"
CPP_SOURCE_RULE = "cpp/src/x.cpp includes the header it implements, sublearn/<layer>/x.hpp"
CPP_PYTHON_HEADERS = ("nanobind/", "Python.h", "pybind11/")
CPP_SUFFIXES = {".hpp", ".cpp", ".h", ".cc"}


@dataclass(frozen=True)
class Import:
    """One import or include: where it stands, who does it, and what it asks for."""

    file: str
    line: int
    unit: str
    target: str


@dataclass(frozen=True)
class Violation:
    where: Import
    rule: str

    def __str__(self) -> str:
        return f"{self.where.file}:{self.where.line} imports {self.where.target}; rule: {self.rule}"


# --- reading Python ----------------------------------------------------------------------------


def python_imports(root: Path) -> list[Import]:
    """All imports below src/sublearn, absolute names, including those inside functions."""
    package = root / "src" / "sublearn"
    return [found for path in sorted(package.rglob("*.py")) for found in _imports_of(path, root)]


def _imports_of(path: Path, root: Path) -> Iterator[Import]:
    module = path.relative_to(root / "src").with_suffix("").parts
    is_package = module[-1] == "__init__"
    module = module[:-1] if is_package else module
    unit = module[1] if len(module) > 1 else "sublearn"
    here = module if is_package else module[:-1]
    file = path.relative_to(root).as_posix()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), file)):
        for target in _targets(node, here):
            yield Import(file, node.lineno, unit, target)


def _targets(node: ast.AST, here: tuple[str, ...]) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        parent = here[: len(here) - node.level + 1] if node.level else ()
        base = ".".join((*parent, *filter(None, [node.module])))
        # `from sublearn import io` names a unit only together with what it imports.
        return [f"{base}.{alias.name}" for alias in node.names] if base == "sublearn" else [base]
    if isinstance(node, ast.Call) and _is_import_call(node.func) and node.args:
        first = node.args[0]
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            return [first.value]
    return []


def _is_import_call(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in {"import_module", "__import__"}


# --- judging Python ----------------------------------------------------------------------------


def python_violations(root: Path) -> list[Violation]:
    imports = python_imports(root)
    units = _units(root)
    broken = []
    for found in imports:
        rule = _broken_python_rule(found, units)
        if rule is not None:
            broken.append(Violation(found, rule))
    return broken + _cycles(imports, units)


def _units(root: Path) -> set[str]:
    """Names directly below src/sublearn, and those the tables know."""
    package = root / "src" / "sublearn"
    modules = {path.stem for path in package.glob("*.py")} - {"__init__", "__main__"}
    packages = {path.parent.name for path in package.glob("*/__init__.py")}
    return modules | packages | set().union(*(who for who, _, _ in PYTHON_RULES))


def _imported_unit(target: str, units: set[str]) -> str | None:
    """The unit of this library that `target` names, or None for another package."""
    parts = target.split(".")
    if parts[0] != "sublearn":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in units else "sublearn"


def _broken_python_rule(found: Import, units: set[str]) -> str | None:
    imported = _imported_unit(found.target, units)
    if imported is None:
        package = found.target.split(".")[0]
        home = ONLY_IN.get(package, found.unit)
        is_allowed = found.unit == home or (found.unit, package) in ALLOWANCES
        return None if is_allowed else f"only {home} imports {package}"
    if imported == found.unit or (found.unit, imported) in ALLOWANCES:
        return None
    for who, may_import, sentence in PYTHON_RULES:
        if found.unit in who:
            if imported in may_import:
                return None
            if imported in OUTERMOST and found.unit not in OUTERMOST:
                return OUTERMOST_RULE
            known = any(imported in group for group, _, _ in PYTHON_RULES)
            return sentence if known else UNKNOWN_UNIT_RULE
    return UNKNOWN_UNIT_RULE


def _cycles(imports: list[Import], units: set[str]) -> list[Violation]:
    """Imports that close a circle of units. The package itself is left out: all may ask it."""
    uses: dict[str, set[str]] = {}
    edges: list[tuple[Import, str]] = []
    for found in imports:
        imported = _imported_unit(found.target, units)
        if imported not in {None, "sublearn", found.unit} and found.unit != "sublearn":
            edges.append((found, str(imported)))
            uses.setdefault(found.unit, set()).add(str(imported))
    return [
        Violation(found, CYCLE_RULE)
        for found, imported in edges
        if found.unit in _reachable(imported, uses)
    ]


def _reachable(start: str, uses: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for unit in uses.get(waiting.pop(), set()) - seen:
            seen.add(unit)
            waiting.append(unit)
    return seen


# --- reading and judging C++ -------------------------------------------------------------------

_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')


def cpp_includes(root: Path) -> list[Import]:
    """All includes below cpp/, the unit being the layer of the including file."""
    found = []
    for path in sorted((root / "cpp").rglob("*")):
        if path.suffix in CPP_SUFFIXES:
            lines = path.read_text(encoding="utf-8").splitlines()
            matches = [(i, _INCLUDE.match(line)) for i, line in enumerate(lines, 1)]
            targets = [(i, match[1]) for i, match in matches if match]
            file = path.relative_to(root).as_posix()
            layer = _layer_of_file(PurePosixPath(file), [target for _, target in targets])
            found += [Import(file, i, layer, target) for i, target in targets]
    return found


def _layer_of_file(file: PurePosixPath, targets: list[str]) -> str:
    if file.parts[1] == "include":
        return file.parts[3] if len(file.parts) > 4 else "?"
    if file.parts[1] != "src":
        return file.parts[1]
    own = [target for target in targets if file.stem in _source_names(PurePosixPath(target))]
    return _layer_of_target(own[0], "?") if own else "?"


def _source_names(header: PurePosixPath) -> set[str]:
    """solvers/method/x.hpp may be implemented in method_x.cpp."""
    return {header.stem, f"{header.parent.name}_{header.stem}"}


def _layer_of_target(target: str, own_layer: str) -> str:
    parts = PurePosixPath(target).parts
    if parts[0] == "sublearn":
        return parts[1] if len(parts) > 2 else "?"
    if ".." in parts:  # a way around the include path: name the layer it leads to
        return next((part for part in parts if part in CPP_RULES), "?")
    return own_layer


def cpp_violations(root: Path) -> list[Violation]:
    broken = []
    for found in cpp_includes(root):
        rule = _broken_cpp_rule(found)
        if rule is not None:
            broken.append(Violation(found, rule))
    return broken


def _broken_cpp_rule(found: Import) -> str | None:
    if found.unit != "bindings" and found.target.startswith(CPP_PYTHON_HEADERS):
        return PYTHON_IN_CPP_RULE
    if found.unit not in CPP_RULES:
        return CPP_SOURCE_RULE if found.file.startswith("cpp/src/") else CPP_RULE
    layer = _layer_of_target(found.target, found.unit)
    return None if layer in CPP_RULES[found.unit] else CPP_RULE


# --- the code of this repository ---------------------------------------------------------------


def _report(violations: list[Violation]) -> str:
    return "\n".join(["imports must go one way (see ARCHITECTURE.md):", *map(str, violations)])


def test_python_imports_go_one_way():
    violations = python_violations(ROOT)
    assert not violations, _report(violations)


def test_cpp_includes_go_one_way():
    violations = cpp_violations(ROOT)
    assert not violations, _report(violations)


def test_the_checker_really_reads_this_repository():
    targets = {found.target for found in python_imports(ROOT) if found.unit == "trace"}
    assert "numpy" in targets
    assert "rich.progress" in targets, "an import inside a function counts as well"
    layers = {found.unit for found in cpp_includes(ROOT)}
    assert {"core", "prox", "bindings"} <= layers


# --- the checker itself, on small trees with one planted line -----------------------------------


def _plant(root: Path, file: str, text: str) -> Path:
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return root


@pytest.mark.parametrize(
    ("file", "text", "line", "target", "rule"),
    [
        ("io/xmc.py", "import os\nimport sublearn.extreme\n", 2, "sublearn.extreme", "no room"),
        ("validation/labels.py", "from ..linear import x\n", 1, "sublearn.linear", "no room"),
        ("metrics/ranking.py", "from sublearn import graph\n", 1, "sublearn.graph", "no room"),
        ("trace.py", "from .optim import lhac\n", 1, "sublearn.optim", "no room"),
        ("optim/lhac.py", "from sublearn.linear.x import y\n", 1, "sublearn.linear.x", "serves"),
        ("graph/map.py", "from ..structured import x\n", 1, "sublearn.structured", "no other room"),
        ("extreme/__init__.py", "from ..embed import x\n", 1, "sublearn.embed", "no other room"),
        ("extreme/a.py", "def f():\n    from .. import cli\n", 2, "sublearn.cli", "nothing"),
        ("execution.py", "import sublearn.distributed\n", 1, "sublearn.distributed", "nothing"),
        ("serve/app.py", "import sublearn.cli\n", 1, "sublearn.cli", "not from each other"),
        ("io/text.py", "import sublearn.datasets\n", 1, "sublearn.datasets", "nothing"),
        ("__init__.py", "from .extreme import x\n", 1, "sublearn.extreme", "no room"),
        ("extreme/b.py", 'm = import_module("sublearn.trim")\n', 1, "sublearn.trim", "no other"),
        ("utils.py", "from sublearn.trace import x\n", 1, "sublearn.trace", "has a place"),
        ("linear/net.py", "import torch.nn\n", 1, "torch.nn", "only trim imports torch"),
        ("extreme/c.py", "from dask import bag\n", 1, "dask", "only distributed imports dask"),
    ],
)
def test_catches_a_planted_python_import(tmp_path, file, text, line, target, rule):
    _plant(tmp_path, f"src/sublearn/{file}", text)
    (violation,) = python_violations(tmp_path)
    assert str(violation).startswith(f"src/sublearn/{file}:{line} imports {target}; rule: ")
    assert rule in violation.rule


def test_catches_an_import_of_a_module_without_a_place(tmp_path):
    _plant(tmp_path, "src/sublearn/utils.py", "")
    _plant(tmp_path, "src/sublearn/extreme/a.py", "from sublearn.utils import x\n")
    (violation,) = python_violations(tmp_path)
    assert violation.rule == UNKNOWN_UNIT_RULE


def test_catches_units_that_import_each_other_in_a_circle(tmp_path):
    _plant(tmp_path, "src/sublearn/io/a.py", "from sublearn.validation import x\n")
    _plant(tmp_path, "src/sublearn/validation/b.py", "import sublearn.metrics\n")
    _plant(tmp_path, "src/sublearn/metrics/c.py", "from ..io import a\n")
    _plant(tmp_path, "src/sublearn/extreme/d.py", "from ..io import a\n")
    violations = python_violations(tmp_path)
    assert {v.where.unit for v in violations} == {"io", "validation", "metrics"}
    assert {v.rule for v in violations} == {CYCLE_RULE}


def test_the_package_and_its_units_may_ask_each_other(tmp_path):
    _plant(tmp_path, "src/sublearn/__init__.py", "from .io import load\n")
    _plant(tmp_path, "src/sublearn/io/models.py", "from sublearn import __version__\n")
    assert python_violations(tmp_path) == []


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("structured/chain.py", "from sublearn.graph import solve_map\n"),
        ("extreme/ppd.py", "from sublearn import __version__, _core, io\nfrom ..trace import x\n"),
        ("linear/logistic.py", "from sublearn.optim import lhac\nfrom . import path\n"),
        ("cli/fit.py", "from sublearn.extreme import PPDSparseClassifier\nimport sublearn\n"),
        (
            "io/models.py",
            "from sublearn import __version__, _core\nfrom sublearn.errors import x\n",
        ),
        ("trim/deep.py", "import torch\n"),
        ("__init__.py", "from .io import load\n"),
    ],
)
def test_lets_an_allowed_python_import_pass(tmp_path, file, text):
    assert python_violations(_plant(tmp_path, f"src/sublearn/{file}", text)) == []


_HEADERS = "cpp/include/sublearn"


@pytest.mark.parametrize(
    ("file", "text", "rule"),
    [
        (f"{_HEADERS}/core/a.hpp", '#include "sublearn/prox/l1.hpp"\n', CPP_RULE),
        (f"{_HEADERS}/losses/a.hpp", '#include "sublearn/search/scan.hpp"\n', CPP_RULE),
        (f"{_HEADERS}/search/a.hpp", '#include "sublearn/active/set.hpp"\n', CPP_RULE),
        (f"{_HEADERS}/active/a.hpp", '#  include "../solvers/x.hpp"\n', CPP_RULE),
        (f"{_HEADERS}/io/a.hpp", '#include "sublearn/losses/hinge.hpp"\n', CPP_RULE),
        (f"{_HEADERS}/solvers/a.hpp", '#include "sublearn/io/xmc.hpp"\n', CPP_RULE),
        (f"{_HEADERS}/core/a.hpp", "#include <nanobind/ndarray.h>\n", PYTHON_IN_CPP_RULE),
        ("cpp/tests/a.cpp", "#include <Python.h>\n", PYTHON_IN_CPP_RULE),
        ("cpp/src/a.cpp", '#include "sublearn/core/b.hpp"\n', CPP_SOURCE_RULE),
        (f"{_HEADERS}/everything.hpp", '#include "sublearn/core/b.hpp"\n', CPP_RULE),
        (f"{_HEADERS}/helpers/a.hpp", '#include "sublearn/core/b.hpp"\n', CPP_RULE),
    ],
)
def test_catches_a_planted_include(tmp_path, file, text, rule):
    (violation,) = cpp_violations(_plant(tmp_path, file, text))
    assert str(violation).startswith(f"{file}:1 imports ")
    assert violation.rule == rule


def test_a_source_file_belongs_to_the_layer_of_the_header_it_implements(tmp_path):
    text = '#include "sublearn/core/dense.hpp"\n\n#include "sublearn/solvers/ppd.hpp"\n'
    (violation,) = cpp_violations(_plant(tmp_path, "cpp/src/dense.cpp", text))
    assert (violation.where.line, violation.rule) == (3, CPP_RULE)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("cpp/bindings/a.cpp", '#include <nanobind/ndarray.h>\n#include "arrays.hpp"\n'),
        ("cpp/bindings/b.cpp", '#include "sublearn/solvers/x.hpp"\n#include "sublearn/io/y.hpp"\n'),
        (f"{_HEADERS}/core/a.hpp", '// #include "sublearn/solvers/x.hpp"\n#include <span>\n'),
        (f"{_HEADERS}/solvers/a.hpp", '#include "sublearn/active/set.hpp"\n'),
        ("cpp/tests/t.cpp", '#include "check.hpp"\n#include "sublearn/solvers/x.hpp"\n'),
    ],
)
def test_lets_an_allowed_include_pass(tmp_path, file, text):
    assert cpp_violations(_plant(tmp_path, file, text)) == []
