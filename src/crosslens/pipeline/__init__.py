"""The few functions that put stages together."""
