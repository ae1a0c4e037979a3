"""Factor graphs in files of any format that this library reads, told by the ending."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sublearn.graph.cfn import read_cfn
from sublearn.graph.factor_graph import FactorGraph
from sublearn.graph.uai import read_evidence, read_uai
from sublearn.graph.wcsp import read_wcsp
from sublearn.io.files import PathLike, plain_name, reading
from sublearn.io.limits import ReadLimits

__all__ = ["read_graph"]


def read_graph(
    path: PathLike,
    evidence: PathLike | Mapping[Any, int] | None = None,
    *,
    tables: str = "linear",
    limits: ReadLimits | None = None,
) -> FactorGraph:
    """Read a factor graph: `read_wcsp` for ``.wcsp``, `read_cfn` for ``.cfn``, else `read_uai`.

    Parameters
    ----------
    path : path
        The ending may be followed by ``.gz``, ``.xz`` or ``.bz2``.
    evidence : path, or mapping from variable to label, optional
        As for `read_uai`.
    tables : {"linear", "log", "log10"}, default="linear"
        What the numbers of a UAI file are; the other formats have costs.
    limits : ReadLimits, optional
        What a compressed file may unpack to.
    """
    name = plain_name(path).lower()
    if not name.endswith((".wcsp", ".cfn")):
        return read_uai(path, evidence, tables=tables, limits=limits)
    read = read_wcsp if name.endswith(".wcsp") else read_cfn
    graph = read(path, limits=limits)
    if evidence is None or isinstance(evidence, Mapping):
        return graph if evidence is None else graph.condition(evidence)
    found = read_evidence(evidence, limits=limits)
    with reading(evidence):
        return graph.condition(found)
