"""Blocks run by threads, or by whoever is installed; also inside a watched fit."""

import pytest

from sublearn import _core
from sublearn.execution import all_or_nothing, map_blocks, use_executor
from sublearn.trace import watch


class Recorder:
    def __init__(self):
        self.sizes = []

    n_places = 0

    def map(self, function, blocks, n_jobs, hints):
        self.sizes.append((len(blocks), n_jobs))
        return [function(block) for block in blocks]


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_results_stand_in_the_order_of_the_blocks(n_jobs):
    assert map_blocks(lambda x: 2 * x, iter(range(5)), n_jobs) == [0, 2, 4, 6, 8]
    assert map_blocks(abs, [], n_jobs) == []


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_an_exception_comes_through(n_jobs):
    with pytest.raises(ZeroDivisionError):
        map_blocks(lambda x: 1 / x, [1, 0], n_jobs)


def test_an_installed_executor_is_asked_and_leaves_again():
    recorder = Recorder()
    with use_executor(recorder):
        assert map_blocks(abs, [-1, 2], 7) == [1, 2]
        watch(lambda: map_blocks(abs, [3], 2), _core.Monitor(), n_total=1, callback=lambda e: None)
    assert map_blocks(abs, [-1]) == [1]
    assert recorder.sizes == [(2, 7), (1, 2)]


class Counter:
    def __init__(self):
        self.total = 1

    @all_or_nothing
    def add(self, amount):
        self.total, self.last = self.total + amount, amount
        if amount < 0:
            raise KeyboardInterrupt
        return self


def test_a_method_that_raises_leaves_the_attributes_as_they_were():
    counter = Counter()
    with pytest.raises(KeyboardInterrupt):
        counter.add(-1)
    assert vars(counter) == {"total": 1}
    assert vars(counter.add(2)) == {"total": 3, "last": 2}
    with pytest.raises(KeyboardInterrupt):
        counter.add(-1)
    assert vars(counter) == {"total": 3, "last": 2}
