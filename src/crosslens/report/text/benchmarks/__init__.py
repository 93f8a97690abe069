"""Tables of benchmarks that are built: their stages, and captions that were cleaned."""
