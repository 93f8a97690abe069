"""What people decide by: leaderboards, and requirements that a model fulfils or not."""
