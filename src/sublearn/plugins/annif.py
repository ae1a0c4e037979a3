"""A backend for Annif, the subject-indexing tool of libraries: ``backend=sublearn``.

Annif (as of 1.4.3) keeps its backends in a table and has no entry points for others. What it has is
a setting that names the class of its configuration, and importing that class registers the
backend::

    export ANNIF_CONFIG=sublearn.plugins.annif.Config

after which all commands of `annif`, and its web service, know projects with ``backend=sublearn``.
Parameters of such a project in projects.cfg, with their defaults:

    min_df=1            leave out words of fewer documents
    ngram=1             longest sequence of words
    l1=0.1              weight of the l1 penalty; larger gives a smaller model
    C=1.0               weight of the loss
    tol=0.01            stop a subject at this relative duality gap
    calibration=0.1     share of the documents that a first training leaves out to learn which
                        probability a score stands for, before the training on all of them;
                        0: train once, and map scores to (0, 1) by the logistic function
    rerank=0            1: rank again what words, near documents and titles of subjects suggest
                        (`sublearn.extreme.LabelReranker`); `ngram` and `calibration` mean nothing
                        then, and words are found without Annif's analyzer
    limit=100           most suggestions for a document
"""

from __future__ import annotations

import copy
import os.path
from typing import TYPE_CHECKING, Any, ClassVar

import annif.backend
import numpy as np
import scipy.sparse as sp
from annif.backend.backend import AnnifLearningBackend
from annif.backend.mixins import TfidfVectorizerMixin
from annif.default_config import Config as _AnnifConfig
from annif.default_config import ProductionConfig as _AnnifProductionConfig
from annif.exception import (
    ConfigurationException,
    NotInitializedException,
    NotSupportedException,
)
from annif.suggestion import SubjectSuggestion, SuggestionBatch
from scipy.special import expit
from sklearn.base import clone

import sublearn
from sublearn.extreme import LabelReranker, PPDSparseClassifier, TextTagger
from sublearn.typing import JsonObject

if TYPE_CHECKING:
    from annif.corpus import Document, DocumentCorpus

__all__ = ["Config", "ProductionConfig", "SublearnBackend", "register"]

_TIE_BREAK = 1e-3  # share of the raw score in a suggestion's score: isotonic maps have flat parts


