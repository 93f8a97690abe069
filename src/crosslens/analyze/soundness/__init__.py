"""Is the input sound? What makes other figures wrong: shifted rows, blank vectors, hubs, ties, languages."""
