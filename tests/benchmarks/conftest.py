"""Makes the benchmark harness importable, as running a benchmark script does."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
