"""Write the table of named colours that crosslens ships, from matplotlib's copies of the CSS4 and XKCD names.

    python scripts/compile_colours.py

Needs matplotlib, which crosslens itself does not. CSS4's values are those of the CSS Color Module Level 4 and come
first where both lists have a name; XKCD's come from its colour survey, whose results are in the public domain (CC0).
Names are written as captions would: ``darkgoldenrod`` is ``dark goldenrod``. The same lists give the same bytes.

The column ``use`` is reviewed by hand here: ``adjective``, a colour and nothing else before a noun; ``thing``, which is
also the name of a thing (*rose*); ``mix``, two colours side by side, which is recognised but not offered; empty, a name
that no caption would use as a colour (*dust*, *macaroni and cheese*, *nice blue*), neither recognised nor offered.
"""

from __future__ import annotations

import re

from crosslens.language.words import COMPILED
from crosslens.storage.folders import write_text


def words(text: str) -> frozenset[str]:
    """The words of a text between blanks."""
    return frozenset(text.split())


BASIC = words("red orange yellow green blue purple pink brown black white gray grey")

ADJECTIVES = words("""azure beige burgundy carmine cerise cerulean charcoal chartreuse cobalt crimson cyan ecru
    fuchsia indigo khaki magenta maroon mauve ochre puce russet scarlet sepia tan taupe teal
    turquoise ultramarine vermillion aquamarine aqua golden goldenrod sienna""")
"""Single words other than the basic ones that say nothing but a colour."""

THINGS = words("""amber apricot bronze claret copper coral cream emerald gold ivory lavender lilac lime mint
    mustard navy olive orange peach periwinkle plum rose ruby rust sage salmon sapphire silver
    tangerine violet""")
"""Words that are a colour beside a garment or a car, and something else beside a plate."""

SHADES = words("bright dark deep dim light medium pale pastel neon electric vivid dusty")
"""What may stand before a colour to make another."""

FIRST_PARTS = words("""antique apple aqua army baby banana blood blush bottle bubblegum burnt butter cadet canary
    cherry chocolate cobalt coral cornflower denim eggplant emerald forest golden grass hunter ice
    indian jade jungle kelly khaki lavender lemon lime lipstick lawn midnight mint moss mustard
    navy ocean olive orange pea peacock pine powder pumpkin rose rosy royal ruby rust saddle sage
    salmon sandy sea seafoam slate sky spring steel sunflower teal turquoise violet""")
"""What may stand before a basic colour to name one of its kinds."""

FIRST_PARTS |= words("bluish brownish greenish greyish grayish orangish pinkish purplish reddish yellowish")

AS_THEY_ARE = {
    "off white": "adjective", "hot pink": "adjective", "hot magenta": "adjective", "blue violet": "adjective",
    "violet red": "adjective", "medium violet red": "adjective", "pale violet red": "adjective",
    "light steel blue": "adjective", "olive drab": "adjective", "light sky blue": "adjective",
    "indian red": "",
    "prussian blue": "",
    "baby green": "", "baby purple": "", "blood orange": "", "navy green": "", "electric lime": "", "powder pink": "",
    "dim gray": "adjective", "dusty lavender": "", "dusty teal": "", "blush pink": "", "saddle brown": "",
}  # fmt: skip
"""Names for which the rules below decide wrongly."""

CSS_WORDS = sorted(
    words("""alice almond antique aqua aquamarine azure beige bisque black blanched blue blush brick
        brown burly wood cadet chartreuse chiffon chocolate coral corn cornflower cornsilk cream
        crimson cyan dark deep dim dodger drab fire firebrick floral forest fuchsia gainsboro
        ghost gold goldenrod gray green grey honeydew hot indian indigo ivory khaki lace lavender
        lawn lemon light lime linen magenta maroon medium midnight mint misty moccasin navajo navy
        old olive orange orchid pale papaya peach peru pink plum powder puff purple rebecca red
        rose rosy royal saddle salmon sandy sea seashell sienna silver sky slate smoke snow spring
        steel tan teal thistle tomato turquoise violet wheat whip white yellow burlywood"""),
    key=lambda word: (-len(word), word),
)


CSS_KINDS = {
    "sky blue",
    "sea green",
    "slate blue",
    "olive green",
    "navy blue",
    "forest green",
    "slate gray",
    "slate grey",
}
"""Kinds that shades of their own are listed for."""


def words_of(name: str) -> str:
    """``darkgoldenrod`` → ``dark goldenrod``: the split into the fewest known words."""
    best: dict[int, list[str]] = {0: []}
    for end in range(1, len(name) + 1):
        starts = (end - len(word) for word in CSS_WORDS if name[:end].endswith(word))
        found = [[*best[start], name[start:end]] for start in starts if start in best]
        if found:
            best[end] = min(found, key=len)
    return " ".join(best[len(name)])


def use_of(name: str) -> str:
    """``adjective``, ``thing``, or empty where a caption would not use the name."""
    if name in AS_THEY_ARE:
        return AS_THEY_ARE[name]
    *before, last = name.split()
    if not before:
        return "thing" if last in THINGS else "adjective" if last in ADJECTIVES | BASIC else ""
    known = BASIC | ADJECTIVES | THINGS
    kinds = set(before) <= FIRST_PARTS and last in BASIC
    mixes = set(before) <= BASIC and last in BASIC and before[-1] != last
    shades = before[0] in SHADES and last in known and (len(before) == 1 or name.split(maxsplit=1)[1] in CSS_KINDS)
    return "mix" if mixes else "adjective" if kinds or shades else ""


def main() -> None:
    """Read both lists, CSS4 first, and write the table."""
    from matplotlib.colors import CSS4_COLORS, XKCD_COLORS

    table: dict[str, tuple[str, str]] = {}
    for source, colours in (("xkcd", XKCD_COLORS), ("css4", CSS4_COLORS)):
        for key, value in colours.items():
            name = words_of(key) if source == "css4" else key.removeprefix("xkcd:")
            if re.fullmatch("[a-z' ]+", name):
                table[name] = (str(value).lower(), source)
                if "grey" in name:
                    table.setdefault(name.replace("grey", "gray"), (str(value).lower(), source))
    rows = [f"{name},{value},{source},{use_of(name)}\n" for name, (value, source) in sorted(table.items())]
    write_text(COMPILED, "name,rgb,source,use\n" + "".join(rows))
    print(f"{len(rows):,} names in {COMPILED}")


if __name__ == "__main__":
    main()
