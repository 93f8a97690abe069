"""What a dataset holds, as text: its statistics, and how fine-grained its captions are."""

from __future__ import annotations

from textwrap import wrap

from crosslens.core import PAGE_WIDTH, RENDERERS, two_columns
from crosslens.data import DatasetDescription


@RENDERERS.register("DatasetDescription")
def description_text(result: DatasetDescription, width: int | None = PAGE_WIDTH) -> str:
    """A line per statistic, then the problems."""
    rows = [
        ("images", f"{result.images:,}" + _aside(result.images_without_captions, "without a caption")),
        ("captions", f"{result.captions:,}"),
        ("captions per image", str(result.captions_per_image)),
        ("  images by count", ", ".join(f"{count}: {n:,}" for count, n in result.captions_histogram.items())),
        ("words per caption", str(result.words)),
        ("characters per caption", str(result.characters)),
        ("repeated captions", f"{result.repeated_within:,} within an image, {result.repeated_across:,} across images"),
        ("objects", f"{result.objects:,}" + _aside(result.objects_without_box, "without a box")),
        ("relations", f"{result.relations:,}"),
        ("columns to group by", ", ".join(f"{name} ({n})" for name, n in result.groups.items()) or "none"),
        ("problems", "none" if not result.problems else ""),
    ]
    columns = width or PAGE_WIDTH
    problems = [wrap(text, columns, initial_indent="  - ", subsequent_indent="    ") for text in result.problems]
    return "\n".join([result.name, two_columns(rows), *(line for lines in problems for line in lines)])


def _aside(count: int, what: str) -> str:
    return f" ({count:,} {what})" if count else ""


def shorten(text: str, room: int) -> str:
    """A text in one line of at most ``room`` letters; what is cut off is marked."""
    line = " ".join(text.split())
    return line if len(line) <= room else line[: room - 1].rstrip() + "…"
