"""The commands, one module per subject: each parses its flags, calls, and prints."""
