"""Robustness studies: models evaluated on a dataset and on perturbed variants of it."""
