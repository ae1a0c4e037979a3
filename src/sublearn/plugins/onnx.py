"""Linear models and trimmed networks as ONNX files, for runtimes that know nothing of Python.

pip install "sublearn[onnx]"
from sublearn.plugins.onnx import network_to_onnx, to_onnx

to_onnx(model, "model.onnx")
network_to_onnx(result.module, pictures[:1], "network.onnx")   # of sublearn.trim.deep_trim
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

import sublearn
from sublearn.errors import ParameterError, needs_extra
from sublearn.extreme import PDSparseClassifier, PPDSparseClassifier
from sublearn.io.files import write_atomically
from sublearn.linear import SparseLinearRegression, SparseLogisticRegression
from sublearn.typing import PathLike
from sublearn.validation import OneOf, check_argument
from sublearn.validation.labels import LabelKind
from sublearn.validation.values import show

with needs_extra("sublearn.plugins.onnx", "onnx"):
    import onnx
    from onnx import TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    import torch

__all__ = ["network_to_onnx", "to_onnx"]

_OPSET = 17  # of 2022: every runtime in use knows it
_MOST_BYTES = 2_000_000_000  # a file of ONNX ends at 2 GiB
_TYPES = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE}
_LINEAR = (
    SparseLinearRegression, SparseLogisticRegression, PDSparseClassifier, PPDSparseClassifier,
)  # fmt: skip


def to_onnx(model: Any, path: PathLike | None = None, *, dtype: str = "float32") -> onnx.ModelProto:
    """A fitted linear model as an ONNX graph.

    Parameters
    ----------
    model : SparseLinearRegression, SparseLogisticRegression, PPDSparseClassifier or \
