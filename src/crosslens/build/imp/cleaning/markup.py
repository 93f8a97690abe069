"""Repairs of markup: HTML tags, wiki text, Markdown, BBCode."""

from __future__ import annotations

import re

from crosslens.build.imp.cleaning.settings import CleaningSettings
from crosslens.language import word_set

_TAGS = word_set(
    """a abbr address article aside audio b big blockquote body br button caption center cite code dd del
    details div dl dt em embed fieldset figcaption figure font footer form h1 h2 h3 h4 h5 h6 head header hr html i
    iframe img input ins label legend li link main map mark meta nav noscript object ol option p param picture pre q s
    samp script section select small source span strike strong style sub summary sup svg table tbody td textarea
    tfoot th thead
    title tr tt u ul var video"""
)
_NAME = "|".join(sorted(_TAGS, key=len, reverse=True))
_CODE = re.compile(r"<(script|style)\b[^>]*>.*?(?:</\1\s*>|$)|<!--.*?(?:-->|$)", re.IGNORECASE | re.DOTALL)
_ALT = re.compile(r"<img\b[^<>]*?\balt\s*=\s*(?:\"([^\"<>]*)\"|'([^'<>]*)')[^<>]*>", re.IGNORECASE)
_INLINE = re.compile(r"</?(?:b|i|em|strong|span|u|font|small|big|tt|mark)(?:\s[^<>]*)?/?>", re.IGNORECASE)
_TAG = re.compile(rf"</?(?:{_NAME})(?:\s[^<>]*|/)?>|<!doctype[^<>]*>", re.IGNORECASE)
_OPEN_END = re.compile(rf"</?(?:{_NAME})(?:\s+[\w-]+\s*=[^<>]*)?$", re.IGNORECASE)
_OPEN_START = re.compile(r"^[^<>]{0,200}=\s*(?:\"[^\"<>]*\"|'[^'<>]*')\s*/?>")
_BBCODE = re.compile(
    r"\[img[^\]]*\].*?\[/img\]|\[/?(?:b|i|u|s|url|img|color|size|quote|center|font|list|caption"
    r"|gallery)(?:[= ][^\]]*)?\]",
    re.IGNORECASE,
)
_MARKDOWN_LINK = re.compile(r"!?\[([^\[\]]*)\]\((?:[^()\s]*)(?:\s+\"[^\"]*\")?\)")
_WIKI_LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)*([^\[\]|]*)\]\]")
_TEMPLATE = re.compile(r"\{\{[^{}]*\}\}|\{%[^{}]*%\}|\$\{[^{}]*\}")
_REFERENCE = re.compile(
    r"[(\[](?:4k|8k|hd|uhd|video|photos?|pics|pictures|gallery|slideshow|oc)[)\]]|(?<=\w|[.,;])\[(?:\d{1,3}"
    r"|citation needed|edit|note \d+)\]",
    re.IGNORECASE,
)
_EMPHASIS = re.compile(r"(?<![\w*_])(\*{1,3}|_{1,3}|'{2,5})(?=[^\s*_'])([^*_]{1,300}?)(?<=[^\s*_'])\1(?![\w*_])")
_HEADING = re.compile(r"^#{1,6}\s+(?=[^\W\d_])|^={2,6}\s*(.*?)\s*={2,6}$|^>\s+")


def remove_tags(text: str, settings: CleaningSettings) -> str:
    """Remove HTML tags, scripts and comments; a picture's alternative text stays, and so do placeholders (<person>)."""
    if "<" not in text:
        return _OPEN_START.sub("", text) if ">" in text else text
    text = _CODE.sub(" ", text)
    text = _ALT.sub(lambda match: f" {match[1] or match[2] or ''} ", text)
    text = _TAG.sub(" ", _INLINE.sub("", text))
    return _OPEN_END.sub("", text)


def remove_markup(text: str, settings: CleaningSettings) -> str:
    """Remove the marks of wikis, Markdown, forums and templates; the words that they mark stay."""
    if "[" in text:
        text = _BBCODE.sub("", text)
        text = _WIKI_LINK.sub(r"\1", _MARKDOWN_LINK.sub(r"\1", text))
    text = _REFERENCE.sub("", text) if "[" in text or "(" in text else text
    if "{" in text:
        text = _TEMPLATE.sub(" ", text)
    text = _HEADING.sub(lambda match: match[1] or "", text)
    return _EMPHASIS.sub(r"\2", text)
