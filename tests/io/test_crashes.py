"""Writers that are killed, run out of disk or work side by side: the file is always a whole one."""

import ast
import contextlib
import errno
import json
import os
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import sublearn
from sublearn.embed.word_files import write_word_vectors
from sublearn.extreme import PPDSparseClassifier
from sublearn.extreme.fit_journal import FitJournal
from sublearn.extreme.ppd_problem import PPDProblem
from sublearn.extreme.ppd_solve import gather_weights
from sublearn.io import load_bundle, save_bundle, save_npz, save_svmlight
from sublearn.io.files import replace_file, write_atomically
from sublearn.io.locks import hold_alone, open_locked
from sublearn.validation import encode_labels

pytestmark = pytest.mark.skipif(os.name != "posix", reason="locks and signals of POSIX")

ROOT = Path(__file__).resolve().parents[2]
LONG = 120  # seconds: what ends at all ends long before


def save(path, number=0.0, size=50_000):
    save_bundle(path, class_name="T", params={}, attributes={},
                arrays={"a": np.full(size, number)})  # fmt: skip


def names(folder):
    return sorted(os.listdir(folder))


# --- kills -------------------------------------------------------------------------------------


def test_a_kill_at_any_operation_on_files_loses_nothing():
    # The first, the last and some operations between, and deaths in the middle of a file.
    command = [sys.executable, ROOT / "tests" / "fuzz" / "kill_points.py", "--kills=0", "--steps=4"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3 * LONG)
    found = json.loads(done.stdout or "{}")
    assert list(found) == ["fit", "resume", "part", "join", "save"]
    assert [each["failures"] for each in found.values()] == [[]] * 5, done.stderr
    assert all(each["kills"] >= 6 for each in found.values())
    assert all(each["left a part"] for each in found.values())  # so there was something to clear


# --- parts of dead and of living writers -------------------------------------------------------

WRITER = """
import sys, time
from sublearn.io.files import replace_file
with replace_file(sys.argv[1]) as part:
    part.write_bytes(b"x" * 1000)
    print(part, flush=True)
    sys.stdin.readline()
"""


@contextlib.contextmanager
def writer(path):
    """A process in the middle of writing, and its part."""
    command = [sys.executable, "-c", WRITER, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        try:
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def test_the_next_save_removes_the_part_of_a_killed_writer_and_no_other(tmp_path):
    path = tmp_path / "m"
    with writer(path) as (killed, left_over), writer(path) as (living, part):
        killed.kill()
        killed.wait()
        with replace_file(tmp_path / "other") as of_another:
            of_another.write_bytes(b"")
            assert names(tmp_path) == sorted([left_over.name, part.name, of_another.name])
            save(path)
            assert names(tmp_path) == sorted([part.name, of_another.name, "m"])
        living.communicate("\n", timeout=LONG)
        assert living.returncode == 0
    assert path.read_bytes() == b"x" * 1000  # the last one wins
    assert names(tmp_path) == ["m", "other"]


def test_a_part_of_this_process_is_not_removed_by_another_thread(tmp_path):
    path = tmp_path / "m"
    with replace_file(path) as part:
        part.write_bytes(b"outer")
        other = threading.Thread(target=save, args=[path])
        other.start()
        other.join()
        assert part.read_bytes() == b"outer"
    assert path.read_bytes() == b"outer"


def test_what_only_looks_like_a_part_is_left_alone(tmp_path):
    def part(k, target="m"):
        return tmp_path / f".{target}.{k:016x}.part"

    (tmp_path / "data").write_bytes(b"mine")
    part(1).symlink_to(tmp_path / "data")
    os.mkfifo(part(2))
    part(3).mkdir()
    part(4, "n").touch()
    part(5, "m.x").touch()
    (tmp_path / ".m.part").touch()
    part(6).touch()
    before = names(tmp_path)
    save(tmp_path / "m")
    assert names(tmp_path) == sorted({*before, "m"} - {part(6).name})
    assert (tmp_path / "data").read_bytes() == b"mine"


@pytest.mark.parametrize("name", ["m" * 255, "λ" * 127, "𝔪" * 63, "[m]*?.x", ".m", "m.part"])
def test_targets_of_any_name_have_parts(tmp_path, name):
    path = tmp_path / name
    with writer(path) as (process, left_over):
        assert left_over.exists()
        process.kill()
        process.wait()
    save(path)
    assert names(tmp_path) == [name]


def test_a_folder_for_writing_only_takes_files():
    with tempfile.TemporaryDirectory() as folder:  # below nothing that only its owner may enter
        is_root = os.geteuid() == 0
        if is_root:  # whom rights do not bind
            os.chown(folder, 65534, -1)
            os.seteuid(65534)
        try:
            os.chmod(folder, 0o300)
            with write_atomically(Path(folder, "m")) as stream:
                stream.write(b"x")
            os.chmod(folder, 0o700)
        finally:
            if is_root:
                os.seteuid(0)
        assert names(folder) == ["m"]


# --- side by side ------------------------------------------------------------------------------

SAVER = """
import sys
import numpy as np
from sublearn.io import save_bundle
for k in range(15):
    arrays = {"a": np.full(20_000 + 1000 * int(sys.argv[2]), float(sys.argv[2]))}
    save_bundle(sys.argv[1], class_name="T", params={}, attributes={}, arrays=arrays)
"""


def is_whole(path):
    """Whether all of a file is by one saver."""
    a = load_bundle(path).arrays["a"]
    return (a == a[0]).all() and len(a) == 20_000 + 1000 * a[0]


def test_processes_that_save_to_one_path_leave_the_file_of_one(tmp_path):
    path = tmp_path / "m"
    save(path, 0.0, 20_000)
    commands = [[sys.executable, "-c", SAVER, str(path), str(k)] for k in range(1, 4)]
    savers = [subprocess.Popen(command) for command in commands]
    while any(saver.poll() is None for saver in savers):
        assert is_whole(path)
    assert [saver.returncode for saver in savers] == [0, 0, 0]
    assert load_bundle(path).arrays["a"][0] > 0
    assert names(tmp_path) == ["m"]


def test_threads_that_save_to_one_path_leave_the_file_of_one(tmp_path):
    path, errors = tmp_path / "m", []

    def work(k):
        try:
            for _ in range(10):
                save(path, float(k), 20_000 + 1000 * k)
                assert is_whole(path)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=[k]) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert names(tmp_path) == ["m"]


