"""What people say about candidate captions: sheets to fill in, where they agree, verdicts from elsewhere."""
