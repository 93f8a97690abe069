"""Models × datasets in one table: which is best, and which differences are more than chance."""