# --- locks -------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_process_forked_by_the_holder_does_not_keep_the_lock(tmp_path):
    with hold_alone(tmp_path / "lock") as is_ours:
        assert is_ours
        read, write = os.pipe()
        child = os.fork()
        if child == 0:  # it has the file of the lock open until it ends
            os.close(write)
            os.read(read, 1)
            os._exit(0)
    try:
        with hold_alone(tmp_path / "lock") as is_ours:
            assert is_ours
    finally:
        os.close(write)
        os.close(read)
        os.waitpid(child, 0)
    assert names(tmp_path) == []


def test_a_lock_is_held_once_and_by_whoever_comes_next(tmp_path):
    with hold_alone(tmp_path / "lock"):
        assert open_locked(tmp_path / "lock") is None
    (tmp_path / "lock").touch()  # of a process that is dead
    handle = open_locked(tmp_path / "lock")
    assert handle is not None
    os.close(handle)


# --- disks that refuse -------------------------------------------------------------------------


@pytest.fixture
def disk(tmp_path):
    """A disk of one megabyte, and a function that fills it."""
    room = tmp_path / "disk"
    room.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(room)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"needs the right to mount a small disk: {error}")
    try:
        yield room
    finally:
        subprocess.run(["umount", "-l", str(room)], check=True)


def fill(disk, leave=0):
    """Take all space but so many bytes."""
    free = os.statvfs(disk)
    with open(disk / "filler", "wb") as file:
        file.write(bytes(free.f_bavail * free.f_frsize - leave))


def rows(n_rows=400):
    rng = np.random.default_rng(0)
    X = sp.random(n_rows, 50, 0.5, "csr", random_state=rng, data_rvs=rng.standard_normal)
    return X.astype(np.float64), (X @ rng.normal(size=(50, 40))) > 1.5


def write_lines(path):
    noise = np.random.default_rng(0)
    with write_atomically(path) as stream:
        for _ in range(300):
            stream.write(noise.bytes(1000))


WRITERS = {
    "model": lambda path: save(path),
    "plain": write_lines,
    "text.gz": write_lines,
    "text.xz": write_lines,
    "text.bz2": write_lines,
    "rows.npz": lambda path: save_npz(path, rows(1000)[0], np.zeros(1000)),
    "rows.svm": lambda path: save_svmlight(path, rows(1000)[0], np.zeros(1000)),
    "words.txt": lambda path: write_word_vectors(
        path, np.array([f"w{k}" for k in range(1000)]), np.ones((1000, 99), "f4"), binary=True
    ),
}


@pytest.mark.parametrize("leave", [0, 4096, 100_000])
@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_the_old_file_and_an_error_that_names_it(disk, name, leave):
    path = disk / name
    path.write_bytes(b"old")
    fill(disk, leave)
    with pytest.raises(OSError, match="No space left on device") as refusal:
        WRITERS[name](path)
    assert (refusal.value.errno, refusal.value.filename) == (errno.ENOSPC, str(path))
    assert path.read_bytes() == b"old"
    assert names(disk) == sorted([name, "filler"])
    (disk / "filler").unlink()
    WRITERS[name](path)
    assert names(disk) == [name]


