"""Word vectors: counts against a slow twin, gradients against a matrix, files, odd text."""

import itertools
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import sublearn
from sublearn import _core
from sublearn.embed import ContextSearch, SkipGram, read_word_vectors
from sublearn.embed.corpus import read_corpus
from sublearn.embed.skip_gram_passes import Vectors, _Index
from sublearn.embed.vocabulary import Vocabulary, count_pairs

SMALL = {"n_components": 7, "min_count": 1, "subsample": None, "random_state": 3}


@pytest.fixture(scope="module")
def sentences():
    """Two groups of words that keep to themselves, and a word that goes with both."""
    rng = np.random.default_rng(0)
    return [
        [*(f"{'ab'[group]}{i}" for i in rng.integers(12, size=6)), "the"]
        for group in rng.integers(2, size=400)
    ]


@pytest.fixture(scope="module")
def model(sentences):
    return SkipGram(**SMALL, max_iter=12).fit(sentences)


def slow_counts(sentences, words, window):
    place = {word: i for i, word in enumerate(words)}
    counts = np.zeros((len(words), len(words)))
    for sentence in sentences:
        ids = [place[word] for word in sentence if word in place]
        for i, j in itertools.combinations(range(len(ids)), 2):
            weight = max(0, window - (j - i) + 1) / window
            counts[ids[i], ids[j]] += weight
            counts[ids[j], ids[i]] += weight
    return counts


def counted(sentences, window=3, subsample=None, min_count=1, n_threads=1):
    corpus = read_corpus("SkipGram", sentences, "words", True)
    vocabulary = Vocabulary.empty().grown(corpus, min_count, None)
    pairs = count_pairs(
        "SkipGram", corpus, vocabulary, window, subsample, 0, n_threads, _core.Monitor()
    )
    return vocabulary, pairs


def dense(pairs):
    matrix = np.zeros((pairs.n_words, pairs.n_words))
    for word in range(pairs.n_words):
        ids, counts = pairs.row(word)
        assert (np.diff(ids) > 0).all()
        matrix[word, ids] = counts
    return matrix


def scores_of(model):
    return model.vectors_ @ model.context_vectors_.T + model.context_bias_


def slow_objective(model, counts):
    """(3.45), all sums written out."""
    scores = scores_of(model).astype(np.float64)
    partition = np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return float((counts * (partition - scores)).sum() / counts.sum())


# --- counts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [1, 3, 20])
@pytest.mark.parametrize("min_count", [1, 100])
def test_pairs_are_those_of_a_slow_count(sentences, window, min_count):
    vocabulary, pairs = counted(sentences, window, min_count=min_count)
    assert (np.diff(vocabulary.counts) <= 0).all()
    expected = slow_counts(sentences, vocabulary.words, window)
    np.testing.assert_allclose(dense(pairs), expected, rtol=1e-5)
    np.testing.assert_allclose(pairs.totals, expected.sum(axis=1), rtol=1e-5)


def test_threads_do_not_change_dropped_words(sentences):
    one, four = (counted(sentences, subsample=1e-2, n_threads=n)[1] for n in (1, 4))
    np.testing.assert_array_equal(dense(one), dense(four))


def test_frequent_words_are_dropped_as_often_as_said(sentences):
    vocabulary, pairs = counted([["x"] * 20_000 + ["y"] * 20_000], 1, subsample=0.125)
    assert vocabulary.counts.tolist() == [20_000, 20_000]
    kept = dense(pairs).sum() / 2 + 1  # pairs of neighbours
    assert kept == pytest.approx(40_000 * np.sqrt(0.125 / 0.5), rel=0.02)


def test_all_forms_of_a_corpus_are_the_same(tmp_path, sentences):
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(" ".join(s) for s in sentences))
    shouted = (" ".join(s).upper() for s in sentences)
    forms = [sentences, shouted, path, str(path), map(tuple, sentences)]
    found = [counted(form) for form in forms]
    for vocabulary, pairs in found[1:]:
        np.testing.assert_array_equal(vocabulary.words, found[0][0].words)
        np.testing.assert_array_equal(dense(pairs), dense(found[0][1]))


def test_strings_are_split_around_words_or_at_spaces():
    text = ["Don't 'quote' me: naïve_1, x-y!\n"]
    words, spaces = (read_corpus("SkipGram", text, how, True) for how in ("words", "spaces"))
    seen = [sorted(Vocabulary.empty().grown(c, 1, None).words) for c in (words, spaces)]
    assert seen[0] == sorted(["don't", "quote", "me", "naïve_1", "x", "y"])
    assert seen[1] == sorted(["don't", "'quote'", "me:", "naïve_1,", "x-y!"])


