"""Results by group, and runs side by side."""
