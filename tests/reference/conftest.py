"""Lets the reference tests import their judges, which are not part of the package."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
