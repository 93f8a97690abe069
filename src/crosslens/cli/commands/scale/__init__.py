"""Commands about size: curves over the number of similar items or of items in the gallery, and plans."""
