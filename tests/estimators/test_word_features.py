"""Features of words: what they hold at the edges, and refusals."""

import pytest

from sublearn.structured import word_features


def test_a_word_its_parts_and_its_neighbours():
    first, second = word_features(["The", "A4-b"])
    assert first == [
        "word=The", "low=the", "shape=Xxx", "begin=t", "begin=th", "begin=the",
        "end=e", "end=he", "end=the", "-2=<s>", "-1=<s>", "+1=a4-b", "+2=<s>",
    ]  # fmt: skip
    assert second[:3] == ["word=A4-b", "low=a4-b", "shape=Xd-x"]
    assert second[-4:] == ["-2=<s>", "-1=the", "+1=<s>", "+2=<s>"]


def test_runs_are_cut_to_two():
    assert word_features(["McDonalds1999..."])[0][2] == "shape=XxXxxdd.."


def test_further_columns_are_features_of_the_neighbourhood():
    (only,) = word_features([("dog", "NN")])
    assert only[-5:] == ["1@-2=<s>", "1@-1=<s>", "1@+0=NN", "1@+1=<s>", "1@+2=<s>"]


def test_no_words_no_features():
    assert word_features([]) == []


@pytest.mark.parametrize("sentence", [[3], [[]], [["a", 1]], [None]])
def test_refuses_what_is_no_word(sentence):
    with pytest.raises(ValueError, match=r"word_features\.sentence must have a word or a sequence"):
        word_features(sentence)


def test_refuses_rows_of_other_widths():
    with pytest.raises(ValueError, match=r"must have 2 column\(s\) for each word"):
        word_features([("a", "b"), "c"])


def test_refuses_a_sentence_that_was_not_split():
    with pytest.raises(ValueError, match=r"sentence must be words, as sentence\.split\(\) gives"):
        word_features("the dog")
