"""Captions → tokens, by the name of a tokenizer.

The published figures of captioning measures rest on one tokenizer: Stanford's, version 3.4.1, as the package
pycocoevalcap calls it: Penn-Treebank-like, lowercase, without punctuation. ``ptb`` gives its tokens without Java: at
every position the longest of the patterns below wins, the earlier one among equally long.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

import polars as pl

from crosslens.core import UnknownNameError


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


ABBREVIATIONS = _words(
    """adj adm adv al ala alex apr ariz assn assoc asst atty aug ave bhd bldg blvd brig bros calif capt cf cie cmdr co
    col colo conn corp cos cpl ct dak dec dept det dr drs ens esq est etc ext feb fla fri ft ga gen gov hon inc ind
    insp intl jan jos jr jul jun kan ky lieut lt ltd maj mar md messrs mich minn mme mo mon mont mr mrs ms mt natl neb
    nev nov oct okla penn pfc ph plc pres prof pvt rd rep rev rt sen sens sep sept seq sfc sgt spc sq sr st ste supt
    sys tel tenn thu thurs treas tue tues univ va vs vt wed wis wm wyo"""
)
"""Keep their period wherever they stand, in any case: ``Mr.``, ``dept.``, ``etc.``"""

PROPER_ABBREVIATIONS = _words("Ark Az Del Ill La Mass Miss Ore Pa Tex Wash")
"""Keep their period only when capitalised: in small letters they are words (``ill``, ``mass``, ``wash``)."""

SMALL_ABBREVIATIONS = _words("mfg mtg pte pty")
"""Keep their period unless all in capitals."""

NUMBERED = _words("art ca fig figs no nos op pp prop")
"""Keep their period only before a number: ``no. 5``, ``figs. 2``."""

SENTENCE_STARTS = _words(
    """A About According Additionally After An As At But Earlier He Her Here However If In It Last Many More Now Once
    One Other Our She Since So Some Such That The Their Then There These They This We What When While Yet You"""
)
"""A single letter's period before one of these ends a sentence (``plan b. The``); otherwise it is an initial."""

APOSTROPHE_WORDS = _words(
    """'em 'til 'till 'cause 'n' c'mon s'mores li'l ol' somethin' ne'er e'er o'er o'clock ma'am nat'l cont'd ev'ry
    nor'easter dunkin'"""
)
"""Words that keep their apostrophe."""

JOINED = tuple(word.split("+") for word in _words("can+not gon+na got+ta lem+me gim+me wan+na 't+is 't+was"))
"""Two words written as one."""

PUNCTUATION = frozenset(("''", "'", "``", "`", "-LRB-", "-RRB-", "-LCB-", "-RCB-", *".?!,:-;", "--", "..."))
"""Tokens that are left out. Brackets come as small ``-lrb-`` and so stay, as they do in the published numbers."""

_LETTER = r"[^\W\d_\u00b2\u00b3\u00b9\u00bc-\u00be]"
_ALNUM = rf"(?:{_LETTER}|[0-9])"
_APOSTROPHE = "['\u2019\u0092]"
_SPACE = r"[\s\u200b\ufeff]"
_ACRONYM = r"[A-Za-z](?:\.[A-Za-z])+"
_WORD = rf"{_LETTER}{_ALNUM}*(?:[.!?]{_LETTER}{_ALNUM}*)*"
_CLITICS = r"(?:'(?i:[msd]|re|ve|ll)(?![A-Za-z])|[\u2019\u0092](?i:[msdn]|re|ve|ll))"
_NUMBER = r"[-+]?(?:[0-9]*(?:[.:,\u00b7][0-9]+)+|[0-9]+)"


def _any(words: tuple[str, ...]) -> str:
    return "|".join(sorted(words, key=len, reverse=True)).replace("'", _APOSTROPHE)