PDSparseClassifier
        Fitted.
    path : path, optional
        File to write; replaced atomically.
    dtype : {"float32", "float64"}, default="float32"
        Of the input ``X``, of shape (rows, features), and of all numbers.

    Returns
    -------
    ModelProto
        With the output ``y`` for a regression; ``label`` and ``probabilities`` for a logistic
        regression; ``scores`` (rows, labels) for an extreme classifier, and ``label`` if each row
        has exactly one. Labels are in the order of `classes_`.

    Raises
    ------
    ParameterError
        For another model, labels that are neither numbers nor strings, or weights that take more
        than 2 GB when dense: ONNX multiplies by dense matrices only.
    """
    check_argument("to_onnx.dtype", dtype, OneOf(*_TYPES))
    if not isinstance(model, _LINEAR):
        names = ", ".join(one.__name__ for one in _LINEAR)
        raise ParameterError(f"to_onnx.model must be one of {names}, got a {type(model).__name__}")
    check_is_fitted(model)
    graph = _Graph(np.dtype(dtype))
    scores = graph.scores(model)
    if isinstance(model, SparseLinearRegression):
        _end_numbers(graph, model, scores)
    elif isinstance(model, SparseLogisticRegression):
        _end_probabilities(graph, model, scores)
    else:
        _end_scores(graph, model, scores)
    made = graph.model(model)
    onnx.checker.check_model(made)
    return _written(made, path)


def _end_numbers(graph: _Graph, model: SparseLinearRegression, scores: str) -> None:
    if model.loss == "poisson":
        most = np.log(np.finfo(graph.dtype).max)
        scores = graph.add("Exp", graph.add("Min", scores, graph.constant(most)))
    graph.output("y", graph.add("Squeeze", scores, graph.constant([1], np.int64)), [None])


def _end_probabilities(graph: _Graph, model: SparseLogisticRegression, scores: str) -> None:
    n_classes = len(model.classes_)
    if n_classes == 2:
        own = [graph.add("Sigmoid", graph.add("Neg", scores)), graph.add("Sigmoid", scores)]
        probabilities = graph.add("Concat", *own, axis=1)
    elif model.multinomial:
        probabilities = graph.add("Softmax", scores, axis=1)
    else:
        own_ones = graph.add("Sigmoid", scores)
        total = graph.add("ReduceSum", own_ones, graph.constant([1], np.int64), keepdims=1)
        probabilities = graph.add("Div", own_ones, total)
    _end_label(graph, model.classes_, scores, n_classes == 2)
    graph.output("probabilities", probabilities, [None, n_classes])


def _end_scores(
    graph: _Graph, model: PPDSparseClassifier | PDSparseClassifier, scores: str
) -> None:
    if not model._label_kind.is_multilabel:
        _end_label(graph, model.classes_, scores, model._label_kind is LabelKind.BINARY)
    n_scores = len(model.intercept_)
    graph.output("scores", scores, [None, n_scores])


def _end_label(graph: _Graph, classes: np.ndarray, scores: str, is_binary: bool) -> None:
    """The class of the best score; of two classes, the second where its score is positive."""
    if is_binary:
        above = graph.add("Greater", scores, graph.constant(0.0))
        flat = graph.add("Squeeze", above, graph.constant([1], np.int64))
        best = graph.add("Cast", flat, to=TensorProto.INT64)
    else:
        best = graph.add("ArgMax", scores, axis=1, keepdims=0)
    graph.output("label", graph.add("Gather", graph.labels(classes), best), [None])


class _Graph:
    """Nodes and tensors on their way to a model; a name for each."""

    def __init__(self, dtype: np.dtype):
        self.dtype = dtype
        self._nodes: list[Any] = []
        self._tensors: list[Any] = []
        self._outputs: list[Any] = []
        self._types: dict[str, int] = {}

    def add(self, kind: str, *inputs: str, **options: Any) -> str:
        """The output of a new node."""
        name = f"{kind}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [name], name, **options))
        return name

    def constant(self, value: Any, dtype: Any = None) -> str:
        """A tensor of the graph."""
        return self._tensor(np.asarray(value, dtype or self.dtype))

    def labels(self, classes: np.ndarray) -> str:
        """Labels as numbers or strings."""
        kind = classes.dtype.kind
        if kind in "iu" and (kind == "i" or classes.max() < 2**63):
            found = self._tensor(classes.astype(np.int64))
        elif kind in "bf":
            found = self._tensor(classes if kind == "b" else classes.astype(np.float64))
        elif all(isinstance(one, str) for one in classes.tolist()):
            found = self._tensor(classes.astype(object))
        else:
            raise ParameterError(
                f"to_onnx.model must have numbers or strings as labels, got {show(classes[0])}"
            )
        self._types["label"] = self._tensors[-1].data_type
        return found

    def _tensor(self, values: np.ndarray) -> str:
        name = f"tensor_{len(self._tensors)}"
        self._tensors.append(numpy_helper.from_array(values, name))
        return name

    def scores(self, model: Any) -> str:
        """Products of the rows with the weights of each output, and its intercept."""
        coef = model.coef_
        shape = (coef.shape[-1], 1 if coef.ndim == 1 else coef.shape[0])
        n_bytes = shape[0] * shape[1] * self.dtype.itemsize
        if n_bytes > _MOST_BYTES:
            raise ParameterError(
                f"to_onnx.model must have dense weights of at most {_MOST_BYTES} bytes, got "
                f"{shape[0]} features by {shape[1]} labels, which take {n_bytes}"
            )
        dense = coef.toarray() if sp.issparse(coef) else np.atleast_2d(coef)
        weights = self.constant(np.ascontiguousarray(dense.T))
        bias = self.constant(np.atleast_1d(model.intercept_))
        self._input = helper.make_tensor_value_info("X", _TYPES[self.dtype.name], [None, shape[0]])
        return self.add("Add", self.add("MatMul", "X", weights), bias)

    def output(self, name: str, source: str, shape: list[int | None]) -> None:
        """Name a result."""
        self._nodes.append(helper.make_node("Identity", [source], [name], name))
        kind = self._types.get(name, _TYPES[self.dtype.name])
        self._outputs.append(helper.make_tensor_value_info(name, kind, shape))

    def model(self, model: Any) -> onnx.ModelProto:
        """The whole."""
        name = type(model).__name__
        graph = helper.make_graph(self._nodes, name, [self._input], self._outputs, self._tensors)
        made = helper.make_model(
            graph,
            producer_name="sublearn",
            producer_version=sublearn.__version__,
            opset_imports=[helper.make_opsetid("", _OPSET)],
            ir_version=8,  # of opset 17
        )
        helper.set_model_props(made, {"certificate": repr(float(model.certificate_))})
        return made


def network_to_onnx(
    network: torch.nn.Module, sample: torch.Tensor, path: PathLike | None = None
) -> onnx.ModelProto:
    """A trimmed network as an ONNX graph, without the neurons that trimming left without weights.

    Parameters
    ----------
    network : Module
        Usually `TrimResult.module`; with dense layers, since ONNX has no sparse ones.
    sample : Tensor
        A batch to trace the network with. The first dimension may be another one later.
    path : path, optional
        File to write; replaced atomically.

    Returns
    -------
    ModelProto
        With the input ``X`` and the output ``y``.
    """
    with needs_extra("network_to_onnx", "torch"):
        import torch
    with needs_extra("network_to_onnx", "onnx"):
        import onnxscript  # noqa: F401
    from sublearn.trim import SparseConv, SparseEmbedding, SparseLinear, SparseStack, remove_neurons

    if not isinstance(network, torch.nn.Module) or not isinstance(sample, torch.Tensor):
        raise ParameterError(
            "network_to_onnx needs a module and a tensor, got a "
            f"{type(network).__name__} and a {type(sample).__name__}"
        )
    kinds = (SparseConv, SparseEmbedding, SparseLinear, SparseStack)
    if any(isinstance(part, kinds) for part in network.modules()):
        raise ParameterError(
            "network_to_onnx.network must have dense layers, got sparse ones; give the network as "
            "it was before to_sparse"
        )
    smaller = remove_neurons(network).eval()
    exported = torch.onnx.export(
        smaller,
        (torch.cat([sample, sample])[:2],),  # a batch of one would be taken for a constant
        dynamo=True,
        input_names=["X"],
        output_names=["y"],
        dynamic_shapes=({0: torch.export.Dim("rows")},),
        verbose=False,
    )
    return _written(exported.model_proto, path)


def _written(made: onnx.ModelProto, path: PathLike | None) -> onnx.ModelProto:
    if path is not None:
        with write_atomically(path) as stream:
            stream.write(made.SerializeToString())
    return made