def test_words_of_lists_may_have_any_character():
    corpus = read_corpus("SkipGram", [["new york", "a\nb", "a\x1fb", "x"]] * 2, "words", True)
    words = Vocabulary.empty().grown(corpus, 1, None).words
    assert set(words) == {"new york", "a\nb", "a\x1fb", "x"}


# --- the objective -------------------------------------------------------------------------------


@pytest.mark.parametrize("partition", ["exact", "sampled", "search"])
def test_all_partitions_lower_the_exact_objective(sentences, partition):
    search = ContextSearch(partition, n_sampled=16, n_candidates=4)
    model = SkipGram(**SMALL, max_iter=8, search=search)
    model.fit(sentences)
    counts = slow_counts(sentences, model.words_, model.window)
    start = SkipGram(**SMALL, search=ContextSearch(n_warm=0), max_iter=0).fit(sentences)
    shares = counts.sum(axis=0) / counts.sum()
    unigram = -(shares * np.log(shares)).sum()
    assert slow_objective(start, counts) == pytest.approx(unigram, abs=0.01)
    value = slow_objective(model, counts)
    assert model.objective_ == pytest.approx(value, rel=1e-5)
    assert model.exact_objective() == (pytest.approx(value, rel=1e-5), 0.0)
    entropy = (1 - model.certificate_) * model.objective_
    q = counts / counts.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        assert entropy == pytest.approx(-np.nansum(counts * np.log(q)) / counts.sum(), rel=1e-4)
    assert entropy < value < unigram - 0.4 * (unigram - entropy)


def test_a_step_follows_the_gradient_of_the_objective(sentences):
    """One batch with all words: the moves are Adagrad's of the gradient in float64."""
    _, pairs = counted(sentences[:40])
    counts, n = dense(pairs), pairs.n_words
    rng = np.random.default_rng(1)
    words, contexts = (np.zeros((n, 16), np.float32) for _ in range(2))
    words[:, :5], words[:, 5] = rng.normal(size=(n, 5)), 1
    contexts[:, :6] = rng.normal(size=(n, 6))
    scores = words.astype(float) @ contexts.T
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    slopes = counts.sum(axis=1, keepdims=True) * p - counts
    gradient = slopes @ contexts
    gradient[:, 5:] = 0
    sums = np.ones(n, np.float32), np.full(n, 1e8, np.float32)
    expected = words - 0.1 * gradient / np.sqrt(1 + np.square(gradient).sum(1) / 6)[:, None]
    start, before = words[:, :6].copy(), contexts.copy()
    settings = _core.SkipGramSettings()
    settings.is_exact, settings.learning_rate, settings.pairs_of_visit = True, 0.1, 10_000
    problem = _core.SkipGramProblem(
        words, contexts, sums, (pairs.begin, pairs.ids, pairs.counts),
        np.full(n, 1 / n, np.float32), 5,
    )  # fmt: skip
    report = problem.run(settings, 1, _core.Monitor())
    value = (counts * (np.log(np.exp(scores).sum(1, keepdims=True)) - scores)).sum()
    assert report.objective == pytest.approx(value / counts.sum(), rel=1e-5)
    assert report.lower_bound == pytest.approx(report.objective, rel=1e-6)
    np.testing.assert_allclose(words, expected, rtol=1e-3, atol=1e-4)
    # Sums of 1e8 hardly change: all steps have the same scale, and their sum is the gradient.
    moved = (contexts - before) * -1e4 / 0.1
    np.testing.assert_allclose(moved[:, :6], slopes.T @ start, rtol=0.01, atol=0.05)


