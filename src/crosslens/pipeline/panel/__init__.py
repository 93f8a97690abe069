"""Panels of models: the scores of stored runs or of files, and the thresholds that go with them."""
