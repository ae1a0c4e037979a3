"""Runs rival programs on the same problems, each in a process of its own, and judges them.

Kept free of imports: the measured process imports :mod:`harness.arrays` from environments that
hold little more than NumPy and SciPy.
"""
