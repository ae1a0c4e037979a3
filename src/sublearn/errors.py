"""Exceptions that name what was wrong; each is also a built-in kind, so callers may catch that."""

__all__ = ["ParameterError"]


class ParameterError(ValueError):
    """A parameter has a value that its rule refuses.

    The message has one form: *Class.parameter must be X, got Y*.
    """
