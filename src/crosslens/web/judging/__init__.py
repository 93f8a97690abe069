"""Judging: projects in which people (and models) answer the same questions about pictures and captions."""
