"""Ranking on a GPU at the speed of its matrix product; the results are those of the CPU."""
