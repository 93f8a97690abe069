"""The verification sheet: what it lists, and what becomes of verdicts when it comes back."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import crosslens as cl
from crosslens.build import Recos, RecosSettings, build_recos, read_sheet
from crosslens.core import ConflictError, CrosslensError, InputError, UsageError
from tests.build.recos_builds import angle, content, toy
from tests.build.toy_models import Fickle, OnlyTexts, Words
from tests.tables import each_row, rest_slow

_SETTINGS = RecosSettings(k=4, eta=1, temperature=0.5, descriptions=3, originals=4, similar=1, duplicate_cosine=2)


@pytest.fixture
def bench(tmp_path: Path) -> Callable[..., Recos]:
    """Builds of twelve images with two captions each and a generator that writes the missing third."""
    dataset = cl.Dataset.of({f"image {n}": [f"a dog and {n} cats", f"{n} cats on a mat"] for n in range(12)})
    vectors = Words().encode_texts([f"cats {n}" for n in range(12)])
    cl.Embeddings(dataset.image_ids, vectors, model="toy").save(tmp_path / "vectors" / "images")

    seeds = count()

    def build(output: str | None = None, **options: Any) -> Recos:
        where = {} if output is None else {"output": tmp_path / output}
        options = {"generator": Fickle(seed=next(seeds)), "text_encoder": OnlyTexts(), **where, **options}
        return build_recos(dataset, f"file:{tmp_path / 'vectors'}", _SETTINGS, **options)

    build.__dict__["dataset"] = dataset
    return build


def fill(sheet: Path, target: Path, **verdicts: dict[int, str]) -> Path:
    """The sheet with values in some rows of some columns."""
    table = pl.read_csv(sheet, infer_schema=False)
    for column, values in verdicts.items():
        cells = [values.get(row, cell) for row, cell in enumerate(table[column])]
        table = table.with_columns(pl.Series(column, cells, dtype=pl.String))
    if target.suffix == ".jsonl":
        table.write_ndjson(target)
    else:
        table.write_csv(target, separator="\t" if target.suffix == ".tsv" else ",")
    return target


def test_the_sheet_lists_every_description(bench: Callable[..., Recos], tmp_path: Path) -> None:
    built = bench("bench")
    sheet = pl.read_csv(tmp_path / "bench" / "verify.csv", infer_schema=False)
    v1 = built.versions["v1"]
    assert sheet["caption"].to_list() == list(v1.caption_ids)
    assert sheet["description"].to_list() == list(v1.texts)
    assert set(sheet["version"]) == {"v0", "v1"}
    originals = sheet.filter(pl.col("version") == "v0")
    assert set(originals["image"]) == set(built.versions["v0"].image_ids)
    assert sheet["verdict"].null_count() == sheet["correction"].null_count() == sheet.height
    assert set(sheet["origin"]) == {"candidate", "fickle"}


@pytest.mark.parametrize("suffix", rest_slow([".csv", ".tsv", ".jsonl"]))
def test_bad_ones_are_replaced_corrected_ones_used_the_others_stay(
    bench: Callable[..., Recos], tmp_path: Path, suffix: str
) -> None:
    first = bench("bench")
    rows = pl.read_csv(tmp_path / "bench" / "verify.csv", infer_schema=False)
    written = next(row for row, origin in enumerate(rows["origin"]) if origin == "fickle")
    corrected_row = next(row for row, origin in enumerate(rows["origin"]) if origin == "candidate" and row != written)
    spoken = next(row for row in range(rows.height) if row not in (written, corrected_row))
    filled = fill(
        tmp_path / "bench" / "verify.csv", tmp_path / f"filled{suffix}",
        verdict={written: "Bad ", corrected_row: "correction", spoken: "ok"}, correction={corrected_row: "Two cats."},
    )  # fmt: skip
    second = bench("second", verified=filled)
    v1 = second.versions["v1"]
    texts = dict(v1.captions.select("caption", "text").iter_rows())
    origins = dict(v1.captions.select("caption", "origin").iter_rows())
    assert second.versions["v0"].image_ids == first.versions["v0"].image_ids
    assert rows["caption"][written] not in texts
    assert rows["description"][written] not in texts.values()
    assert texts.pop(rows["caption"][corrected_row]) == "Two cats."
    assert origins[rows["caption"][corrected_row]] == "correction"
    before = dict(zip(rows["caption"], rows["description"], strict=True))
    new = {caption for caption in texts if caption not in before}
    assert len(new) == 1, "the bad one was written again"
    assert all(text == before[caption] for caption, text in texts.items() if caption not in new)
    assert any(note.startswith("verification: 1 confirmed, 1 rejected, 1 corrected") for note in second.notes)


def test_the_new_sheet_keeps_the_verdicts_and_is_enough_by_itself(bench: Callable[..., Recos], tmp_path: Path) -> None:
    bench("bench")
    filled = fill(tmp_path / "bench" / "verify.csv", tmp_path / "filled.csv", verdict={0: "bad", 2: "bad", 4: "ok"},
                  correction={3: "A correction."})  # fmt: skip
    second = bench("second", verified=filled)
    sheet = tmp_path / "second" / "verify.csv"
    kept = {row.caption: row for row in read_sheet(sheet, bench.__dict__["dataset"]).judged}
    given = {row.caption: row for row in read_sheet(filled, bench.__dict__["dataset"]).judged}
    assert kept == given
    assert sorted(row.verdict for row in kept.values()) == ["bad", "bad", "correction", "ok"]
    silent = Fickle(patience=0)
    third = bench("third", verified=sheet, generator=silent)
    assert silent.asked == 0, "the unread texts are in the sheet"
    assert third.log.head["key"] == second.log.head["key"]
    assert (tmp_path / "third" / "verify.csv").read_bytes() == sheet.read_bytes()
    assert third.versions["v2"].fingerprint == second.versions["v2"].fingerprint
    assert bench("second", verified=sheet).already


def test_an_untouched_sheet_changes_nothing(bench: Callable[..., Recos], tmp_path: Path) -> None:
    first = bench("bench")
    before = content(tmp_path / "bench")
    again = bench("bench", verified=tmp_path / "bench" / "verify.csv")
    assert again.already
    assert again.log.head["key"] == first.log.head["key"]
    assert content(tmp_path / "bench") == before


def test_a_verified_build_is_repeated_from_its_log_and_resumed(bench: Callable[..., Recos], tmp_path: Path) -> None:
    bench("bench")
    filled = fill(tmp_path / "bench" / "verify.csv", tmp_path / "filled.csv", verdict=dict.fromkeys(range(9), "bad"))
    with pytest.raises(KeyboardInterrupt):
        bench("second", verified=filled, generator=Fickle(patience=2))
    heir = Fickle(seed=9)
    second = bench("second", verified=filled, generator=heir)
    assert heir.asked == len({entry["request"] for entry in second.log.of("answer")}) - 2
    silent = Fickle(patience=0)
    bench("third", repeat=second.log, generator=silent)
    assert content(tmp_path / "third") == content(tmp_path / "second")
    assert silent.asked == 0


def test_what_people_wrote_is_not_overwritten(bench: Callable[..., Recos], tmp_path: Path) -> None:
    told: list[str] = []
    bench("bench")
    sheet = tmp_path / "bench" / "verify.csv"
    fill(sheet, sheet, verdict={0: "ok"})
    assert bench("bench", notify=told.append).already
    assert any("1 verdicts in" in line and "verify.csv are not used" in line for line in told)
    with pytest.raises(ConflictError, match="verdicts that would be lost: 1"):
        bench("bench", copy_images=False, overwrite=True, grammar=Picky())
    updated = bench("bench", verified=sheet, overwrite=True)
    assert [row.verdict for row in updated.sheet.judged] == ["ok"]
    assert read_sheet(sheet, bench.__dict__["dataset"]).judged == updated.sheet.judged


class Picky:
    """A check that nothing passes."""

    name, revision = "picky", "1"

    def problems(self, texts: list[str]) -> list[tuple[str, ...]]:
        return [("taste: no",)] * len(texts)


@each_row(
    ("column", "value", "message"),
    [
        ("verdict", "fine", "line 3: the verdict is 'fine'"),
        ("verdict", "correction", "line 3: no corrected text"),
        ("image", "image 99", "line 3: unknown image id 'image 99'"),
        ("description", "Something else.", "line 3: the description of caption"),
        ("description", "", "line 3: caption"),
    ],
)
def test_a_wrong_row_is_named(
    bench: Callable[..., Recos], tmp_path: Path, column: str, value: str, message: str
) -> None:
    bench("bench")
    sheet = fill(tmp_path / "bench" / "verify.csv", tmp_path / "wrong.csv", **{column: {1: value}})
    with pytest.raises(InputError) as caught:
        bench(verified=sheet)
    assert "wrong.csv" in str(caught.value)
    assert message in str(caught.value)


def test_other_mistakes(bench: Callable[..., Recos], tmp_path: Path) -> None:
    bench("bench")
    sheet = tmp_path / "bench" / "verify.csv"
    both = fill(sheet, tmp_path / "both.csv", verdict={1: "ok"}, correction={1: "A text."})
    with pytest.raises(InputError, match="the verdict is ok, and there is a correction"):
        bench(verified=both)
    doubled = tmp_path / "doubled.csv"
    lines = sheet.read_text().splitlines()
    doubled.write_text("\n".join([*lines, lines[1]]) + "\n")
    with pytest.raises(InputError, match="duplicate caption id"):
        bench(verified=doubled)
    (tmp_path / "bare.csv").write_text("image,caption\nimage 1,1\n")
    with pytest.raises(InputError, match="no column 'description'"):
        bench(verified=tmp_path / "bare.csv")
    (tmp_path / "bare.jsonl").write_text(json.dumps({"image": "image 1", "caption": "1"}) + "\n")
    with pytest.raises(InputError, match="no key 'description'"):
        bench(verified=tmp_path / "bare.jsonl")
    with pytest.raises(CrosslensError, match=r"missing\.csv: no such file"):
        bench(verified=tmp_path / "missing.csv")


def test_corrections_need_something_that_encodes_them(tmp_path: Path) -> None:
    dataset, encoder = toy({f"image {n}": angle(20 * n) for n in range(9)}, tmp_path)
    settings = RecosSettings(k=3, eta=1, temperature=0.1, descriptions=2, originals=3, similar=0)
    build_recos(dataset, encoder, settings, generator=None, output=tmp_path / "bench")
    sheet = fill(tmp_path / "bench" / "verify.csv", tmp_path / "filled.csv", correction={0: "A text."})
    with pytest.raises(UsageError, match="nothing encodes them"):
        build_recos(dataset, encoder, settings, generator=None, verified=sheet)
