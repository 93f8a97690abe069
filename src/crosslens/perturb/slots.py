"""What the words of a caption are, by the tags of the tokens they consist of."""

from __future__ import annotations

from typing import Literal

from crosslens.perturb.caption import Caption, Token

Kind = Literal["noun", "name", "pronoun", "adjective", "other"]


def slot_kinds(caption: Caption) -> list[Kind]:
    """For each word of the caption what it is.

    The parser cuts words where a reader does not: *man's* into *man* and *'s*, *T-shirt* into *T*, *-* and *shirt*,
    *don't* into *do* and *n't*. A word is what its head is, the first of its tokens that hangs on something outside
    the word: *man* and *shirt*, nouns, and *do*, a verb. A word without tokens of its own is anything.
    """
    tokens = caption.tokens
    kinds: list[Kind] = []
    at, count = 0, len(tokens)
    for word in caption.words:
        while at < count and tokens[at].end <= word.start:
            at += 1
        last = at
        while last < count and tokens[last].start < word.end:
            last += 1
        if last == at:
            kinds.append("other")
        else:
            kinds.append(_kind(tokens[at] if last == at + 1 else _head(tokens, at, last)))
        at = last
    return kinds


def _head(tokens: tuple[Token, ...], first: int, last: int) -> Token:
    for token in tokens[first:last]:
        outside = not first <= token.head < last or token.arc == "ROOT"
        if outside and token.pos not in ("PUNCT", "SPACE"):
            return token
    return tokens[last - 1]


def _kind(token: Token) -> Kind:
    tag = token.tag
    if tag.startswith("JJ"):
        return "adjective"
    if not tag.startswith("NN"):
        return "other"
    if token.pos == "PRON":  # "someone", "nothing": tagged like nouns, and yet none
        return "pronoun"
    return "name" if tag.startswith("NNP") else "noun"
