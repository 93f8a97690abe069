"""Changed captions to look at."""

from __future__ import annotations

import re
from html import unescape

from hypothesis import given, strategies as st

import crosslens as cl
from crosslens.perturbations import Edit, Perturbed
from crosslens.report.pages.caption_changes import changes_page
from crosslens.report.text.caption_changes import CaptionChanges, changes_text, diff_spans

SWAPPED = Perturbed("A <b>dog</b> & I", "A <b>dgo</b> & I", True, "", (Edit(6, 8, "og", "go"),))
LOST = Perturbed("A dog", "A dg", True, "", (Edit(3, 4, "o", ""),))
ALONE = Perturbed("42", "42", False, "no letter")
COUNTS = {"captions": 3, "applied": 2, "applied_share": 2 / 3, "reasons": {"no letter": 1}}
CHANGES = CaptionChanges("char_swap", "Swap.", {"a#0": SWAPPED, "<i>": LOST, "c": ALONE}, COUNTS)


@given(st.text(max_size=30), st.integers(0, 50))
def test_pieces_put_together_are_both_captions(text: str, seed: int) -> None:
    for name in ("nearby_char", "shuffle_all_words", "extra_char"):
        (perturbed,) = cl.perturb(name, [text], seed=seed)
        parts = list(diff_spans(perturbed))
        assert "".join(part.before for part in parts) == perturbed.original
        assert "".join(part.after for part in parts) == perturbed.text


def test_a_terminal_without_colour_gets_brackets() -> None:
    assert changes_text(CHANGES).splitlines() == [
        "char_swap: Swap.",
        "  2 of 3 captions changed (66.7%); the others: no letter (1)",
        "",
        "  - A <b>d[og]</b> & I",
        "  + A <b>d[go]</b> & I",
        "",
        "  - A d[o]g",
        "  + A dg",
        "",
        "    42",
        "    unchanged: no letter",
    ]


def test_a_terminal_with_colour_gets_colours() -> None:
    text = changes_text(CHANGES, colour=True)
    assert "\x1b[31mog\x1b[0m" in text
    assert "\x1b[32mgo\x1b[0m" in text
    assert "[og]" not in text


def test_a_caption_cannot_move_the_cursor() -> None:
    evil = Perturbed("a\n\x1b[2Jb", "a\n\x1b[2Jbc", True, "", (Edit(7, 7, "", "c"),))
    text = changes_text(CaptionChanges("x", "y", {"1": evil}, COUNTS))
    assert "\x1b" not in text
    assert r"a\n\x1b[2Jb[c]" in text


def test_the_page_marks_changes_and_escapes_everything() -> None:
    page = changes_page([CHANGES], "a & b <script>")
    assert "A &lt;b&gt;d<del>og</del><ins>go</ins>&lt;/b&gt; &amp; I" in page
    assert "A d<del>o</del>g" in page
    assert "unchanged: no letter" in page
    assert "<td>&lt;i&gt;</td>" in page
    assert "<title>a &amp; b &lt;script&gt;</title>" in page
    assert "<script" not in page
    assert not re.search(r"(?:src|href)=\"(?!data:|#)", page), "the page stands alone"


def test_the_page_tells_both_captions() -> None:
    page = changes_page([CHANGES], "t")
    cells = re.findall(r'<td dir="auto">(.*?)</td>', page)
    for cell, perturbed in zip(cells, (SWAPPED, LOST), strict=False):
        old = re.sub(r"<ins>.*?</ins>|</?del>", "", cell)
        new = re.sub(r"<del>.*?</del>|</?ins>", "", cell)
        assert (unescape(old), unescape(new)) == (perturbed.original, perturbed.text)


def test_what_stands_around_the_captions_fits_the_terminal() -> None:
    """Captions stay in one line each: they are there to be compared and copied."""
    counts = {"captions": 3, "applied": 1, "applied_share": 1 / 3, "reasons": {"no letter of the keyboard " * 3: 2}}
    long = Perturbed("dog " * 40, "god " + "dog " * 39, True, "", (Edit(0, 3, "dog", "god"),))
    changes = CaptionChanges(
        "char_swap", "Swap two different letters that stand side by side. " * 3, {"a": long}, counts
    )
    plain = changes_text(changes, 60).splitlines()
    captions = [line for line in plain if line.startswith(("  - ", "  + "))]
    assert len(captions) == 2
    assert max(len(line) for line in plain if line not in captions) <= 60
    assert "\x1b[1mchar_swap\x1b[0m: Swap" in changes_text(changes, 60, colour=True)


def test_changed_captions_first_and_for_programs() -> None:
    changes = CaptionChanges("char_swap", "", {"a": ALONE, "b": SWAPPED, "c": LOST}, {})
    assert list(changes.first(2).captions) == ["a", "b"]
    assert list(changes.changed_first(2).captions) == ["b", "c"]
    (row,) = changes.changed_first(1).as_dict()
    edit = {"start": 6, "end": 8, "before": "og", "after": "go"}
    assert (row["caption"], row["text"], row["applied"], row["edits"]) == ("b", SWAPPED.text, True, [edit])
