"""How polysemous a dataset is: similar images with diverse captions (IMP)."""
