"""Datasets under the names people know them by: which files they are, and where those come from."""
