"""Protocols of papers: their metrics and conventions under one name."""
