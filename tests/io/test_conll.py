"""Files of tokens: columns, comments, tags that are absent, refusals."""

import gzip

import pytest

from sublearn.io import load_conll

CONLLU = """# sent_id = 1
1-2\tdu\t_\t_\t_\t_
1\tde\tde\tADP\tE\t_
2\tle\tle\tDET\tRD\t_
2.1\tx\tx\tX\tX\t_

1\tfin\tfin\tNOUN\tS\t_
"""


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        (tmp_path / name).write_text(text, encoding="utf-8", newline="")
        return tmp_path / name

    return write


def test_blank_lines_end_sequences(write):
    tokens, tags = load_conll(write("a.conll", "\nthe DT B\n# # O\n\n\nend NN B"))
    assert tokens == [[("the", "DT"), ("#", "#")], [("end", "NN")]]
    assert tags == [["B", "O"], ["B"]]


def test_conllu_has_form_and_upos(write):
    path = write("a.conllu", CONLLU)
    tokens, tags = load_conll(path)
    assert tokens == [[("de",), ("le",)], [("fin",)]]
    assert tags == [["ADP", "DET"], ["NOUN"]]
    tokens, tags = load_conll(path, columns=[3, 2, 5])
    assert tokens[0] == [("de", "de"), ("le", "le")]
    assert tags == [["E", "RD"], ["S"]]


def test_comments_are_known_by_their_lack_of_tabs(write):
    path = write("a.tsv", "# file a1\nnew york\tNNP\n#\tSYM\n")
    assert load_conll(path).tokens == [[("new york",), ("#",)]]


def test_tags_may_be_absent(write):
    for text in ("a\nb\n", "a X\nb Y\n"):
        tokens, tags = load_conll(write("a.conll", text), columns=[1, 2], has_tags=False)
        assert tokens == [[("a",), ("b",)]]
        assert tags is None
    assert load_conll(write("b.conll", "a b\n"), has_tags=False).tokens == [[("a", "b")]]


def test_only_line_feeds_and_spaces_separate(write):
    words = ["10\u00a0000", "a\u2028b", "c\u0085d", "e\x0cf"]
    text = "".join(f"{word} X\r\n" for word in words)
    assert load_conll(write("a.conll", "\ufeff" + text)).tokens == [[(word,) for word in words]]


def test_another_encoding_is_refused_by_line(tmp_path):
    (tmp_path / "a.conll").write_bytes("a X\ncafé X\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"a\.conll:2: must be UTF-8, got invalid"):
        load_conll(tmp_path / "a.conll")


def test_compressed(tmp_path):
    with gzip.open(tmp_path / "a.conllu.gz", "wt", encoding="utf-8") as file:
        file.write(CONLLU)
    assert load_conll(tmp_path / "a.conllu.gz").tags == [["ADP", "DET"], ["NOUN"]]


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("a X\nb\n", None, r"a\.conll:2: must have 2 columns, as the first line, got 1"),
        ("a\n", None, "must have a word and a tag, got one column"),
        ("a X\n", [1, 3], "must have at least 3 columns, got 2"),
        ("\n\n", None, "must have at least one token, got none"),
        ("a X\n", [0, 1], r"load_conll\.columns must be at least two numbers from 1"),
        ("a X\n", 2, r"load_conll\.columns must be at least two numbers from 1"),
        ("a X\n", [1], r"load_conll\.columns must be at least two numbers from 1"),
    ],
)
def test_refusals(write, text, columns, message):
    with pytest.raises(ValueError, match=message):
        load_conll(write("a.conll", text), columns=columns)
