"""Outputs: one writer at a time, complete or not there at all, and nothing removed that crosslens did not write."""
