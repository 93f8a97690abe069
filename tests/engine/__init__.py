"""Engines: the same results from tasks, wherever they run."""
