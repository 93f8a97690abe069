"""Vectors that are read a block at a time, wherever they lie."""