def test_log_partitions(sentences):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1500, 32)).astype(np.float32) * 3
    queries = rng.normal(size=(21, 32)).astype(np.float32)
    products = queries.astype(float) @ rows.T.astype(float)
    top = products.max(axis=1)
    expected = np.log(np.exp(products - top[:, None]).sum(axis=1)) + top
    for n_threads in (1, 3):
        found = _core.log_partitions(rows, queries, n_threads, _core.Monitor())
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_search_finds_the_contexts_of_largest_score(sentences):
    _, pairs = counted(sentences)
    rng = np.random.default_rng(1)
    n, dim = pairs.n_words, 5
    words, contexts = rng.normal(size=(2, n, dim)).astype(np.float32)
    biases = rng.normal(-3, 2, n).astype(np.float32)
    sums = np.ones(n, np.float32)
    vectors = Vectors.of(words, contexts, biases, (sums, sums))
    plan = SkipGram(**SMALL, search=ContextSearch("search"))._plan(0, n)
    problem = _core.SkipGramProblem(
        vectors.words, vectors.contexts, (vectors.word_sums, vectors.context_sums),
        (pairs.begin, pairs.ids, pairs.counts), np.full(n, 1 / n, np.float32), vectors.bias,
    )  # fmt: skip
    problem.set_index(*_Index(vectors, plan).refreshed())
    settings = _core.SkipGramSettings()
    settings.n_found, settings.n_probe, settings.learning_rate = 3, n, 1e-30
    report = problem.run(settings, 1, _core.Monitor())
    np.testing.assert_allclose(vectors.biases, biases, rtol=1e-6)  # nothing has moved

    counts, scores = dense(pairs), words.astype(float) @ contexts.T + biases
    is_near = counts > 0
    np.put_along_axis(is_near, np.argsort(-scores, axis=1)[:, :3], True, axis=1)
    assert is_near.sum() > (counts > 0).sum()
    sums_of_near = np.log((np.exp(scores) * is_near).sum(axis=1))
    bound = (counts.sum(axis=1) @ sums_of_near - (counts * scores).sum()) / counts.sum()
    assert report.lower_bound == pytest.approx(bound, rel=1e-5)


def test_rare_words_are_predicted_better_than_by_their_frequencies():
    rng = np.random.default_rng(0)
    topics = rng.permutation(4000).reshape(20, 200)
    text = [[f"w{i}" for i in rng.choice(topics[rng.integers(20)], 20)] for _ in range(500)]
    few = ContextSearch(n_sampled=64)
    model = SkipGram(30, min_count=1, subsample=None, search=few, max_iter=1, random_state=0)
    model.fit(text)
    shares = model._pairs.totals[model._pairs.totals > 0] / model._pairs.totals.sum()
    assert len(model.words_) > 4 * 64  # so that sums are not over all of them
    assert model.exact_objective()[0] < -(shares @ np.log(shares)) - 0.1


def test_the_bound_without_the_sample_is_below_the_estimate(sentences):
    for partition in ("sampled", "search"):
        search = ContextSearch(partition, n_sampled=8)
        trace = SkipGram(**SMALL, max_iter=2, search=search).fit(sentences).trace_
        assert (trace["lower_bound"] < trace["estimate"]).all()
        assert trace["is_warm"].tolist() == [1, 0, 0]


# --- use -----------------------------------------------------------------------------------------


def test_words_of_a_group_are_alike(model):
    for word in ("a0", "b3"):
        words, cosines = model.most_similar(word, 5)
        assert all(other[0] == word[0] for other in words)
        assert word not in words
        assert (np.diff(cosines) <= 0).all()


def test_analogies_are_cosines_with_the_sum(model):
    unit = model.vectors_ / np.linalg.norm(model.vectors_, axis=1, keepdims=True)
    rows = [model.vocabulary_[word] for word in ("a0", "a1", "b0")]
    cosines = unit @ (unit[rows[1]] - unit[rows[0]] + unit[rows[2]])
    cosines[rows] = -np.inf
    best = model.words_[cosines.argmax()]
    assert model.analogy("a0", "a1", "b0")[0].tolist() == [best]
    questions = [("a0", "a1", "b0", best), ("a0", "a1", "b0", "a2"), ("a0", "a1", "b0", "no")]
    assert model.analogy_accuracy(questions) == (0.5, 2)
    accuracy, n_asked = model.analogy_accuracy([("no", "no", "no", "no")])
    assert np.isnan(accuracy)
    assert n_asked == 0


def test_texts_become_means(model):
    texts = [["a0", "b1", "nobody"], "A0, b1!", "nobody", []]
    found = model.transform(texts)
    assert found.dtype == np.float32
    mean = (model["a0"] + model["b1"]) / 2
    np.testing.assert_allclose(found, [mean, mean, 0 * mean, 0 * mean], rtol=1e-6)
    assert "a0" in model
    assert "nobody" not in model


