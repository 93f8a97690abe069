"""What a run consists of: the values of its metrics, and its files."""
