"""Modules beside these tests, which pytest's importlib mode hides."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
