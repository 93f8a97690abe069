"""Hard negatives as their publishers write them: what is read, and what is refused with its row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from crosslens.analyze import HardNegatives, load_hard_negatives
from crosslens.analyze.hard_negatives.reading import read_annotations
from crosslens.analyze.hard_negatives.scoring import read_pair_scores
from crosslens.core import CrosslensError, InputError, UnknownNameError, UsageError
from crosslens.data import read_image_bytes
from tests.analyze.negative_files import attributions, relations, winoground, write_sugar, write_winoground
from tests.data.files import write, write_json


def load(source: Path, **options: Any) -> HardNegatives:
    result = load_hard_negatives(source, **options)
    assert isinstance(result, HardNegatives)
    return result


# What is read


def test_sugar_crepe(tmp_path: Path) -> None:
    result = load(write_sugar(tmp_path / "sugar"))
    assert result.cases["case"].to_list() == ["replace_att/0", "replace_obj/0", "replace_obj/7", "swap_obj/0"]
    assert result.cases["group"].to_list() == ["replace", "replace", "replace", "swap"]
    assert result.cases["kind"].to_list() == ["replace_att", "replace_obj", "replace_obj", "swap_obj"]
    assert result.dataset.image_ids == ("1.jpg", "2.jpg")
    assert result.dataset.caption_ids[:2] == ("replace_att/0:right", "replace_att/0:wrong")
    assert result.dataset.texts[2:4] == ("A red square.", "A red circle on a mat.")
    assert result.clusters.tolist() == [0, 0, 1, 1]
    assert result.measures == ("accuracy",)
    assert result.chances["accuracy"].tolist() == [0.5] * 4


def test_one_file_of_sugar_crepe_under_any_name(tmp_path: Path) -> None:
    folder = write_sugar(tmp_path)
    assert len(load(folder / "replace_obj.json")) == 2
    (folder / "swap_obj.json").rename(folder / "mine.json")
    assert load(folder / "mine.json").cases["kind"].to_list() == ["mine"]


def test_real_sugar_crepe(shared_data: Path) -> None:
    result = load(shared_data / "sugar_crepe")
    counts = dict(result.cases.group_by("kind").len().iter_rows())
    assert counts == {
        "add_att": 692, "add_obj": 2062, "replace_att": 788, "replace_obj": 1652, "replace_rel": 1406, "swap_att": 666,
        "swap_obj": 245,
    }  # fmt: skip
    assert result.pairs.height == 2 * len(result) == 2 * 7511
    names = set((shared_data / "coco_val2017" / "names.txt").read_text(encoding="utf-8").split())
    images = result.dataset.captions.filter("right")["image"]
    assert sum(name in names for name in images) == 6439


def test_aro_relation(tmp_path: Path) -> None:
    file = write_json(tmp_path / "visual_genome_relation.json", relations())
    (tmp_path / "images").mkdir()
    result = load(file)
    assert result.cases["relation"].to_list() == ["to the left of", "under", "on", "on"]
    assert result.groupings == ("relation",)
    assert result.averaged == "relation"
    assert result.dataset.home == tmp_path / "images"
    assert result.dataset.image_ids == ("9.png::box/0,0,4,4", "9.png::box/4,0,4,4", "8.png::box/0,0,8,4")
    assert result.clusters.tolist() == [0, 0, 1, 1], "parts of one photo are not independent"
    whole = load(file, crop=False)
    assert whole.dataset.image_ids == ("9.png", "8.png")


def test_aro_attribution_averages_pairs_with_25_cases(tmp_path: Path) -> None:
    result = load(write_json(tmp_path / "visual_genome_attribution.json", attributions()))
    assert result.groupings == ("attributes",)
    assert set(result.cases["attributes"]) == {"red_old", "wet_tall"}
    assert result.fewest == 25


def test_a_box_is_cut_out_of_the_photo(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="pip install 'crosslens[encoders]'")
    import io

    pixels = np.zeros((4, 8, 3), np.uint8)
    pixels[:, :4, 0], pixels[:, 4:, 2] = 200, 90
    image.fromarray(pixels).save(tmp_path / "9.png")
    with image.open(io.BytesIO(read_image_bytes(tmp_path / "9.png::box/3,1,3,2"))) as part:
        assert np.array_equal(np.asarray(part), pixels[1:3, 3:6])
    with pytest.raises(OSError, match=r"no\.png"):
        read_image_bytes(tmp_path / "no.png::box/3,1,3,2")
    write(tmp_path / "text.png", "no picture")
    with pytest.raises(InputError, match=r"text\.png"):
        read_image_bytes(tmp_path / "text.png::box/3,1,3,2")


def test_winoground(tmp_path: Path) -> None:
    write_winoground(tmp_path)
    write(tmp_path / "images" / "ex_1_img_0.jpg", b"")
    for source in (tmp_path, tmp_path / "examples.jsonl"):
        result = load(source)
        assert result.measures == ("text", "image", "group")
        assert result.groupings == ("collapsed_tag", "secondary_tag", "num_main_preds")
        assert result.cases["secondary_tag"].to_list() == [None, "Series", None]
        assert result.dataset.images["file"].to_list()[1:3] == ["ex_0_img_1.png", "ex_1_img_0.jpg"]
        assert result.pairs.filter(case=0).select("caption", "image", "right").rows() == [
            (0, 0, True), (0, 1, False), (1, 0, False), (1, 1, True),
        ]  # fmt: skip
        assert {name: set(chances) for name, chances in result.chances.items()} == {
            "text": {0.25}, "image": {0.25}, "group": {1 / 6},
        }  # fmt: skip


def test_chance_of_the_three_scores_by_counting_orders() -> None:
    from itertools import permutations

    orders = list(permutations(range(4)))
    text = [a > c and d > b for a, b, c, d in orders]
    image = [a > b and d > c for a, b, c, d in orders]
    both = [first and second for first, second in zip(text, image, strict=True)]
    assert (np.mean(text), np.mean(image), np.mean(both)) == pytest.approx((1 / 4, 1 / 4, 1 / 6))


def test_order_annotations_are_captions_to_shuffle(tmp_path: Path) -> None:
    rows = [
        {"image": "val2014/a.jpg", "caption": ["a dog on a mat", "the dog"]},
        {"image": "b.jpg", "caption": "a cat"},
    ]
    result = read_annotations(write_json(tmp_path / "coco_karpathy_test.json", rows))
    assert result.caption_ids == ("val2014/a.jpg#0", "val2014/a.jpg#1", "b.jpg#0")


OWN = """image,text,case,right,category
p,a red hat,one,true,colour
p,a blue hat,one,false,colour
p,a green hat,one,false,colour
q,two dogs,two,yes,count
q,three dogs,two,no,count
"""


def test_cases_of_ones_own(tmp_path: Path) -> None:
    result = load(write(tmp_path / "own.csv", OWN))
    assert result.groupings == ("category",)
    assert result.chances["accuracy"].tolist() == [1 / 3, 1 / 2]
    again = tmp_path / "saved"
    result.as_dataset().save(again)
    assert load(again).fingerprint == result.fingerprint


def test_selecting_and_leaving_out(tmp_path: Path) -> None:
    result = load(write_sugar(tmp_path)).without(["swap"])
    assert result.cases["kind"].to_list() == ["replace_att", "replace_obj", "replace_obj"]
    assert result.select(np.array([True, True, False])).dataset.image_ids == ("1.jpg",)
    with pytest.raises(UnknownNameError, match="swap_obj"):
        load(tmp_path).without(["swap_objs"])
    with pytest.raises(InputError, match="no case"):
        result.select(np.zeros(3, np.bool_))


# What is refused


def changed(rows: list[dict[str, Any]], at: int, **changes: Any) -> list[dict[str, Any]]:
    rows = [dict(row) for row in rows]
    for key, value in changes.items():
        if value is None:
            del rows[at][key]
        else:
            rows[at][key] = value
    return rows


@pytest.mark.parametrize(
    ("name", "content", "row"),
    [
        ("replace_obj.json", {"0": {"filename": "1.jpg", "caption": "x"}}, ", case 0: no key 'negative_caption'"),
        ("replace_obj.json", {"5": {"filename": "1.jpg", "caption": " ", "negative_caption": "x"}}, ", case 5: empty"),
        ("replace_obj.json", {"5": ["x"]}, ", case 5"),
        ("replace_obj.json", {}, ": no cases"),
        ("aro.json", changed(relations(), 2, bbox_w=0), ", case 2: bad box"),
        ("aro.json", changed(relations(), 1, bbox_x="a"), ", case 1: bad box"),
        ("aro.json", changed(relations(), 1, bbox_h=None), ", case 1: no key 'bbox_h'"),
        ("aro.json", changed(relations(), 3, relation_name=None), ", case 3: no key 'relation_name'"),
        ("aro.json", changed(attributions(2), 1, attributes=["one"]), ", case 1: 'attributes' is"),
        ("aro.json", changed(relations(), 0, true_caption=7), ", case 0: the caption is a number"),
        ("order.json", [{"image": "a", "caption": [""]}], ", image 0: 'caption' is"),
    ],
)
def test_bad_files_are_refused_with_their_row(tmp_path: Path, name: str, content: Any, row: str) -> None:
    file = write_json(tmp_path / name, content)
    with pytest.raises(InputError) as caught:
        load_hard_negatives(file)
    assert str(caught.value).startswith(f"{file}{row}")
    assert caught.value.expected


@pytest.mark.parametrize(
    ("rows", "row"),
    [
        (changed(winoground(), 1, id=0), "line 2: duplicate case id '0'"),
        (changed(winoground(), 2, image_1="ex_2_img_0"), "line 3: both pictures"),
        (changed(winoground(), 0, caption_1=""), "line 1: empty caption"),
        (changed(winoground(), 1, image_0=None), "line 2: no key 'image_0'"),
    ],
)
def test_bad_winoground_lines(tmp_path: Path, rows: list[dict[str, Any]], row: str) -> None:
    write_winoground(tmp_path, rows)
    with pytest.raises(InputError) as caught:
        load_hard_negatives(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / 'examples.jsonl'}, {row}")


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("one,true", "one,perhaps", "right is 'perhaps'"),
        ("one,true", "one,false", "case 'one'"),
        ("two,no", "two,yes", "case 'two'"),
        ("case,right", "case,correct", "no column 'right'"),
    ],
)
def test_bad_cases_of_ones_own(tmp_path: Path, before: str, after: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        load_hard_negatives(write(tmp_path / "own.csv", OWN.replace(before, after, 1)))


def test_unknown_sources(tmp_path: Path) -> None:
    for source in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(InputError):
            load_hard_negatives(source)
    with pytest.raises(UsageError, match="pass form="):
        load_hard_negatives(write_json(tmp_path / "odd.json", [{"odd": 1}]))
    with pytest.raises(UnknownNameError, match="sugar"):
        load_hard_negatives(write_sugar(tmp_path / "s"), form="sugar")


# Score tables


def sugar_scores(negatives: HardNegatives) -> pl.DataFrame:
    return pl.DataFrame(
        {"caption": negatives.dataset.caption_ids, "score": np.arange(len(negatives.dataset.texts)) / 8}
    )


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_scores_from_a_file(tmp_path: Path, suffix: str) -> None:
    result = load(write_sugar(tmp_path / "s"))
    table = sugar_scores(result).sample(fraction=1.0, shuffle=True, seed=1)
    file = tmp_path / f"scores{suffix}"
    if suffix == ".jsonl":
        write(file, "".join(json.dumps(row) + "\n" for row in table.to_dicts()))
    else:
        table.write_csv(file) if suffix == ".csv" else table.write_parquet(file)
    assert read_pair_scores(file, result).tolist() == (np.arange(8) / 8).tolist()


def test_scores_by_case_and_role(tmp_path: Path) -> None:
    result = load(write_sugar(tmp_path))
    rows = [(case, role, 1.0) for case in result.cases["case"] for role in ("right", "wrong")]
    assert (
        read_pair_scores(pl.DataFrame(rows, ["case", "caption", "score"], orient="row"), result).tolist() == [1.0] * 8
    )


def test_a_missing_score_is_no_number(tmp_path: Path) -> None:
    result = load(write_sugar(tmp_path))
    assert np.isnan(read_pair_scores(sugar_scores(result).head(7), result)).tolist() == [False] * 7 + [True]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("replace_att/0:right,nan", "line 10: the score is 'nan'"),
        ("replace_att/0:right,high", "line 10: the score is 'high'"),
        ("replace_att/0:right,1", "line 10: a second score"),
        ("replace_att/0:rihgt,1", "line 10: unknown caption id"),
    ],
)
def test_bad_score_rows(tmp_path: Path, line: str, problem: str) -> None:
    result = load(write_sugar(tmp_path / "s"))
    file = write(tmp_path / "scores.csv", sugar_scores(result).write_csv() + line + "\n")
    with pytest.raises(InputError) as caught:
        read_pair_scores(file, result)
    assert str(caught.value).startswith(f"{file}, {problem}")


def test_scores_of_two_pictures_need_the_picture(tmp_path: Path) -> None:
    result = load(write_winoground(tmp_path))
    table = pl.DataFrame({"caption": result.dataset.caption_ids, "score": 0.5})
    with pytest.raises(CrosslensError, match="no column 'image'"):
        read_pair_scores(table, result)
    with pytest.raises(InputError, match="in no case together"):
        read_pair_scores(table.with_columns(pl.lit("ex_1_img_0").alias("image")), result)
