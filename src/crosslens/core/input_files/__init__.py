"""What all reading of files needs: limits, regular files only, text, JSON and array headers that nobody vouches for."""
