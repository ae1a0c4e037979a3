"""Word vectors in the text and binary formats of word2vec."""

from __future__ import annotations

from typing import IO

import numpy as np

from sublearn.io.files import PathLike, most_bytes, open_binary, replace_file
from sublearn.io.limits import ReadLimits

__all__ = ["read_word_vectors", "write_word_vectors"]

_MOST_SIZES = 100  # bytes of the first line


def write_word_vectors(
    path: PathLike, words: np.ndarray, vectors: np.ndarray, binary: bool
) -> None:
    """Write a line with the sizes, then each word, a space, and its float32 numbers.

    Numbers are little-endian bytes if `binary`, else decimals; both are exact. A word must not have
    white space, which would end it in both formats. The file is replaced atomically.
    """
    bad = next((word for word in words if not word or len(word.split()) != 1), None)
    if bad is not None:
        raise ValueError(
            f"word2vec's formats must have words without white space, got {bad!r}; save() has no "
            "such limit"
        )
    rows = np.ascontiguousarray(vectors, dtype="<f4")
    with replace_file(path) as temporary, open(temporary, "wb") as file:
        file.write(f"{len(words)} {rows.shape[1]}\n".encode())
        for word, row in zip(words, rows, strict=True):
            numbers = row.tobytes() if binary else " ".join(map(repr, row.tolist())).encode()
            file.write(word.encode("utf-8", "surrogatepass") + b" " + numbers + b"\n")


def read_word_vectors(
    path: PathLike, *, binary: bool = False, limits: ReadLimits | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Read a file of word2vec, gensim or :meth:`sublearn.embed.SkipGram.export`.

    Parameters
    ----------
    path : path
        May be compressed (``.gz``, ``.xz``, ``.bz2``).
    binary : bool
        Which of the two formats it is.
    limits : ReadLimits, optional
        How long a line or a word may be, and what a compressed file may unpack to.

    Returns
    -------
    words : ndarray of str
        In the order of the file, dtype object.
    vectors : ndarray of float32 of shape (n_words, n_components)
        Their vectors.
    """
    limits = limits or ReadLimits()
    with open_binary(path, limits) as file:
        try:
            return _read_vectors(file, binary, most_bytes(path, limits), limits)
        except (ValueError, EOFError) as error:
            kind = "binary" if binary else "text"
            raise ValueError(f"no vectors in word2vec's {kind} format: {error}") from None


def _read_vectors(
    file: IO[bytes], binary: bool, n_bytes: int, limits: ReadLimits
) -> tuple[np.ndarray, np.ndarray]:
    sizes = file.readline(_MOST_SIZES).split()
    n_words, n_numbers = (int(part) for part in sizes)
    least = n_words * (2 + n_numbers * (4 if binary else 2)) - 1  # a number and a space, at least
    if n_words < 0 or n_numbers < 0 or least > n_bytes:
        raise ValueError(f"the sizes must fit the file, got {n_words} words of {n_numbers} numbers")
    words = np.empty(n_words, dtype=object)
    vectors = np.empty((n_words, n_numbers), dtype=np.float32)
    for i in range(n_words):
        if binary:
            words[i] = _word(file, limits)
            vectors[i] = np.frombuffer(file.read(4 * n_numbers), dtype="<f4")
        else:
            line = file.readline(limits.max_line_bytes + 1)
            limits.check_line(len(line), i + 2)
            word, *numbers = line.rstrip().split(b" ")
            words[i] = word.decode("utf-8", "surrogatepass")
            if len(numbers) != n_numbers:  # one would be taken for all of them
                raise ValueError(f"{n_numbers} numbers are needed, got {len(numbers)}")
            with np.errstate(over="ignore"):
                vectors[i] = np.array(numbers, dtype=np.float64)
        if not np.isfinite(vectors[i]).all():
            raise ValueError(f"vectors must be finite, got NaN or infinity for word {i + 1}")
    if file.read(2).strip():
        raise ValueError(f"the file goes on after {n_words} words")
    return words, vectors


def _word(file: IO[bytes], limits: ReadLimits) -> str:
    """The bytes up to the next space; word2vec writes a line end before each word but the first."""
    word = bytearray()
    while (byte := file.read(1)) != b" ":
        if not byte:
            raise EOFError("the file ends within a word")
        if byte != b"\n":
            word += byte
            limits.check_line(len(word))
    return word.decode("utf-8", "surrogatepass")
