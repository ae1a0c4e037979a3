"""The core's text parser: numbers, cut lines, and what it refuses, without any file."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sublearn import _core

RULES = _core.LabelRule


def parse(text, *, chunk=None, parser=_core.TextParserFloat64, **options):
    options = {"has_header": False, "first_feature": 0, "labels": RULES.ids} | options
    data = np.frombuffer(text, dtype=np.uint8)
    machine = parser(**options)
    step = chunk or max(len(data), 1)
    for begin in range(0, len(data), step):
        machine.feed(data[begin : begin + step])
    return machine.finish()


def same(left, right):
    return all(np.array_equal(left[name], right[name]) for name in left)


def decimal_texts():
    digits = st.text("0123456789", max_size=25)
    exponents = st.one_of(st.just(""), st.integers(-400, 300).map(lambda e: f"e{e}"))
    parts = st.tuples(st.sampled_from(["", "-", "+"]), digits, st.booleans(), digits, exponents)
    texts = parts.map(lambda p: p[0] + p[1] + ("." + p[3] if p[2] else "") + p[4])
    return texts.filter(lambda text: any(c.isdigit() for c in text.split("e")[0]))


@given(st.one_of(decimal_texts(), st.floats(allow_nan=False, allow_infinity=False).map(repr)))
@settings(deadline=None, max_examples=500)
def test_reads_every_decimal_number_as_python_does(text):
    expected = float(text)
    if np.isinf(expected):
        with pytest.raises(ValueError, match="finite float64"):
            parse(f"0 3:{text}\n".encode())
        return
    values = parse(f"0 3:{text}\n".encode())["values"].tolist()
    assert values == ([expected] if expected else [])


@pytest.mark.parametrize("text", ["1e-400", "0." + "0" * 400 + "1", "1" + "0" * 20 + "e-400"])
def test_a_number_below_the_smallest_double_is_zero_and_not_stored(text):
    assert parse(f"0 3:{text}\n".encode())["values"].tolist() == []


@pytest.mark.parametrize("text", ["1e400", "1" + "0" * 400, "-1e309"])
def test_refuses_a_number_above_the_largest_double(text):
    with pytest.raises(ValueError, match="line 1: a value must be a finite float64 number"):
        parse(f"0 3:{text}\n".encode())


def test_float32_values_are_the_rounded_doubles():
    texts = ["0.1", "3.4028234e38", "1e-45", "16777217", "0.12345678901234567"]
    line = " ".join(f"{j}:{text}" for j, text in enumerate(texts))
    values = parse(f"0 {line}\n".encode(), parser=_core.TextParserFloat32)["values"]
    np.testing.assert_array_equal(values, np.array([float(t) for t in texts], dtype=np.float32))


TEXTS = {
    "xmc": (
        b"4 10 5\r\n3,1 2:0.5 7:-1e-3\r\n 9:1\r\n\r\n4 \t 1:2 0:3  \r\n\r\n",
        {"has_header": True},
    ),
    "svmlight": (
        b"# made by hand\n+1 1:0.5 3:2 # first\n\n-1 2:1e2\n-1\n0.5 4:0",
        {"first_feature": 1, "labels": RULES.either},
    ),
}


@pytest.mark.parametrize(("text", "options"), TEXTS.values(), ids=TEXTS.keys())
def test_the_result_does_not_depend_on_where_lines_are_cut(text, options):
    whole = parse(text, **options)
    for chunk in range(1, len(text)):
        assert same(parse(text, chunk=chunk, **options), whole)


def test_the_result_does_not_depend_on_the_announced_size():
    text = b"1,2 3:4 5:6\n" * 40_000
    plain, announced = (
        _core.TextParserFloat64(**{"has_header": False, "first_feature": 0, "labels": RULES.ids})
        for _ in range(2)
    )
    announced.expect_bytes(len(text))
    data = np.frombuffer(text, dtype=np.uint8)
    for machine in (plain, announced):
        for begin in range(0, len(data), 100_000):
            machine.feed(data[begin : begin + 100_000])
    assert same(plain.finish(), announced.finish())


def test_an_error_names_the_same_line_wherever_lines_are_cut():
    text = b"0 1:1\n0 1:1\n0 1:x\n0 1:1\n"
    for chunk in range(1, len(text)):
        with pytest.raises(ValueError, match=r"^line 3: .*got 'x'"):
            parse(text, chunk=chunk)


def test_sorts_features_and_labels_and_drops_zeros():
    rows = parse(b"5,2,2 7:1 3:2 4:0 0:3\n")
    assert rows["indices"].tolist() == [0, 3, 7]
    assert rows["values"].tolist() == [3, 2, 1]
    assert rows["label_ids"].tolist() == [2, 5]
    assert (rows["n_features"], rows["n_labels"]) == (8, 6)


def test_a_dropped_zero_still_counts_as_a_feature():
    rows = parse(b"0 9:0\n")
    assert rows["n_features"] == 10
    assert rows["indptr"].tolist() == [0, 0]


def test_numbers_are_kept_as_targets_until_a_row_has_another_count_of_labels():
    assert parse(b"3\n7\n", labels=RULES.either)["targets"].tolist() == [3, 7]
    assert parse(b"3\n7,8\n4\n", labels=RULES.either)["targets"].tolist() == []
    assert parse(b"3\n7,8\n4\n", labels=RULES.either)["label_ids"].tolist() == [3, 7, 8, 4]


BAD_LINES = {
    "a word for a value": (b"0 1:abc", "a value must be a finite float64 number, got 'abc'"),
    "an empty value": (b"0 1:", "got ''"),
    "nan": (b"0 1:nan", "finite float64 number, got 'nan'"),
    "inf": (b"0 1:-inf", "got '-inf'"),
    "two points": (b"0 1:1.2.3", "got '1.2.3'"),
    "an exponent without digits": (b"0 1:1e", "got '1e'"),
    "a point alone": (b"0 1:.", r"got '\.'"),
    "a sign alone": (b"0 1:-", "got '-'"),
    "a hexadecimal number": (b"0 1:0x1p3", "got '0x1p3'"),
    "something after the value": (b"0 1:2;3", "got '2;3'"),
    "no colon": (b"0 1:1 17", "a feature must be written index:value, got '17'"),
    "no index": (b"0 :5", "index:value, got ':5'"),
    "a word for an index": (b"0 qid:5", "index:value, got 'qid:5'"),
    "a negative index": (b"0 -3:1", "a feature index must be in 0..2147483646, got '-3'"),
    "an index beyond 32 bits": (b"0 2147483647:1", "got '2147483647'"),
    "an index beyond 64 bits": (b"0 99999999999999999999999:1", "got '99999999999999999999999'"),
    "a feature twice": (b"0 4:1 4:2", "feature 4 must appear once in a row, got it twice"),
    "a feature twice, far apart": (b"0 4:0 2:1 4:2", "feature 4 must appear once"),
    "a negative label": (b"-1 1:1", "a label must be an integer in 0..2147483646, got '-1'"),
    "a fractional label": (b"1.5 1:1", "got '1.5'"),
    "a huge label": (b"4294967296 1:1", "got '4294967296'"),
    "a word for a label": (b"cat 1:1", "got 'cat'"),
    "an empty label": (b"1,,2 1:1", "got ''"),
    "a comma at the end": (b"1, 1:1", "got ''"),
    "a feature without a blank": (b"1:1 2:1", "got '1:1'"),
    "bytes that are no text": (b"0 1:\x00\xff", r"got '\?\?'"),
    "a very long token": (b"0 1:" + b"x" * 1000, "got '" + "x" * 40 + r"\.\.\.'"),
}


@pytest.mark.parametrize(("line", "message"), BAD_LINES.values(), ids=BAD_LINES.keys())
def test_refuses_a_line_with(line, message):
    with pytest.raises(ValueError, match=f"^line 2: .*{message}"):
        parse(b"0 1:1\n" + line + b"\n0 1:1\n")
    with pytest.raises(ValueError, match=f"^line 1: .*{message}"):
        parse(line)


def test_refuses_ids_outside_the_announced_counts():
    with pytest.raises(ValueError, match=r"a feature index must be in 1\.\.5, got '6'"):
        parse(b"0 6:1\n", n_features=5, first_feature=1)
    with pytest.raises(ValueError, match=r"a feature index must be in 1\.\.5, got '0'"):
        parse(b"0 0:1\n", n_features=5, first_feature=1)
    with pytest.raises(ValueError, match=r"a label must be an integer in 0\.\.2, got '3'"):
        parse(b"3 1:1\n", n_labels=3)


@pytest.mark.parametrize("text", [b"-1 1:1\n1,2 1:1\n", b"-1 1:1\n 1:1\n"])
def test_refuses_several_labels_after_a_label_that_is_no_id(text):
    with pytest.raises(ValueError, match=r"line 2: labels must be integers >= 0 .*in line 1"):
        parse(text, labels=RULES.either)


def test_refuses_a_label_that_is_no_id_after_several_labels():
    with pytest.raises(ValueError, match=r"line 3: .*several of them \(line 1\), .*in line 3"):
        parse(b"1,2 1:1\n3 1:1\n0.5 1:1\n", labels=RULES.either)


@pytest.mark.parametrize(("text", "count"), [(b" 1:1\n", 0), (b"1,2 1:1\n", 2)])
def test_refuses_another_count_of_labels_where_one_number_is_asked_for(text, count):
    with pytest.raises(ValueError, match=f"exactly one label, got {count}"):
        parse(text, labels=RULES.number)


@pytest.mark.parametrize("label", [b"nan", b"1e999", b"cat"])
def test_refuses_a_target_that_is_no_finite_number(label):
    with pytest.raises(
        ValueError, match=f"a label must be a finite number, got '{label.decode()}'"
    ):
        parse(label + b" 1:1\n", labels=RULES.either)


@pytest.mark.parametrize(
    "header", [b"", b"3 4", b"3 4 5 6", b"a b c", b"-1 2 3", b"1.5 2 3", b"1" * 30 + b" 2 3"]
)
def test_refuses_a_bad_header(header):
    with pytest.raises(ValueError, match=r"^line 1: the first line must be `N D K`"):
        parse(header + b"\n0 1:1\n", has_header=True)


def test_refuses_a_header_with_more_features_than_ids():
    with pytest.raises(ValueError, match="up to 2147483647 features and labels, got 2147483648"):
        parse(b"1 2147483648 1\n", has_header=True)


def test_refuses_more_or_fewer_rows_than_the_header_says():
    with pytest.raises(ValueError, match=r"^line 4: more rows than the 2 of the header"):
        parse(b"2 3 3\n0 1:1\n0 1:1\n0 1:1\n", has_header=True)
    with pytest.raises(ValueError, match=r"^line 2: the header says 2 rows, the file ends after 1"):
        parse(b"2 3 3\n0 1:1\n", has_header=True)


def test_feeding_needs_bytes():
    machine = _core.TextParserFloat64(has_header=False, first_feature=0, labels=RULES.ids)
    with pytest.raises(TypeError):
        machine.feed(np.zeros(3))


def test_the_writer_refuses_label_offsets_that_do_not_fit():
    one, none = np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64)
    rows = (np.zeros(2, dtype=np.int64), none, np.zeros(0))
    for indptr in (one, np.array([0, 2]), np.array([1, 1]), np.array([0, -1])):
        with pytest.raises(ValueError, match="label_indptr must "):
            _core.format_rows(*rows, indptr, np.zeros(1), first_feature=0, skips_blank_lines=False)
