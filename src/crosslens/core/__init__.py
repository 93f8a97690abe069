"""The values that flow through crosslens, and the few things all of them need."""
