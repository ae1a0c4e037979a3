"""Models as a flavour of MLflow: logged with a run, loaded as they were, or as a Python function.

pip install "sublearn[mlflow]"
import mlflow
from sublearn.plugins.mlflow import load_model, log_model

with mlflow.start_run():
    info = log_model(model, "tagger")
model = load_model(info.model_uri)                  # the estimator
function = mlflow.pyfunc.load_model(info.model_uri)  # what serves it: predict only
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

import sublearn
from sublearn.errors import ParameterError, needs_extra
from sublearn.io.models import SavedModel, storable_params
from sublearn.typing import PathLike

with needs_extra("sublearn.plugins.mlflow", "mlflow"):
    import mlflow
    from mlflow.models import Model

if TYPE_CHECKING:
    from mlflow.models import ModelSignature
    from mlflow.models.model import ModelInfo

__all__ = ["load_model", "log_fit", "log_model", "save_model"]

_FLAVOUR = "sublearn"
_FILE = "model.sublearn"
_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
_ENVIRONMENT = f"""name: sublearn
channels:
- conda-forge
dependencies:
- python={_PYTHON}
- pip
- pip:
"""


def save_model(
    model: Any,
    path: PathLike,
    *,
    signature: ModelSignature | None = None,
    mlflow_model: Model | None = None,
) -> None:
    """Write a fitted model into a folder in the form of MLflow.

    Parameters
    ----------
    model : estimator
        A fitted one that can be saved and has `predict`.
    path : path
        Folder to make.
    signature : ModelSignature, optional
        What goes in and comes out; :func:`mlflow.models.infer_signature` makes it.
    mlflow_model : Model, optional
        What MLflow fills in when it logs.
    """
    if not isinstance(model, SavedModel) or not hasattr(model, "predict"):
        raise ParameterError(
            "save_model.model must be a model of this library with predict, got a "
            f"{type(model).__name__}"
        )
    folder, about = Path(path), mlflow_model or Model()
    folder.mkdir(parents=True)
    model.save(folder / _FILE)
    about.signature = signature
    mlflow.pyfunc.add_to_model(about, loader_module=__name__, data=_FILE, conda_env="conda.yaml")
    about.add_flavor(
        _FLAVOUR,
        sublearn_version=sublearn.__version__,
        model_class=type(model).__name__,
        data=_FILE,
    )
    requirements = [f"mlflow=={mlflow.__version__}", f"sublearn=={sublearn.__version__}"]
    (folder / "conda.yaml").write_text(
        _ENVIRONMENT + "".join(f"  - {one}\n" for one in requirements)
    )
    (folder / "requirements.txt").write_text("\n".join(requirements) + "\n")
    about.save(str(folder / "MLmodel"))


def log_model(
    model: Any,
    name: str,
    *,
    signature: ModelSignature | None = None,
    registered_model_name: str | None = None,
) -> ModelInfo:
    """Log a fitted model with the run that is under way; its parameters and figures are separate.

    Parameters
    ----------
    model : estimator
        A fitted one that can be saved and has `predict`.
    name : str
        Of the model in the run.
    signature : ModelSignature, optional
        As for `save_model`.
    registered_model_name : str, optional
        Also register it under this name.

    Returns
    -------
    ModelInfo
        With `model_uri`, for `load_model`.
    """
    import sublearn.plugins.mlflow as flavour

    return Model.log(
        artifact_path=None,
        name=name,
        flavor=flavour,
        model=model,
        signature=signature,
        registered_model_name=registered_model_name,
    )


def log_fit(model: Any) -> None:
    """Log how a fit went: its parameters, and objective and certificate row by row of its trace.

    Parameters
    ----------
    model : estimator
        A fitted one. The figures of a text model are those of its classifier.
    """
    own = getattr(model, "classifier_", model)
    mlflow.log_params({key: str(value)[:500] for key, value in storable_params(own).items()})
    rows = own.trace_.rows()
    for step, row in enumerate(rows):
        mlflow.log_metrics({key: float(value) for key, value in row.items()}, step=step)
    last = {"objective": float(own.objective_), "certificate": float(own.certificate_)}
    mlflow.log_metrics(last | {"n_iter": float(own.n_iter_)}, step=max(0, len(rows) - 1))


def load_model(model_uri: str) -> Any:
    """The estimator of a logged or saved model.

    Parameters
    ----------
    model_uri : str
        `model_uri` of what `log_model` returned, a path, or any other address of MLflow.

    Returns
    -------
    estimator
        Fitted, of the class that was saved.
    """
    folder = Path(mlflow.artifacts.download_artifacts(artifact_uri=model_uri))
    flavours = Model.load(str(folder)).flavors
    if _FLAVOUR not in flavours:
        raise ParameterError(
            f"load_model.model_uri must be a model of the flavour {_FLAVOUR}, got one of "
            f"{', '.join(flavours)}"
        )
    return sublearn.load(folder / _FILE)


class _Function:
    """`predict` of a model, for tables as MLflow passes them."""

    def __init__(self, model: Any):
        self.model = model

    def predict(self, data: Any, params: dict[str, Any] | None = None) -> Any:
        """Answers to rows, or to texts in the only column of a table."""
        if hasattr(data, "columns") and self.model._kind == "text_labels":
            if data.shape[1] != 1:
                raise ParameterError(
                    f"predict.data must have one column of texts, got {data.shape[1]}"
                )
            data = data.iloc[:, 0].tolist()
        found = self.model.predict(data)
        return np.asarray(found.todense()) if sp.issparse(found) else found


def _load_pyfunc(path: str) -> _Function:
    """What mlflow.pyfunc calls."""
    return _Function(sublearn.load(path))
