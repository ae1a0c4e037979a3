"""Downloads from a server that is slow, breaks off, lies or is not there."""

import hashlib
import json

import pytest

from sublearn.datasets import data_home
from sublearn.datasets.download import Remote, obtain
from sublearn.errors import DownloadError
from sublearn.io.locks import hold_alone

CONTENT = bytes(range(256)) * 400  # 102,400 bytes
SUM = hashlib.sha256(CONTENT).hexdigest()
ELSEWHERE = "http://example.invalid/file.bin"  # never asked: the mirror takes its place


def get(home, sha256=None, name="file.bin", **options):
    return obtain(Remote(name, ELSEWHERE, sha256), home / "set", verbose=False, **options)


def left(home):
    return sorted(path.name for path in (home / "set").iterdir())


def test_a_file_is_downloaded_once(server, home):
    file = server.serve("/set/file.bin", CONTENT)
    assert get(home, SUM).read_bytes() == CONTENT
    assert get(home, SUM).read_bytes() == CONTENT
    assert file.asked == [None]
    assert left(home) == ["file.bin", "record.json"]


def test_a_cut_connection_is_taken_up_where_it_ended(server, home):
    file = server.serve("/set/file.bin", CONTENT, cuts=[1000, 70000])
    assert get(home).read_bytes() == CONTENT
    assert file.asked == [None, "bytes=1000-", "bytes=71000-"]


def test_the_next_call_goes_on_where_the_last_one_ended(server, home):
    file = server.serve("/set/file.bin", CONTENT, cuts=[5000, 0, 0, 0])
    with pytest.raises(DownloadError, match="broke off after 5000 of 102400 bytes; call again"):
        get(home)
    n_asked = len(file.asked)
    file.cuts.clear()
    assert get(home).read_bytes() == CONTENT
    assert file.asked[n_asked:] == ["bytes=5000-"]
    assert left(home) == ["file.bin", "record.json"]


def test_a_file_that_changed_in_between_is_begun_anew(server, home):
    file = server.serve("/set/file.bin", CONTENT, cuts=[5000, 0, 0, 0])
    with pytest.raises(DownloadError, match="broke off"):
        get(home)
    file.cuts.clear()
    file.content, file.tag = CONTENT[::-1], '"2"'
    assert get(home).read_bytes() == CONTENT[::-1]


def test_a_server_without_ranges_sends_all_of_it_again(server, home):
    file = server.serve("/set/file.bin", CONTENT, cuts=[3000], ranges=False)
    assert get(home).read_bytes() == CONTENT
    assert file.asked == [None, "bytes=3000-"]


@pytest.mark.parametrize("tag", [None, 'W/"1"'])
def test_without_a_tag_an_unknown_file_is_begun_anew_and_a_known_one_resumed(server, home, tag):
    for sha256, asked in ((None, None), (SUM, "bytes=5000-")):
        file = server.serve(f"/set/{sha256}.bin", CONTENT, cuts=[5000, 0, 0, 0], tag=tag)
        with pytest.raises(DownloadError, match="broke off"):
            get(home, sha256, f"{sha256}.bin")
        n_asked = len(file.asked)
        file.cuts.clear()
        assert get(home, sha256, f"{sha256}.bin").read_bytes() == CONTENT
        assert file.asked[n_asked:] == [asked]


def test_a_part_longer_than_the_file_is_dropped(server, home):
    file = server.serve("/set/file.bin", CONTENT, cuts=[5000, 0, 0, 0])
    with pytest.raises(DownloadError, match="broke off"):
        get(home, SUM)
    (home / "set" / "file.bin.part").write_bytes(CONTENT + b"more")
    file.cuts.clear()
    assert get(home, SUM).read_bytes() == CONTENT


def test_a_wrong_checksum_is_refused_and_nothing_kept(server, home):
    server.serve("/set/file.bin", CONTENT[::-1])
    with pytest.raises(DownloadError, match=f"must have the SHA-256 {SUM}, got .*was not kept"):
        get(home, SUM)
    assert left(home) == []


def test_another_file_than_the_first_one_is_refused(server, home):
    file = server.serve("/set/file.bin", CONTENT)
    path = get(home)
    path.unlink()
    file.content = CONTENT[::-1]
    with pytest.raises(DownloadError, match=f"SHA-256 {SUM} of the first download.*record.json"):
        get(home)
    (home / "set" / "record.json").unlink()
    assert get(home).read_bytes() == CONTENT[::-1]


def test_a_file_that_was_changed_in_the_cache_is_refused(server, home):
    server.serve("/set/file.bin", CONTENT)
    path = get(home)
    path.write_bytes(b"changed")
    with pytest.raises(DownloadError, match=r"file\.bin: changed since it was downloaded; delete"):
        get(home)
    path.unlink()
    assert get(home).read_bytes() == CONTENT


def test_a_file_put_there_by_hand_is_taken_if_it_is_the_right_one(home):
    (home / "set").mkdir(parents=True)
    path = home / "set" / "file.bin"
    path.write_bytes(CONTENT)
    assert get(home, SUM, download_if_missing=False) == path
    other = home / "set" / "other.bin"
    other.write_bytes(b"another one")
    with pytest.raises(DownloadError, match=r"other\.bin must have the SHA-256"):
        get(home, SUM, "other.bin")


