"""PD-Sparse and PPD-Sparse: Yen et al. 2016 (ICML), chapter 2 of Yen 2018, beside ours."""

from __future__ import annotations

from harness.table import Table

__all__ = ["TABLES"]

TABLES: list[Table] = []
