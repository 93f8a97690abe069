"""Ids with white space, quotes and signs: whatever crosslens writes gives them back exactly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, strategies as st

import crosslens as cl
from crosslens.analyze import apply_review
from crosslens.data import WRITERS, load_dataset, read_table, write_dataset
from crosslens.report import EXPORTS, render_export
from crosslens.values import ESCAPED_ON_LINES, escape_ids, escape_note, unescape_ids
from tests.commands import Call, call as call

HARD = (
    "my photo 1.jpg", "a%20b", "%%a%20b", "%%a b", "%%", "%", "100% cat", "#1", "# a", "[1", '{"a": 1}', " lead",
    "trail ", "tab\there", "line\nbreak", "line\r\nbreak", "cr\r", "no-break\u00a0space", "thin\u2009space",
    "line\u2028separator", "\u3000", "\ufeffmark", 'quote"d', "'", "a,b", "a;b", "a|b", "back\\slash", "ünïcode",
    "=1+1", "\x1fus", "\x85", "https://x.org/a%20b?c=1#2", "Q0", "0", "-1", "nan", "null", "a#0", "a#0 #1",
)  # fmt: skip
IDS = st.text(
    st.one_of(st.sampled_from(" \t\n\r%#\"',;|\\=@[{\u00a0\u2028\u3000\ufeff\x1f\x85"), st.characters(codec="utf-8")),
    min_size=1,
    max_size=12,
).filter(lambda name: "\0" not in name)
"""Any ids, of which many are hard to write."""
LISTS = st.lists(IDS, min_size=3, max_size=6, unique=True)


@given(IDS)
def test_escaping_gives_every_id_back(name: str) -> None:
    for where in (None, ESCAPED_ON_LINES):
        (written,) = escape_ids([name]) if where is None else escape_ids([name], where)
        assert unescape_ids([written]) == (name,)
        assert "\n" not in written
        assert "\t" not in written
        assert written == written.strip()
    (written,) = escape_ids([name])
    assert len(written.split()) == 1
    assert not written.startswith(("#", "[", "{"))


@pytest.mark.parametrize("name", HARD)
def test_hard_ids(name: str) -> None:
    assert unescape_ids(escape_ids([name])) == (name,)
    assert unescape_ids(escape_ids([name], ESCAPED_ON_LINES)) == (name,)


def test_ids_that_need_no_escape_are_written_as_they_are() -> None:
    plain = ("photo.jpg", "a%20b", "https://x.org/a%20b?c=1#2", "100%", "a#0", "ünïcode", 'quote"d', "a,b")
    assert escape_ids(plain) == plain
    assert unescape_ids(plain) == plain
    # What others wrote with the mark, and we would not have, stays, too.
    foreign = ("%%", "%%abc", "%%a%00", "%%a%00%20b", "%%a%2", "%%a%ffb", "%%a%2fb%20c", "%%%41")
    assert unescape_ids(foreign) == foreign
    assert escape_ids(["my photo.jpg", "#1", "%%a%20b"]) == ("%%my%20photo.jpg", "%%#1", "%%%25%25a%2520b")
    assert escape_note(plain) is None
    assert escape_note(["a", "b c", "d e"]) == (
        "2 ids hold what separates columns, and 'b c' is written as %%b%20c: crosslens reads it back"
    )


def ranked(queries: list[str], items: list[str]) -> cl.RankedLists:
    scores = np.random.default_rng(0).standard_normal((len(queries), len(items))).tolist()
    return cl.RankedLists.of(
        {query: dict(zip(items, row, strict=True)) for query, row in zip(queries, scores, strict=True)}
    )


@pytest.mark.parametrize("ending", [".run", ".json", ".jsonl", ".run.gz"])
@given(queries=LISTS, items=LISTS, system=IDS)
@example(queries=list(HARD), items=list(HARD), system="my model")
def test_runs(
    ending: str, tmp_path_factory: pytest.TempPathFactory, queries: list[str], items: list[str], system: str
) -> None:
    lists = ranked(queries, items)
    path = tmp_path_factory.mktemp("runs") / f"r{ending}"
    cl.write_run(lists, path, system)
    again = cl.read_run(path)
    assert again.query_ids == lists.query_ids
    assert [[again.item_ids[item] for item in again.items[start:end]] for start, end in spans(again)] == [
        [lists.item_ids[item] for item in lists.items[start:end]] for start, end in spans(lists)
    ]
    if "json" not in ending:
        assert again.system == system
        assert all(len(line.split()) == 6 for line in read(path).splitlines()), "as other programs read it"


def read(path: Path) -> str:
    import gzip

    return (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode()


def spans(lists: cl.RankedLists) -> list[tuple[int, int]]:
    return [(int(start), int(end)) for start, end in zip(lists.offsets[:-1], lists.offsets[1:], strict=True)]


@pytest.mark.parametrize("ending", [".qrels", ".json", ".jsonl"])
@given(queries=LISTS, items=LISTS)
@example(queries=list(HARD), items=list(HARD))
def test_qrels(ending: str, tmp_path_factory: pytest.TempPathFactory, queries: list[str], items: list[str]) -> None:
    pairs = [(query, item) for number, query in enumerate(queries) for item in items[: 1 + number % len(items)]]
    relevance = cl.Relevance.from_pairs(*zip(*pairs, strict=True), query_ids=queries, item_ids=items)
    path = tmp_path_factory.mktemp("qrels") / f"q{ending}"
    cl.write_qrels(relevance, path)
    again = cl.read_qrels(path)
    assert {
        (again.query_ids[row], again.item_ids[item]) for row, item in zip(again.rows, again.items, strict=True)
    } == set(pairs)


FILES = {
    "plain": (".jsonl", ".csv", ".tsv", ".parquet", ".tsv.gz"), "flickr": (".txt",), "coco": (".json",),
    "karpathy": (".json",), "folder": ("",), "visual_genome": ("",),
}  # fmt: skip
NUMBERED = ("karpathy", "flickr")
"""Formats that number captions themselves."""


def test_every_writer_has_its_files_here() -> None:
    assert {entry.name for entry in WRITERS} - {"coco_instances"} == set(FILES)


@pytest.mark.parametrize(("to", "ending"), [(to, ending) for to, endings in FILES.items() for ending in endings])
@given(images=LISTS)
@example(images=list(HARD))
def test_datasets(to: str, ending: str, tmp_path_factory: pytest.TempPathFactory, images: list[str]) -> None:
    dataset = cl.Dataset.of({image: [f"a caption of {number}"] for number, image in enumerate(images)})
    path = tmp_path_factory.mktemp("datasets") / f"d{ending}"
    if to == "karpathy" and any("/" in image for image in images):
        return  # what is before a slash is the folder of the file there
    write_dataset(dataset, path, to=to)
    options = {"flickr": "captions", "visual_genome": "folder"}
    again = load_dataset(to, **{options[to]: path}) if to in options else load_dataset(path)
    assert again.image_ids == dataset.image_ids
    assert again.texts == dataset.texts
    if to not in NUMBERED:
        assert again.caption_ids == dataset.caption_ids


def test_exports_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every registered export takes ids of any kind; those that crosslens reads give them back."""
    dataset = cl.Dataset.of({image: [f"caption {number}"] for number, image in enumerate(HARD)})
    scores = np.random.default_rng(0).standard_normal((len(HARD), len(HARD)))
    run = cl.evaluate(dataset, scores=scores, metrics="Hit@1", resamples=0)
    for entry in EXPORTS:
        files = render_export(run, entry.name)
        error = capsys.readouterr().err
        assert error.count("note: ") == (entry.name == "trec")
        for direction, content in files.items():
            if entry.name in ("trec", "ranx"):
                path = tmp_path / f"{direction}{entry.details['suffix']}"
                path.write_text(content, encoding="utf-8", newline="")
                assert set(cl.read_run(path).query_ids) == set(run.rankings[direction].query_ids)
                assert set(cl.read_run(path).item_ids) == set(run.rankings[direction].item_ids)


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_reviewed_labels(ending: str, tmp_path: Path) -> None:
    dataset = cl.Dataset.of({image: [f"{number} cats", f"a dog, {number} cats"] for number, image in enumerate(HARD)})
    scores = np.random.default_rng(0).standard_normal((len(HARD), 2 * len(HARD)))
    run = cl.evaluate(dataset, scores=scores, metrics="Hit@1", resamples=0)
    quality = cl.analyze.assess_label_quality(dataset, {"model": run}, words=False)
    quality.write(tmp_path / f"review{ending}")
    assert set(read_rows(tmp_path / f"review{ending}")) >= {" lead", "trail ", "\u3000", "line\nbreak"}
    assert apply_review(dataset, tmp_path / f"review{ending}").dataset.image_ids == dataset.image_ids


