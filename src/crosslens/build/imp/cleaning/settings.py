"""What cleaning repairs, and what it drops."""

from __future__ import annotations

from dataclasses import dataclass

from crosslens.core import Options, option

ANY_LANGUAGE = "any"


@dataclass(frozen=True)
class CleaningSettings(Options):
    """How captions are cleaned."""

    languages: tuple[str, ...] = option(
        ("en",), "Languages that are kept, as ISO 639-1 codes; any keeps all. May be repeated.", metavar="CODE"
    )
    minimum_words: int = option(5, "The fewest words of a caption.", metavar="N", minimum=0)
    maximum_characters: int = option(
        1000, "The most characters of a text: pages are no captions.", metavar="N", minimum=1, maximum=10_000
    )
    maximum_repetition: float = option(
        0.4, "The largest share of content words that may be repetitions.", metavar="SHARE", minimum=0, maximum=1
    )
    hashtags: str = option(
        "words",
        "words: a single hashtag in a sentence becomes words, others are removed; drop: all are removed.",
        metavar="HOW",
        choices=("words", "drop"),
    )
    capitals: str = option(
        "lower",
        "What becomes of a caption all in capitals: lower (put in lower case), keep or drop.",
        metavar="HOW",
        choices=("lower", "keep", "drop"),
    )
    tagging: bool = option(
        True,
        "Drop English captions without a noun, or without a verb or an adjective.",
        flags=("--tagging/--no-tagging",),
    )
