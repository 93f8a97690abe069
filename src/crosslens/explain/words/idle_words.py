"""Words of a query that no picture can contradict: judging them would only find fault."""

from __future__ import annotations

from crosslens.language.scene_words import QUANTITIES


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NOTHING_TO_SEE = _words(
    """air anything area background back bunch center choice couple everything foreground frame front group image inside
    kind lot middle number one other outside pair part photo photograph picture scene shot side something stuff thing
    top type variety view way"""
)
"""Nouns that no picture can lack."""
NOTHING_HAPPENS = _words("appear be contain feature get go have include like look make prepare see seem show take use")
"""Verbs that say too little to be missing from a picture."""
NOTHING_SAID = QUANTITIES | _words("different few many more other own same several various")
"""Attributes that no picture can contradict."""
NOT_VERBS = _words("back close down front in near off on out round side top up")
"""Prepositions and particles that WordNet lists as verbs too."""
NOT_PLACES = _words("of with for like as have by without")
"""The first words of relations that say nothing about where something is."""
