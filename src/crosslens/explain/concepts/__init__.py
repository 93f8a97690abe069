"""What two pictures have in common and what not: objects, counts, sizes, attributes, places."""
