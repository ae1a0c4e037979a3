"""Learning and inference in time sublinear in the size of the model."""

__version__ = "0.1.0"
