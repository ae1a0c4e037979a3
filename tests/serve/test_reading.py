"""The reader of questions agrees with Python's, but for what it refuses."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("fastapi", reason="serve needs FastAPI")

from sublearn.serve.limits import Limits, Refusal
from sublearn.serve.reading import read_json

LIMITS = Limits()
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"))
)
texts = st.text(st.characters(codec="utf-8"))
values = scalars
for _ in range(4):  # levels
    values = scalars | st.lists(values, max_size=4) | st.dictionaries(texts, values, max_size=3)


@given(values, st.sampled_from([None, 1]), st.booleans())
@settings(max_examples=100, deadline=None)
def test_reads_what_python_writes(value, indent, ascii_only):
    assert (
        read_json(json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode(), LIMITS)
        == value
    )


@given(st.text(alphabet='[]{}",:0123456789.eE+- truefalsn\\u\n', max_size=30))
@settings(max_examples=500, deadline=None)
def test_takes_nothing_that_python_refuses(text):
    try:
        found = read_json(text.encode(), LIMITS)
    except ValueError:
        return
    assert found == json.loads(text)


@pytest.mark.parametrize("n_numbers", [0, 1, 4095, 4096, 4097, 100_000])
def test_long_lists_are_read_in_steps_and_whole(n_numbers):
    numbers = [i / 8 if i % 3 else i for i in range(n_numbers)]
    assert read_json(json.dumps(numbers).encode(), LIMITS) == numbers
    assert read_json(json.dumps(numbers, separators=(",", ":")).encode(), LIMITS) == numbers


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "JSON, got its end at character 0"),
        (b"\xff", "UTF-8"),
        ("é".encode("latin-1"), "UTF-8"),
        (b"\xef\xbb\xbf{}", "JSON"),
        (b"{} {}", "one JSON value"),
        (b"[" * 100_000, "at most 8 levels"),
        (b'{"a":' * 100_000, "at most 8 levels"),
        (b'{"a": 1, "a": 2}', "each name once, got 'a' again"),
        (b"[NaN]", "NaN"),
        (b"-Infinity", "-Infinity"),
        (b"[1" + b"0" * 100_000 + b"]", "digits"),
        (b"[1," + b"1," * 50_000 + b"]", "JSON"),
        (b"[,]", "JSON"),
        (b"[1 2]", "JSON"),
        (b"[1", "JSON"),
        (b'["a" "b"]', "comma"),
        (b'["a", ]', "JSON"),
        (b'{"a" 1}', "colon"),
        (b"{a: 1}", "name in quotes"),
        (b'{"a": 1,}', "name in quotes"),
        (b'"\\ud800"', "surrogate"),
        (b'"a\nb"', "JSON"),
        (b'"a', "JSON"),
        (b"01", "one JSON value"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_refuses_by_a_sentence(body, sentence):
    with pytest.raises(ValueError, match=r"^the question must be ") as caught:
        read_json(body, LIMITS)
    assert sentence in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "body", [b'{"texts": [' + b'"",' * 2000, b'{"sequences": [[' + b"[]," * 2000]
)
def test_stops_where_there_are_too_many_items(body):
    """The text is not even complete."""
    with pytest.raises(Refusal, match="max_rows"):
        read_json(body, LIMITS)
