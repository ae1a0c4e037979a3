"""Models on the Hugging Face Hub: one file and a model card in a repository.

pip install "sublearn[hub]"
from sublearn.plugins.hub import from_hub, push_to_hub

push_to_hub(model, "me/subjects", licence="cc0-1.0")
model = from_hub("me/subjects", revision="1a2b3c4")
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

import sublearn
from sublearn.errors import ParameterError, needs_extra
from sublearn.io.models import SavedModel
from sublearn.plugins.cards import model_card
from sublearn.typing import PathLike

with needs_extra("sublearn.plugins.hub", "hub"):
    from huggingface_hub import HfApi, hf_hub_download

__all__ = ["from_hub", "push_to_hub"]

_FILE = "model.sublearn"


def push_to_hub(
    model: BaseEstimator,
    repo_id: str,
    *,
    title: str | None = None,
    licence: str | None = None,
    data: str | None = None,
    figures: Mapping[str, float] | None = None,
    private: bool | None = None,
    revision: str | None = None,
    message: str | None = None,
    token: str | None = None,
    endpoint: str | None = None,
) -> str:
    """Put a fitted model and its card into a repository of the Hub, which is made if need be.

    Parameters
    ----------
    model : estimator
        A fitted one that can be saved.
    repo_id : str
        ``owner/name``.
    title, licence, data, figures
        For the card; see :func:`sublearn.plugins.cards.model_card`. A card that is there already
        is replaced.
    private : bool, optional
        Whether a new repository is for its owner only; by default as the owner has set it.
    revision : str, optional
        Branch; by default the main one.
    message : str, optional
        Of the commit.
    token : str, optional
        Who is asking; by default who is logged in (``hf auth login``).
    endpoint : str, optional
        Address of the Hub; by default that of huggingface_hub.

    Returns
    -------
    str
        Address of the commit.
    """
    if not isinstance(model, SavedModel):
        raise ParameterError(
            f"push_to_hub.model must be a model of this library, got a {type(model).__name__}"
        )
    card = model_card(
        model,
        title=title or repo_id.rpartition("/")[2],
        licence=licence,
        data=data,
        figures=figures,
        file=_FILE,
    )
    hub = HfApi(endpoint=endpoint, token=token, library_name="sublearn")
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / _FILE)
        (Path(folder) / "README.md").write_text(card, encoding="utf-8")
        hub.create_repo(repo_id, private=private, exist_ok=True)
        done = hub.upload_folder(
            repo_id=repo_id,
            folder_path=folder,
            revision=revision,
            commit_message=message or f"{type(model).__name__} of sublearn {sublearn.__version__}",
        )
    return str(done.commit_url)


def from_hub(
    repo_id: str,
    *,
    revision: str | None = None,
    file: str = _FILE,
    cache_dir: PathLike | None = None,
    local_files_only: bool = False,
    token: str | None = None,
    endpoint: str | None = None,
) -> Any:
    """Load a model of the Hub; it is downloaded once into huggingface_hub's cache.

    A file is read by `sublearn.load`, which runs nothing of what it holds.

    Parameters
    ----------
    repo_id : str
        ``owner/name``.
    revision : str, optional
        Branch, tag or commit; a commit is what stays the same.
    file : str, default="model.sublearn"
        The saved model in the repository.
    cache_dir : path, optional
        By default that of huggingface_hub.
    local_files_only : bool, default=False
        Whether to take what the cache has and ask no server.
    token, endpoint
        As for `push_to_hub`.

    Returns
    -------
    estimator
        Fitted, of the class that was saved.

    Raises
    ------
    ModelFileError
        If the file is no saved model.
    """
    path = hf_hub_download(
        repo_id,
        file,
        revision=revision,
        cache_dir=None if cache_dir is None else str(cache_dir),
        local_files_only=local_files_only,
        token=token,
        endpoint=endpoint,
        library_name="sublearn",
        library_version=sublearn.__version__,
    )
    return sublearn.load(path)
