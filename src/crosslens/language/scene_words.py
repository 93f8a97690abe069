"""The closed word lists behind scene graphs: what counts, what measures, what points."""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    """The words of a text between blanks."""
    return frozenset(text.split())


NUMBERS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
)  # fmt: skip
"""Digits are written as these words, so that "2 dogs" are two dogs."""

LARGE_NUMBERS = word_set("thirty forty fifty sixty seventy eighty ninety dozen hundred thousand million")

COLOURS = word_set(
    """amber aqua aquamarine azure beige black blond blonde blue bronze brown brunette burgundy charcoal copper coral
    cream crimson cyan gold golden gray green grey indigo ivory khaki lavender lilac lime magenta maroon mauve mustard
    navy olive orange peach pink plum purple red rose ruby rust salmon sapphire scarlet silver tan taupe teal turquoise
    vermilion violet white yellow"""
)

SIZES = word_set(
    """big broad colossal compact deep enormous giant gigantic grand great high huge immense large little long low
    massive medium mini miniature minuscule narrow oversized petite shallow short slim small tall tiny towering vast
    wide"""
)

COUNTED_AS = {"couple": "two", "pair": "two", "trio": "three", "quartet": "four", "dozen": "twelve"}
"""Nouns before *of* that are a number."""

ALWAYS_PAIRS = word_set("""binoculars glasses goggles jeans pants pliers scissors shears shorts sunglasses tights tongs
    trousers""")
"""A pair of these is one thing."""

CO_CAPTION_QUANTITIES = word_set(
    """array assortment bit bunch cluster collection crowd flock gaggle group handful herd host line litter load lot
    mass mixture multitude number pack pile plenty queue range row school selection series set stack string swarm team
    ton variety"""
)
"""Nouns before *of* that only say how much of something there is; the thing is what follows."""

KINDS = word_set("kind piece sort style type version")
"""Nouns before *of* that say nothing about a picture."""

SIDES = word_set("back bottom center centre front inside left middle midst outside rear right side top")
"""Nouns between two prepositions that make one of them: *on top of*."""

FIXED_PHRASES = frozenset({"hot dog", "hot dogs"})
"""An adjective and a noun that name something else than that noun does."""

LIGHT_VERBS = word_set("appear attempt be become begin can continue do get have keep let prepare seem start try use")
"""Verbs that say nothing about who does them unless something follows."""

FEMALE = word_set("aunt bride daughter female girl grandmother lady mother sister waitress wife woman")
MALE = word_set("""boy brother cowboy dad father fireman gentleman grandfather groom guy husband king male man
    policeman son""")
HE = word_set("he him his himself")
SHE = word_set("she her hers herself")
IT = word_set("it its itself")
THEY = word_set("they them their theirs themselves")
RELATIVE = word_set("who whom which that whose")


def number_word(text: str) -> str:
    """A numeral as the word that graphs use: ``2`` and ``Two`` are ``two``."""
    text = text.lower()
    return NUMBERS[int(text)] if text.isdecimal() and int(text) < len(NUMBERS) else text


def is_number(word: str) -> bool:
    """True for an attribute that counts its object."""
    parts = word.replace("-", " ").split()
    return bool(parts) and all(
        part in NUMBERS or part in LARGE_NUMBERS or part.replace(",", "").isdecimal() for part in parts
    )
