"""What a metric would be in a smaller gallery: exact expectations over random sub-galleries."""
