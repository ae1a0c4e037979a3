"""The tables and figures of the papers, beside ours; reproduce.py runs them."""
