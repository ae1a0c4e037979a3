"""Dense vectors with very many outputs: search by inner product, word vectors."""

from sublearn.embed.mips_index import MIPSIndex
from sublearn.embed.skip_gram import SkipGram
from sublearn.embed.word_files import read_word_vectors

__all__ = ["MIPSIndex", "SkipGram", "read_word_vectors"]
