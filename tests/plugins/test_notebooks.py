"""A real notebook, run by nbclient: bars that move and the fit below scikit-learn's picture."""

import pytest

pytest.importorskip("ipykernel", reason="needs pip install nbclient ipykernel")
nbclient = pytest.importorskip("nbclient", reason="needs pip install nbclient ipykernel")
nbformat = pytest.importorskip("nbformat", reason="needs pip install nbclient ipykernel")

CELLS = (
    """
import numpy as np
from sublearn.linear import SparseLinearRegression
X = np.random.default_rng(0).normal(size=(50, 5))
model = SparseLinearRegression(l1=0.01, verbose=1).fit(X, X[:, 0])
""",
    "model",
    """
import pathlib
from sublearn.datasets.download import Remote, obtain
pathlib.Path("here.bin").write_bytes(bytes(10**5))
path = obtain(Remote("a.bin", pathlib.Path("here.bin").absolute().as_uri()), pathlib.Path("set"))
""",
)


@pytest.mark.filterwarnings("ignore")  # of Jupyter's own
def test_bars_and_fits_show_themselves(tmp_path, monkeypatch):
    monkeypatch.delenv("SUBLEARN_DATA_MIRROR", raising=False)
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, kernel_name="python3", resources=resources).execute()
    (bar,), (model,), (download,) = (cell.outputs for cell in notebook.cells)
    assert bar["data"]["text/plain"].startswith("SparseLinearRegression ")
    assert " gap " in bar["data"]["text/plain"]
    assert "100.0/100.0 kB" in download["data"]["text/plain"]
    html = model["data"]["text/html"]
    assert "sk-top-container" in html
    assert "within tol=" in html[html.index("sublearn-fit") :]
