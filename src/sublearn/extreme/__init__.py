"""Classification with very many labels."""

from sublearn.extreme.explanation import Contribution, Explanation
from sublearn.extreme.label_reranker import LabelReranker
from sublearn.extreme.macro_decoding import macro_top_k
from sublearn.extreme.pd_sparse import PDSparseClassifier
from sublearn.extreme.ppd_settings import RandomSparsification
from sublearn.extreme.ppd_sparse import PPDSparseClassifier
from sublearn.extreme.shards import load_shards, save_shards
from sublearn.extreme.text_tagger import TextTagger

__all__ = [
    "Contribution",
    "Explanation",
    "LabelReranker",
    "PDSparseClassifier",
    "PPDSparseClassifier",
    "RandomSparsification",
    "TextTagger",
    "load_shards",
    "macro_top_k",
    "save_shards",
]
