"""Archives that lie: names that lead elsewhere, contents that fill the disk, parts that are cut."""

import io
import stat
import tarfile
import zipfile

import pytest

from sublearn.datasets.archives import members_of_tar, unpack
from sublearn.datasets.cache import Record
from sublearn.errors import DataFileError, DownloadError

WANTED = {"train.txt": ("set/train.txt", None)}


def zipped(path, entries, **how):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            archive.writestr(name, content, **how)
    return path


def tarred(path, entries):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in entries:
            entry = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def contents(path):
    return dict(members_of_tar(path, lambda name: name.endswith(".txt")))


def test_a_wanted_file_comes_out_of_whatever_folder_and_nothing_else(tmp_path):
    path = zipped(tmp_path / "a.zip", [("x/set/train.txt", b"1 2 3\n"), ("x/other", b"")])
    found = unpack(path, WANTED)
    assert found["train.txt"].read_bytes() == b"1 2 3\n"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.zip", "record.json", "train.txt"]


@pytest.mark.parametrize(
    "name", ["../train.txt", "/train.txt", "set/../../train.txt", "C:/train.txt", "..\\train.txt"]
)
def test_a_name_that_leads_out_of_a_zip_archive_is_refused(tmp_path, name):
    path = zipped(tmp_path / "a.zip", [(name, b"bad"), ("set/train.txt", b"good")])
    with pytest.raises(DataFileError, match=r"a\.zip: a name in the archive leads out of it"):
        unpack(path, WANTED)
    assert [one.name for one in tmp_path.iterdir()] == ["a.zip"]


def test_a_zip_bomb_is_refused_before_it_fills_the_disk(tmp_path):
    path = zipped(tmp_path / "a.zip", [("set/train.txt", bytes(100 << 20))])
    with pytest.raises(DataFileError, match="must have at most 67108864 when decompressed"):
        unpack(path, WANTED)
    assert [one.name for one in tmp_path.iterdir()] == ["a.zip"]


def test_a_link_in_a_zip_archive_is_refused(tmp_path):
    entry = zipfile.ZipInfo("set/train.txt")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    path = zipped(tmp_path / "a.zip", [(entry, b"/etc/passwd")])
    with pytest.raises(DataFileError, match="must be a plain file"):
        unpack(path, WANTED)


@pytest.mark.parametrize("entries", [[("set/test.txt", b"")], [("a/set/train.txt", b"")] * 2])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_missing_or_doubled_file_is_named(tmp_path, entries):
    path = zipped(tmp_path / "a.zip", entries)
    with pytest.raises(DataFileError, match=r"must have one file set/train\.txt, got [02] among"):
        unpack(path, WANTED)


@pytest.mark.parametrize("place", [60, -10])
def test_a_damaged_zip_archive_is_refused(tmp_path, place):
    path = zipped(tmp_path / "a.zip", [("set/train.txt", bytes(range(256)) * 40)])
    content = bytearray(path.read_bytes())
    content[place] ^= 255
    path.write_bytes(content[:place] if place < 0 else content)
    with pytest.raises(DataFileError, match=r"a\.zip: "):
        unpack(path, WANTED)


def test_a_file_in_an_archive_must_have_its_checksum(tmp_path):
    path = zipped(tmp_path / "a.zip", [("set/train.txt", b"1")])
    with pytest.raises(DownloadError, match=r"train\.txt must have the SHA-256 00"):
        unpack(path, {"train.txt": ("train.txt", "00")})
    assert not Record(tmp_path).has("train.txt")


def test_small_files_of_a_tar_archive_are_read_without_being_written(tmp_path):
    path = tarred(tmp_path / "a.tar.gz", [("top/a/1.txt", b"one"), ("top/b.md", b"no")])
    assert contents(path) == {"a/1.txt": b"one"}
    assert [one.name for one in tmp_path.iterdir()] == ["a.tar.gz"]


@pytest.mark.parametrize("name", ["../a.txt", "/a.txt", "top/../../a.txt"])
def test_a_name_that_leads_out_of_a_tar_archive_is_refused(tmp_path, name):
    path = tarred(tmp_path / "a.tar.gz", [(name, b"bad")])
    with pytest.raises(DataFileError, match=r"a\.tar\.gz: a name in the archive leads out of it"):
        contents(path)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE])
def test_a_link_or_device_in_a_tar_archive_is_refused(tmp_path, kind):
    entry = tarfile.TarInfo("top/a.txt")
    entry.type, entry.linkname = kind, "/etc/passwd"
    path = tarred(tmp_path / "a.tar.gz", [(entry, b"")])
    with pytest.raises(DataFileError, match="must be a plain file"):
        contents(path)


def test_a_large_text_of_a_tar_archive_is_refused(tmp_path):
    path = tarred(tmp_path / "a.tar.gz", [("top/a.txt", bytes(17 << 20))])
    with pytest.raises(DataFileError, match="must have at most 16777216 bytes"):
        contents(path)


def test_a_tar_bomb_is_refused_even_in_files_that_nobody_wants(tmp_path):
    path = tarred(tmp_path / "a.tar.gz", [("top/a.bin", bytes(100 << 20))])
    with pytest.raises(DataFileError, match="at most 67108864 when decompressed"):
        contents(path)


@pytest.mark.parametrize("n_kept", [0, 20, 150])
def test_a_cut_tar_archive_is_refused(tmp_path, n_kept):
    noise = bytes(i * i % 251 for i in range(4000))
    path = tarred(tmp_path / "a.tar.gz", [("top/a.txt", noise)])
    path.write_bytes(path.read_bytes()[:n_kept])
    with pytest.raises(DataFileError, match=r"a\.tar\.gz: "):
        contents(path)


def test_something_else_than_a_tar_archive_is_refused(tmp_path):
    path = tmp_path / "a.tar.gz"
    path.write_bytes(b"PK nothing of the kind" * 100)
    with pytest.raises(DataFileError, match=r"a\.tar\.gz: "):
        contents(path)
