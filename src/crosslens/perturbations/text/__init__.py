"""Captions changed on purpose; every module here is imported when the registry of perturbations is first read."""
