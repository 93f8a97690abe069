"""What two images have in common and what not: objects, counts, sizes, attributes, positions."""
