"""Runs as files that other programs read."""