@pytest.mark.parametrize("binary", [False, True])
def test_exported_vectors_come_back_exactly(tmp_path, model, binary):
    path = tmp_path / "vectors"
    model.export(path, binary=binary)
    words, vectors = read_word_vectors(path, binary=binary)
    np.testing.assert_array_equal(words, model.words_)
    np.testing.assert_array_equal(vectors, model.vectors_)
    assert path.read_bytes().startswith(b"25 7\nthe ")


def test_gensim_reads_what_is_exported(tmp_path, model):
    models = pytest.importorskip("gensim.models", reason="gensim is not installed")
    for binary in (False, True):
        model.export(tmp_path / "vectors", binary=binary)
        read = models.KeyedVectors.load_word2vec_format(tmp_path / "vectors", binary=binary)
        np.testing.assert_array_equal(read["a0"], model["a0"])


def test_a_saved_model_takes_in_new_words(tmp_path, model, sentences):
    model.save(tmp_path / "words")
    loaded = sublearn.load(tmp_path / "words")
    with pytest.raises(ValueError, match="must have counts of pairs"):
        loaded.exact_objective()
    loaded.partial_fit([*sentences, ["a0", "newcomer"] * 3])
    assert "newcomer" in loaded
    np.testing.assert_array_equal(loaded.words_[:25], model.words_)


def test_more_text_is_added_to_what_was_counted(sentences):
    half = len(sentences) // 2
    model = SkipGram(**SMALL, max_iter=4).fit(sentences[:half])
    vectors = model.vectors_.copy()
    model.partial_fit([*sentences[half:], ["a0", "newcomer"]])
    counts = slow_counts([*sentences, ["a0", "newcomer"]], model.words_, model.window)
    np.testing.assert_allclose(dense(model._pairs), counts, rtol=1e-5)
    assert model.objective_ == pytest.approx(slow_objective(model, counts), rel=1e-5)
    assert "newcomer" in model
    assert (model.vectors_[: len(vectors)] != vectors).any()
    assert SkipGram(**SMALL).partial_fit(sentences).n_iter_ == 6


def test_a_callback_and_a_small_gain_stop_the_passes(sentences):
    events = []
    stopped = SkipGram(**SMALL, max_iter=10_000, callback=lambda e: events.append(e) or True)
    assert stopped.fit(sentences).n_iter_ < 10_000
    assert events[-1].n_total == 10_001
    early = SkipGram(**SMALL, max_iter=500, min_gain=1e-2).fit(sentences)
    assert early.n_iter_ < 200
    gains = -np.diff(early.trace_["objective"]) / early.trace_["objective"][:-1]
    assert gains[-1] < 1e-2


def test_a_vocabulary_of_the_most_frequent_words(sentences):
    model = SkipGram(**SMALL, max_words=5, max_iter=1).fit(sentences)
    assert len(model.words_) == 5
    assert model.words_[0] == "the"


def test_gradients_that_are_not_finite_keep_the_vectors_before(sentences):
    model = SkipGram(**SMALL, learning_rate=1e38)
    with pytest.warns(ConvergenceWarning, match=r"not finite.*learning_rate below 1e\+38"):
        model.fit(sentences)
    assert np.isfinite(model.vectors_).all()
    assert np.isfinite(model.objective_)


def test_is_a_part_of_a_pipeline(sentences):
    """scikit-learn's own checks have no input for estimators of texts and leave them out."""
    groups = [sentence[0][0] for sentence in sentences]
    steps = make_pipeline(SkipGram(**SMALL), LogisticRegression()).fit(sentences, groups)
    assert steps.score(sentences, groups) > 0.95
    assert steps[:-1].get_feature_names_out().tolist() == [f"skipgram{i}" for i in range(7)]
    again = pickle.loads(pickle.dumps(steps))
    np.testing.assert_array_equal(again[0].vectors_, steps[0].vectors_)


def test_files_of_earlier_versions_are_translated():
    stored = {"partition": "search", "n_found": 7, "n_warm": 2, "tol": 0.1, "n_traced": 64}
    search = ContextSearch("search", n_candidates=7, n_warm=2)
    assert SkipGram._current_params(stored) == {"search": search, "min_gain": 0.1}


@pytest.mark.parametrize("n_words", [2, 3])
def test_a_search_works_among_two_words(n_words):
    text = [["a", "b", "c"][:n_words]] * 9
    model = SkipGram(**SMALL, search=ContextSearch("search"), max_iter=1).fit(text)
    assert np.isfinite(model.vectors_).all()


