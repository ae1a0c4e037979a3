"""One file per command: its function `command` is the command, the file's name its name.

Heavy modules (NumPy, scikit-learn, the estimators) are imported inside the functions, so that
``sublearn --help`` answers at once.
"""
