"""Live search: a sentence or a picture against the images and captions of a dataset."""
