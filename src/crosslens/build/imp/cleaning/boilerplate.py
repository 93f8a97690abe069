"""Repairs of advertising: requests to click or buy, prices."""

from __future__ import annotations

import re

from crosslens.build.imp.cleaning.addresses import cut_end
from crosslens.build.imp.cleaning.settings import CleaningSettings

_PICTURE = r"(?:the |this |your |our |an |a |for )*(?:image|photo|picture|pic|thumbnail|photograph)s?"
_CLICK = (
    rf"click(?: here| on)*(?: {_PICTURE})?(?: (?:to|for) (?:enlarge|see|view|zoom|read|download|buy|larger|full|more"
    rf"|a )[^.!|()]*"
    rf"| to enlarge| here[^.!|()]*|(?<=click) {_PICTURE})"
)
_ACTIONS = (
    r"(?:free download|download (?:now|free|here|it|for free|this (?:photo|image|picture|wallpaper)|the (?:photo"
    r"|image|app|pdf))"
    r"|read (?:more|the full (?:story|article))|see more|learn more|find out more|view more|shop now|buy now|order now"
    r"|order yours|book now|buy it now|add to (?:cart|wish ?list|favou?rites)|free shipping|free delivery|limited offer"
    r"|view (?:larger|full[- ]size|original|gallery|slideshow|details|in gallery)(?: (?:image|photo|picture|version))?"
    r"|follow (?:us|me)(?: on)?|subscribe(?: now| to)?|sign up(?: for| now)?|share (?:on|this)|pin it|save to|tap to"
    r"|swipe"
    r"|link in bio|enlarge (?:image|photo|picture)|enlarge|zoom in|show more|continue reading"
    r"|watch (?:the )?(?:full )?video"
    r"|get yours|best prices?|lowest prices?|on sale now|use code|hover to zoom|share your thoughts|like and share"
    r"|leave a comment|no comments?)"
)
_MAYBE_ACTION = re.compile(rf"\b(?:click|{_ACTIONS})")
"""A quick look: most captions have none of these words."""
_DIGIT = re.compile(r"\d")
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
    r"[\s,;|([–-]*\b(?:photo|image|picture|slide|page|pic|view)?\s*#?\d{1,4}\s*(?:of|/)\s*\d{1,4}[)\]]"
    r"|[\s,;|([–-]+(?:photo|image|picture|slide|page|pic)\s+#?\d{1,4}(?:\s*(?:of|/)\s*\d{1,4})?$"
    r"|^\(?(?:(?:photo|image|picture|slide|pic)\s+)?#?\d{1,4}\s*(?:of|/)\s*\d{1,4}\)?\s*[:|.–-]\s*"
    r"|^\(?\d{1,3}\)\s+(?=\D)",
    re.IGNORECASE,
)

_AMOUNT = r"\d{1,3}(?:[.,]\d{3})*(?:[.,]\d{1,2})?|\d+(?:[.,]\d{1,2})?"
_PRICE = (
    rf"(?:(?:US|CA|AU|NZ|HK)?[$€£¥₹₽₩]\s?(?:{_AMOUNT})|(?:{_AMOUNT})\s?(?:[€£₽]|USD|EUR|GBP|CAD|AUD|INR|руб\.?|Kč"
    rf"|zł)(?!\w)"
    rf"|(?:USD|EUR|GBP|Rs\.?|INR)\s?(?:{_AMOUNT})(?!\w)|\d{{1,3}}\s?% off|save \d{{1,3}}\s?%)"
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
    match = _COUNTER.search(text) if _DIGIT.search(text) else None
    return text if match is None else f"{text[: match.start()]} {text[match.end() :]}"


def remove_prices(text: str, settings: CleaningSettings) -> str:
    """Remove prices at the start and at the end, unless the sentence needs them (a sign that says $5)."""
    if not _DIGIT.search(text):
        return text
    return cut_end(_PRICE_START.sub("", text), _PRICE_END)
