"""Losses: one small function each, its equation named, registered like a metric."""
