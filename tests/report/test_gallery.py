"""Galleries: the lists of several models against plain sorting, which queries are chosen, and the page in a browser."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import crosslens as cl
from crosslens.core import InputError, UsageError
from crosslens.explanations import Gallery, retrieval_gallery

Array = np.ndarray[Any, Any]
NASTY = "<b>a & \"dog\"</b> 'x'"


def toys(images: int = 6, captions: int = 2) -> cl.Dataset:
    return cl.Dataset.of(
        {f"img{n}": [f"caption {m} about number {n}" for m in range(captions)] for n in range(images)}, name="toys"
    )


def runs_of(dataset: cl.Dataset, *matrices: Array) -> dict[str, cl.Run]:
    return {
        f"model {n}": cl.evaluate(dataset, scores=matrix, metrics="Hit@1", resamples=0, name=f"model {n}")
        for n, matrix in enumerate(matrices)
    }


def scores(images: int, captions: int, seed: int) -> Array:
    """Few different values: many ties."""
    return np.random.default_rng(seed).integers(0, 4, (images, captions)).astype(np.float32)


def sorted_list(matrix: Array, query: int) -> list[int]:
    """Higher scores first, equal ones in the order of the gallery."""
    return sorted(range(matrix.shape[1]), key=lambda item: (-matrix[query, item], item))


@pytest.mark.parametrize("direction", ["t2i", "i2t"])
def test_phi_tells_equally_good_lists_apart(direction: str) -> None:
    """As in FIVE's figure: both models miss, and one of them retrieves what is nearly right."""
    dataset = cl.Dataset.of({"a": ["a red bus"], "b": ["a red bus outside"], "c": ["two brown cats"]}, name="three")
    near, far = np.eye(3, dtype=np.float32), np.eye(3, dtype=np.float32)
    near[0, 1], near[1, 0], far[0, 2], far[2, 0] = 2, 2, 2, 2
    query = "a" if direction == "i2t" else dataset.caption_ids[0]
    runs = runs_of(dataset, near, far)
    gallery = retrieval_gallery(runs, dataset, [query], direction=direction, k=1, phi="cider")
    values = [ranked.items[0].phi for ranked in gallery.queries[0].lists]
    matrix = cl.relevance_matrix(dataset, "cider")
    assert values == pytest.approx([matrix[0, 1], matrix[0, 2]] if direction == "i2t" else [matrix[1, 0], matrix[2, 0]])
    assert values[0] > 0.1 > values[1]
    assert f"φ {values[0]:.2f}" in gallery.text(80)
    assert "by cider" in gallery.text(200)
    plain = retrieval_gallery(runs, dataset, [query], direction=direction, k=1)
    assert plain.queries[0].lists[0].items[0].phi is None
    assert "φ" not in plain.text(80)


