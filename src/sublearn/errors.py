"""Exceptions that name what was wrong; each is also a built-in kind, so callers may catch that."""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["ClusterError", "DataFileError", "DownloadError", "ModelFileError", "ParameterError"]


@contextmanager
def needs_extra(who: str, extra: str) -> Iterator[None]:
    """Around imports that an extra of this package installs: the error says which one.

    A package that is there and cannot be imported for another reason speaks for itself.

    Raises
    ------
    ImportError
        *who needs package: pip install "sublearn[extra]"*, if a package is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or str(error)).partition(".")[0]
        raise ImportError(
            f'{who} needs {package}: pip install "sublearn[{extra}]"', name=error.name
        ) from error


class ParameterError(ValueError):
    """A parameter has a value that its rule refuses.

    The message has one form: *Class.parameter must be X, got Y*.
    """


class DataFileError(ValueError):
    """A data file cannot be read: it is damaged, of another format, or larger than a limit.

    The message begins with the path, and with the line where the format has lines. A file that is
    not there, or may not be opened, stays the `OSError` that it is.
    """


class DownloadError(OSError):
    """A data set cannot be had: no network, no such file, a damaged or another one.

    The message names the address, says what is kept, and where to put the file by hand.
    """


class ModelFileError(ValueError):
    """A file is no saved model that can be used: damaged, foreign, or of parts that do not fit.

    The message begins with the path and names the field.
    """


class ClusterError(RuntimeError):
    """The machines that work was sent to cannot finish it.

    The message says what is known to be done, and how to go on.
    """
