"""A map of a run's embeddings: every image and every caption as a point, coloured by anything known of it."""
