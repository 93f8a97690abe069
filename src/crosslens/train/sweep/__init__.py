"""Sweeps: a grid of trainings over settings and seeds, resumable, and one table of what came out."""
