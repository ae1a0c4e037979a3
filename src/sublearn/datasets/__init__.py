"""Data sets: small ones that come with the package, and others that are downloaded and kept.

``load_*`` needs no network. ``fetch_*`` downloads once into :func:`data_home`, checks what came,
and reads it from there afterwards. All return scikit-learn's `Bunch`.
"""

from sublearn.datasets.cache import data_home
from sublearn.datasets.catalogue import list_datasets
from sublearn.datasets.extreme import fetch_extreme
from sublearn.datasets.gefcom import fetch_gefcom2012
from sublearn.datasets.rcv1 import fetch_rcv1
from sublearn.datasets.records import fetch_gnd, fetch_yso, load_library_records
from sublearn.datasets.uai import fetch_uai

__all__ = [
    "data_home",
    "fetch_extreme",
    "fetch_gefcom2012",
    "fetch_gnd",
    "fetch_rcv1",
    "fetch_uai",
    "fetch_yso",
    "list_datasets",
    "load_library_records",
]
