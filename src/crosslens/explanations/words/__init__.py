"""What a query mentions, and whether an image has it."""
