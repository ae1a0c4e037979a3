"""Exceptions that name what was wrong; each is also a built-in kind, so callers may catch that."""

__all__ = ["ClusterError", "ParameterError"]


class ParameterError(ValueError):
    """A parameter has a value that its rule refuses.

    The message has one form: *Class.parameter must be X, got Y*.
    """


class ClusterError(RuntimeError):
    """The machines that work was sent to cannot finish it.

    The message says what is known to be done, and how to go on.
    """
