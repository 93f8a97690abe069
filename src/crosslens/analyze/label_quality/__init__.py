"""What may be said about labels: equal pictures and captions, exchanged captions, and what is worth a look."""
