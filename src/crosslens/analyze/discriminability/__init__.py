"""How well a description distinguishes its image from the others."""
