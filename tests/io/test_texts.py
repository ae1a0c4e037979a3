"""Files of raw text: three forms, compressed or not, and what is refused."""

import gzip
import json
import lzma

import pytest

from sublearn.io import load_texts

TEXTS = ["A history of lighthouses", 'Surveys, "polls" and samples', "Äänestys\tja tilastot"]
LABELS = [["history", "sea"], ["statistics"], []]


def tsv():
    return "".join(f"{','.join(b)}\t{a}\n" for a, b in zip(TEXTS, LABELS, strict=True))


def jsonl():
    records = ({"text": a, "labels": b} for a, b in zip(TEXTS, LABELS, strict=True))
    return "".join(json.dumps(record) + "\n" for record in records)


def csv_text():
    quoted = ['"' + text.replace('"', '""') + '"' for text in TEXTS]
    rows = (f'"{",".join(b)}",{i},{a}' for i, (a, b) in enumerate(zip(quoted, LABELS, strict=True)))
    return "labels,id,text\n" + "\n".join(rows) + "\n"


FORMS = {"tsv": tsv, "txt": tsv, "jsonl": jsonl, "csv": csv_text}


@pytest.mark.parametrize("ending", FORMS)
@pytest.mark.parametrize("compression", ["", ".gz", ".xz"])
def test_every_form_gives_the_same_records(tmp_path, ending, compression):
    raw = FORMS[ending]().encode()
    pack = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}[compression]
    path = tmp_path / f"records.{ending}{compression}"
    path.write_bytes(pack(raw))
    texts, labels = load_texts(path)
    assert texts == TEXTS
    assert labels == LABELS


def write(tmp_path, text, name="records.tsv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_labels_may_come_last_and_be_separated_by_blanks(tmp_path):
    path = write(tmp_path, "One\ttwo\t<u:1> <u:2>\nThree\t\n")
    texts, labels = load_texts(path, columns="text,labels", separator=" ")
    assert texts == ["One\ttwo", "Three"]
    assert labels == [["<u:1>", "<u:2>"], []]


def test_labels_may_be_separated_by_more_than_one_character(tmp_path):
    path = write(tmp_path, "art, Finnish || sea ||\tText\n")
    assert load_texts(path, separator="||").labels == [["art, Finnish", "sea"]]


def test_byte_marks_and_windows_ends_are_passed_over(tmp_path):
    path = write(tmp_path, b"\xef\xbb\xbfa\tFirst\r\nb\tSecond\r\n")
    assert list(load_texts(path)) == [["First", "Second"], [["a"], ["b"]]]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("r.tsv", "a\tFirst\n\n \r\n\t\nb\tSecond\n\n"),
        ("r.jsonl", '{"text": "First", "labels": ["a"]}\n\n \n\r\n'
                    '{"text": "Second", "labels": ["b"]}\n\n'),
        ("r.csv", 'labels,text\na,First\n\n"",\n\nb,Second\n\n'),
    ],
)  # fmt: skip
@pytest.mark.parametrize("needs_labels", [True, False])
def test_a_blank_line_is_a_record_without_anything(tmp_path, name, content, needs_labels):
    found = load_texts(write(tmp_path, content, name), needs_labels=needs_labels)
    assert found.texts == ["First", "", "", "", "Second", ""]
    assert found.labels == [["a"], [], [], [], ["b"], []]


def test_texts_alone_are_enough_where_labels_are_not_needed(tmp_path):
    plain = write(tmp_path, "Just text\na\tWith a label\n")
    found = load_texts(plain, needs_labels=False)
    assert list(found) == [["Just text", "With a label"], [[], ["a"]]]
    lines = write(tmp_path, '{"text": "Just text"}\n', "r.jsonl")
    assert load_texts(lines, needs_labels=False).labels == [[]]
    table = write(tmp_path, "text\nJust text\n", "r.csv")
    assert load_texts(table, needs_labels=False).texts == ["Just text"]


def test_one_string_of_labels_in_json_is_split(tmp_path):
    path = write(tmp_path, '{"text": "T", "labels": "a, b"}\n', "r.jsonl")
    assert load_texts(path).labels == [["a", "b"]]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("r.tsv", "a\tFine\nno tab here\n", r"r\.tsv:2: must have a tab between labels and text"),
        ("r.tsv", b"a\tFine\nb\t\xff\xfe\n", r"r\.tsv:2: must be UTF-8"),
        ("r.jsonl", '{"text": "T", "labels": []}\n{oops\n', r"r\.jsonl:2: must be a JSON object"),
        ("r.jsonl", '["T"]\n', r'must be an object with a string "text"'),
        ("r.jsonl", '{"text": 3, "labels": []}\n', r'must be an object with a string "text"'),
        ("r.jsonl", '{"text": "T"}\n', r'"labels" must be a list of strings, got None'),
        ("r.jsonl", '{"text": "T", "labels": [1]}\n', r'"labels" must be a list of strings'),
        ("r.csv", "text,tags\nT,a\n", "the first line must name a column 'labels', got text, tags"),
        ("r.csv", "", "the first line must name a column 'text', got none"),
        ("r.csv", "labels,text\na\n", r"r\.csv:2: must have 2 fields as the first line, got fewer"),
        ("r.csv", "text,labels\nT\n", r"r\.csv:2: must have 2 fields as the first line, got fewer"),
        ("r.csv", "text,labels\nT, not quoted,a\n", r"r\.csv:2: must have 2 fields .*, got more"),
        ("r.csv", 'labels,text\na,"open', r"r\.csv:2: "),
    ],
)
def test_refuses_with_file_and_line(tmp_path, name, text, words):
    with pytest.raises(ValueError, match=words):
        load_texts(write(tmp_path, text, name))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"separator": ""}, "load_texts.separator must be a string with characters"),
        ({"separator": None}, "load_texts.separator must be a string with characters"),
        ({"columns": "text"}, "load_texts.columns must be one of"),
    ],
)
def test_refuses_an_unclear_form(tmp_path, options, words):
    with pytest.raises(ValueError, match=words):
        load_texts(write(tmp_path, "a\tT\n"), **options)


def test_a_file_without_records_has_none(tmp_path):
    assert list(load_texts(write(tmp_path, ""))) == [[], []]
