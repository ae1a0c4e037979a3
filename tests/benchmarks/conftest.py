"""Makes the benchmark harness importable, as running a benchmark script does."""

import sys
from pathlib import Path

# Last, lest a script there hide a package of its name.
sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
