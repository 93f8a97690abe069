"""Repairs of page titles: names of sites, repeated parts, stock agencies, credits."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise

from crosslens.build.imp.cleaning.addresses import cut_end
from crosslens.build.imp.cleaning.settings import CleaningSettings
from crosslens.build.imp.cleaning.words import count_words, words_of
from crosslens.language import word_set

_KIND = (
    r"(?:photos?|images?|pictures?|photograph(?:s|y)?|illustrations?|vectors?|footage|videos?|clip ?arts?|art|graphics?"
    r"|icons?|templates?|backgrounds?|wallpapers?)"
)
_PRICE_FREE = r"(?:stock|royalty[- ]free|rights[- ]managed)"
_STOCK_TAIL = (
    rf"(?:(?:\s*[,&+|-]\s*(?:and\s+)?|\s+and\s+|\s+)(?:stock|royalty[- ]free|free|cliparts?|{_KIND}|[#:]?\d{{4,}}))*"
)
_STOCK_END = re.compile(
    rf"(?:^|[\s.,;:|–—-]+){_PRICE_FREE}(?:[\s-]+(?:{_PRICE_FREE}|editorial|vector|hd"
    rf"|4k))*[\s-]+{_KIND}{_STOCK_TAIL}\s*[.!]*$",
    re.IGNORECASE,
)
_FREE_END = re.compile(
    r"(?:^|[\s,;:|–—-]+)(?:Free|Premium|Vector|Editorial|High[- ]?[Rr]es(?:olution)?|HD|4K)"
    r"(?:\s+(?:HD|4K|Stock|Desktop|Vector|Download))*\s+"
    r"(?:Photos?|Images?|Pictures?|Photography|Illustrations?|Vectors?|Art|Graphics?|Icons?|Videos?|Wallpapers?"
    r"|Backgrounds?"
    r"|Download)(?:\s+(?:Download|Image|Art|Graphic|Stock|Free))*\s*[.!]*$"
)
_STOCK_START = re.compile(
    rf"^(?:(?:free|hd|premium)\s+)*(?:{_PRICE_FREE}[\s-]+)+(?:{_PRICE_FREE}[\s-]+)*{_KIND}(?:\s+of\s+|\s*[:|–-]+\s*)"
    rf"|^(?:free|hd|premium|4k)\s+{_KIND}\s*[:|–-]+\s*|^image result for\s+",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"^(?:(?:photo|image|picture|pic|gallery|video)s?|caption|alt(?: text)?|(?:(?:image|photo"
    r"|video) )?description|title"
    r"|(?:photo|image|picture|pic) of the (?:day|week|month)|(?:figure|fig\.|photo|image|lot) ?\d+|tweet"
    r"|breaking(?: news)?)"
    r"\s*[:：]\s*(?=\S)|^(?:[^|:]{1,40}\s)?on (?:instagram|twitter|facebook|tumblr|pinterest|tiktok|x)\s*:\s*",
    re.IGNORECASE,
)
_DESCRIPTION = re.compile(r"^\[((?:image |photo |video )?description\s*:.*)\]$", re.IGNORECASE)
_STRONG = r"\s*(?:\||¦|::|›)\s*|\s+[»•·]\s+"
_SEPARATOR = re.compile(rf"({_STRONG}|\s+(?:-{{1,2}}|–|—|~|/|:|>)\s+|\s*[–—]\s+)")
_IS_STRONG = re.compile(rf"^(?:{_STRONG})$")
_GENERIC = word_set(
    """free premium hd 4k stock royalty royalty-free editorial best download desktop high-res high-resolution and the a
    of photo photos photograph photographs image
    images picture pictures photography illustration illustrations vector vectors footage video
    videos clipart cliparts art graphic graphics icon icons template templates background backgrounds wallpaper
    wallpapers sharing gallery galleries home page part blog news shop store official site website print prints poster
    posters creative commons public domain search results all rights reserved buy now"""
)
"""Words of which a part of a title consists that says nothing about a picture."""
_PIN = re.compile(
    r"r/\w+|(?:pin|repin)(?:ned)?\s+(?:by\s+.+\s+)?on\s+.+|photos? by .+ on \w+|by .{2,30} on (?:flickr|500px)", re.I
)
_BRANDED = re.compile(
    r"(?:[A-Z0-9][\w'’.&-]*\s+){0,3}(?:Blog|Magazine|Photography|Photos|Gallery|Images|Pictures|News|Studios?"
    r"|Wallpapers?"
    r"|Online|Store|Shop|Journal|Daily|Post|Tribune|Herald|Chronicle|Gazette|Times|TV|Travel Guide|Forum|Community"
    r"|Archive"
    r"|Collection|Wiki|Fandom|Inc\.?|LLC|Ltd\.?|GmbH)"
)
_BRAND_WORDS, _CAPTION_WORDS = 4, 5
_ON_SITE = re.compile(
    r"[\s,|–-]+(?:(?:photo|image|picture|a photo|photos)\s+)?(?:by\s+(?:[A-Z@]\S*\s+){1,4})?(?:on|from|at|in|via)\s+"
    r"(?:Flickr|Pinterest|500px|Behance|DeviantArt|Dribbble|Vimeo|Unsplash|Instagram|Tumblr|Etsy|Redbubble|Pixabay"
    r"|Pexels"
    r"|Shutterstock|iStock|Getty Images|Alamy|Adobe Stock|Twitter|Facebook|YouTube|Amazon|eBay|Wikipedia"
    r"|Wikimedia Commons"
    r"|Freepik|Houzz|Imgur|Reddit|TikTok|Zazzle|Society6)\b(?:\s*[-|!–].*)?[.!]?$"
)

_MEDIA = r"(?:Photo|Photograph|Image|Picture|Pic|Illustration|Artwork|Foto|Bild|Imagen|Immagine|Crédit photo|Фото)"
_NAME = r"[@A-ZÀ-ÖØ-ÞА-Я][^\s()]*"
_NAMES = rf"{_NAME}(?:\s+(?:{_NAME}|de|van|von|der|la|/|&|and|für|for))*"
_CREDIT_BRACKET = re.compile(
    r"\s*[(\[]\s*(?!\w+ (?:description|of\b))(?:(?:AP|AFP|EPA|Reuters|CC(?: BY|0)|Public Domain"
    r"|Creative Commons)\b|(?:file |stock |aerial "
    r"|screenshot )?(?:photo|photograph|image|picture|pic"
    r"|illustration|credit|source|courtesy|copyright|foto|bild|фото|getty|shutterstock|alamy|istock"
    r"|via)\b)[^()\[\]]*[)\]]",
    re.IGNORECASE,
)
_CREDIT_END = re.compile(
    rf"(?:^|[\s.,;|–—-]+)(?:(?:{_MEDIA}s?|(?<=[.,;|–—] )(?:photo|image|picture|foto))\s*(?:[Cc]redits?"
    rf"|[Cc]ourtesy)?\s*(?:by|[Cc]ourtesy of|[Cc]ourtesy|of|via|©|:|/)+\s*"
    rf"|(?:Credits?|Source|Courtesy(?: of)?|Image courtesy of|Photographed by|Photographer|Shot by"
    rf"|Via)\s*:?\s+){_NAMES}[.]?$"
)
_PHOTO_OF = re.compile(rf"{_MEDIA}s?\s+of\b")
_COPYRIGHT_END = re.compile(
    r"(?:^|[\s.,;|–—-]+)(?:©|\(c\)|copyright\b)\s*(?:©|\(c\))?\s*(?:by\s+)?(?:\d{4}[\s,–-]*)*(?:[^.|]{0,60})"
    r"(?:\.?\s*all rights reserved)?[.]?$|[\s.,;|–—-]+all rights reserved\.?$",
    re.IGNORECASE,
)
_WIRE_END = re.compile(r"[\s.,;|–—-]+(?:AP Photo|AFP PHOTO|REUTERS|EPA)\s*/\s*[A-Z].{0,60}$")
_MARKS = re.compile(r"\s*[©®™℠]")


def remove_stock_words(text: str, settings: CleaningSettings) -> str:
    """Remove the words of stock agencies at the start and at the end: Royalty Free Stock Photo, Free Vector."""
    text = _LABEL.sub("", _STOCK_START.sub("", _DESCRIPTION.sub(r"\1", text)))
    return cut_end(cut_end(text, _STOCK_END), _FREE_END)


def remove_credits(text: str, settings: CleaningSettings) -> str:
    """Remove who made a picture or owns it: Photo by Jane Doe, © 2019 Agency, (AP Photo/…)."""
    text = _CREDIT_BRACKET.sub(" ", text) if "(" in text or "[" in text else text
    match = _CREDIT_END.search(text)
    if match is not None and not _PHOTO_OF.match(match[0].lstrip(" .,;|–—-")):
        text = cut_end(text, _CREDIT_END)
    return _MARKS.sub("", cut_end(cut_end(text, _COPYRIGHT_END), _WIRE_END))


def remove_site_names(text: str, settings: CleaningSettings) -> str:
    """Remove the parts of a title that name the site, say nothing, or repeat another part."""
    text = cut_end(text, _ON_SITE)
    pieces = _SEPARATOR.split(text)
    if len(pieces) == 1:
        return text
    parts, separators = pieces[::2], pieces[1::2]
    kept = _without_repeats(parts, [part for part in range(len(parts)) if not _says_nothing(parts[part])])
    kept = _without_brand(parts, separators, kept)
    if len(kept) == len(parts):
        return text
    joined = parts[kept[0]] if kept else ""
    for left, right in pairwise(kept):
        joined += separators[right - 1 if right == left + 1 else left] + parts[right]
    return joined


def _says_nothing(part: str) -> bool:
    part = part.strip(" .,!")
    name = part.casefold().removesuffix(".com").removeprefix("www.")
    if not part or name in _sites() or _PIN.fullmatch(part):
        return True
    words = words_of(part)
    return bool(words) and words != ["a"] and all(word in _GENERIC or word.isdigit() for word in words)


def _without_repeats(parts: list[str], kept: list[int]) -> list[int]:
    """Without the parts whose words are in an earlier or longer part, in the same order."""
    words = {part: f" {' '.join(words_of(parts[part]))} " for part in kept}
    return [
        part
        for part in kept
        if not any(
            words[part] in words[other] and (words[part] != words[other] or other < part)
            for other in kept
            if other != part and words[part].strip() and count_words(parts[other]) > 1
        )
        or len(words[part].strip()) < 2
    ]


def _without_brand(parts: list[str], separators: list[str], kept: list[int]) -> list[int]:
    """Without short parts in capitals at either end, where what remains is long enough to be the caption."""
    while len(kept) > 1:
        rest = sum(count_words(parts[part]) for part in kept[:-1])
        is_strong = bool(_IS_STRONG.match(separators[kept[-1] - 1]))
        if rest < _CAPTION_WORDS or not _is_brand(parts[kept[-1]], is_strong):
            break
        kept = kept[:-1]
    while len(kept) > 1:
        rest = sum(count_words(parts[part]) for part in kept[1:])
        if (
            rest < _CAPTION_WORDS
            or parts[kept[1]][:1].islower()
            or not (_IS_STRONG.match(separators[kept[0]]) and _is_brand(parts[kept[0]], is_strong=True))
        ):
            break
        kept = kept[1:]
    return kept


def _is_brand(part: str, is_strong: bool) -> bool:
    part = part.strip()
    if not is_strong:
        return bool(_BRANDED.fullmatch(part))
    return count_words(part) <= _BRAND_WORDS and not part[:1].islower()


@lru_cache(maxsize=1)
def _sites() -> frozenset[str]:
    lines = files(__package__).joinpath("site_names.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(line.strip().casefold() for line in lines if line and not line.startswith("#"))
