"""Pairs that match although nobody annotated them."""
