"""Human judgements of image–caption pairs: file formats, alignment with a dataset, ECCV Caption."""
