"""Models that compare an image with a text: a few pairs, or all pairs of a dataset."""
