"""What a query asks for, and whether a picture has it."""
