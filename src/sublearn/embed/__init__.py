"""Dense vectors with very many outputs: inner-product search, classifiers that train by it."""

from sublearn.embed.dense_extreme import DenseExtremeClassifier
from sublearn.embed.embedding_extreme import EmbeddingExtremeClassifier
from sublearn.embed.mips_index import MIPSIndex

__all__ = ["DenseExtremeClassifier", "EmbeddingExtremeClassifier", "MIPSIndex"]
