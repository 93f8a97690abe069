"""Answers, cards of queries with their facets, lists of evidence, and what is folded or stands beside, as HTML."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from urllib.parse import quote

from crosslens.core import Answers, EvidenceList, FacetValue, PictureCard, QueryCard, QueryCards, well_formed

SURE = {"settled": 3, "likely": 2, "open": 1}
"""How many of three dots stand for a certainty."""

Picture = Callable[[PictureCard], str]


def term(words: str, meaning: str, kind: str = "term") -> str:
    """Words (HTML) with their meaning on tap, under the pointer or with the keyboard, without a script."""
    return (
        f'<span class="{kind}" tabindex="0" role="note">{words}<span class="tip"><span class="unseen">: </span>'
        f"{escape(meaning)}</span></span>"
    )


def with_terms(text: str, terms: Mapping[str, str]) -> str:
    """Escaped text in which the first occurrence of each term has its meaning."""
    for words, meaning in terms.items():
        before, middle, after = text.partition(escape(words))
        text = before + term(middle, meaning) + after if middle else text
    return text


def certainty_html(certainty: str, reason: str) -> str:
    """How sure something is: dots and a word; why, on tap."""
    if not certainty:
        return ""
    on = SURE.get(certainty, 0)
    dots = "".join(f'<i class="{"on" if number < on else "off"}"></i>' for number in range(3))
    markup = f"{dots}<b>{escape(certainty)}</b>"
    return term(markup, reason, "sure") if reason else f'<span class="sure">{markup}</span>'


def answers_html(part: Answers) -> str:
    """A line per question."""
    rows = ""
    for answer in part.answers:
        link = f' <a href="{escape(answer.address)}">{escape(answer.link)}</a>' if answer.address else ""
        sure = certainty_html(answer.certainty, answer.reason)
        rows += f"<div><dt>{escape(answer.question)}</dt><dd>{escape(answer.text)}{link}</dd><dd>{sure}</dd></div>"
    return f'<dl class="answers">{rows}</dl>'


def card_target(query: str) -> str:
    """The place of a query's card in the page's address."""
    return f"q-{quote(well_formed(query), safe='')}"


def query_cards_html(part: QueryCards, picture: Picture) -> str:
    """Facets, the first cards, and the others folded."""
    cards = [_card(card, picture, large=part.large) for card in part.cards]
    most = len(cards) if part.most is None else part.most
    kind = "query-cards large" if part.large else "query-cards"
    first_cards = f'<div class="{kind}">{"".join(cards[:most])}</div>'
    more = "".join(cards[most:])
    if more:
        summary = f"<summary>{len(cards) - most:,} more</summary>"
        more = f'<details class="more">{summary}<div class="{kind}">{more}</div></details>'
    head = f"<h3>{escape(part.title)}</h3>" if part.title else ""
    facets = "".join(
        f'<div class="facet" role="group" aria-label="{escape(facet.name)}"><span>{escape(facet.name)}</span>'
        f"{''.join(_chip(choice, number) for choice in facet.choices)}</div>"
        for number, facet in enumerate(part.facets)
    )
    facets = f'<div class="facets">{facets}</div><p class="facts count" aria-live="polite"></p>' if facets else ""
    return f'<div class="browse">{head}{facets}{first_cards}{more}</div>'


def _chip(choice: FacetValue, facet: int) -> str:
    figure = "" if choice.figure is None else f" · {escape(str(choice.figure.number))}"
    label = f"{escape(choice.name)} <small>{choice.count:,}{figure}</small>"
    if choice.address:
        current = ' aria-current="true"' if choice.chosen else ""
        return f'<a class="chip" href="{escape(choice.address)}"{current}>{label}</a>'
    return (
        f'<button class="chip" type="button" disabled aria-pressed="false" data-facet="{facet}" '
        f'data-value="{escape(choice.name)}">{label}</button>'
    )


def _card(card: QueryCard, picture: Picture, *, large: bool) -> str:
    asked = f'<q dir="auto">{escape(card.asked)}</q>' if card.asked else ""
    asked = f'<a href="{escape(card.address)}">{asked or escape(card.query)}</a>' if card.address else asked
    figures = ""
    for drawn in card.pictures:
        captions = "".join(f'<figcaption dir="auto">{escape(line)}</figcaption>' for line in drawn.lines)
        tag = f'<span class="tag {drawn.mark}">{escape(drawn.marked_title)}</span>'
        figures += f"<figure>{tag}{picture(drawn)}{captions}</figure>"
    lines = "".join(f"<p>{escape(line)}</p>" for line in card.lines)
    facts = f'<p class="facts">{escape(" · ".join(card.facts))}</p>' if card.facts else ""
    attributes = "" if large else f' id="{escape(card_target(card.query))}"'
    attributes += f' data-values="{escape(chr(10).join(card.values))}"' if card.values else ""
    return f'<article class="query-card"{attributes}>{asked}<div class="two">{figures}</div>{lines}{facts}</article>'


def evidence_html(part: EvidenceList) -> str:
    """Ids, folded: an address that leads inside opens it."""
    addresses = part.addresses or ("",) * len(part.entries)
    items = "".join(
        f"<li>{f'<a href={chr(34)}{escape(address)}{chr(34)}>{escape(query)}</a>' if address else escape(query)}"
        f' <span dir="auto">{escape(text)}</span></li>'
        for (query, text), address in zip(part.entries, addresses, strict=True)
    )
    return (
        f'<details class="evidence"><summary>{escape(part.title)}</summary>'
        f'<ul id="{escape(part.target)}" tabindex="-1">{items}</ul></details>'
    )
