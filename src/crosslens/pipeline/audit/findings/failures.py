"""What failures say: what small changes cost, and what goes wrong most often."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from crosslens.pipeline.audit.findings.figures import Payload, Statement, percent, points, surely_above, surprise

_CHANGES: Mapping[str, str] = {
    "char_swap": "Swapping two letters",
    "missing_char": "Leaving out a letter",
    "extra_char": "Typing a letter too many",
    "nearby_char": "Hitting a neighbouring key",
    "synonym_noun": "Using synonyms of nouns",
    "synonym_adj": "Using synonyms of adjectives",
    "distraction_true": "Appending “and true is true”",
    "distraction_false": "Appending “and false is false”",
    "shuffle_nouns_and_adj": "Shuffling nouns and adjectives",
    "shuffle_all_words": "Shuffling all words",
    "shuffle_allbut_nouns_and_adj": "Shuffling all words but nouns and adjectives",
    "shuffle_within_trigrams": "Shuffling words within groups of three",
    "shuffle_trigrams": "Shuffling groups of three words",
    "antonym": "Turning adjectives into their opposite",
    "color_all": "Changing a colour",
    "color_in": "Changing a colour to another common one",
    "size": "Turning large into small",
}
_CAUSES: Mapping[str, str] = {
    "object": "an object that the caption names is missing",
    "count": "the number of objects is wrong",
    "colour": "a colour is wrong",
    "size": "a size is wrong",
    "position": "a position is wrong",
    "action": "an action is wrong",
    "detail": "a detail is missing",
    "near miss": "nothing that the caption says is wrong, so the image may fit as well",
}
_METRIC = "t2i/Hit@1"
_MAY_CHANGE = ("shuffle_", "antonym", "color_", "size", "verb_antonym", "number_change")
"""Changes after which a caption may mean something else: a small drop is then no merit."""


def brittle(payload: Payload) -> Iterator[Statement]:
    """What each perturbation costs; of those that scramble the meaning, where it costs nothing."""
    for row in payload["drops"]:
        if row["metric"] != _METRIC or row["drop"] is None:
            continue
        name = row["perturbation"]
        change = _CHANGES.get(name, f"The change {name}")
        if surely_above(row):
            cost = f"{change} costs {points(row['drop'], row)} of {_METRIC}"
            half = ": more than half of it" if row["drop"] > row["before"] / 2 else ""
            yield Statement(
                f"{cost}, which was {percent({'mean': row['before']})}{half}.", surprise(row["low"], row["before"])
            )
        elif name.startswith(_MAY_CHANGE) and (row["applied_share"] or 0) > 0.5 and row["before"] > 0.1:
            what = "reads word order" if name.startswith("shuffle_") else "notices"
            yield Statement(f"{change} costs nothing measurable: the model hardly {what}.", 0.8)


def explained(payload: Payload) -> Iterator[Statement]:
    """The most frequent main cause of failures, and the most frequent confusion."""
    if not payload["failures"]:
        return
    causes = [row for row in payload["causes"] if row["cause"] in _CAUSES and row["main_share"]]
    if causes:
        first, *others = sorted(causes, key=lambda row: -row["main_share"])
        misses = f"{payload['failures']:,} misses{' of a sample' if payload.get('sampled') else ''}"
        text = f"In {100 * first['main_share']:.0f} % of the {misses} {_CAUSES[first['cause']]}"
        if others:
            text += f"; in {100 * others[0]['main_share']:.0f} % {_CAUSES[others[0]['cause']]}"
        yield Statement(f"{text}.", 0.56)
    if payload["query_atlas"]:
        pair = payload["query_atlas"][0]
        yield Statement(
            f"The most frequent confusion: asked for {_word(pair['expected'])}, shown {_word(pair['shown'])} "
            f"({pair['count']:,} times).",
            0.25,
        )


def _word(synset: str) -> str:
    return synset.split(".")[0].replace("_", " ")


def counted_relevance(payload: Payload) -> Iterator[Statement]:
    """Whether the choice of m changes which run is ahead."""
    counts, runs = payload["m"], payload["runs"]
    if len(runs) < 2:
        return
    leaders = [max(runs, key=lambda run: runs[run]["SR"][index]["mean"] or 0) for index in range(len(counts))]
    if len(set(leaders)) > 1:
        changed = next(index for index, leader in enumerate(leaders) if leader != leaders[0])
        yield Statement(
            f"Which model is ahead by semantic recall depends on m: {leaders[0]} at {counts[0]}, {leaders[changed]} at "
            f"{counts[changed]}.",
            0.55,
        )
