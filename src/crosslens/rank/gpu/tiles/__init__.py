"""The ranking pass by plain tensor operations, for scores of any kind."""
