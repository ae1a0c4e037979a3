"""Dense vectors with very many outputs: search by inner product, last layers, word vectors."""

from sublearn.embed.context_search import ContextSearch
from sublearn.embed.dense_extreme import DenseExtremeClassifier
from sublearn.embed.embedding_extreme import EmbeddingExtremeClassifier
from sublearn.embed.label_search import LabelSearch
from sublearn.embed.mips_index import MIPSIndex
from sublearn.embed.skip_gram import SkipGram
from sublearn.embed.word_files import read_word_vectors

__all__ = [
    "ContextSearch",
    "DenseExtremeClassifier",
    "EmbeddingExtremeClassifier",
    "LabelSearch",
    "MIPSIndex",
    "SkipGram",
    "read_word_vectors",
]