@settings(max_examples=4, deadline=None)
@given(st.integers(3, 7), st.integers(1, 3), st.integers(1, 4), st.integers(0, 99), st.sampled_from(["t2i", "i2t"]))
def test_agrees_with_plain_sorting(images: int, captions: int, k: int, seed: int, direction: str) -> None:
    dataset = toys(images, captions)
    matrices = [scores(images, images * captions, seed + n) for n in range(2)]
    ids = dataset.caption_ids if direction == "t2i" else dataset.image_ids
    items = dataset.image_ids if direction == "t2i" else dataset.caption_ids
    result = retrieval_gallery(runs_of(dataset, *matrices), dataset, ids, direction=direction, k=k)
    assert [query.query for query in result.queries] == list(ids)
    sides = [matrix.T if direction == "t2i" else matrix for matrix in matrices]
    overlaps = []
    for row, query in enumerate(result.queries):
        lists = [sorted_list(side, row) for side in sides]
        right = {row // captions} if direction == "t2i" else set(range(row * captions, (row + 1) * captions))
        for result_list, ranked, side in zip(query.lists, lists, sides, strict=True):
            assert [item.item for item in result_list.items] == [items[item] for item in ranked[:k]]
            assert [item.score for item in result_list.items] == [side[row, item] for item in ranked[:k]]
            assert [item.relevant for item in result_list.items] == [item in right for item in ranked[:k]]
            assert result_list.first_relevant == 1 + min(ranked.index(item) for item in right)
            expected = [sum(item in items_of_list[:k] for items_of_list in lists) for item in ranked[:k]]
            assert [item.lists for item in result_list.items] == expected
        length = min(k, len(items))
        pairs = [len(set(a[:k]) & set(b[:k])) / length for a, b in combinations(lists, 2)]
        assert query.overlap == pytest.approx(sum(pairs) / len(pairs))
        overlaps.append(query.overlap)
    assert result.overlap == pytest.approx(sum(overlaps) / len(overlaps))


def test_captions_come_with_their_text_and_image() -> None:
    dataset = toys()
    result = retrieval_gallery(runs_of(dataset, scores(6, 12, 1)), dataset, ["img2"], k=3)
    query = result.queries[0]
    assert (result.direction, query.image, query.text) == ("i2t", "img2", None), "only image queries have that id"
    for item in query.lists[0].items:
        row = dataset.caption_ids.index(item.item)
        assert (item.text, item.image) == (dataset.texts[row], dataset.image_ids[dataset.caption_image[row]])


def test_queries_by_a_part_of_their_text() -> None:
    dataset = toys()
    runs = runs_of(dataset, scores(6, 12, 1))
    matching = [query.query for query in retrieval_gallery(runs, dataset, ["ABOUT NUMBER 3"]).queries]
    assert matching == ["img3#0", "img3#1"]
    images = retrieval_gallery(runs, dataset, ["about number 3"], direction="i2t")
    assert [query.query for query in images.queries] == ["img3"]
    with pytest.raises(InputError, match="no t2i query has the id 'zebra' or contains it"):
        retrieval_gallery(runs, dataset, ["zebra"])
    with pytest.raises(InputError, match="no t2i query"):
        retrieval_gallery(runs, dataset, [" "])


def test_a_word_that_many_queries_contain_is_cut() -> None:
    dataset = toys(15)
    result = retrieval_gallery(runs_of(dataset, scores(15, 30, 1)), dataset, ["caption"])
    assert len(result.queries) == 20
    assert "30 queries contain 'caption'" in result.notes[0]


def test_the_hardest_are_hard_for_every_model() -> None:
    dataset = toys(5, 1)
    first, second = scores(5, 5, 1), scores(5, 5, 2)
    ranks = [[sorted_list(matrix.T, row).index(row) + 1 for matrix in (first, second)] for row in range(5)]
    order = sorted(range(5), key=lambda row: (-min(ranks[row]), -max(ranks[row]), row))
    result = retrieval_gallery(runs_of(dataset, first, second), dataset, hardest=5)
    assert [query.query for query in result.queries] == [f"img{row}#0" for row in order]


def test_drawn_queries_depend_on_the_seed_alone() -> None:
    dataset = toys()
    runs = runs_of(dataset, scores(6, 12, 1))
    drawn = [
        [query.query for query in retrieval_gallery(runs, dataset, random=4, seed=seed).queries] for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(set(drawn[0])) == 4
    assert len(retrieval_gallery(runs, dataset).queries) == 5, "five where nothing is chosen"
    assert len(retrieval_gallery(runs, dataset, random=99).queries) == 12


def test_bad_input() -> None:
    dataset = toys()
    runs = runs_of(dataset, scores(6, 12, 1))
    with pytest.raises(UsageError, match="k is 0"):
        retrieval_gallery(runs, dataset, k=0)
    with pytest.raises(UsageError, match="keeps the first 10 items"):
        retrieval_gallery(runs, dataset, k=11, direction="i2t")
    small = toys(3)
    strange = runs_of(cl.Dataset.of({f"x{n}": ["a"] for n in range(3)}), scores(3, 3, 1))
    with pytest.raises(InputError, match="no query in common"):
        retrieval_gallery({**runs_of(small, scores(3, 6, 1)), "strange": strange["model 0"]}, small)


def pictures(folder: Path, dataset: cl.Dataset, *, without: int) -> dict[str, str]:
    image = pytest.importorskip("PIL.Image", reason="pip install 'crosslens[encoders]'")
    files = {}
    for number, name in enumerate(dataset.image_ids[without:]):
        noise = np.random.default_rng(number).integers(0, 255, (300, 400, 3), np.uint8)
        image.fromarray(noise).save(folder / f"{name}.png")
        files[name] = str(folder / f"{name}.png")
    files[dataset.image_ids[0]] = str(folder / "not there.png")
    return files


def both(direction: str) -> Gallery:
    dataset = cl.Dataset.of({**{f"img{n}": [f"text {n}", f"more {n}"] for n in range(5)}, NASTY: [NASTY]}, name=NASTY)
    runs = runs_of(dataset, scores(6, 11, 1), scores(6, 11, 2))
    return retrieval_gallery({NASTY: runs["model 0"], "b": runs["model 1"]}, dataset, random=3, direction=direction)


@pytest.mark.parametrize("direction", ["t2i", "i2t"])
def test_the_page_marks_relevant_items_in_words(direction: str) -> None:
    gallery = both(direction)
    page = gallery.content(".html").decode()
    assert NASTY not in page
    items = [item for query in gallery.queries for result_list in query.lists for item in result_list.items]
    assert page.count('<figure class="right">') == sum(item.relevant for item in items) > 0
    assert page.count("✓ relevant<") == sum(item.relevant for item in items)
    assert page.count("<figure") == len(items), "without pictures, no frames"
    below = [
        result_list
        for query in gallery.queries
        for result_list in query.lists
        if (result_list.first_relevant or 0) > gallery.k
    ]
    assert page.count("below the top 5") == len(below)


def test_a_terminal_cuts_captions_and_files_do_not() -> None:
    dataset = cl.Dataset.of({f"img{n}": [f"a caption {n} " + 30 * "of many words "] for n in range(6)}, name="long")
    gallery = retrieval_gallery(runs_of(dataset, scores(6, 6, 1), scores(6, 6, 2)), dataset, ["img1", "img2"], k=2)
    assert gallery.direction == "i2t"
    lines = gallery.text(80).splitlines()
    assert max(map(len, lines)) <= 80
    assert sum("…" in line for line in lines) == 4
    assert dataset.texts[0].strip() in gallery.content(".md").decode()
    assert {"pictures", "problem"}.isdisjoint(gallery.as_dict())


def test_pictures_keep_to_the_budget_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = toys()
    gallery = retrieval_gallery(runs_of(dataset, scores(6, 12, 1), scores(6, 12, 2)), dataset, random=12)
    gallery = replace(gallery, pictures=pictures(tmp_path, dataset, without=1), problem="one is not there")
    large = gallery.content(".html").decode()
    assert len(set(re.findall(r'src="(data:image/webp[^"]+)"', large))) == 5
    assert "the pictures are missing: one is not there" in large
    monkeypatch.setattr("crosslens.report.forms.page._BUDGET", 2_000_000)
    sizes = [
        sum(map(len, re.findall(r'src="(data:[^"]+)"', page))) for page in (gallery.content(".html").decode(), large)
    ]
    assert sizes[0] <= 2_000_000 < sizes[1]


def test_a_page_begins_with_links_to_its_queries() -> None:
    dataset = cl.Dataset.of({NASTY: ["one"], "img1": ["two"]}, name="toys")
    runs = runs_of(dataset, scores(2, 2, 1))
    page = retrieval_gallery(runs, dataset, dataset.caption_ids).content(".html").decode()
    links = re.findall(r'<a href="#(.*?)">(.*?)</a>', page)
    assert [unescape(name) for _, name in links] == list(dataset.caption_ids)
    headings = re.findall(r'<section id="(.*?)"><h2>(.*?): (?:one|two)</h2>', page)
    assert headings == links
    assert page.index("<nav") < page.index("<section")
    alone = retrieval_gallery(runs, dataset, dataset.caption_ids[:1]).content(".html").decode()
    assert "<nav" not in alone
