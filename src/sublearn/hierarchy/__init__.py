"""Labels in a taxonomy: classification down a tree, and sets of labels that agree with it."""

from sublearn.hierarchy.classifier import HierarchicalClassifier
from sublearn.hierarchy.group_weights import GroupWeights
from sublearn.hierarchy.multilabel import HierarchicalMultilabelClassifier
from sublearn.hierarchy.projection import (
    hierarchy_support,
    leaf_reduce,
    project_hierarchy,
    project_hierarchy_gradient,
    root_map,
)
from sublearn.hierarchy.taxonomy import Taxonomy
from sublearn.hierarchy.tree_operators import tree_map, tree_reduce

__all__ = [
    "GroupWeights",
    "HierarchicalClassifier",
    "HierarchicalMultilabelClassifier",
    "Taxonomy",
    "hierarchy_support",
    "leaf_reduce",
    "project_hierarchy",
    "project_hierarchy_gradient",
    "root_map",
    "tree_map",
    "tree_reduce",
]
