"""The explorer: leaderboard, queries, datasets."""
