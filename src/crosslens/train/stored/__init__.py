"""Trained models in use: rebuilt from their folders, with features found for new images, as encoders or scorers."""
