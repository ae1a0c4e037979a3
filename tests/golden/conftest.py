"""Lets the tests here import `make_golden`, which is not part of the package."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