# Where a group is named "token", what follows it must be there but is read again.
_WORDS = (
    rf"(?P<token>{_WORD}){_CLITICS}",
    *(rf"(?P<token>(?i:{_any((first,))}))(?i:{second})(?![A-Za-z])" for first, second in JOINED),
    _WORD,
    rf"[0-9]+{_LETTER}{_ALNUM}*",
    rf"(?i:{_any(APOSTROPHE_WORDS)})(?![A-Za-z])",
    rf"{_APOSTROPHE}n{_APOSTROPHE}|'n(?![A-Za-z])",
    rf"[dolDOL]{_APOSTROPHE}{_LETTER}{_ALNUM}*",
    rf"[A-HJ-XZn]{_APOSTROPHE}{_LETTER}{{2,}}",
    rf"{_LETTER}+[aeiouyAEIOUY]{_APOSTROPHE}[aeiouA-Z]{_LETTER}*",
    rf"(?P<token>[yYjJ]{_APOSTROPHE}){_LETTER}",
    rf"{_APOSTROPHE}[0-9]{{2}}(?:s(?!{_ALNUM})|(?!{_ALNUM}|{_APOSTROPHE}))",
    rf"(?P<token>(?:{_LETTER}*(?![nN]){_LETTER}))[nN]{_APOSTROPHE}[tT]",
    rf"[nN]{_APOSTROPHE}[tT]",
    _CLITICS,
    rf"{_ALNUM}(?:{_ALNUM}|[.,])*(?:[-\u2010\u2011](?:{_ACRONYM}\.|{_ALNUM}+))+",
    r"[A-Za-z0-9]+(?:-[A-Za-z]+){0,2}(?:\\?/[A-Za-z0-9]+(?:-[A-Za-z]+){0,2}){1,2}",
    rf"{_ALNUM}+(?:[-_]{_ALNUM}+)+",
    r"[A-Z]+(?:[+&][A-Z]+)+",
    rf"(?:{_ALNUM}+[-_])*(?i:o{_APOSTROPHE}clock)(?:[-_]{_ALNUM}+)*",
)
_STARTS = (*SENTENCE_STARTS, *(word.upper() for word in SENTENCE_STARTS))
_SMALL = (*SMALL_ABBREVIATIONS, *(word.title() for word in SMALL_ABBREVIATIONS))
_PROPER = (*PROPER_ABBREVIATIONS, *(word.upper() for word in PROPER_ABBREVIATIONS))
_SHORTENED = (
    rf"(?:(?i:{_any(ABBREVIATIONS)})|{_any(_SMALL)}|{_any(_PROPER)}|{_ACRONYM})\.",
    r"[Pp]h\.[Dd]\.",
    rf"[A-Za-z]\.(?!{_SPACE}*(?:$|(?:{_any(_STARTS)})(?:{_SPACE}|$)))",
    rf"(?P<token>(?i:{_any(NUMBERED)})\.)(?:[;:,]|{_SPACE}*[0-9])",
)
_NUMBERS = (
    _NUMBER,
    r"[0-9]{1,2}[-/][0-9]{1,2}[-/][0-9]{2,4}",
    rf"(?:\([0-9]{{2,3}}\){_SPACE}?|(?:\+\+?)?(?:[0-9]{{2,4}}[- ])?[0-9]{{2,4}}[- ])[0-9]{{3,4}}[- ]?[0-9]{{3,5}}",
    r"[A-Z]+\$",
)
_ADDRESSES = (
    r"</?[A-Za-z!?][^<>]*>",
    r"&(?:amp|lt|gt|quot|apos|nbsp);",
    r"(?:https?|mailto):[^\s\"<>|()]*[^\s\"<>|.!?,;:()-]",
    r"(?:[A-Za-z0-9-]+\.)+(?:com|net|org|edu)(?:/[^\s\"<>|()]*[^\s\"<>|.!?,;:()-])?(?![A-Za-z])",
    r"[A-Za-z0-9][^\s\"<>|(){}]*@(?:[^\s\"<>|(){}.]+\.)*[^\s\"<>|(){}.]+",
    r"@[A-Za-z_][A-Za-z_0-9]*",
    rf"#{_LETTER}+|[cC]#",
)
_SYMBOLS = (
    r"[?!]+",
    r"\.\.\.+|-+",
    r"_+|#+|\*+|\\\*",
    r"''|``",
    r"[<>]?[:;=][-o*']?[()DPdpO\\{@|\[\]](?![A-Za-z])",
    r"[-^x=~<>']_[-^x=~<>']",
)
_RULES = tuple(re.compile(rule) for rule in (*_WORDS, *_SHORTENED, *_NUMBERS, *_ADDRESSES, *_SYMBOLS))

