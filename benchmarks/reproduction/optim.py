"""LHAC and inexact proximal methods: chapters 4 and 5 of Tang 2016, beside ours."""

from __future__ import annotations

from harness.table import Table

__all__ = ["TABLES"]

TABLES: list[Table] = []
