"""What changed from one run to another, query by query: won and lost ones, and why."""
