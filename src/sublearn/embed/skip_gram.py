"""Word vectors from text: skip-gram with its softmax over the whole vocabulary."""

from __future__ import annotations

import warnings
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from sublearn.embed.context_search import ContextSearch
from sublearn.embed.corpus import TextsLike, read_corpus
from sublearn.embed.skip_gram_passes import (
    COLUMNS,
    Passes,
    Plan,
    Vectors,
    exact_objective,
    learn,
)
from sublearn.embed.vocabulary import Pairs, Vocabulary, count_pairs
from sublearn.embed.word_queries import WordQueries
from sublearn.errors import ParameterError
from sublearn.execution import all_or_nothing
from sublearn.fitting.model import FittedModel
from sublearn.fitting.progress import Progress
from sublearn.io.fields import AnyOf, Fields, Flags, Floats, Integers, Number, Strings
from sublearn.trace import Callback, Solution, Status, Trace
from sublearn.typing import Seed, State
from sublearn.validation import (
    RUN_RULES,
    Boolean,
    Interval,
    NonNegative,
    OneOf,
    OrNone,
    Positive,
    Rule,
    SettingsOf,
    as_n_threads,
    as_seed,
    check_argument,
    check_params,
)

__all__ = ["SkipGram"]

_SUMS = ("word_sums", "context_sums")


