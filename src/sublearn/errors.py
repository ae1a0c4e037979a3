"""Exceptions that name what was wrong; each is also a built-in kind, so callers may catch that."""

__all__ = ["ClusterError", "DataFileError", "ModelFileError", "ParameterError"]


class ParameterError(ValueError):
    """A parameter has a value that its rule refuses.

    The message has one form: *Class.parameter must be X, got Y*.
    """


class DataFileError(ValueError):
    """A data file cannot be read: it is damaged, of another format, or larger than a limit.

    The message begins with the path, and with the line where the format has lines. A file that is
    not there, or may not be opened, stays the `OSError` that it is.
    """


class ModelFileError(ValueError):
    """A file is no saved model that can be used: damaged, foreign, or of parts that do not fit.

    The message begins with the path and names the field.
    """


class ClusterError(RuntimeError):
    """The machines that work was sent to cannot finish it.

    The message says what is known to be done, and how to go on.
    """
