"""Latent Feature Lasso and MixLasso: Yen et al. 2017, chapter 4 of Yen 2018, beside ours."""

from __future__ import annotations

from harness.table import Table

__all__ = ["TABLES"]

TABLES: list[Table] = []
