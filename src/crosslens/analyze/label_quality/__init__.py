"""Which labels are suspect, and which failures are annotation problems rather than the model's."""
