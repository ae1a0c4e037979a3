"""Measure this library and its rivals, and write what was measured.

python benchmarks/run.py --list
python benchmarks/run.py --quick                      # does everything work here?
python benchmarks/run.py --only linear/a9a "graph/*" --entrants sublearn skglm
python benchmarks/run.py --all                        # goes on where it was stopped
python benchmarks/run.py --compare before.jsonl after.jsonl
"""

import sys

sys.path.append(sys.path.pop(0))  # last, lest a script here hide a package of its name

from harness.command import main

if __name__ == "__main__":
    raise SystemExit(main())
