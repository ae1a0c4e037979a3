"""Lets the tests here import the campaign's modules, which are not part of the package."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
