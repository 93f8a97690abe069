"""Registered similarities: every module here is imported when a φ is looked up by name."""
