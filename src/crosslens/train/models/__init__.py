"""Models that are trained: towers on stored features, one module each."""