def grown(model):
    model = clone(model).set_params(n_components=3).fit([["a", "b"]])
    return model.set_params(n_components=4).partial_fit([["a"]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: SkipGram().fit([]), "SkipGram: X must have words, got none"),
        (lambda m: SkipGram().fit(["", " "]), "SkipGram: X must have words, got none"),
        (lambda m: SkipGram().fit([["a", "b"]]), "at least two words, got 5: 0 of 2"),
        (lambda m: SkipGram(min_count=1).fit([["a"], ["b"]]), "two words of the vocabulary"),
        (lambda m: SkipGram().fit("no/such/file"), "which is no file"),
        (lambda m: SkipGram().fit(3), "X must be a path or an iterable"),
        (lambda m: SkipGram().fit([["a", 3]]), r"strings or lists of words, got \['a', 3\]"),
        (lambda m: SkipGram().fit([None]), "strings or lists of words, got None"),
        (lambda m: SkipGram(0).fit([["a"]]), r"SkipGram\.n_components must be"),
        (lambda m: ContextSearch("no"), r"ContextSearch\.partition must be"),
        (lambda m: SkipGram(search="no").fit([["a"]]), r"SkipGram\.search must be an instance"),
        (grown, "n_components must stay 3"),
        (lambda m: m.most_similar("nobody"), "in the vocabulary of 25 words, got 'nobody'"),
        (lambda m: m["nobody"], "in the vocabulary"),
        (lambda m: m.analogy("a0", "a1", "nobody"), "got 'nobody'"),
        (lambda m: m.most_similar("a0", k=25), "k must be an integer from 1 to 24, got 25"),
        (lambda m: m.most_similar(["a0"]), r"in the vocabulary of 25 words, got \['a0'\]"),
        (lambda m: m.transform("a0"), "X must be an iterable of texts"),
        (lambda m: m.transform(None), "X must be an iterable of texts, got None"),
        (lambda m: m.transform([None]), "X must hold strings or lists of words, got None"),
        (lambda m: m.transform([["a0", 3]]), r"strings or lists of words, got \['a0', 3\]"),
        (lambda m: m.transform([b"a0"]), "strings or lists of words, got b'a0'"),
        (lambda m: m.analogy_accuracy([("a0", "a1", "a2")]), "questions must hold four words"),
        (lambda m: m.exact_objective(1), r"n_words must be an integer in \[2, "),
    ],
)  # fmt: skip
def test_bad_input_is_named(model, call, message):
    with pytest.raises(ValueError, match=message):
        call(model)


def test_a_frame_is_not_taken_for_the_names_of_its_columns(model):
    frame = pytest.importorskip("pandas").DataFrame({"a0 a1": ["a0 a1 a2"] * 9})
    with pytest.raises(ValueError, match="X must be a path or an iterable of strings"):
        clone(model).fit(frame)
    with pytest.raises(ValueError, match="X must be an iterable of texts"):
        model.transform(frame)
    np.testing.assert_array_equal(
        model.transform(frame["a0 a1"]), model.transform(["a0 a1 a2"] * 9)
    )


def test_texts_of_a_generator_are_learned_from_and_transformed(sentences):
    model = SkipGram(**SMALL, max_iter=0)
    expected = model.fit_transform(sentences)
    np.testing.assert_array_equal(model.fit_transform(iter(sentences)), expected)


def test_means_of_texts_are_frames_where_they_are_wanted(sentences):
    pandas = pytest.importorskip("pandas")
    model = SkipGram(**SMALL, max_iter=0).set_output(transform="pandas")
    for means in (model.fit_transform(sentences), model.transform(sentences)):
        assert isinstance(means, pandas.DataFrame)
        assert means.columns.tolist() == model.get_feature_names_out().tolist()


def test_files_that_are_none_are_named(tmp_path):
    path = tmp_path / "vectors"
    numbers = b"2 3\na 1 2 3\nb 1 2\n"
    for content in (
        b"",
        numbers,
        b"1 2\n",
        b"1 2\na 1\n",
        b"1 2\na 1 2\nb 1 2\n",
        b"99999999999 2\na 1 2\n",
    ):
        path.write_bytes(content)
        for binary in (False, True):
            with pytest.raises(ValueError, match="no vectors in word2vec's"):
                read_word_vectors(path, binary=binary)
    words = SkipGram(**SMALL, max_iter=0).fit([["new york", "is", "big"]])
    with pytest.raises(ValueError, match="words without white space, got 'new york'"):
        words.export(path)


