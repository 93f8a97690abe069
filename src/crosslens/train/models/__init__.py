"""Models that are trained: towers on stored features or pictures."""
