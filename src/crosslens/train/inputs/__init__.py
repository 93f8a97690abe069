"""What a model reads: features of images, captions as words, vectors or tokens, and batches of both."""
