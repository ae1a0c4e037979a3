"""Counts what keeps a codebase livable, and fails where a count is over its limit.

    python3 tools/house.py            the table; exit code 1 if a limit is broken
    python3 tools/house.py --where    every place that counts, with file and line

One outer loop, one progress class, one end of a fit: each is a row with a limit of one. Lengths and
numbers of arguments are read from the source, Python by `ast`, C++ by its indentation, which
clang-format fixes.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONG, VERY_LONG = 45, 60  # lines of a function
MANY_ARGUMENTS = 8
MANY_PARAMETERS = 15  # of a constructor, which users fill in by name
#: Everything `sublearn.trace.watch` needs of what it watches; a class with all of it is a progress.
WATCHED = {"n_done", "objective", "gap", "nnz_primal", "request_stop"}

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Place:
    """Something that counts: where it stands, and how large it is."""

    file: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.what}"


@dataclass(frozen=True)
class Row:
    """One count and its limit; without a limit it only informs."""

    name: str
    places: list[Place]
    limit: int | None = None

    @property
    def is_broken(self) -> bool:
        return self.limit is not None and len(self.places) > self.limit


# --- Python ---------------------------------------------------------------------------------------


@cache
def python_trees() -> list[tuple[str, ast.Module]]:
    files = sorted((ROOT / "src").rglob("*.py"))
    return [(str(file.relative_to(ROOT)), ast.parse(file.read_text("utf-8"))) for file in files]


def python_nodes(kind: type | tuple[type, ...]) -> Iterator[tuple[str, ast.AST]]:
    for file, tree in python_trees():
        for node in ast.walk(tree):
            if isinstance(node, kind):
                yield file, node


def long_functions(least: int) -> list[Place]:
    return [place for size, place in function_lengths() if size > least]


def function_lengths() -> Iterator[tuple[int, Place]]:
    for file, node in python_nodes((ast.FunctionDef, ast.AsyncFunctionDef)):
        size = body_length(node)
        yield size, Place(file, node.lineno, f"{node.name}: {size} lines")
    for file, line, name, size in cpp_functions():
        yield size, Place(file, line, f"{name}: {size} lines")


def body_length(node: FunctionNode) -> int:
    """Lines from the signature on, without the docstring: documentation is never too long."""
    docstring = node.body[0] if ast.get_docstring(node, clean=False) is not None else None
    documented = docstring.end_lineno - docstring.lineno + 1 if docstring else 0
    return node.end_lineno - node.lineno + 1 - documented


def many_arguments() -> list[Place]:
    found = []
    for file, node in python_nodes((ast.FunctionDef, ast.AsyncFunctionDef)):
        n_arguments = len(argument_names(node))
        if n_arguments > MANY_ARGUMENTS and node.name != "__init__":
            found.append(Place(file, node.lineno, f"{node.name}: {n_arguments} arguments"))
    return found


def many_parameters() -> list[Place]:
    found = []
    for file, node in python_nodes(ast.ClassDef):
        for function in node.body:
            if isinstance(function, ast.FunctionDef) and function.name == "__init__":
                n_arguments = len(argument_names(function))
                if n_arguments > MANY_PARAMETERS:
                    what = f"{node.name}: {n_arguments} parameters"
                    found.append(Place(file, function.lineno, what))
    return found


def argument_names(node: FunctionNode) -> list[str]:
    arguments = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
    return [each.arg for each in arguments if each.arg not in ("self", "cls")]


def progress_classes() -> list[Place]:
    """Classes that `watch` could look at; the protocol that says so is not one."""
    found = []
    for file, node in python_nodes(ast.ClassDef):
        names = set(attribute_names(node))
        if names >= WATCHED and not any(ast.unparse(base) == "Protocol" for base in node.bases):
            found.append(Place(file, node.lineno, node.name))
    return found


def attribute_names(node: ast.ClassDef) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.FunctionDef):
            yield inner.name
        elif isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
            yield inner.attr
        elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            yield inner.id


def certificates_set() -> list[Place]:
    return [
        Place(file, node.lineno, ast.unparse(node))
        for file, node in python_nodes(ast.Attribute)
        if node.attr == "certificate_" and isinstance(node.ctx, ast.Store)
    ]


def uses_of_any() -> list[Place]:
    return [
        Place(file, node.lineno, "Any")
        for file, node in python_nodes(ast.Name)
        if node.id == "Any" and isinstance(node.ctx, ast.Load)
    ]


def ignored_types() -> list[Place]:
    return list(matching(python_files(), r"#\s*type:\s*ignore"))


# --- C++ ------------------------------------------------------------------------------------------


def cpp_functions() -> Iterator[tuple[str, int, str, int]]:
    """File, line, name and length of every function with a body of several lines."""
    words = r"namespace|class|struct|enum|union|if|for|while|switch|else|do|return|throw"
    declaration = re.compile(rf" *(?!(?:{words})\b)(?:[\w:<>,&* ]*[ &*])?([a-zA-Z]\w*)\(")
    for file in cpp_files():
        lines = file.read_text("utf-8").splitlines()
        for i, line in enumerate(lines):
            found = None if line.lstrip().startswith(":") else declaration.match(line)
            end = end_of_function(lines, i) if found else None
            if found and end is not None and not found[1].endswith("_"):  # initialises a member
                yield str(file.relative_to(ROOT)), i + 1, found[1], end - i + 1


def end_of_function(lines: list[str], first: int) -> int | None:
    """The line with the closing brace of a function whose declaration begins here."""
    margin = len(lines[first]) - len(lines[first].lstrip())
    for i in range(first, min(first + 12, len(lines))):
        text = lines[i].rstrip()
        if i > first and len(text) - len(text.lstrip()) <= margin:
            return None
        if text.endswith((";", "{}")):
            return None
        if re.search(r"(\)|const|noexcept|override|requires .*|-> .*|\}) \{$", text):
            closing = " " * margin + "}"
            ends = (j for j in range(i + 1, len(lines)) if lines[j].startswith(closing))
            return next(ends, None)
    return None


def outer_loops() -> list[Place]:
    """Loops over coordinates of a sparse problem: certify, stop?, screen, choose, correct."""
    found = []
    for file in [*cpp_files(), *python_files()]:
        lines = file.read_text("utf-8").splitlines()
        for i, line in enumerate(lines):
            if re.match(r"\s*(while|for)\b", line) and is_outer_loop(lines, i):
                found.append(Place(str(file.relative_to(ROOT)), i + 1, line.strip()))
    return found


def is_outer_loop(lines: list[str], first: int) -> bool:
    """Whether the loop that begins here looks at all coordinates and then at a few."""
    margin = len(lines[first]) - len(lines[first].lstrip())
    text = lines[first]
    for line in lines[first + 1 :]:
        if line.strip() and len(line) - len(line.lstrip()) <= margin:
            break
        text += line
    looks = re.search(r"\b(certify|look)\(", text)
    return bool(looks and re.search(r"\b(screen|restrict|advance)\(", text))


def headers_by_folder() -> dict[str, int]:
    headers = (ROOT / "cpp/include/sublearn").rglob("*.hpp")
    return dict(Counter(str(file.parent.relative_to(ROOT / "cpp/include")) for file in headers))


# --- the table ------------------------------------------------------------------------------------


@cache
def python_files() -> list[Path]:
    return sorted((ROOT / "src").rglob("*.py"))


@cache
def cpp_files() -> list[Path]:
    folders = ("include", "src", "bindings")
    files = [file for folder in folders for file in (ROOT / "cpp" / folder).rglob("*.[ch]pp")]
    return sorted(files)


def matching(files: list[Path], pattern: str) -> Iterator[Place]:
    for file in files:
        for i, line in enumerate(file.read_text("utf-8").splitlines()):
            if re.search(pattern, line):
                yield Place(str(file.relative_to(ROOT)), i + 1, line.strip())


def rows() -> list[Row]:
    counts: list[tuple[str, Callable[[], list[Place]], int | None]] = [
        ("outer loops of sparse problems", outer_loops, 1),
        ("progress classes", progress_classes, 1),
        ("places that set certificate_", certificates_set, 1),
        ("uses of Any", uses_of_any, 300),
        ("type: ignore", ignored_types, 15),
        (f"functions over {LONG} lines", lambda: long_functions(LONG), None),
        (f"functions over {VERY_LONG} lines", lambda: long_functions(VERY_LONG), 0),
        (f"functions of over {MANY_ARGUMENTS} arguments", many_arguments, None),
        (f"constructors of over {MANY_PARAMETERS} parameters", many_parameters, 0),
    ]
    return [Row(name, find(), limit) for name, find, limit in counts]


def lines_of(*folders: str) -> int:
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.*")]
    return sum(
        len(file.read_text("utf-8").splitlines())
        for file in files
        if file.suffix in {".py", ".hpp", ".cpp"} and "build" not in file.parts
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--where", action="store_true", help="name every place")
    options = parser.parse_args()
    table = rows()
    for row in table:
        limit = "" if row.limit is None else f"limit {row.limit}"
        mark = "  too many" if row.is_broken else ""
        print(f"{row.name:45}{len(row.places):>7,}   {limit}{mark}")
        if options.where:
            for place in row.places:
                print(f"    {place}")
    for name, folders in {
        "src": ["src"],
        "cpp": ["cpp/include", "cpp/src", "cpp/bindings"],
    }.items():
        print(f"{'lines of ' + name:45}{lines_of(*folders):>7,}")
    print(f"{'lines of tests':45}{lines_of('tests', 'cpp/tests'):>7,}")
    for folder, count in sorted(headers_by_folder().items()):
        print(f"{'headers in ' + folder:45}{count:>7,}")
    return int(any(row.is_broken for row in table))


if __name__ == "__main__":
    sys.exit(main())
