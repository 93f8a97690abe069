"""Parts that models are made of: what reads images and captions, and layers they share."""
