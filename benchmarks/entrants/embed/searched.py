"""What all indexes have in common: searches with more and more effort."""

import statistics
import time

import numpy as np

#: Searches are repeated until there are as many, or until they took so many CPU seconds.
REPEAT, SECONDS = 3, 2.0


def sweep(search, task, keep):
    """A lap for each effort."""
    for effort in task.settings["efforts"]:
        laps = []
        while len(laps) < REPEAT and sum(laps) < SECONDS:
            start = time.process_time()
            found = search(effort)
            laps.append(time.process_time() - start)
        keep(
            np.asarray(found, dtype=np.int64), effort=effort, search_seconds=statistics.median(laps)
        )
