"""Files to arrays, arrays to files, and saved models."""

from sublearn.io.arff import load_arff
from sublearn.io.bundle import Bundle, load_bundle, save_bundle
from sublearn.io.conll import Tokens, load_conll
from sublearn.io.dataset import Dataset
from sublearn.io.datasets import load_dataset, save_dataset
from sublearn.io.limits import ReadLimits
from sublearn.io.npz import load_npz, save_npz
from sublearn.io.quickstart import Quickstart, load_quickstart
from sublearn.io.row_store import StoredRows, open_rows
from sublearn.io.row_store_writer import store_rows
from sublearn.io.tables import load_table
from sublearn.io.taxonomies import HmcData, load_hmc, read_rcv1, read_skos
from sublearn.io.text import load_svmlight, load_xmc, save_svmlight, save_xmc
from sublearn.io.texts import Texts, load_label_names, load_texts

__all__ = [
    "Bundle",
    "Dataset",
    "HmcData",
    "Quickstart",
    "ReadLimits",
    "StoredRows",
    "Texts",
    "Tokens",
    "load_arff",
    "load_bundle",
    "load_conll",
    "load_dataset",
    "load_hmc",
    "load_label_names",
    "load_npz",
    "load_quickstart",
    "load_svmlight",
    "load_table",
    "load_texts",
    "load_xmc",
    "open_rows",
    "read_rcv1",
    "read_skos",
    "save_bundle",
    "save_dataset",
    "save_npz",
    "save_svmlight",
    "save_xmc",
    "store_rows",
]
