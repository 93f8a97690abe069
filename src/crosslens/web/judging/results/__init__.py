"""What a project says: agreement, shares, causes, people, disagreements, correlations; pure functions on a table."""