class SkipGram(WordQueries, FittedModel, BaseEstimator):
    r"""Word vectors that predict the words around a word.

    With :math:`q_x` the frequency of a word among pairs and :math:`q_{y|x}` that of y near x,
    minimises over vectors :math:`u_x` of words, :math:`v_y` and biases :math:`b_y` of contexts

    .. math::
        \sum_x q_x \sum_y q_{y|x} \Bigl[\log \sum_{y'} \exp z_{xy'} - z_{xy}\Bigr],
        \qquad z_{xy} = \langle u_x, v_y \rangle + b_y

    which is (3.45) of [1]_: pairs are counted once, passes go over words instead of positions of
    the text. Passes of negative sampling [2]_ come first. Then the sum over :math:`y'` is taken
    over the contexts that x was seen with, those that a search by inner product finds, and a
    weighted sample of the others; or over all, where they are few. Steps are Adagrad's.

    Parameters
    ----------
    n_components : int, default=100
        Numbers in a vector.
    window : int, default=5
        Words up to this far apart make a pair; one d apart counts (window - d + 1) / window.
    min_count : int, default=5
        Words seen less often are left out.
    max_words : int or None, default=None
        Keep the most frequent words only.
    subsample : float or None, default=1e-4
        A word of relative frequency f is dropped with probability 1 - sqrt(subsample / f).
    max_iter : int, default=5
        Passes of the softmax after them.
    learning_rate : float, default=0.3
        Of Adagrad; falls in a line to a tenth in the last pass.
    search : ContextSearch or None, default=None
        How the sum over all contexts is estimated, and the passes of negative sampling; None has
        the defaults of :class:`ContextSearch`.
    min_gain : float or None, default=None
        Stop when a pass lowers the objective by less than this share of it; None makes all passes.
    tokens : {"words", "spaces"}, default="words"
        How strings are split: around runs of letters and digits, or at white space. Lists of words
        are taken as they are.
    lowercase : bool, default=True
        Write strings in small letters first.
    n_jobs : int or None, default=None
        Threads; None means 1, -1 all processors. The result does not depend on it.
    random_state : int, Generator, RandomState or None, default=None
        Of the first vectors, of samples and of dropped words.
    verbose : int, default=0
        1 draws a progress bar on standard error.
    callback : callable or None, default=None
        Gets a :class:`sublearn.trace.Event` about ten times a second; a true return value stops
        the fit, which then keeps what was reached.

    Attributes
    ----------
    words_ : ndarray of str
        The vocabulary, the most frequent words first.
    word_counts_ : ndarray of int64
        How often each was seen.
    vectors_, context_vectors_ : ndarrays of float32 of shape (n_words, n_components)
        :math:`u_x` and :math:`v_y`.
    context_bias_ : ndarray of float32
        :math:`b_y`.
    objective_ : float
        The objective after the last pass, in nats for each pair: over all words of a small
        vocabulary, else on 256 that are drawn by frequency.
    objective_error_ : float
        Its standard error; 0 where the words are all.
    certificate_ : float
        Share of the objective that is above the mean entropy of :math:`q_{y|x}`, which no vectors
        can pass: an upper bound on what is left to gain.
    n_iter_ : int
        Passes made.
    n_pairs_ : int
        Distinct pairs.
    trace_ : Trace
        One row for each pass: seconds, objective, error (its standard error), estimate (the
        objective as the pass itself saw it), lower_bound (the same with the part of the sums that
        was not sampled), learning_rate, is_warm, work (inner products).

    References
    ----------
    .. [1] I. E. H. Yen, "Sublinear-Time Learning and Inference for High-Dimensional Models",
       thesis, Carnegie Mellon University, 2018, section 3.3.
    .. [2] T. Mikolov, I. Sutskever, K. Chen, G. Corrado, J. Dean, "Distributed Representations of
       Words and Phrases and their Compositionality", NIPS 2013.

    Examples
    --------
    >>> from sublearn.embed import SkipGram
    >>> text = ["the cat sat on the mat", "the dog sat on the rug", "a cat and a dog"] * 20
    >>> model = SkipGram(8, subsample=None, random_state=0).fit(text)
    >>> model.vectors_.shape
    (9, 8)
    >>> words, cosines = model.most_similar("cat", k=2)
    """

    _kind: ClassVar[str] = "words"

    _rules: ClassVar[dict[str, Rule]] = {
        "n_components": Interval(int, 1, 100_000),
        "window": Interval(int, 1, 1000),
        "min_count": Positive(int),
        "max_words": OrNone(Interval(int, 2, 2**31 - 2)),
        "subsample": OrNone(Positive(float)),
        "max_iter": NonNegative(int),
        "learning_rate": Positive(float),
        "search": SettingsOf(ContextSearch),
        "min_gain": OrNone(NonNegative(float)),
        "tokens": OneOf("words", "spaces"),
        "lowercase": Boolean(),
        **RUN_RULES,
    }
    _FORMER_PARAMS: ClassVar[dict[str, str | None]] = {
        **{name: f"search.{name}" for name in ContextSearch._rules},
        "n_found": "search.n_candidates",
        "tol": "min_gain",
        "n_traced": None,
    }

    word_counts_: np.ndarray
    context_vectors_: np.ndarray
    context_bias_: np.ndarray
    objective_error_: float

    def __init__(
        self,
        n_components: int = 100,
        *,
        window: int = 5,
        min_count: int = 5,
        max_words: int | None = None,
        subsample: float | None = 1e-4,
        max_iter: int = 5,
        learning_rate: float = 0.3,
        search: ContextSearch | None = None,
        min_gain: float | None = None,
        tokens: str = "words",
        lowercase: bool = True,
        n_jobs: int | None = None,
        random_state: Seed = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ):
        self.n_components = n_components
        self.window = window
        self.min_count = min_count
        self.max_words = max_words
        self.subsample = subsample
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.search = search
        self.min_gain = min_gain
        self.tokens = tokens
        self.lowercase = lowercase
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    @all_or_nothing
    def fit(self, X: TextsLike, y: object = None) -> SkipGram:
        """Learn vectors from text.

        Parameters
        ----------
        X : path or iterable
            A file with a sentence on each line (UTF-8, also ``.gz``, ``.xz``, ``.bz2``), or
            sentences: strings, or lists of words. Read once, and not kept.
        y : ignored
            For pipelines.

        Returns
        -------
        SkipGram
            Itself, fitted.
        """
        check_params(self)
        self._n_fits = 0
        none = Vectors.none(self.n_components)
        return self._learn(X, Vocabulary.empty(), none, None, as_seed(self.random_state))

    @all_or_nothing
    def partial_fit(self, X: TextsLike, y: object = None) -> SkipGram:
        """Go on with more text: old words keep their vectors, new ones get some.

        The counts of the text before stay, unless the model was loaded from a file, which does not
        have them. All passes are made again, over all counts, from the vectors that there are.

        Parameters
        ----------
        X : path or iterable
            As for :meth:`fit`.
        y : ignored
            For pipelines.

        Returns
        -------
        SkipGram
            Itself.
        """
        if not hasattr(self, "vectors_"):
            return self.fit(X)
        check_params(self)
        if self.n_components != self.vectors_.shape[1]:
            raise ParameterError(
                f"SkipGram.n_components must stay {self.vectors_.shape[1]} in partial_fit, "
                f"got {self.n_components}"
            )
        old = Vocabulary(self.words_, self.word_counts_)
        seed = as_seed(self.random_state) + self._n_fits
        return self._learn(X, old, self._padded_vectors(), self._pairs, seed)

    def exact_objective(self, n_words: int | None = None) -> tuple[float, float]:
        """The objective with exact sums over all contexts, and its standard error.

        Parameters
        ----------
        n_words : int or None
            Words to draw by frequency; None takes all, at n_words squared inner products.

        Returns
        -------
        objective, error : float
            In nats for each pair; the error is 0 for all words.
        """
        check_is_fitted(self)
        if self._pairs is None:
            raise ParameterError(
                "SkipGram.exact_objective must have counts of pairs, which a loaded model has not"
            )
        rule = OrNone(Interval(int, 2, 2**31 - 2))
        check_argument("SkipGram.exact_objective.n_words", n_words, rule)
        n_words = len(self.words_) if n_words is None else n_words
        n_threads = as_n_threads(self.n_jobs)
        return exact_objective(self._padded_vectors(), self._pairs, 0, n_threads, n_words)

    # --- inside ----------------------------------------------------------------------------------

    def _learn(
        self,
        text: TextsLike,
        vocabulary: Vocabulary,
        vectors: Vectors,
        pairs: Pairs | None,
        seed: int,
    ) -> SkipGram:
        corpus = read_corpus("SkipGram", text, self.tokens, self.lowercase)
        vocabulary = vocabulary.grown(corpus, self.min_count, self.max_words)
        if len(vocabulary.words) < 2:
            raise ParameterError(
                f"SkipGram.min_count must leave at least two words, got {self.min_count}: "
                f"{len(vocabulary.words)} of {corpus.n_words} words are left"
            )
        plan = self._plan(seed, len(vocabulary.words))
        n_numbers = 2 * self.n_components * len(vocabulary.words)
        progress = Progress(plan.n_passes, n_done=0, nnz_primal=n_numbers)

        def job() -> tuple[Passes, Pairs]:
            counted = count_pairs(
                "SkipGram", corpus, vocabulary, self.window, self.subsample, seed, plan.n_threads,
                progress.core,
            )  # fmt: skip
            total = counted if pairs is None else pairs.plus(counted)
            start = vectors.grown(total, np.random.default_rng(seed))
            return learn(start, total, plan, progress), total

        found, pairs = self._watch(job, progress, may_be_left=True)
        self._keep(found, vocabulary, pairs, plan)
        return self

    def _plan(self, seed: int, n_words: int) -> Plan:
        search = ContextSearch.of(self.search).for_words(n_words)
        n_threads = as_n_threads(self.n_jobs)
        return Plan(search, self.max_iter, self.learning_rate, self.min_gain, seed, n_threads)

    def _keep(self, found: Passes, vocabulary: Vocabulary, pairs: Pairs, plan: Plan) -> None:
        vectors = found.vectors
        self.words_, self.word_counts_ = vocabulary.words, vocabulary.counts
        self.vectors_ = np.ascontiguousarray(vectors.words[:, : vectors.bias])
        self.context_vectors_ = np.ascontiguousarray(vectors.contexts[:, : vectors.bias])
        self.context_bias_ = vectors.biases
        self._sums = (vectors.word_sums, vectors.context_sums)
        self._pairs: Pairs | None = pairs
        self._n_fits += 1
        self.n_pairs_ = len(pairs.ids)
        if found.rows and found.is_finite:
            objective, self.objective_error_ = found.rows[-1][1:3]
        else:
            objective, self.objective_error_ = exact_objective(
                vectors, pairs, plan.seed, plan.n_threads
            )
        columns = zip(*found.rows, strict=True) if found.rows else [()] * len(COLUMNS)
        solution = Solution(
            status=Status.CONVERGED if found.converged else Status.MAX_ITER,
            objective=objective,
            certificate=(objective - pairs.entropy()) / abs(objective),
            n_iter=len(found.rows),
            trace=Trace(dict(zip(COLUMNS, columns, strict=True))),
        )
        self._keep_solution(solution, warns=False)
        self._forget_queries()
        if not found.is_finite:
            warnings.warn(
                f"SkipGram: gradients of pass {self.n_iter_ + 1} were not finite; the vectors are "
                f"those before it. A learning_rate below {self.learning_rate:g} helps",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _padded_vectors(self) -> Vectors:
        """The fitted vectors as passes want them, in arrays of their own."""
        return Vectors.of(self.vectors_, self.context_vectors_, self.context_bias_, self._sums)

    @property
    def _n_features_out(self) -> int:
        return int(self.vectors_.shape[1])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.requires_fit = True
        return tags

    _STORED = (
        "words_", "word_counts_", "vectors_", "context_vectors_", "context_bias_",
        "objective_error_", "n_pairs_",
    )  # fmt: skip

    def _to_bundle(self) -> State:
        state = super()._to_bundle()
        del state["trace_"]  # stored by column
        trace = {f"trace.{name}": self.trace_[name] for name in COLUMNS}
        return state | dict(zip(_SUMS, self._sums, strict=True)) | trace

    def _fields(self) -> Fields:
        vectors = Floats("words", "components", bits=32)
        figures = ("objective_", "objective_error_", "certificate_")
        return {
            "words_": Strings("words", distinct=True),
            "word_counts_": Integers("words", dtype=np.int64),
            "vectors_": vectors,
            "context_vectors_": vectors,
            "context_bias_": Floats("words", bits=32),
            **dict.fromkeys(_SUMS, Floats("words", bits=32)),
            **dict.fromkeys(figures, Number()),
            **dict.fromkeys(("n_iter_", "n_pairs_"), NonNegative(int)),
            "trace.*": AnyOf(Floats("passes"), Integers("passes"), Flags("passes")),
        }

    def _restore(self, state: State) -> None:
        self._sums = (state.pop("word_sums"), state.pop("context_sums"))
        state["trace_"] = {name: state.pop(f"trace.{name}") for name in COLUMNS}
        super()._restore(state)
        self._pairs, self._n_fits = None, 1
