"""Is the input sound? What makes every other figure wrong: rows that are shifted, blank vectors, hubs, ties, languages."""
