"""Word vectors in the text and binary formats of word2vec."""

from __future__ import annotations

import numpy as np

from sublearn.io.files import PathLike, open_binary, replace_file

__all__ = ["read_word_vectors", "write_word_vectors"]


def write_word_vectors(
    path: PathLike, words: np.ndarray, vectors: np.ndarray, binary: bool
) -> None:
    """Write a line with the sizes, then each word, a space, and its numbers.

    Parameters
    ----------
    path : path
        Replaced atomically.
    words : ndarray of str
        Without white space, which would end a word in both formats.
    vectors : ndarray of float32 of shape (n_words, n_components)
        Their vectors.
    binary : bool
        Numbers as little-endian float32 instead of decimals. Both are exact.
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


def read_word_vectors(path: PathLike, *, binary: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Read a file of word2vec, gensim or :meth:`sublearn.embed.SkipGram.export`.

    Parameters
    ----------
    path : path
        May be compressed (``.gz``, ``.xz``, ``.bz2``).
    binary : bool
        Which of the two formats it is.

    Returns
    -------
    words : ndarray of str
        In the order of the file, dtype object.
    vectors : ndarray of float32 of shape (n_words, n_components)
        Their vectors.
    """
    with open_binary(path) as file:
        try:
            n_words, n_numbers = (int(part) for part in file.readline().split())
            words = np.empty(n_words, dtype=object)
            vectors = np.empty((n_words, n_numbers), dtype=np.float32)
            for i in range(n_words):
                if binary:
                    words[i] = _word(file)
                    vectors[i] = np.frombuffer(file.read(4 * n_numbers), dtype="<f4")
                else:
                    word, *numbers = file.readline().rstrip().split(b" ")
                    words[i] = word.decode("utf-8", "surrogatepass")
                    if len(numbers) != n_numbers:  # one would be taken for all of them
                        raise ValueError(f"{n_numbers} numbers are needed, got {len(numbers)}")
                    vectors[i] = np.array(numbers, dtype=np.float64)
            if file.read(2).strip():
                raise ValueError(f"the file goes on after {n_words} words")
        except (ValueError, EOFError, MemoryError) as error:
            kind = "binary" if binary else "text"
            raise ValueError(f"{path}: no vectors in word2vec's {kind} format: {error}") from None
    return words, vectors


def _word(file: object) -> str:
    """The bytes up to the next space; word2vec writes a line end before each word but the first."""
    word = bytearray()
    while (byte := file.read(1)) != b" ":  # type: ignore[attr-defined]
        if not byte:
            raise EOFError("the file ends within a word")
        if byte != b"\n":
            word += byte
    return word.decode("utf-8", "surrogatepass")
