"""Dense vectors with very many outputs: search by inner product."""

from sublearn.embed.mips_index import MIPSIndex

__all__ = ["MIPSIndex"]
