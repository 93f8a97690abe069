"""Generated data: small, honest about being generated, and the same on every machine."""
