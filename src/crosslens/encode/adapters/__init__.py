"""One module per library or source of vectors; each registers its encoders or pair scorers."""
