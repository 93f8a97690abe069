"""Mistakes that mypy finds in a user's program because the types of crosslens are installed with it."""

from __future__ import annotations

import numpy as np

import crosslens as cl

vectors = np.zeros((2, 4))
dataset = cl.Dataset.of({"a": ["a dog"], "b": ["a cat"]})
run = cl.evaluate(dataset, images=vectors, captions=vectors, resample=100)  # wrong: the keyword
again = cl.evaluate(dataset, images=vectors, captions=vectors, resamples="many")  # wrong: a text for a number
mean: str = run["t2i/Hit@1"].mean  # wrong: a number
print(cl.evaluate_all, again, mean)  # wrong: there is no such name
