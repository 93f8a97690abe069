"""Repairs of page titles: names of sites, repeated parts, stock agencies, credits."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise

from crosslens.build.imp.cleaning.words import DIGIT, Repair, count_words, cut_end, needs_more, words_of
from crosslens.build.settings import CleaningSettings
from crosslens.language import word_set

_EMAIL = re.compile(
    r"(?:(?:e-?mail|contact|mailto)(?:\s+(?:us|me|at))*\s*:?\s*)?[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}\b",
    re.IGNORECASE,
)
_TOP = r"com|net|org|edu|gov|info|biz|co\.uk|org\.uk|ac\.uk|com\.au|com\.br|co\.jp|co\.nz|co\.in"
_URL = re.compile(
    r"(?:(?<!\w)(?:(?:see|read|find|view)\s+(?:more|it)\s+(?:at|on)|via|from|at|on|by|source|visit|link)\s*:?\s+)?"
    r"(?:\b(?:https?|ftp)\s?:\s?/{1,2}\s?[^\s<>\"]+|\bwww\.[^\s<>\"]+|\bhttps?\b:?$"
    rf"|(?<![\w@.])(?:[a-z0-9-]+\.)+(?:{_TOP}|[a-z]{{2,3}}(?=/))(?![\w.-]*\w\()(?:/[^\s<>\"|]*)?(?![\w-]))",
    re.IGNORECASE,
)
_MAYBE_URL = re.compile(r"\w\.\w|https?|ftp", re.IGNORECASE)
_CLOSING = re.compile(r"[.,;:!?)\]'\"]+$")

_ENDINGS = r"jpe?g|png|gif|webp|bmp|tiff?|svg|heic|nef|cr2|arw|dng|psd|eps|pdf|mp4|mov|avi|docx?|html?|php|aspx?"
_FILE = re.compile(rf"(?<![\w/.])([\w()%+,'-]+)\.(?:{_ENDINGS})\b(?!\.\w)(?:\?\S*)?", re.IGNORECASE)
_ENDING = re.compile(rf"(?<=[\w)])\s?\.(?:{_ENDINGS})$", re.IGNORECASE)
_CAMERA = re.compile(
    r"(?<![\w-])(?:(?:IMG|DSC[NF]?|_?MG|DCIM|PICT|DJI|GOPR|PXL|MVIMG|VID|SAM|KIMG|HPIM|CIMG|IMGP|SDC|PA|WP|FB_IMG)"
    r"[-_ ]?\d{2,}(?:[-_]\w+)*|[PR]\d{7}|DSC[NF]?\d{3,}|image\d{3,}|photo\d{3,}|Screen ?shot[-_ ]\d[\d_.-]*"
    r"(?: at [\d.:]+(?: [AP]M)?)?|\d{8}_\d{6}\w*|[0-9a-f]{16,}|\d+_\d+_[a-z0-9]+_[a-z])(?![\w-])(?:\s*\(\d+\))?",
    re.IGNORECASE,
)
_JOINED = re.compile(r"(?<=[^\W_])_+(?=[^\W_])")
_NAME_PARTS = re.compile(r"[-_+%\s]+")
_FILE_LABEL = re.compile(r"^(?:File|Image|Datei|Fichier|Archivo|Файл)\s*:\s*(?=\S)", re.IGNORECASE)

_HASHTAG = r"(?<![\w&/#])[#＃][\w]*[^\W\d_][\w]*"
_GLUED = re.compile(r"(?<=[^\W\d_][^\W\d_][^\W\d_])#(?=[^\W\d_]{3})")
_HASHTAG_RUN = re.compile(rf"{_HASHTAG}(?:[\s,.]*{_HASHTAG})+")
_SINGLE_HASHTAG = re.compile(_HASHTAG)
_HUMPS = re.compile(r"(?<=[a-z])(?=[A-Z])|_+")
_HANDLE = re.compile(
    r"(?:(?<!\w)(?:(?:photo|pic|image|shot|video|picture)\s+)?(?:via|by|from|credit|cc|rt|ig|with|repost|📷)\s*:?\s*)?"
    r"(?<![\w.@])@[A-Za-z_][\w.]*\w",
    re.IGNORECASE,
)

_PIXELS = re.compile(
    r"[\s([,;–-]*(?<![\w.])\d{3,5}\s?[x×X*]\s?\d{3,5}(?:\s?(?:px|pixels?))?(?!\w)[)\]]?"
    r"|[\s([,;–-]*(?<![\w.])\d{2,4}\s?dpi\b[)\]]?|[\s([,;–-]*(?<![\w.])\d+(?:[.,]\d+)?\s?[KMG]B(?!\w)[)\]]?"
)
_PIXEL_LABEL = re.compile(r"[\s,;|–-]*\b(?:resolution|dimensions|file size|size)\s*:\s*$", re.IGNORECASE)
_DATE = (
    r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}|\d{1,2}/\d{1,2}/\d{2})"
    r"(?:(?:T|,?\s+)\d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?:\s?[AaPp]\.?[Mm]\.?)?Z?)?"
)
_DATE_START = re.compile(rf"^[(\[]?{_DATE}(?![\d/])[)\]]?[\s:,|–-]*(?=\D)")
_DATE_END = re.compile(
    rf"[\s,;|([–-]+(?:(?:posted|taken|uploaded|published|added)\s+(?:on\s+)?)?(?:{_DATE}|\d{{1,2}}:\d{{2}}\s?[AaPp]\.?[Mm]\.?)[)\].]?$"
)
_LABELLED_NUMBER = re.compile(
    r"[\s(\[,;|–-]*\b(?:(?:SKU|ISBN|UPC|ASIN|EAN|ID|Ref|Reference|Item|Product|Article|Art|Asset|Listing|Lot"
    r"|(?:Stock )?(?:Image|Photo|Picture|Media|File|Illustration|Vector|Video))"
    r"(?:\s+(?:ID|No|Nr|Number|Code))?)(?!\w)\s*[.:#№-]*\s*#?[A-Z]{0,5}-?\d{3,}[\w-]*[)\]]?\.?$",
    re.IGNORECASE,
)
_LONG_HASH_NUMBER = re.compile(r"[\s([]*(?<!\w)#\s?\d{5,}\b[)\]]?")
_LONG_NUMBER = re.compile(r"[\s([,;|–-]+\d{6,}[)\]]?\.?$")


def fix_file_names(text: str, settings: CleaningSettings) -> str:
    """Remove names that cameras give; a file name of several words becomes these words."""

    def words(match: re.Match[str]) -> str:
        parts = _NAME_PARTS.split(match[1])
        return " ".join(parts) if sum(len(part) > 1 and part.isalpha() for part in parts) >= 3 else " "

    text = _FILE_LABEL.sub("", text) if ":" in text else text
    text = _ENDING.sub("", text) if " " in text and "." in text else text
    text = _FILE.sub(words, text) if "." in text else text
    text = _CAMERA.sub(" ", text) if DIGIT.search(text) else text
    if " " not in text and text.count("-") >= 3 and count_words(text.replace("-", " ")) >= 4:
        text = text.replace("-", " ")
    return _JOINED.sub(" ", text) if "_" in text else text


def fix_hashtags(text: str, settings: CleaningSettings) -> str:
    """Remove runs of hashtags and those after the sentence; another becomes words (setting hashtags)."""
    text = _GLUED.sub(" #", text)
    if settings.hashtags == "drop":
        return _SINGLE_HASHTAG.sub(" ", text)
    text = _HASHTAG_RUN.sub(" ", text)

    def words(match: re.Match[str]) -> str:
        before, after = text[: match.start()].rstrip(), text[match.end() :].strip(" .!?\"')")
        ends_sentence = not after and not needs_more(before)
        return " " if ends_sentence and before else _HUMPS.sub(" ", match[0][1:])

    return _SINGLE_HASHTAG.sub(words, text)


def remove_sizes(text: str, settings: CleaningSettings) -> str:
    """Remove sizes of pictures and files: 1920x1080, 300 dpi, 2.4 MB."""
    match = _PIXELS.search(text)
    while match is not None and not needs_more(text[: match.start()]):
        text = _PIXEL_LABEL.sub("", text[: match.start()]) + " " + text[match.end() :]
        match = _PIXELS.search(text)
    return text


_PICTURE = r"(?:the |this |your |our |an |a |for )*(?:image|photo|picture|pic|thumbnail|photograph)s?"
_CLICK = (
    rf"click(?: here| on)*(?: {_PICTURE})?(?: (?:to|for) (?:enlarge|see|view|zoom|read|download|buy|larger|full|more"
    rf"|a )[^.!|()]*| to enlarge| here[^.!|()]*|(?<=click) {_PICTURE})"
)
_ACTIONS = (
    r"(?:free download|download (?:now|free|here|it|for free|this (?:photo|image|picture|wallpaper)|the (?:photo|image"
    r"|app|pdf))|read (?:more|the full (?:story|article))|see more|learn more|find out more|view more|shop now|buy now"
    r"|order now|order yours|book now|buy it now|add to (?:cart|wish ?list|favou?rites)|free shipping|free delivery"
    r"|limited offer|view (?:larger|full[- ]size|original|gallery|slideshow|details|in gallery)(?: (?:image|photo"
    r"|picture|version))?|follow (?:us|me)(?: on)?|subscribe(?: now| to)?|sign up(?: for| now)?|share (?:on|this)"
    r"|pin it|save to|tap to|swipe|link in bio|enlarge (?:image|photo|picture)|enlarge|zoom in|show more"
    r"|continue reading|watch (?:the )?(?:full )?video|get yours|best prices?|lowest prices?|on sale now|use code"
    r"|hover to zoom|share your thoughts|like and share|leave a comment|no comments?)"
)
_MAYBE_ACTION = re.compile(rf"\b(?:click|{_ACTIONS})")
"""A quick look: most captions have none of these words."""
_CLICK_END = re.compile(rf"[\s.,;:!|(\[–—-]+{_CLICK}[\s.!)\]>»]*$", re.IGNORECASE)
_CLICK_START = re.compile(rf"^[\s(\[]*{_CLICK}(?:[)\]]|\s*[:.!|–-])+\s*", re.IGNORECASE)
_CLICK_BRACKET = re.compile(rf"[(\[]\s*(?:{_CLICK}|{_ACTIONS}[^()\[\]]*)\s*[)\]]", re.IGNORECASE)
_ACTION_END = re.compile(rf"(?:[.,;:!?|(\[–—]+\s*|\s+-+\s+){_ACTIONS}\b[^.|]{{0,60}}[\s.!)\]>»]*$", re.IGNORECASE)
_TITLED_ACTION_END = re.compile(rf"\s+(?=[A-Z])(?i:{_ACTIONS})\b[^.|a-z]{{0,30}}[\s.!)\]>»]*$")
_PLAIN_ACTION_END = re.compile(
    r"\s+(?:free download|free shipping|buy now|shop now|read more|see more)[\s.!>»]*$", re.IGNORECASE
)
_ACTION_START = re.compile(rf"^{_ACTIONS}\s*[:.!|–-]+\s*", re.IGNORECASE)
_COUNTER = re.compile(
    r"[\s,;|([–-]*\b(?:photo|image|picture|slide|page|pic|view)?\s*#?\d{1,4}\s*(?:of|/)\s*\d{1,4}[)\]]|[\s,;"
    r"|([–-]+(?:photo|image|picture|slide|page|pic)\s+#?\d{1,4}(?:\s*(?:of|/)\s*\d{1,4})?$|^\(?(?:(?:photo|image"
    r"|picture|slide|pic)\s+)?#?\d{1,4}\s*(?:of|/)\s*\d{1,4}\)?\s*[:|.–-]\s*|^\(?\d{1,3}\)\s+(?=\D)",
    re.IGNORECASE,
)

_AMOUNT = r"\d{1,3}(?:[.,]\d{3})*(?:[.,]\d{1,2})?|\d+(?:[.,]\d{1,2})?"
_PRICE = (
    rf"(?:(?:US|CA|AU|NZ|HK)?[$€£¥₹₽₩]\s?(?:{_AMOUNT})|(?:{_AMOUNT})\s?(?:[€£₽]|USD|EUR|GBP|CAD|AUD|INR|руб\.?|Kč"
    rf"|zł)(?!\w)|(?:USD|EUR|GBP|Rs\.?|INR)\s?(?:{_AMOUNT})(?!\w)|\d{{1,3}}\s?% off|save \d{{1,3}}\s?%)"
)
_PRICE_WORDS = r"(?:only|just|from|now|was|price|sale|save|rrp|starting at|up to|retail|msrp|buy for|for only|for just)"
_PRICE_END = re.compile(
    rf"[\s,;:|(–—-]+(?:{_PRICE_WORDS}[:\s]+)*{_PRICE}(?:[\s,;/|–-]*(?:{_PRICE_WORDS}|{_PRICE}|each|off|shipping|\+"
    rf"|incl\.?"
    r"|vat|free|with|delivery|today|per|piece|set|and)(?!\w))*[)\s.!*]*$",
    re.IGNORECASE,
)
_PRICE_START = re.compile(rf"^[(\[]?(?:{_PRICE_WORDS}[:\s]+)*{_PRICE}[)\]]?(?:\s*[-–—|:,!]+\s*)", re.IGNORECASE)


def remove_boilerplate(text: str, settings: CleaningSettings) -> str:
    """Remove requests to click, read, share or buy, and positions in galleries (3 of 12)."""
    if _MAYBE_ACTION.search(text.lower()):
        text = _CLICK_BRACKET.sub(" ", text)
        text = _ACTION_START.sub("", _CLICK_START.sub("", text))
        for pattern in (_CLICK_END, _ACTION_END, _TITLED_ACTION_END, _PLAIN_ACTION_END):
            text = cut_end(text, pattern)
    match = _COUNTER.search(text) if DIGIT.search(text) else None
    return text if match is None else f"{text[: match.start()]} {text[match.end() :]}"


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
    r"(?:^|[\s,;:|–—-]+)(?:Free|Premium|Vector|Editorial|High[- ]?[Rr]es(?:olution)?|HD|4K)(?:\s+(?:HD|4K|Stock"
    r"|Desktop|Vector|Download))*\s+(?:Photos?|Images?|Pictures?|Photography|Illustrations?|Vectors?|Art|Graphics?"
    r"|Icons?|Videos?|Wallpapers?|Backgrounds?|Download)(?:\s+(?:Download|Image|Art|Graphic|Stock|Free))*\s*[.!]*$"
)
_STOCK_START = re.compile(
    rf"^(?:(?:free|hd|premium)\s+)*(?:{_PRICE_FREE}[\s-]+)+(?:{_PRICE_FREE}[\s-]+)*{_KIND}(?:\s+of\s+|\s*[:|–-]+\s*)"
    rf"|^(?:free|hd|premium|4k)\s+{_KIND}\s*[:|–-]+\s*|^image result for\s+",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"^(?:(?:photo|image|picture|pic|gallery|video)s?|caption|alt(?: text)?|(?:(?:image|photo|video) )?description"
    r"|title|(?:photo|image|picture|pic) of the (?:day|week|month)|(?:figure|fig\.|photo|image|lot) ?\d+|tweet"
    r"|breaking(?: news)?)\s*[:：]\s*(?=\S)|^(?:[^|:]{1,40}\s)?on (?:instagram|twitter|facebook|tumblr|pinterest|tiktok"
    r"|x)\s*:\s*",
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
    r"|Wallpapers?|Online|Store|Shop|Journal|Daily|Post|Tribune|Herald|Chronicle|Gazette|Times|TV|Travel Guide|Forum"
    r"|Community|Archive|Collection|Wiki|Fandom|Inc\.?|LLC|Ltd\.?|GmbH)"
)
_BRAND_WORDS, _CAPTION_WORDS = 4, 5
_ON_SITE = re.compile(
    r"[\s,|–-]+(?:(?:photo|image|picture|a photo|photos)\s+)?(?:by\s+(?:[A-Z@]\S*\s+){1,4})?(?:on|from|at|in"
    r"|via)\s+(?:Flickr|Pinterest|500px|Behance|DeviantArt|Dribbble|Vimeo|Unsplash|Instagram|Tumblr|Etsy|Redbubble"
    r"|Pixabay|Pexels|Shutterstock|iStock|Getty Images|Alamy|Adobe Stock|Twitter|Facebook|YouTube|Amazon|eBay"
    r"|Wikipedia|Wikimedia Commons|Freepik|Houzz|Imgur|Reddit|TikTok|Zazzle|Society6)\b(?:\s*[-|!–].*)?[.!]?$"
)

_MEDIA = r"(?:Photo|Photograph|Image|Picture|Pic|Illustration|Artwork|Foto|Bild|Imagen|Immagine|Crédit photo|Фото)"
_NAME = r"[@A-ZÀ-ÖØ-ÞА-Я][^\s()]*"
_NAMES = rf"{_NAME}(?:\s+(?:{_NAME}|de|van|von|der|la|/|&|and|für|for))*"
_CREDIT_BRACKET = re.compile(
    r"\s*[(\[]\s*(?!\w+ (?:description|of\b))(?:(?:AP|AFP|EPA|Reuters|CC(?: BY|0)|Public Domain|Creative Commons)\b"
    r"|(?:file |stock |aerial |screenshot )?(?:photo|photograph|image|picture|pic|illustration|credit|source|courtesy"
    r"|copyright|foto|bild|фото|getty|shutterstock|alamy|istock|via)\b)[^()\[\]]*[)\]]",
    re.IGNORECASE,
)
_CREDIT_END = re.compile(
    rf"(?:^|[\s.,;|–—-]+)(?:(?:{_MEDIA}s?|(?<=[.,;|–—] )(?:photo|image|picture|foto))\s*(?:[Cc]redits?"
    rf"|[Cc]ourtesy)?\s*(?:by|[Cc]ourtesy of|[Cc]ourtesy|of|via|©|:|/)+\s*|(?:Credits?|Source|Courtesy(?: of)?"
    rf"|Image courtesy of|Photographed by|Photographer|Shot by|Via)\s*:?\s+){_NAMES}[.]?$"
)
_PHOTO_OF = re.compile(rf"{_MEDIA}s?\s+of\b")
_COPYRIGHT_END = re.compile(
    r"(?:^|[\s.,;|–—-]+)(?:©|\(c\)|copyright\b)\s*(?:©|\(c\))?\s*(?:by\s+)?(?:\d{4}[\s,–-]*)*(?:[^.|]{0,60})"
    r"(?:\.?\s*all rights reserved)?[.]?$|[\s.,;|–—-]+all rights reserved\.?$",
    re.IGNORECASE,
)
_WIRE_END = re.compile(r"[\s.,;|–—-]+(?:AP Photo|AFP PHOTO|REUTERS|EPA)\s*/\s*[A-Z].{0,60}$")
_MARKS = re.compile(r"\s*[©®™℠]")


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
    places = _without_repeats(parts, [part for part in range(len(parts)) if not _says_nothing(parts[part])])
    places = _without_brand(parts, separators, places)
    if len(places) == len(parts):
        return text
    joined = parts[places[0]] if places else ""
    for left, right in pairwise(places):
        joined += separators[right - 1 if right == left + 1 else left] + parts[right]
    return joined


def _says_nothing(part: str) -> bool:
    part = part.strip(" .,!")
    name = part.casefold().removesuffix(".com").removeprefix("www.")
    if not part or name in _sites() or _PIN.fullmatch(part):
        return True
    words = words_of(part)
    return bool(words) and words != ["a"] and all(word in _GENERIC or word.isdigit() for word in words)


def _without_repeats(parts: list[str], places: list[int]) -> list[int]:
    """Without the parts whose words are in an earlier or longer part, in the same order."""
    words = {part: f" {' '.join(words_of(parts[part]))} " for part in places}
    return [
        part
        for part in places
        if not any(
            words[part] in words[other] and (words[part] != words[other] or other < part)
            for other in places
            if other != part and words[part].strip() and count_words(parts[other]) > 1
        )
        or len(words[part].strip()) < 2
    ]


def _without_brand(parts: list[str], separators: list[str], places: list[int]) -> list[int]:
    """Without short parts in capitals at either end, where what remains is long enough to be the caption."""
    while len(places) > 1:
        rest = sum(count_words(parts[part]) for part in places[:-1])
        is_strong = bool(_IS_STRONG.match(separators[places[-1] - 1]))
        if rest < _CAPTION_WORDS or not _is_brand(parts[places[-1]], is_strong):
            break
        places = places[:-1]
    while len(places) > 1:
        rest = sum(count_words(parts[part]) for part in places[1:])
        if (
            rest < _CAPTION_WORDS
            or parts[places[1]][:1].islower()
            or not (_IS_STRONG.match(separators[places[0]]) and _is_brand(parts[places[0]], is_strong=True))
        ):
            break
        places = places[1:]
    return places


def _is_brand(part: str, is_strong: bool) -> bool:
    part = part.strip()
    if not is_strong:
        return bool(_BRANDED.fullmatch(part))
    return count_words(part) <= _BRAND_WORDS and not part[:1].islower()


@lru_cache(maxsize=1)
def _sites() -> frozenset[str]:
    lines = files(__package__).joinpath("site_names.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(line.strip().casefold() for line in lines if line and not line.startswith("#"))


def _closing(match: re.Match[str]) -> str:
    """A space, and the punctuation that an address ends with."""
    closing = _CLOSING.search(match[0])
    return " " + (closing[0] if closing else "")


REPAIRS = (
    Repair("emails", "Remove e-mail addresses.", "@", ((_EMAIL, " "),)),
    Repair("handles", "Remove names of accounts (@name), with the word that announces them.", "@", ((_HANDLE, " "),)),
    Repair("urls", "Remove web addresses, with the word that announces them.", _MAYBE_URL, ((_URL, _closing),)),
    Repair("file_names", function=fix_file_names),
    Repair("hashtags", needs=re.compile("[#＃]"), function=fix_hashtags),
    Repair("credits", function=remove_credits),
    Repair("boilerplate", function=remove_boilerplate),
    Repair("sizes", needs=DIGIT, function=remove_sizes),
    Repair(
        "dates",
        "Remove dates and times in figures at the start and at the end.",
        DIGIT,
        ((_DATE_START, ""),),
        (_DATE_END,),
    ),
    Repair(
        "prices",
        "Remove prices at the start and at the end, unless the sentence needs them (a sign that says $5).",
        DIGIT,
        ((_PRICE_START, ""),),
        (_PRICE_END,),
    ),
    Repair("site_names", function=remove_site_names),
    Repair(
        "stock_words",
        "Remove the words of stock agencies at the start and at the end: Royalty Free Stock Photo, Free Vector.",
        replaced=((_DESCRIPTION, r"\1"), (_STOCK_START, ""), (_LABEL, "")),
        ends=(_STOCK_END, _FREE_END),
    ),
    Repair(
        "catalogue_numbers",
        "Remove numbers of pictures and products: #123456, SKU: 4711, Photo 12345678.",
        DIGIT,
        ((_LONG_HASH_NUMBER, " "),),
        (_LABELLED_NUMBER, _LONG_NUMBER),
    ),
)
