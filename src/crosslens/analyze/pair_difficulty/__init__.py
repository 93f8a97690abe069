"""How hard each pair of an image and a caption is for a panel of models (IMP 4.2)."""
