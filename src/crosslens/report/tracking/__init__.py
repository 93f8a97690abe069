"""Runs handed to where teams keep results: MLflow, Weights & Biases."""
