"""What compiling costs: CPU seconds of each translation unit, and the size of what comes out.

python3 tools/compile_times.py                       the extension module
python3 tools/compile_times.py --write before.json   the same, kept for a later comparison
python3 tools/compile_times.py --compare before.json after a change: both, file by file
python3 tools/compile_times.py --cpp-tests           C++ tests and harnesses, with sanitizers

Builds from nothing in a temporary folder, without a compiler cache. The figures are CPU seconds
(user and system, children included), since the wall clock depends on what else the machine does.
Needs nanobind, CMake and Ninja, as an installation from source does.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Where a compiler command that is being measured writes its line.
LOG = "SUBLEARN_COMPILE_TIMES"


def measured(command: list[str]) -> int:
    """Run one command of the build and add its CPU seconds to the log."""
    code = subprocess.run(command, check=False).returncode
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    line = json.dumps([unit_of(command), used.ru_utime + used.ru_stime, used.ru_maxrss // 1024])
    with open(os.environ[LOG], "a", encoding="utf-8") as log:
        log.write(line + "\n")  # one short line in append mode: no other process writes into it
    return code


def unit_of(command: list[str]) -> str:
    """The name of what a command of the compiler makes: a source file, or what is linked."""
    if "-c" not in command:
        return "link " + Path(command[command.index("-o") + 1]).name
    source = Path(command[command.index("-c") + 1]).resolve()
    if source.is_relative_to(ROOT):
        return source.relative_to(ROOT).as_posix()
    return (
        source.name if "Unity" in str(source) or "pch" in source.name else f"nanobind/{source.name}"
    )


def build(
    folder: Path, cpp_tests: bool, jobs: int
) -> tuple[dict[str, list[float]], dict[str, int]]:
    """Configure and build in `folder`: cost of each unit, bytes of each product."""
    log = folder / "times.jsonl"
    launcher = f"{sys.executable};{Path(__file__).resolve()};--measure"
    configure = ["cmake", "-S", str(ROOT), "-B", str(folder / "build"), "-G", "Ninja"]
    configure += [f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}"]
    configure += [f"-DCMAKE_CXX_LINKER_LAUNCHER={launcher}"]
    configure += test_options() if cpp_tests else extension_options()
    variables = {**os.environ, LOG: str(log), "CCACHE_DISABLE": "1"}
    variables.pop("CMAKE_CXX_COMPILER_LAUNCHER", None)
    run(configure, variables)
    log.unlink(missing_ok=True)  # what configuring compiled
    target = [] if cpp_tests else ["--target", "_core"]
    run(["cmake", "--build", str(folder / "build"), "-j", str(jobs), *target], variables)
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    times: dict[str, list[float]] = {}
    for name, seconds, megabytes in lines:
        before = times.get(name, [0.0, 0])
        times[name] = [before[0] + seconds, max(before[1], megabytes)]
    products = [path for path in (folder / "build").iterdir() if is_product(path)]
    return times, {path.name: path.stat().st_size for path in products}


def run(command: list[str], variables: dict[str, str]) -> None:
    """Run a command without its words, unless it fails."""
    done = subprocess.run(
        command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode != 0:
        sys.exit(done.stdout)


def is_product(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK) and path.suffix in {"", ".so"}


def extension_options() -> list[str]:
    asked = [sys.executable, "-m", "nanobind", "--cmake_dir"]
    nanobind = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    return [f"-DPython_EXECUTABLE={sys.executable}", f"-Dnanobind_DIR={nanobind}"]


def test_options() -> list[str]:
    sys.path.insert(0, str(ROOT))
    import tasks

    return [*tasks.WITHOUT_PYTHON, *tasks.CPP_TEST_OPTIONS]


def table(times: dict[str, list[float]], before: dict[str, list[float]]) -> list[str]:
    """Rows from the dearest unit to the cheapest, and their sum."""
    names = sorted(
        times.keys() | before, key=lambda name: -max(cost(times, name), cost(before, name))
    )
    total = {"all": [sum(row[0] for row in times.values()), max(row[1] for row in times.values())]}
    old = {"all": [sum(row[0] for row in before.values()), 0]} if before else {}
    rows = [(name, times, before) for name in names] + [("all", total, old)]
    lines = [
        f"{'before':>8}  {'CPU s':>7}  {'MB':>5}  unit"
        if before
        else f"{'CPU s':>7}  {'MB':>5}  unit"
    ]
    for name, now, then in rows:
        first = f"{cost(then, name):8.1f}  " if before else ""
        lines.append(f"{first}{cost(now, name):7.1f}  {now.get(name, [0, 0])[1]:5d}  {name}")
    return lines


def cost(times: dict[str, list[float]], name: str) -> float:
    return times.get(name, [0.0])[0]


def main() -> int:
    if sys.argv[1:2] == ["--measure"]:
        return measured(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cpp-tests", action="store_true", help="measure those")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="commands at once")
    parser.add_argument("--write", type=Path, metavar="FILE", help="keep the figures")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="show kept figures beside")
    chosen = parser.parse_args()
    kept = json.loads(chosen.compare.read_text(encoding="utf-8")) if chosen.compare else {}
    with tempfile.TemporaryDirectory() as folder:
        times, products = build(Path(folder), chosen.cpp_tests, chosen.jobs)
    print("\n".join(table(times, kept.get("times", {}))))
    for name, size in sorted(products.items()):
        then = kept.get("bytes", {}).get(name)
        print(f"{name}: {size / 1e6:.2f} MB" + (f", before {then / 1e6:.2f}" if then else ""))
    if chosen.write:
        text = json.dumps({"times": times, "bytes": products}, indent=1, sort_keys=True)
        chosen.write.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
