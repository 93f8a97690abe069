"""Explanations as text and as a page: whole, escaped, and readable without a network."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.core import markdown_text
from crosslens.explanations import ExplainedQueries, Explanation, explain_queries
from crosslens.explanations.overview import size_notes
from crosslens.report.forms.boxes import label_positions
from crosslens.values import Dataset, Run

NASTY = '<script>alert("x")</script> & "quotes"'


def dataset_with(captions: dict[str, list[str]], *, boxes: bool = True) -> Dataset:
    without_objects = Dataset.of(captions, images={"width": [100] * len(captions), "height": [50] * len(captions)})
    images = list(captions)
    rows = [
        (images[0], "dog", "dog.n.01", 10.0, 5.0, 20.0, 20.0, ["brown", NASTY]),
        (images[0], NASTY, "frisbee.n.01", 60.0, 5.0, 10.0, 10.0, []),
        (images[1], "dog", "dog.n.01", 5.0, 5.0, 40.0, 40.0, ["white"]),
        (images[1], "boat", "boat.n.01", 50.0, 5.0, 20.0, 10.0, []),
    ]
    columns = ["image", "name", "synset", "x", "y", "w", "h", "attributes"]
    objects = pl.DataFrame(rows, schema=columns, orient="row")
    objects = objects if boxes else objects.with_columns(*(pl.lit(None).alias(side) for side in "xywh"))
    return replace(without_objects, objects=objects)


@pytest.fixture(scope="module")
def explanations() -> list[Explanation]:
    pytest.importorskip("spacy", reason="pip install 'crosslens[language]'")
    data = dataset_with({NASTY: [f"A black dog and a frisbee {NASTY}"], "beach": ["a white dog and a boat"]})
    return explained(data, [f"{NASTY}#0", "beach#0", NASTY])


def explained(data: Dataset, queries: list[str]) -> list[Explanation]:
    scores = np.array([[0.5, 0.6], [0.9, 0.8]], np.float32)
    run: Run = cl.evaluate(data, scores=scores, metrics=["Hit@1"], resamples=10, name=NASTY)
    return explain_queries(run, data, queries)


def page_of(explained: list[Explanation], files: dict[str, str] | None = None, run: str = NASTY) -> str:
    result = ExplainedQueries(run, "drawn", tuple(explained), files or {})
    return result.content(".html").decode()


def test_the_text_fits_80_columns_and_says_everything(explanations: list[Explanation]) -> None:
    for explained in explanations:
        text = explained.text(80)
        assert all(len(line) <= 80 for line in text.splitlines())
        for title in ("Pictures", "Words of the ", "Concepts", "Boxes, matched by area", "The list", "Metrics"):
            assert title in text
    failure = explanations[0].text(80)
    assert "[artifact.n.01]" in failure, "the common hypernym of frisbee and boat"
    assert re.search(r"1 +dog +8\.0% +32\.0% +4\.00 +3\.00", failure)
    assert re.search(r"black +colour of dog +no +no +dog: white", failure)


def test_a_box_that_shrinks_is_noted(explanations: list[Explanation]) -> None:
    """The dog of the right image fills 8 % of it and that of the retrieved one 32 %; then the reverse."""
    note = "is not counted in SD[binary]"
    assert note not in " ".join(explanations[0].text(80).split())
    data = dataset_with({"large": ["a dog and a frisbee"], "small": ["a white dog and a boat"]})
    assert data.objects is not None
    exchanged = data.objects.with_columns(pl.col("image").replace({"large": "small", "small": "large"}))
    shrunk = explained(replace(data, objects=exchanged), ["large#0"])[0]
    assert shrunk.boxes[0]["ratio"] < 1
    assert " ".join(shrunk.text(80).split()).count(note) == 1


def test_the_overview_says_what_sizes_cannot_show() -> None:
    metrics = pl.DataFrame({"metric": ["SD[binary]"], "mean": [0.3]})
    assert "a box that shrank never does" in " ".join(size_notes({"base": "ground_truth", "threshold": 1.0}, metrics))
    assert not size_notes({"base": "min", "threshold": 1.0}, metrics)
    assert not size_notes({"base": "ground_truth", "threshold": 0.5}, metrics), "then boxes of half the area count"
    assert not size_notes({"base": "ground_truth", "threshold": 1.0}, metrics.clear()), "nothing was measured"


class Reading(HTMLParser):
    """Tags that open and close, and what stands between them."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.said = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said += data


def read(page: str) -> Reading:
    reading = Reading()
    reading.feed(page)
    assert not reading.open
    return reading


def test_the_page_is_whole_escaped_and_draws_every_box(explanations: list[Explanation]) -> None:
    reading = read(page_of(explanations))
    assert not [tag for tag, _ in reading.tags if tag == "script"]
    assert NASTY in reading.said
    boxes = [attributes for tag, attributes in reading.tags if tag == "rect" and attributes.get("class") == "box"]
    assert len(boxes) == 4 * len(explanations)
    first = boxes[0]
    assert (first["x"], first["y"], first["width"], first["height"]) == ("10", "5", "20", "20")
    frames = [attributes["viewbox"] for tag, attributes in reading.tags if tag == "svg"]
    assert frames == ["0 0 100 50"] * 2 * len(explanations), "an empty frame has the picture's proportions"
    assert all(attributes.get("aria-label") for tag, attributes in reading.tags if tag == "svg")
    assert all(attributes.get("scope") for tag, attributes in reading.tags if tag == "th")
    for explained in explanations:
        for sentence in explained.sentences:
            assert sentence.text in reading.said


