"""Changed captions to look at."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

from hypothesis import given, strategies as st

import crosslens as cl
from crosslens.perturbations import Edit, Perturbed, PerturbedCaptions, changed_first, diff_spans

SWAPPED = Perturbed("A <b>dog</b> & I", "A <b>dgo</b> & I", True, "", (Edit(6, 8, "og", "go"),))
LOST = Perturbed("A dog", "A dg", True, "", (Edit(3, 4, "o", ""),))
ALONE = Perturbed("42", "42", False, "no letter")
COUNTS = {"char_swap": {"captions": 3, "applied": 2, "applied_share": 2 / 3, "reasons": {"no letter": 1}}}
CHANGES = PerturbedCaptions("a & b <script>", COUNTS, {"char_swap": {"a#0": SWAPPED, "<i>": LOST, "c": ALONE}}, shown=3)


def of(perturbed: Perturbed) -> PerturbedCaptions:
    return replace(CHANGES, captions={"char_swap": {"1": perturbed}})


@given(st.text(max_size=30), st.integers(0, 50))
def test_pieces_put_together_are_both_captions(text: str, seed: int) -> None:
    for name in ("nearby_char", "shuffle_all_words", "extra_char"):
        (perturbed,) = cl.perturb(name, [text], seed=seed)
        spans = diff_spans(perturbed.original, perturbed.edits)
        assert "".join(before for before, _ in spans) == perturbed.original
        assert "".join(after for _, after in spans) == perturbed.text


def test_a_terminal_without_colour_gets_brackets() -> None:
    assert CHANGES.text().splitlines() == [
        "char_swap: Swap two different letters that stand side by side.",
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
    text = CHANGES.text(colour=True)
    assert "\x1b[31mog\x1b[0m" in text
    assert "\x1b[32mgo\x1b[0m" in text
    assert "[og]" not in text


def test_a_caption_cannot_move_the_cursor() -> None:
    evil = Perturbed("a\n\x1b[2Jb", "a\n\x1b[2Jbc", True, "", (Edit(7, 7, "", "c"),))
    for colour in (False, True):
        text = of(evil).text(colour=colour)
        assert "\x1b[2J" not in text
        assert r"a\n\x1b[2Jb" in text
    assert r"a\n\x1b[2Jb[c]" in of(evil).text()


def test_the_page_marks_changes_and_escapes_everything() -> None:
    page = CHANGES.content(".html").decode()
    assert "A &lt;b&gt;d<del>og</del><ins>go</ins>&lt;/b&gt; &amp; I" in page
    assert "A d<del>o</del>g" in page
    assert "unchanged: no letter" in page
    assert '<th scope="row">&lt;i&gt;</th>' in page
    assert "<title>a &amp; b &lt;script&gt;: perturbed captions</title>" in page
    assert "<script" not in page
    assert not re.search(r"(?:src|href)=\"(?!data:|#)", page), "the page stands alone"


def test_the_page_tells_both_captions() -> None:
    cells = re.findall(r'<td dir="auto">(.*?)</td>', CHANGES.content(".html").decode())
    assert len(cells) == 3
    for cell, perturbed in zip(cells, (SWAPPED, LOST), strict=False):
        old = re.sub(r"<ins>.*?</ins>|</?del>", "", cell)
        new = re.sub(r"<del>.*?</del>|</?ins>", "", cell)
        assert (unescape(old), unescape(new)) == (perturbed.original, perturbed.text)


def test_a_page_folds_what_are_more_than_a_few() -> None:
    many = replace(CHANGES, captions={"char_swap": {f"c{number}": LOST for number in range(30)}})
    page = many.content(".html").decode()
    before, _, folded = page.partition("<details><summary>10 more</summary>")
    assert (before.count("<del>"), folded.count("<del>")) == (20, 10)
    assert many.text().count("  + A dg") == 3


def test_markdown_has_differences_as_programs_show_them() -> None:
    text = CHANGES.content(".md").decode()
    assert "```diff\n@@ a#0 @@\n- A <b>dog</b> & I\n+ A <b>dgo</b> & I\n```" in text
    assert "```diff\n@@ c @@\n  42\n# unchanged: no letter\n```" in text


def test_what_stands_around_the_captions_fits_the_terminal() -> None:
    """Captions stay in one line each: they are there to be compared and copied."""
    counts = {"captions": 3, "applied": 1, "applied_share": 1 / 3, "reasons": {"no letter of the keyboard " * 3: 2}}
    long = Perturbed("dog " * 40, "god " + "dog " * 39, True, "", (Edit(0, 3, "dog", "god"),))
    plain = replace(of(long), counts={"char_swap": counts}).text(60).splitlines()
    captions = [line for line in plain if line.startswith(("  - ", "  + "))]
    assert len(captions) == 2
    assert max(len(line) for line in plain if line not in captions) <= 60


def test_without_captions_a_table_says_how_many() -> None:
    lines = replace(CHANGES, shown=0).text().splitlines()
    assert lines == ["perturbation   changed   share   if not, mostly", "char_swap            2   66.7%   no letter"]


def test_changed_captions_first_and_for_programs() -> None:
    dataset = cl.Dataset.of({"x": [ALONE.original, SWAPPED.original, LOST.original]})
    results = (ALONE, SWAPPED, LOST)
    assert list(changed_first(dataset, results, 2).values()) == [SWAPPED, LOST]
    assert list(changed_first(dataset, results, 3).values()) == [SWAPPED, LOST, ALONE]
    (row,) = replace(CHANGES, shown=1).as_dict()["shown"]["char_swap"]
    edit = {"start": 6, "end": 8, "before": "og", "after": "go"}
    assert (row["caption"], row["text"], row["applied"], row["edits"]) == ("a#0", SWAPPED.text, True, [edit])
