"""How fine-grained captions are."""
