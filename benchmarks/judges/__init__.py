"""Textbook message passing in NumPy, written apart from the library's own: what it is judged by."""
