"""Load forecasting: chapter 3 of Tang 2016, beside ours."""

from __future__ import annotations

from harness.table import Table

__all__ = ["TABLES"]

TABLES: list[Table] = []
