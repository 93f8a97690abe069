"""Arrays whose number of rows is not the dataset's: which mistake that looks like."""

from __future__ import annotations

from crosslens.core import Dataset, InputError

_SAME_SPLIT = "encode the same split, or pass Embeddings with ids"


def check_row_count(what: str, rows: int, dataset: Dataset, other_rows: int | None = None) -> None:
    """Raise unless an array of ``what`` (image, caption) has a row for each of the dataset's.

    ``other_rows`` is the number of rows of the other array, where it is known.
    """
    count = len(dataset.image_ids if what == "image" else dataset.caption_ids)
    if rows != count:
        raise InputError(
            f"{rows:,} rows of {what} embeddings for {count:,} {what}s",
            expected=f"one row per {what}, in the order of the dataset's {what} ids",
            fix=_likely_mistake(what, rows, dataset, other_rows) or _SAME_SPLIT,
        )


def _likely_mistake(what: str, rows: int, dataset: Dataset, other_rows: int | None) -> str | None:
    images, captions = len(dataset.image_ids), len(dataset.caption_ids)
    captioned = images - int(dataset.without_captions.sum())
    if what == "image" and rows == captioned:
        return f"{rows:,} is the number of images with captions: encode the {images - captioned:,} others, too"
    other, count = ("caption", captions) if what == "image" else ("image", images)
    if rows != count:
        return None
    number = f"{rows:,} is the number of {other}s"
    if other_rows in (None, images if what == "image" else captions):
        return f"{number}: are the arrays swapped?"
    if other_rows != rows:
        return f"{number}: check both arrays"
    if what == "caption":
        return f"{number}: encode every caption, not one per image"
    example = f", such as images[::{captions // images}]" if captions % images == 0 else ""
    return f"{number}: is each image repeated for its captions? keep one row per image{example}"
