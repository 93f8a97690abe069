"""The smallest edit of a query that flips its result."""