_BRACKETS = {"(": "-lrb-", ")": "-rrb-", "[": "-lsb-", "]": "-rsb-", "{": "-lcb-", "}": "-rcb-"}
_SIGNS = {"\u00a3": "#", "\u20ac": "$", "\u00a2": "cents", "\u00bd": "1/2", "\u00bc": "1/4", "\u00be": "3/4"}
_ENTITIES = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": "'", "&apos;": "'", "&nbsp;": ""}
_QUOTES = dict.fromkeys("\u2018\u2019\u201c\u201d\u00ab\u00bb\u2039\u203a\u0092\u0022", "'")
_DASHES = dict.fromkeys("\u2013\u2014\u2015\u2025\u2026", "-")
_WRITTEN = {**_BRACKETS, **_SIGNS, **_ENTITIES, **_QUOTES, **_DASHES}
_WITHIN = str.maketrans(_BRACKETS)  # a bracket inside a token: a smiley, a telephone number
_CLITIC = re.compile(rf"{_APOSTROPHE}(?i:[msd]|re|ve|ll)|[nN]{_APOSTROPHE}[tT]")
_PLAIN = re.compile(r"[A-Za-z]+,?")
_TWO_IN_ONE = frozenset(first + second for first, second in JOINED)
_UNREADABLE = re.compile("[\U00010000-\U0010ffff]")

# What reaches over a space: tags, numbers in several parts, initials before a sentence, abbreviations of numbers.
_ACROSS = re.compile(
    rf"<|[0-9)]{_SPACE}+[0-9]|(?<![A-Za-z])[A-Za-z]\.(?:{_SPACE}|$)|(?i:\b(?:{_any(NUMBERED)})\.){_SPACE}+[0-9]"
)
_GAP = re.compile(rf"{_SPACE}+")


def ptb_tokens(text: str) -> list[str]:
    """The tokens of one caption; they do not depend on any other caption."""
    if _ACROSS.search(text):
        return list(_read(_GAP.sub(" ", text).strip()))
    chunks = text.split() if text.isascii() else _GAP.split(text)
    return [token for chunk in chunks for token in _chunk_tokens(chunk)]


@lru_cache(maxsize=200_000)
def _chunk_tokens(chunk: str) -> tuple[str, ...]:
    """The tokens of a chunk without spaces; captions repeat themselves, so nearly every chunk is read only once."""
    if _PLAIN.fullmatch(chunk):
        word = chunk.rstrip(",").lower()
        if word not in _TWO_IN_ONE:
            return (word,)
    return _read(chunk)


def _read(text: str) -> tuple[str, ...]:
    """The tokens as they are printed: at each position, what the rule that reaches farthest reads."""
    tokens: list[str] = []
    position = 0
    while position < len(text):
        reach, best = position, None
        for rule in _RULES:
            match = rule.match(text, position)
            if match and match.end() > reach:
                reach, best = match.end(), match
        end = position + 1
        if best is not None:
            end = best.end("token") if "token" in best.re.groupindex else best.end()
        token, position = text[position:end], end
        if token in _WRITTEN:
            token = _WRITTEN[token]
        elif (len(token) > 1 and set(token) <= set("-.")) or _UNREADABLE.search(token):
            continue
        else:
            if _CLITIC.fullmatch(token):  # elsewhere (’90s) an apostrophe stays as it is written
                token = token.replace("\u2019", "'").replace("\u0092", "'")
            token = token.translate(_WITHIN).lower()
        tokens += [part for part in token.split() if part not in PUNCTUATION]
    return tuple(tokens)


def split_tokens(text: str) -> list[str]:
    """Lowercase, cut at white space; punctuation stays where it is."""
    return text.lower().split()


WORD = r"(?:\p{L}\.){2,}|\d+(?:[.,:]\d+)+|[\p{L}\p{M}\p{N}]+"


def count_words(texts: pl.Series) -> pl.Series:
    """The number of words of each text: tokens that are not punctuation, without parsing.

    A word is a run of letters and digits; so *man's*, *don't* and *long-sleeved* are two, as for a tagger.
    Abbreviations (*U.S.*) and numbers (*3,000*, *10:30*) are one.
    """
    return texts.str.count_matches(WORD)


TOKENIZERS: Mapping[str, Callable[[str], list[str]]] = {"ptb": ptb_tokens, "split": split_tokens}
"""``ptb``: Penn-Treebank-like, lowercase, without punctuation (what caption scores are defined with); ``split``."""


def tokenizer(name: str = "ptb") -> Callable[[str], list[str]]:
    """The tokenizer of that name."""
    if name not in TOKENIZERS:
        raise UnknownNameError("tokenizer", name, TOKENIZERS)
    return TOKENIZERS[name]


def tokenize(texts: Iterable[str], name: str = "ptb") -> list[list[str]]:
    """The tokens of each text. A text may have none: punctuation alone is left out."""
    return list(map(tokenizer(name), texts))