@pytest.mark.parametrize(("status", "reason"), [(404, "Not Found"), (503, "Service Unavailable")])
def test_a_refusal_of_the_server_is_told(server, home, status, reason):
    server.serve("/set/file.bin", CONTENT, status=status)
    said = (
        rf"/set/file\.bin: the server answered {status} \({reason}\).*put the file at .*file\.bin"
    )
    with pytest.raises(DownloadError, match=said):
        get(home)


def test_a_server_that_drips_is_given_up(server, home):
    server.serve("/set/file.bin", CONTENT, drips=True)
    with pytest.raises(DownloadError, match=r"sent \d+ bytes in 0.1 seconds; call again"):
        get(home, timeout=0.1)


def test_a_server_that_is_silent_is_given_up(server, home):
    server.serve("/set/file.bin", CONTENT, stalls=True)
    with pytest.raises(DownloadError, match=r"broke off .*timed out.*; call again to go on"):
        get(home, timeout=0.2)


def test_a_server_that_promises_more_than_it_has_is_given_up(server, home):
    server.serve("/set/file.bin", CONTENT, claims=len(CONTENT) + 1)
    with pytest.raises(DownloadError, match=r"broke off|shorter than what has come"):
        get(home)


def test_a_file_of_unknown_length_is_taken_to_its_end(server, home):
    server.serve("/set/file.bin", CONTENT, has_length=False)
    assert get(home, SUM).read_bytes() == CONTENT


def test_a_file_that_claims_to_be_endless_is_refused(server, home):
    server.serve("/set/file.bin", CONTENT, claims=1 << 50)
    with pytest.raises(DownloadError, match=r"at most \d+ bytes, got more"):
        get(home)


def test_without_a_network_the_sentence_says_what_to_do(home, monkeypatch):
    monkeypatch.setenv("SUBLEARN_DATA_MIRROR", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    said = "cannot be reached .*connect to a network, or put the file at .*file.bin yourself"
    with pytest.raises(DownloadError, match=said):
        get(home)


def test_an_address_of_another_kind_is_refused(home, monkeypatch):
    monkeypatch.setenv("SUBLEARN_DATA_MIRROR", "ftp://127.0.0.1")
    with pytest.raises(DownloadError, match="must begin with http, https or file"):
        get(home)


@pytest.mark.parametrize(
    ("content", "got"),
    [(b"\n<!DOCTYPE html><title>Virus scan", "a web page"), (b"nothing", "a file that begins")],
)
def test_a_web_page_in_the_place_of_an_archive_is_refused(server, home, content, got):
    server.serve("/set/a.zip", content)
    with pytest.raises(DownloadError, match=f"must be a .zip file, got {got}.*put the file at"):
        get(home, name="a.zip")
    assert left(home) == []


def test_two_processes_do_not_download_one_file(server, home):
    server.serve("/set/file.bin", CONTENT)
    with (
        hold_alone(home / "set" / ".file.bin.lock"),
        pytest.raises(DownloadError, match="another process is downloading it"),
    ):
        get(home)


@pytest.mark.parametrize("text", ["", "[]", '{"sha256": 1}', '{"sha256": {"a": 1}}', "[" * 10**5])
def test_a_damaged_record_is_refused(home, text):
    (home / "set").mkdir(parents=True)
    (home / "set" / "record.json").write_text(text)
    with pytest.raises(DownloadError, match=r"record\.json .*delete it"):
        get(home)


@pytest.mark.parametrize("note", ["", "[]", "{}", '{"source": 1, "validator": 2}'])
def test_a_damaged_note_of_a_part_begins_the_download_anew(server, home, note):
    file = server.serve("/set/file.bin", CONTENT)
    (home / "set").mkdir(parents=True)
    (home / "set" / "file.bin.part").write_bytes(b"something else")
    (home / "set" / "file.bin.part.json").write_text(note)
    assert get(home).read_bytes() == CONTENT
    assert file.asked == [None]


def test_the_cache_is_where_the_user_says(tmp_path, monkeypatch):
    monkeypatch.delenv("SUBLEARN_DATA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data_home() == tmp_path / "sublearn"
    monkeypatch.setenv("SUBLEARN_DATA_HOME", str(tmp_path / "mine"))
    assert data_home() == tmp_path / "mine"
    assert data_home(tmp_path / "other") == tmp_path / "other"


def test_the_bar_tells_how_much_has_come(server, home, capsys):
    server.serve("/set/file.bin", CONTENT)
    obtain(Remote("file.bin", ELSEWHERE), home / "set", verbose=True)
    assert "102.4/102.4 kB" in capsys.readouterr().err


def test_the_record_holds_what_came(server, home):
    server.serve("/set/file.bin", CONTENT)
    get(home)
    assert json.loads((home / "set" / "record.json").read_text()) == {"sha256": {"file.bin": SUM}}
