"""One failure, in full and in plain words."""
