"""Sections as a stage of an audit keeps them: whatever was stored is restored, equal and as it is shown."""

from __future__ import annotations

import json
import math

import pytest

from crosslens.core import (
    AnsweredQuestion,
    Answers,
    Bars,
    Beside,
    Cards,
    Cloud,
    Code,
    Diffs,
    EvidenceList,
    Facet,
    FacetValue,
    FactList,
    Figure,
    Folded,
    Heat,
    Histogram,
    Interval,
    Intervals,
    Lines,
    Link,
    MarkedText,
    Multiple,
    PairedBar,
    PairedBars,
    PictureBox,
    PictureCard,
    QueryCard,
    QueryCards,
    Row,
    Scatter,
    Section,
    Series,
    Shares,
    SmallMultiples,
    Table,
    Text,
    TextDiff,
    restored_part,
    stored_part,
)
from crosslens.report.forms.terminal import terminal

SHARE = Figure.percent(0.5, 0.4, 0.6)
SERIES = (Series("a", (SHARE, Figure(None))), Series("b", (Figure(math.inf), Figure(1))))
PARTS = (
    Text(("first", "second"), note=True),
    FactList((("name", "what is said"),), "Facts"),
    Table(("a", "b"), ((Link("x", "/x"), SHARE), (3, None)), best=frozenset({(1, 0)}), narrow=Table(("a",), ())),
    Bars(title="bars", groups=("x", "y"), series=SERIES, mark=Series("chance", (SHARE, SHARE)), limits=(0, 1)),
    Shares(title="shares", groups=("x",), levels=("l", "m"), counts=((1.0, 2.0),)),
    Lines(title="lines", across=(1.0, 2.0), series=SERIES, axis="m", measured={"a": 1.0}, band=(0.0, 1.0, "why")),
    Heat(title="heat", rows=("r",), columns=("c",), cells=((SHARE,),), worse=True),
    Histogram(title="histogram", edges=(0.0, 1.0), counts=(2.0,), axis="x"),
    Scatter(title="scatter", clouds=(Cloud("c", ((1.0, 2.0),), ("label",), "ring"),), axis="x", up="y"),
    Cards("cards", (PictureCard("t", ("l",), "i", boxes=(PictureBox((0, 0, 1, 1), "n"),)),), {"i": "i.png"}, most=2),
    MarkedText("text", (("word", "no", "why"),)),
    Diffs((TextDiff("n", (("a", "b"),)),), rest="more"),
    Row((Bars(title="inside", groups=("x", "y"), series=SERIES),)),
    Text(("a term",), terms={"term": "what it means"}),
    Intervals(title="strip", rows=(Interval(SHARE, "a", "few", Figure(-1), "bad", "#e"),), limits=(0, 1), mark=0.5),
    SmallMultiples(
        title="groups", columns=("a", "b"), rows=(Multiple("x", (Interval(SHARE), None), "by x"),), means=(SHARE, SHARE)
    ),
    PairedBars(
        title="pairs",
        levels=(("both", "good"), ("same", "bad")),
        chance=0.25,
        files={"i": "i.png"},
        rows=(
            PairedBar(
                "left",
                (1, 3),
                SHARE,
                changed=("left", "right"),
                pictures=("i",),
                details=(Text(("inside",)),),
                addresses=("#a", "#b"),
            ),
        ),
    ),
    Answers((AnsweredQuestion("How good?", "Half.", "likely", "few pictures", "#g", "By kind"),)),
    QueryCards(
        (QueryCard("q", "a lamp", (PictureCard("1st", image="i", mark="wrong"),), values=("twin",)),),
        facets=(Facet("first", (FacetValue("twin", 1, SHARE, "/x", chosen=True),)),),
        files={"i": "i.png"},
    ),
    EvidenceList("e", "one query", (("q", "a lamp"),), ("#q-q",)),
    Code("crosslens demo"),
    Folded("more", (Text(("inside",)),), about="nothing new"),
    Beside(((Text(("left",)),), (Text(("right",)),))),
)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_parts_are_restored_from_json(part: object) -> None:
    section = Section("title", (part,), query="q")  # type: ignore[arg-type]
    restored = restored_part(json.loads(json.dumps(stored_part(section), allow_nan=False)))
    assert repr(restored) == repr(section), "repr tells NaN, None and numbers apart, and NaN equals itself in it"
    assert terminal([restored], None) == terminal([section], None)


@pytest.mark.parametrize("damaged", [{"part": "Nonsense"}, {"no": "part"}, {"part": "Text", "words": []}])
def test_other_content_is_refused(damaged: object) -> None:
    with pytest.raises((KeyError, TypeError)):
        restored_part(damaged)
