"""A metric, a dataset reader and an encoder for crosslens."""
