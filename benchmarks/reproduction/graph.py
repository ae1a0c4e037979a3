"""GDMM for MAP inference: section 3.3 of Yen 2018, beside ours."""

from __future__ import annotations

from harness.table import Table

__all__ = ["TABLES"]

TABLES: list[Table] = []
