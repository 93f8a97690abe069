"""Images against images, by what the matrix of images × captions says: every caption of an image has a vote."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class Votes:
    """Row i, column j: the mean of φ(G_i, c) over the captions c of image j.

    A mean, so that it does not matter how many captions an image has. It is a scorer like any other: one tile at a
    time, and single pairs. Images without captions are no columns.
    """

    work = 1
    precision: type[np.floating[Any]] = np.float64

    def __init__(self, matrix: Array, rows: Array, captions: Array, image_of: Array) -> None:
        """``rows`` and ``captions`` are those of one fold; ``images`` says which image each column is."""
        self._matrix, self._rows = matrix, rows
        order = np.argsort(image_of[captions], kind="stable")
        self._captions = captions[order]
        self.images, self._start = np.unique(image_of[self._captions], return_index=True)
        self._end = np.append(self._start[1:], len(self._captions))
        self.shape = (len(rows), len(self.images))
        # A tile is rounded to float32: by no more than this, as no mean is larger than the largest value.
        largest = max(float(np.abs(matrix[start : start + 256]).max()) for start in range(0, len(matrix), 256))
        self.row_slack = np.full(self.shape[0], largest * 2.0**-22, np.float32)
        self.column_slack = np.full(self.shape[1], largest * 2.0**-22, np.float32)

    def tile(self, rows: slice, columns: slice) -> Array:
        """The votes of a block."""
        return self._means(self._rows[rows], columns).astype(np.float32)

    def exact(self, rows: Array, columns: Array) -> Array:
        """The votes of single pairs, in float64."""
        start, count = self._start[columns], self._end[columns] - self._start[columns]
        sums = np.zeros(len(rows))
        for place in range(int(count.max(initial=0))):  # the first caption of every image, then the second, …
            more = count > place
            sums[more] += self._matrix[self._rows[rows[more]], self._captions[start[more] + place]]
        means: Array = sums / count
        return means

    def _means(self, rows: Array, columns: slice) -> Array:
        start, end = self._start[columns], self._end[columns]
        captions = self._captions[start[0] : end[-1]]
        block = self._matrix[np.ix_(rows, captions)].astype(np.float64)
        sums: Array = np.add.reduceat(block, start - start[0], axis=1)
        return sums / (end - start)
