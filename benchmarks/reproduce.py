"""Remake the tables and figures of a paper with this library: reproduce.py --paper yen2017.

Further words are those of run.py: --quick, --only (tables of the paper), --cases, --limit, --json.
"""

import sys

sys.path.append(sys.path.pop(0))  # last, lest a script here hide a package of its name

from harness.papers import main

if __name__ == "__main__":
    raise SystemExit(main())