class SublearnBackend(TfidfVectorizerMixin, AnnifLearningBackend):
    """One sparse linear classifier per subject, trained by PPD-Sparse."""

    name = "sublearn"
    MODEL_FILE = "sublearn-model"
    DEFAULT_PARAMETERS: ClassVar[JsonObject] = {
        "min_df": 1,
        "ngram": 1,
        "l1": 0.1,
        "C": 1.0,
        "tol": 0.01,
        "calibration": 0.1,
        "rerank": 0,
    }
    _model: Any = None

    def initialize(self, parallel: bool = False) -> None:
        """Load vectoriser and model; the model's arrays are mapped, and shared by processes."""
        if not self._number(self.params, "rerank"):
            self.initialize_vectorizer()
        if self._model is not None:
            return
        path = os.path.join(self.datadir, self.MODEL_FILE)
        if not os.path.exists(path):
            raise NotInitializedException(f"model {path} not found", backend_id=self.backend_id)
        self._model = sublearn.load(path).set_params(n_jobs=1)
        if isinstance(self._model, LabelReranker) != bool(self._number(self.params, "rerank")):
            raise ConfigurationException(
                "rerank must be what it was in training; train the project again",
                backend_id=self.backend_id,
            )

    def _train(self, corpus: DocumentCorpus, params: JsonObject, jobs: int = 0) -> None:
        if corpus == "cached":
            raise NotSupportedException("sublearn backend does not keep training data for reuse.")
        if corpus.is_empty():
            raise NotSupportedException("Cannot train sublearn project with no documents")
        share = self._number(params, "calibration")
        if not 0 <= share < 1:
            raise ConfigurationException(
                f"calibration must be from 0 to below 1, got {params['calibration']}",
                backend_id=self.backend_id,
            )
        documents = self._documents(corpus)
        model = PPDSparseClassifier(
            C=self._number(params, "C"),
            l1=self._number(params, "l1"),
            tol=self._number(params, "tol"),
            n_jobs=jobs or -1,
            random_state=0,
        )
        if self._number(params, "rerank"):
            self._model = self._fit_in_two_stages(model, documents, params)
        else:
            X, Y = self._vectors(documents, params), self._subjects(documents)
            self._model = self._fit(model, X, Y, share)
        self._model.save(os.path.join(self.datadir, self.MODEL_FILE))
        self._model.set_params(n_jobs=1)

    def _fit(
        self, model: PPDSparseClassifier, X: sp.csr_matrix, Y: sp.csr_matrix, share: float
    ) -> PPDSparseClassifier:
        order = np.random.default_rng(0).permutation(X.shape[0])
        n_held_out = int(share * len(order))
        held_out, used = order[:n_held_out], order[n_held_out:]
        if Y[held_out].nnz:
            self.info(f"training on {len(used)} documents, calibrating on {n_held_out}")
            first = clone(model).fit(X[used], Y[used]).calibrate(X[held_out], Y[held_out])
        self.info(f"training on {len(order)} documents")
        model.fit(X, Y)
        return model.calibrate_like(first) if Y[held_out].nnz else model

    def _fit_in_two_stages(
        self, model: PPDSparseClassifier, documents: list[tuple[str, list[int]]], params: JsonObject
    ) -> LabelReranker:
        """A tagger, neighbours and titles; subjects without a document are known by theirs."""
        language = self.project.vocab_lang
        named = enumerate(self.project.subjects)
        titles = {i: one.labels[language] for i, one in named if language in (one.labels or {})}
        texts, subjects = (list(part) for part in zip(*documents, strict=True))
        least = int(self._number(params, "min_df"))
        tagger = TextTagger(model, analyzer="word", decision="above_zero", min_df=least)
        self.info(f"training on {len(texts)} documents in two stages")
        both = LabelReranker(tagger, n_jobs=model.n_jobs, random_state=0)
        return both.fit(texts, subjects, label_names=titles)

    def _learn(self, corpus: DocumentCorpus, params: JsonObject) -> None:
        """Learn from further documents; words that no document had in training are passed over.

        Probabilities keep the maps that training has found.
        """
        if self._number(params, "rerank"):
            raise NotSupportedException("a sublearn project with rerank=1 does not learn further.")
        self.initialize()
        documents = self._documents(corpus)
        X = self.vectorizer.transform([text for text, _ in documents]).astype(np.float32)
        before = copy.copy(self._model)
        model = copy.copy(before).partial_fit(X, self._subjects(documents))
        if hasattr(before, "calibration_") and len(before.classes_) == len(model.classes_):
            model.calibrate_like(before)
        model.save(os.path.join(self.datadir, self.MODEL_FILE))
        self._model = model

    def _documents(self, corpus: DocumentCorpus) -> list[tuple[str, list[int]]]:
        """Texts and the numbers of their subjects, without documents that have none."""
        documents = [(doc.text, list(doc.subject_set)) for doc in corpus.documents]
        documents = [(text, ids) for text, ids in documents if ids]
        if not documents:
            raise NotSupportedException("Cannot train sublearn project without subjects")
        return documents

    def _vectors(self, documents: list[tuple[str, list[int]]], params: JsonObject) -> sp.csr_matrix:
        settings = {
            "min_df": int(self._number(params, "min_df")),
            "tokenizer": self.project.analyzer.tokenize_words,
            "ngram_range": (1, int(self._number(params, "ngram"))),
            "sublinear_tf": True,
            "dtype": np.float32,
        }
        return self.create_vectorizer((text for text, _ in documents), settings)

    def _subjects(self, documents: list[tuple[str, list[int]]]) -> sp.csr_matrix:
        ends = np.cumsum([0, *(len(ids) for _, ids in documents)])
        columns = np.concatenate([ids for _, ids in documents])
        shape = (len(documents), len(self.project.subjects))
        return sp.csr_matrix((np.ones(len(columns), dtype=np.int8), columns, ends), shape=shape)

    def _number(self, params: JsonObject, name: str) -> float:
        """A parameter, which projects.cfg has as text."""
        try:
            return float(params[name])
        except ValueError:
            raise ConfigurationException(
                f"{name} must be a number, got {params[name]}", backend_id=self.backend_id
            ) from None

    def _suggest_batch(self, documents: list[Document], params: JsonObject) -> SuggestionBatch:
        texts = [doc.text for doc in documents]
        limit = min(int(params["limit"]), len(self._model.classes_))
        if isinstance(self._model, LabelReranker):
            ids, chances = self._model.predict_proba_top_k(texts, limit)
            return self._batch(ids, chances, self._model.transform(texts), limit)
        X = self.vectorizer.transform(texts)
        ids, scores = self._model.predict_top_k(X, limit)
        confidence = expit(scores)
        if hasattr(self._model, "predict_proba_top_k"):
            _, found = self._model.predict_proba_top_k(X, limit)
            confidence = (1 - _TIE_BREAK) * found + _TIE_BREAK * confidence
        return self._batch(ids, confidence, X, limit)

    def _batch(
        self, ids: np.ndarray, scores: np.ndarray, X: sp.csr_matrix, limit: int
    ) -> SuggestionBatch:
        results = [
            [SubjectSuggestion(int(i), float(s)) for i, s in zip(*pair, strict=True)]
            if n_words
            else []  # a text without a known word says nothing
            for n_words, pair in zip(np.diff(X.indptr), zip(ids, scores, strict=True), strict=True)
        ]
        return SuggestionBatch.from_sequence(results, self.project.subjects, limit=limit)


def register() -> None:
    """Make ``backend=sublearn`` known to Annif; harmless if done twice."""
    table = getattr(annif.backend, "_backend_fns", None)
    if not isinstance(table, dict):
        raise RuntimeError(
            "this release of Annif keeps its backends elsewhere than annif.backend._backend_fns; "
            "the backend was written for Annif 1.4"
        )
    table[SublearnBackend.name] = lambda: SublearnBackend


class Config(_AnnifConfig):
    """Annif's own configuration for the command line; naming it in ANNIF_CONFIG registers us."""


class ProductionConfig(_AnnifProductionConfig):
    """The same for the web service, which loads all projects when it starts."""


register()