def test_a_disk_for_reading_only_is_named(disk):
    save(disk / "m")
    before = (disk / "m").read_bytes()
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    with pytest.raises(OSError, match="Read-only file system") as refusal:
        save(disk / "m", 1.0)
    assert refusal.value.filename == str(disk / "m")
    assert (disk / "m").read_bytes() == before


def fail(path, error):
    with replace_file(path) as part:
        part.write_bytes(b"half")
        raise error


@pytest.mark.parametrize("number", [errno.EIO, errno.EDQUOT, errno.ENOSPC, errno.EFBIG])
def test_errors_of_the_disk_name_the_file_and_not_the_part(tmp_path, number):
    path = tmp_path / "m"
    path.write_bytes(b"old")
    with pytest.raises(OSError, match=os.strerror(number)) as refusal:
        fail(path, OSError(number, os.strerror(number)))
    assert (refusal.value.errno, refusal.value.filename) == (number, str(path))
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["m"]


@pytest.mark.parametrize(
    "error", [FileNotFoundError(errno.ENOENT, "No such file", "input"), OSError("a sentence")]
)
def test_errors_that_are_of_other_files_stay_as_they_are(tmp_path, error):
    with pytest.raises(OSError, match=r"input|a sentence") as refusal:
        fail(tmp_path / "m", error)
    assert refusal.value is error
    assert names(tmp_path) == []


# --- fits on a full disk -----------------------------------------------------------------------


@pytest.mark.parametrize("leave", [0, 8192, 60_000])
def test_a_fit_on_a_full_disk_keeps_the_old_model_and_goes_on_later(disk, leave):
    X, Y = rows()
    path = disk / "m"
    PPDSparseClassifier(l1=1.0, random_state=0).fit(X, Y).save(path)
    before = path.read_bytes()
    expected = PPDSparseClassifier(random_state=0).fit(X, Y)
    model = PPDSparseClassifier(random_state=0, model_path=path)
    fill(disk, leave)
    with pytest.raises(OSError, match="No space left on device") as refusal:
        model.fit(X, Y)
    assert str(refusal.value.filename).startswith(str(path))
    assert path.read_bytes() == before
    assert not list(disk.rglob(".*.part"))
    (disk / "filler").unlink()
    model.fit(X, Y)
    assert names(disk) == ["m"]
    assert (model.coef_ != expected.coef_).nnz == 0
    assert (sublearn.load(path).coef_ != expected.coef_).nnz == 0


def test_the_last_step_of_a_journal_survives_a_full_disk(disk):
    # Written through a sparse map, this killed the process (SIGBUS).
    X, Y = rows()
    problem = PPDProblem(X, encode_labels(Y, X.shape[0], estimator_name="T"))
    settings = {"loss": "squared_hinge", "C": 1.0}
    chunk = problem.solve(slice(0, len(problem.order)), settings, sublearn._core.Monitor())
    journal = FitJournal(disk / "m", {"seed": 0}, 0)
    chunks = [journal.keep(0, chunk)]
    for leave in (0, 4096, 8192):
        (disk / "filler").unlink(missing_ok=True)
        fill(disk, leave)
        with pytest.raises(OSError, match=r"No space left on device: .*(labels|values)\.bin"):
            journal.gather_weights(chunks, (problem.n_features, problem.n_labels))
        assert names(journal.folder) == ["part-000000.safetensors", "plan.json"]
    (disk / "filler").unlink()
    found = journal.gather_weights(chunks, (problem.n_features, problem.n_labels))
    assert (found != gather_weights(chunk, problem.n_features)).nnz == 0


def test_the_command_line_names_the_file_that_found_no_space(disk, tmp_path):
    X, Y = rows()
    save_svmlight(tmp_path / "rows.svm", X, Y.argmax(axis=1))
    (disk / "m").write_bytes(b"old")
    fill(disk)
    command = [
        sys.executable,
        "-m",
        "sublearn",
        "fit",
        tmp_path / "rows.svm",
        "--model",
        disk / "m",
    ]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 1
    assert f"{disk / 'm'}: No space left on device" in " ".join(done.stderr.split())
    assert (disk / "m").read_bytes() == b"old"
    assert names(disk) == ["filler", "m"]


def test_no_file_is_written_through_a_map():
    """A page of a map that finds no space on the disk ends the process by SIGBUS."""
    for file in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            modes = {word.arg: ast.unparse(word.value) for word in node.keywords}
            mode = (
                modes.get("mode") if name in ("memmap", "open_memmap") else modes.get("mmap_mode")
            )
            assert name not in ("memmap", "open_memmap") or mode == "'r'", f"{file}:{node.lineno}"
            assert mode in (None, "'r'"), f"{file}:{node.lineno}: maps must be read-only"


def test_a_new_file_has_the_usual_rights(tmp_path):
    old = os.umask(0o027)
    try:
        save(tmp_path / "m")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "m").stat().st_mode) == 0o640