# --- blocks of coordinates ------------------------------------------------------------------------


def slow_decomposed(words, contexts, biases, counts, found):
    """Objective, and gradients by words, contexts and biases: what is not found has its bias."""
    scores = words @ contexts.T + biases
    is_near = (counts > 0) | found
    z = np.where(is_near, scores, biases)
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    slopes = counts.sum(axis=1, keepdims=True) * p - counts
    value = (counts * (np.log(np.exp(z).sum(axis=1, keepdims=True)) - scores)).sum()
    near = np.where(is_near, slopes, 0)
    return value / counts.sum(), near @ contexts, near.T @ words, slopes.sum(axis=0)


@pytest.fixture
def block_problem(sentences):
    """A core problem with two blocks that look at all clusters, beside its matrices."""
    _, pairs = counted(sentences[:60])
    rng = np.random.default_rng(1)
    n, dim = pairs.n_words, 6
    words, contexts = rng.normal(size=(2, n, dim)).astype(np.float32)
    biases = rng.normal(-2, 1, n).astype(np.float32)
    sums = np.full(n, 1e8, np.float32), np.full(n, 1e8, np.float32)  # steps follow the gradient
    vectors = Vectors.of(words, contexts, biases, sums)
    search = ContextSearch("decomposed", n_candidates=6, n_probe=n, n_blocks=2)
    plan = SkipGram(**SMALL, search=search)._plan(0, n)
    problem = _core.SkipGramProblem(
        vectors.words, vectors.contexts, (vectors.word_sums, vectors.context_sums),
        (pairs.begin, pairs.ids, pairs.counts), np.full(n, 1 / n, np.float32), vectors.bias,
    )  # fmt: skip
    _Index.of(vectors, plan).refresh(problem)
    settings = _core.SkipGramSettings()
    settings.n_found, settings.n_probe, settings.learning_rate = 6, n, 1.0
    settings.pairs_of_visit, settings.visits_at_once = 2**30, 64
    found = np.zeros((n, n), bool)
    for first in (0, 3):
        block = words[:, first : first + 3] @ contexts[:, first : first + 3].T + biases / 2
        np.put_along_axis(found, np.argsort(-block, axis=1)[:, :3], True, axis=1)
    return vectors, problem, settings, (words, contexts, biases, dense(pairs), found)


@pytest.mark.parametrize("half", ["words", "contexts"])
def test_half_a_pass_with_blocks_is_the_gradient_of_algorithm_10(half, block_problem):
    vectors, problem, settings, matrices = block_problem
    value, of_words, of_contexts, of_biases = slow_decomposed(*matrices)
    settings.moves_words, settings.moves_contexts = half == "words", half == "contexts"
    report = problem.run(settings, 1, _core.Monitor())
    assert report.objective == pytest.approx(value, rel=1e-5)
    assert report.lower_bound < report.objective
    words, contexts, biases = matrices[:3]
    steps = -1e4 * (vectors.words[:, :6] - words), -1e4 * (vectors.contexts[:, :6] - contexts)
    moved, still = steps if half == "words" else steps[::-1]
    expected = of_words if half == "words" else of_contexts
    np.testing.assert_allclose(moved, expected, rtol=0.02, atol=0.1)
    assert not still.any()
    if half == "contexts":  # a bias moves by the square of what words have in its column
        moved = -1e4 * (vectors.biases - biases) / float(vectors.unit) ** 2
        np.testing.assert_allclose(moved, of_biases, rtol=0.02, atol=0.2)


def test_blocks_alternate_and_lower_the_exact_objective(sentences, tmp_path):
    search = ContextSearch("decomposed", n_sampled=16, n_candidates=8, n_blocks=2)
    model = SkipGram(**SMALL, max_iter=12, search=search).fit(sentences)
    shares = model._pairs.totals / model._pairs.totals.sum()
    unigram = -(shares * np.log(shares)).sum()
    entropy = (1 - model.certificate_) * model.objective_
    assert entropy < model.exact_objective()[0] < unigram - 0.4 * (unigram - entropy)
    model.save(tmp_path / "words")
    loaded = sublearn.load(tmp_path / "words")
    assert loaded.search == search
    np.testing.assert_array_equal(loaded.vectors_, model.vectors_)
