"""The pages on which people judge."""
