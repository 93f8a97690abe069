"""Repairs of what points elsewhere: addresses, file names, hashtags, sizes, numbers of catalogues, dates."""

from __future__ import annotations

import re

from crosslens.build.imp.cleaning.settings import CleaningSettings
from crosslens.build.imp.cleaning.words import count_words, needs_more

_DIGIT = re.compile(r"\d")
_FULL_STOP = re.compile(r"\s*[.!?](?=\s)")
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
    r"|[\s([,;–-]*(?<![\w.])\d{2,4}\s?dpi\b[)\]]?|[\s([,;–-]*(?<![\w.])\d+(?:[.,]\d+)?\s?[KMG]B(?!\w)[)\]]?",
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


def remove_emails(text: str, settings: CleaningSettings) -> str:
    """Remove e-mail addresses."""
    return _EMAIL.sub(" ", text) if "@" in text else text


def remove_urls(text: str, settings: CleaningSettings) -> str:
    """Remove web addresses, with the word that announces them."""

    def kept(match: re.Match[str]) -> str:
        closing = _CLOSING.search(match[0])
        return " " + (closing[0] if closing else "")

    return _URL.sub(kept, text) if _MAYBE_URL.search(text) else text


def fix_file_names(text: str, settings: CleaningSettings) -> str:
    """Remove names that cameras give; a file name of several words becomes these words."""
    text = _FILE_LABEL.sub("", text) if ":" in text else text
    text = _ENDING.sub("", text) if " " in text and "." in text else text
    text = _FILE.sub(_name_words, text) if "." in text else text
    text = _CAMERA.sub(" ", text) if _DIGIT.search(text) else text
    if " " not in text and text.count("-") >= 3 and count_words(text.replace("-", " ")) >= 4:
        text = text.replace("-", " ")
    return _JOINED.sub(" ", text) if "_" in text else text


def _name_words(match: re.Match[str]) -> str:
    words = [word for word in _NAME_PARTS.split(match[1]) if len(word) > 1 and word.isalpha()]
    return " ".join(_NAME_PARTS.split(match[1])) if len(words) >= 3 else " "


def fix_hashtags(text: str, settings: CleaningSettings) -> str:
    """Remove runs of hashtags and those after the sentence; another becomes words (setting hashtags)."""
    if "#" not in text and "＃" not in text:
        return text
    text = _GLUED.sub(" #", text)
    if settings.hashtags == "drop":
        return _SINGLE_HASHTAG.sub(" ", text)
    text = _HASHTAG_RUN.sub(" ", text)
    return _SINGLE_HASHTAG.sub(lambda match: _hashtag_words(match, text), text)


def _hashtag_words(match: re.Match[str], text: str) -> str:
    before, after = text[: match.start()].rstrip(), text[match.end() :].strip(" .!?\"')")
    ends_sentence = not after and not needs_more(before)
    if ends_sentence and before:
        return " "
    return _HUMPS.sub(" ", match[0][1:])


def remove_handles(text: str, settings: CleaningSettings) -> str:
    """Remove names of accounts (@name), with the word that announces them."""
    return _HANDLE.sub(" ", text) if "@" in text else text


def remove_sizes(text: str, settings: CleaningSettings) -> str:
    """Remove sizes of pictures and files: 1920x1080, 300 dpi, 2.4 MB."""
    match = _PIXELS.search(text) if _DIGIT.search(text) else None
    while match is not None and not needs_more(text[: match.start()]):
        text = _PIXEL_LABEL.sub("", text[: match.start()]) + " " + text[match.end() :]
        match = _PIXELS.search(text)
    return text


def remove_dates(text: str, settings: CleaningSettings) -> str:
    """Remove dates and times in figures at the start and at the end."""
    if not _DIGIT.search(text):
        return text
    return cut_end(_DATE_START.sub("", text), _DATE_END)


def remove_catalogue_numbers(text: str, settings: CleaningSettings) -> str:
    """Remove numbers of pictures and products: #123456, SKU: 4711, Photo 12345678."""
    if not _DIGIT.search(text):
        return text
    text = _LONG_HASH_NUMBER.sub(" ", text)
    return cut_end(cut_end(text, _LABELLED_NUMBER), _LONG_NUMBER)


def cut_end(text: str, pattern: re.Pattern[str]) -> str:
    """The text without what the pattern matches at its end, unless it cannot end there; a full stop stays."""
    match = pattern.search(text)
    if match is None:
        return text
    stop = _FULL_STOP.match(match[0])
    if stop is not None:
        return text[: match.start()] + stop[0].strip()
    return text if needs_more(text[: match.start()]) else text[: match.start()]
