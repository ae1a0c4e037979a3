"""A last layer for PyTorch networks whose loss looks at few of very many labels."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import scipy.sparse as sp

from sublearn.embed.distances import METRIC_LOSSES, lifted_queries, lifted_rows
from sublearn.embed.label_search import LAYER_RULES, LabelSearch
from sublearn.embed.layer_training import LabelRows, LayerTrainer
from sublearn.errors import needs_extra
from sublearn.typing import Seed, SparseMatrix, State
from sublearn.validation import Positive, as_n_threads, as_seed, check_arguments
from sublearn.validation.sparse import check_sparse
from sublearn.validation.values import show

with needs_extra("sublearn.embed.torch_layer", "torch"):
    import torch

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from torch.autograd.function import FunctionCtx

__all__ = ["SearchedOutput"]

_RULES = {"in_features": Positive(int), "n_labels": Positive(int), **LAYER_RULES}
_Targets: TypeAlias = "torch.Tensor | ArrayLike | SparseMatrix"


class SearchedOutput(torch.nn.Module):
    r"""The mean loss of scores :math:`z = W x`, on labels that a search finds.

    ``layer(features, targets)`` is a scalar to call ``backward()`` on. It reaches the features
    densely, so that a network of any shape can stand below, and the weight as a sparse gradient of
    the rows of candidates: use an optimizer that takes one (``torch.optim.SGD``, ``Adagrad``,
    ``SparseAdam``) for it. Rows that had a gradient are copied at the next call; after any other
    change of `weight` call :meth:`refresh`.

    Parameters
    ----------
    in_features, n_labels : int
        Shape of W: a row of `in_features` numbers for each label.
    loss, gradient, search
        As in `DenseExtremeClassifier`. An epoch of `search.n_warm` is `n_labels` samples here, and
        `search.recall` is for prediction.
    n_jobs, random_state
        Threads, and the seed of clusters and samples.

    Attributes
    ----------
    weight : Parameter of shape (n_labels, in_features)
        W, zero at first.

    Examples
    --------
    >>> import torch
    >>> layer = SearchedOutput(8, 100, random_state=0)
    >>> features = torch.randn(5, 8, requires_grad=True)
    >>> loss = layer(features, torch.tensor([3, 1, 4, 1, 5]))
    >>> loss.backward()
    >>> layer.weight.grad.is_sparse
    True
    """

    def __init__(
        self,
        in_features: int,
        n_labels: int,
        *,
        loss: str = "softmax",
        gradient: str = "decomposed",
        search: LabelSearch | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ):
        super().__init__()
        given: dict[str, object] = {"in_features": in_features, "n_labels": n_labels}
        given |= {"loss": loss, "gradient": gradient, "search": search}
        check_arguments("SearchedOutput", given, _RULES)
        self.weight = torch.nn.Parameter(torch.zeros(n_labels, in_features))
        self._rng = np.random.default_rng(as_seed(random_state))
        self._new_trainer = partial(
            LayerTrainer,
            rng=self._rng,
            loss=loss,
            gradient=gradient,
            search=search,
            n_threads=as_n_threads(n_jobs),
        )
        self._is_metric = loss in METRIC_LOSSES
        self._trainer = self._new_trainer(self._rows())
        self._n_seen = 0
        self._touched: set[int] = set()  # rows that the core has to copy

    def refresh(self) -> None:
        """Read all of `weight` anew, after a change that no gradient has made."""
        self._touched = set(range(len(self.weight)))

    def _load_from_state_dict(self, *args: object, **kwargs: object) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        self.refresh()

    def __getstate__(self) -> State:
        state = dict(self.__dict__)
        del state["_trainer"]  # the core's object is not pickled
        return state

    def __setstate__(self, state: State) -> None:
        super().__setstate__(state)
        self._trainer = self._new_trainer(self._rows())

    def _rows(self) -> np.ndarray:
        rows = self.weight.detach().numpy()
        return lifted_rows(rows) if self._is_metric else rows

    def forward(self, features: torch.Tensor, targets: _Targets) -> torch.Tensor:
        """Mean loss of a batch.

        Parameters
        ----------
        features : tensor of shape (n_samples, in_features)
            On the CPU; made float32.
        targets : tensor of int64, shape (n_samples,), or sparse indicator matrix (SciPy)
            The label of each sample, or its labels.

        Returns
        -------
        tensor
            A scalar.
        """
        width = self.weight.shape[1]
        is_tensor = isinstance(features, torch.Tensor)
        if not is_tensor or features.ndim != 2 or features.shape[1] != width:
            got = f"shape {tuple(features.shape)}" if is_tensor else show(features)
            raise ValueError(
                f"SearchedOutput: features must be a tensor of shape (n_samples, {width}), "
                f"got {got}"
            )
        labels = self._labels(targets, len(features))
        return _SearchedLoss.apply(features, self.weight, labels, self)

    def _labels(self, targets: _Targets, n_samples: int) -> LabelRows:
        n_labels = len(self.weight)
        if sp.issparse(targets):
            rows = sp.csr_matrix(check_sparse(targets, "SearchedOutput: targets"), copy=True)
            rows.sum_duplicates()  # sorts, too
            rows.eliminate_zeros()
            if rows.shape != (n_samples, n_labels):
                raise ValueError(
                    f"SearchedOutput: targets must have shape ({n_samples}, {n_labels}), "
                    f"got {rows.shape}"
                )
            return LabelRows.of(rows)
        ids = np.asarray(torch.as_tensor(targets).cpu())
        if ids.shape != (n_samples,) or ids.dtype.kind not in "iu":
            raise ValueError(
                f"SearchedOutput: targets must be {n_samples} label numbers, got shape {ids.shape} "
                f"of {ids.dtype}"
            )
        if n_samples and not 0 <= ids.min() <= ids.max() < n_labels:
            raise ValueError(
                f"SearchedOutput: targets must be in 0 .. {n_labels - 1}, got {ids.min()} .. "
                f"{ids.max()}"
            )
        return LabelRows(np.arange(n_samples + 1), ids.astype(np.int32))

    def _differentiate(self, features: np.ndarray, labels: LabelRows) -> tuple[np.ndarray, ...]:
        trainer = self._trainer
        self._copy_changed_rows()
        settings = trainer.prepare(self._n_seen / trainer.n_labels)
        self._n_seen += len(features)
        trainer.note_samples(len(features))
        trainer.layer.count_towards_refresh(len(features), settings)
        seed = int(self._rng.integers(2**63))
        inputs = lifted_queries(features) if self._is_metric else features
        losses, samples, ids, values, slopes = trainer.layer.differentiate(
            trainer.inputs(inputs), labels, settings, seed
        )
        return losses, samples, ids, values, trainer.slopes(slopes, inputs)

    def _copy_changed_rows(self) -> None:
        if self._touched:
            changed = np.array(sorted(self._touched), dtype=np.int32)
            self._trainer.set_rows(changed, self._rows()[changed])
            self._touched = set()


class _SearchedLoss(torch.autograd.Function):
    """Value and gradients at once: the search is done in forward."""

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        features: torch.Tensor,
        weight: torch.Tensor,
        labels: LabelRows,
        layer: SearchedOutput,
    ) -> torch.Tensor:
        rows = features.detach().to(torch.float32).numpy()
        losses, samples, ids, values, slopes = layer._differentiate(rows, labels)
        touched, places = np.unique(ids, return_inverse=True)
        share = 1 / max(len(rows), 1)
        matrix = sp.csr_matrix((values * share, (places, samples)), (len(touched), len(rows)))
        of_weight = np.asarray(matrix @ rows, dtype=np.float32)
        if layer._is_metric:
            totals = np.bincount(places, values * share, len(touched)).astype(np.float32)
            of_weight = 2 * (of_weight - totals[:, None] * weight.detach().numpy()[touched])
        ctx.of_features = torch.from_numpy(slopes * np.float32(share))
        ctx.of_weight = torch.from_numpy(of_weight)
        ctx.touched = torch.from_numpy(touched.astype(np.int64))
        ctx.shape = weight.shape
        ctx.dtype = features.dtype
        layer._touched.update(touched.tolist())
        return torch.tensor(losses.mean() if len(losses) else 0.0, dtype=torch.float32)

    @staticmethod
    def backward(ctx: FunctionCtx, scale: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        of_weight = torch.sparse_coo_tensor(
            ctx.touched[None],
            ctx.of_weight * scale,
            ctx.shape,
            is_coalesced=True,
            check_invariants=False,
        )
        return (ctx.of_features * scale).to(ctx.dtype), of_weight, None, None
