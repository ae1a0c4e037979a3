"""Deep-Trim: section 2.4 of Yen 2018, beside ours."""

from __future__ import annotations

from harness.table import Table

__all__ = ["TABLES"]

TABLES: list[Table] = []
