"""Files to arrays, arrays to files, and saved models."""

from sublearn.io.text import load_svmlight, load_xmc, save_svmlight, save_xmc

__all__ = ["load_svmlight", "load_xmc", "save_svmlight", "save_xmc"]
