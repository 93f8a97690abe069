"""Metrics as curves: semantic recall over the number of similar items, and any metric over the size of the gallery."""