def read_rows(path: Path) -> list[str]:
    frame = pl.read_ndjson(path) if path.suffix == ".jsonl" else read_table(path).frame
    return frame["image"].to_list()


@pytest.mark.slow
def test_an_audit_of_photos_with_spaces_in_their_names_has_all_stages(tmp_path: Path, call: Call) -> None:
    texts = {f"my photo {k}.jpg": [f"a dog and {k} cats on grass", f"{k} cats beside a dog"] for k in range(8)}
    captions = [f'{{"image": "{image}", "text": "{text}"}}\n' for image, pair in texts.items() for text in pair]
    (tmp_path / "captions.jsonl").write_text("".join(captions))
    np.save(tmp_path / "scores.npy", np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32))
    done = call(
        "audit", "--dataset", tmp_path / "captions.jsonl", "--scores", tmp_path / "scores.npy", "--quick",
        "--resamples", "5", "-o", tmp_path / "out",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "missing-positives: left out" not in done.err
    assert "is written as %%my%20photo%200.jpg" in done.err
    (qrels,) = (tmp_path / "out").rglob("completed.qrels")
    assert set(cl.read_qrels(qrels).query_ids) == set(texts)
    again = call(
        "evaluate", "--dataset", tmp_path / "captions.jsonl", "--scores", tmp_path / "scores.npy", "--qrels", qrels,
        "--metrics", "Hit@1", "--resamples", "0",
    )  # fmt: skip
    assert again.code == 0, again.err
