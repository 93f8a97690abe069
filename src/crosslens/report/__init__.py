"""Runs as people and other programs read them: tables, groups, exported files."""
