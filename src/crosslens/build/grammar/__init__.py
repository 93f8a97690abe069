"""Grammar checks of generated descriptions."""
