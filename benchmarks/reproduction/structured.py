"""Dual decomposed learning: Yen et al. 2016 (NIPS), section 3.2 of Yen 2018, beside ours."""

from __future__ import annotations

from harness.table import Table

__all__ = ["TABLES"]

TABLES: list[Table] = []