def test_matched_boxes_share_a_number_and_a_colour(explanations: list[Explanation]) -> None:
    page = page_of(explanations[:1])
    names = re.findall(r'<rect x[^>]*fill="(#\w+)"/><text[^>]*>([^<]*)<', page)
    boxes = re.findall(r'<rect class="box"[^>]*stroke="(#\w+)"[^>]*?( stroke-dasharray[^>]*)?/>', page)
    assert sorted(text for _, text in names) == sorted(["1 dog", "1 dog", escape(NASTY), "boat"])
    dog, boat = ({colour for colour, text in names if text == name} for name in ("1 dog", "boat"))
    assert len(dog) == 1
    assert dog != boat
    assert [colour in dog for colour, dashed in boxes if not dashed] == [True, True], "matched boxes are whole"
    assert [colour in dog for colour, dashed in boxes if dashed] == [False, False]


def test_words_are_marked_in_the_query(explanations: list[Explanation]) -> None:
    page = page_of(explanations[:1])
    assert re.search(r'<mark class="no" title="dog: white">black', page)
    assert re.search(r'<mark class="yes"[^>]*>dog', page)
    assert "✗ it does not" in page


def test_a_notebook_shows_boxes_and_marks(explanations: list[Explanation]) -> None:
    page = read(explanations[0]._repr_html_())
    boxes = [attributes for tag, attributes in page.tags if tag == "rect" and attributes.get("class") == "box"]
    assert [box["fill"] for box in boxes] == ["none"] * 4, "a notebook's style knows nothing of boxes"
    assert {"yes", "no"} <= {attributes["class"] for tag, attributes in page.tags if tag == "mark"}


def test_a_notebook_shows_the_photos_of_the_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = pytest.importorskip("PIL.Image", reason="pip install 'crosslens[images]'")
    monkeypatch.chdir(tmp_path)
    for name in ("a.png", "b.png"):
        image.new("RGB", (40, 20), "red").save(tmp_path / name)
    data = Dataset.of({"a": ["a red dog"], "b": ["a boat"]}, images={"file": ["a.png", "b.png"]})
    scores = np.array([[0.5, 0.6], [0.9, 0.8]], np.float32)
    run = cl.evaluate(data, scores=scores, metrics=["Hit@1"], resamples=0)
    page = cl.explain(run, "a#0", dataset=data)._repr_html_()
    assert re.findall(r'<img src="data:image/webp[^"]*" alt="(\w+):', page) == ["right", "retrieved"]


def test_csv_says_which_query_a_row_is_of(explanations: list[Explanation], tmp_path: Path) -> None:
    queries = [query for query in explanations if query.direction == "t2i"]
    file = ExplainedQueries("tiny", "drawn", tuple(queries)).save(tmp_path / "why.csv")
    assert len(queries) == 2
    assert set(pl.read_csv(file)["query id"]) == {query.query for query in queries}


def test_every_file_says_what_went_wrong(explanations: list[Explanation], tmp_path: Path) -> None:
    result = ExplainedQueries("tiny", "drawn", tuple(explanations))
    for ending, written in ((".md", markdown_text), (".txt", str)):
        content = " ".join(result.save(tmp_path / f"why{ending}").read_text(encoding="utf-8").split())
        assert all(written(sentence.text) in content for explained in explanations for sentence in explained.sentences)
    assert "dog: white" in result.save(tmp_path / "why.csv").read_text(encoding="utf-8")
    assert "dog: white" in result.save(tmp_path / "why.tex").read_text(encoding="utf-8")


def test_pictures_are_embedded_where_they_can_be_read(explanations: list[Explanation], tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="pip install 'crosslens[encoders]'")
    image.new("RGB", (2000, 1000), "navy").save(tmp_path / "large.png")
    (tmp_path / "broken.png").write_bytes(b"no picture")
    files = {NASTY: str(tmp_path / "large.png"), "beach": str(tmp_path / "broken.png")}
    page = page_of(explanations[:1], files)
    assert page.count("data:image/webp;base64,") == 1
    assert len(page) < 100_000, "made small"
    assert str(tmp_path) not in page


def test_without_boxes_there_is_the_photo_alone_in_its_own_shape(tmp_path: Path) -> None:
    pytest.importorskip("spacy", reason="pip install 'crosslens[language]'")
    image = pytest.importorskip("PIL.Image", reason="pip install 'crosslens[encoders]'")
    image.new("RGB", (200, 300), "navy").save(tmp_path / "portrait.png")
    data = dataset_with({"park": ["a dog"], "beach": ["a boat"]}, boxes=False)
    page = page_of(explained(data, ["park#0"]), {"park": str(tmp_path / "portrait.png")})
    assert "no boxes" not in re.sub(r"<p.*?</p>", "", page)
    assert "<svg" not in page
    (photo,) = re.findall(r"<img [^>]*>", page)
    assert 'width="200" height="300"' in photo
    assert page.count("<figcaption>") == 2, "the other picture has no file: its captions stand alone"
    assert "Boxes with the same number" not in page


@pytest.mark.parametrize("seed", range(5))
def test_labels_of_small_boxes_do_not_cover_each_other(seed: int) -> None:
    random = np.random.default_rng(seed)
    boxes = [(float(x), float(y), 8.0, 8.0) for x, y in random.uniform(200, 260, (14, 2))]
    positions = label_positions([f"{n} sports ball" for n in range(14)], boxes, (640.0, 480.0))
    drawn = [position for position in positions if position is not None]
    assert len(drawn) >= 8
    assert not any(first.overlaps(second) for first, second in combinations(drawn, 2))
    assert all(0 <= position.x <= 640 - position.long and 0 <= position.y <= 480 - position.high for position in drawn)


def test_a_label_alone_is_on_the_upper_edge_of_its_box() -> None:
    (position,) = label_positions(["dog"], [(100.0, 100.0, 50.0, 50.0)], (600.0, 400.0))
    assert position is not None
    assert (position.x, position.y + position.high) == (100, 100)
