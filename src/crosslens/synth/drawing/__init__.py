"""How pictures are drawn: polygons and letters in a few colours."""
