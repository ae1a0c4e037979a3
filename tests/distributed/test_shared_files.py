"""Files of a cluster: private to their user, and what they are named after."""

import os
import pickle
import stat

import numpy as np
import pytest

from sublearn.distributed import cluster, shared_files
from sublearn.distributed.shared_files import FileStore, Missing, SharedFolder, write_copy
from sublearn.errors import ClusterError
from sublearn.execution import map_blocks

pytestmark = pytest.mark.skipif(os.name != "posix", reason="rights are others on Windows")


def rights(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def store(tmp_path):
    store = FileStore(tmp_path)
    yield store
    store.remove()


@pytest.fixture
def elsewhere(store, tmp_path, monkeypatch):
    """The folder as a machine has it that does not see the client's."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(shared_files.tempfile, "tempdir", str(tmp_path / "tmp"))
    return SharedFolder(str(tmp_path / "unseen"), store.folder.token)


def send(store, folder, name):
    write_copy(folder, name, *store.chunks(name))


def test_folders_and_files_are_for_one_user_only(store, elsewhere):
    old = os.umask(0)  # a user who shares everything else
    try:
        names = [store.save_array(np.arange(9.0), {}), store.save_function(len, {})]
        for name in names:
            send(store, elsewhere, name)
        shared = FileStore(store.path)
    finally:
        os.umask(old)
    for folder in (store.path, elsewhere.copy, shared.path):
        assert rights(folder) == 0o700
    for name in names:
        assert rights(store.path / name) == rights(elsewhere.copy / name) == 0o600


def test_the_secret_of_a_folder_is_in_no_name_that_others_see(store):
    assert store.folder.token not in str(store.path)
    assert store.folder.is_seen()
    assert FileStore(store.path).path != FileStore(store.path).path


FOREIGN = {
    "open to others": lambda folder: os.chmod(folder, 0o755),
    "open to the group": lambda folder: os.chmod(folder, 0o710),
    "of another user": lambda folder: os.chown(folder, 65534, 65534),
}


@pytest.fixture(params=[*FOREIGN, "a link"])
def spoil(request):
    """Makes a private folder one that must not be trusted."""
    if request.param == "of another user" and os.geteuid() != 0:
        pytest.skip("needs the right to give folders away")

    def make_link(folder):
        folder.rename(folder.with_name("behind"))
        folder.symlink_to(folder.with_name("behind"))

    return FOREIGN.get(request.param, make_link)


def test_a_folder_that_is_not_private_is_as_if_not_there(store, spoil):
    name = store.save_array(np.arange(9.0), {})
    assert store.folder.find(name) == store.path / name
    spoil(store.path)
    assert not store.folder.is_seen()
    with pytest.raises(Missing):
        store.folder.find(name)


def test_a_worker_does_not_adopt_a_folder_that_is_not_private(store, elsewhere, spoil):
    elsewhere.copy.mkdir(0o700)
    spoil(elsewhere.copy)
    name = store.save_function(len, {})
    with pytest.raises(ClusterError, match=r"the folder must be a private one of the user"):
        send(store, elsewhere, name)
    assert list(elsewhere.copy.iterdir()) == []
    (elsewhere.copy / name).write_bytes(pickle.dumps(print))  # planted
    with pytest.raises(Missing):
        shared_files.read_pickle(elsewhere, name)
    elsewhere.forget_copy()
    assert (elsewhere.copy / name).exists()  # and not removed either


def test_processes_of_one_machine_share_the_folder_of_copies(store, elsewhere):
    names = [store.save_array(np.arange(9.0) + k, {}) for k in range(2)]
    for name in names * 2:
        send(store, elsewhere, name)
    assert sorted(file.name for file in elsewhere.copy.iterdir()) == sorted(names)
    np.testing.assert_array_equal(shared_files.open_array(elsewhere, names[1]), np.arange(9.0) + 1)
    elsewhere.forget_copy()
    assert not elsewhere.copy.exists()


OTHER_BYTES = "content must be what the file is named after, got other bytes"


@pytest.mark.parametrize(
    "array", [np.arange(12.0), np.asfortranarray(np.arange(12.0).reshape(3, 4)), np.array(3)]
)
def test_copies_that_arrive_damaged_are_refused_and_removed(store, elsewhere, array):
    for name in (store.save_array(array, {}), store.save_function(len, {})):
        (sent,) = store.chunks(name)
        flipped = sent.copy()
        flipped[-1] ^= 1
        for chunk in (flipped, sent[:-1], sent[:5], np.append(sent, sent[:1])[1:]):
            with pytest.raises(ClusterError, match=OTHER_BYTES):
                write_copy(elsewhere, name, chunk)
        assert list(elsewhere.copy.iterdir()) == []
        write_copy(elsewhere, name, sent)
        (elsewhere.copy / name).unlink()


def test_a_pickle_with_other_bytes_is_not_run(store):
    name = store.save_function(len, {})
    (store.path / name).write_bytes(pickle.dumps(print))
    with pytest.raises(ClusterError, match=OTHER_BYTES):
        shared_files.read_pickle(store.folder, name)


def test_an_array_that_was_cut_short_is_refused(store):
    name = store.save_array(np.arange(10_000.0), {})
    with open(store.path / name, "r+b") as file:
        for size in (50_000, 60, 4, 0):
            file.truncate(size)
            with pytest.raises(ClusterError, match=OTHER_BYTES):
                shared_files.open_array(store.folder, name)


def test_a_write_that_fails_leaves_no_file(store):
    def write(stream):
        stream.write(b"half")
        raise OSError("the disk is full")

    before = store.names()
    with pytest.raises(OSError, match="full"):
        shared_files._write_at_once(store.path / "x.npy", write)
    assert store.names() == before
    assert len(list(store.path.iterdir())) == 1  # by which machines know the folder


def test_a_planted_folder_ends_a_fit_with_its_name(client, tmp_path):
    values = np.arange(30_000)
    with cluster(client, directory=tmp_path) as blocks:
        token = blocks.store.folder.token
        blocks.store.folder = SharedFolder(str(tmp_path / "elsewhere"), token)
        planted = blocks.store.folder.copy
        planted.mkdir(0o755)
        planted.chmod(0o755)
        try:
            with pytest.raises(ClusterError, match=f"{planted}: the folder must be a private"):
                map_blocks(lambda k: int(values[k]), [1, 2])
        finally:
            planted.rmdir()
