"""Commands that turn finished runs into a decision: leaderboards, requirements, exports."""
