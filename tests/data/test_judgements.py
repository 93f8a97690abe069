"""Judgements of people: each form, by id and by text, several judges, and what is wrong with a file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import crosslens as cl
from crosslens.core import InputError, UnknownNameError, UsageError
from crosslens.data import Judgements, load_dataset, read_judgements
from crosslens.values import Dataset, Relevance

DATASET = Dataset.of(
    {"a.jpg": ["a dog runs", "the dog is brown"], "b.jpg": ["a cat sleeps", "a dog runs"], "c.jpg": ["two birds"]},
    images={"file": ["photos/dog.jpg", "photos/cat.jpg", "photos/birds.jpg"]},
)


def file(folder: Path, text: str, name: str = "pairs.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def rows(judgements: Judgements) -> list[tuple[int, int, float]]:
    return list(zip(judgements.images.tolist(), judgements.captions.tolist(), judgements.scores.tolist(), strict=True))


def test_pairs_by_id(tmp_path: Path) -> None:
    path = file(tmp_path, "image,caption,score\na.jpg,a.jpg#0,5\nb.jpg,a.jpg#1,1.5\nc.jpg,c.jpg#0,4\n")
    judgements = read_judgements(path, DATASET)
    assert rows(judgements) == [(0, 0, 5.0), (1, 1, 1.5), (2, 4, 4.0)]
    assert judgements.is_relevant(Relevance.from_dataset(DATASET)).tolist() == [True, False, True]
    assert (judgements.source, judgements.skipped, judgements.others) == ("pairs", 0, ())
    assert not judgements.scores.flags.writeable


def test_pairs_by_text_prefer_the_images_own_caption(tmp_path: Path) -> None:
    path = file(tmp_path, "image,caption,score\nb.jpg,a dog  runs,3\nc.jpg,a dog runs,1\nc.jpg,a green car,0\n")
    judgements = read_judgements(path, DATASET)
    assert rows(judgements) == [(1, 3, 3.0), (2, 0, 1.0), (2, 5, 0.0)]
    assert judgements.others == ("a green car",)
    assert judgements.is_relevant(Relevance.from_dataset(DATASET)).tolist() == [True, False, False]


def test_some_of_the_pairs() -> None:
    judgements = Judgements.of(DATASET, ["a.jpg", "b.jpg", "c.jpg"], ["a.jpg#0"] * 3, [[1, 2], 3, 4])
    assert rows(judgements.select(judgements.scores > 2)) == [(1, 0, 3.0), (2, 0, 4.0)]
    assert rows(judgements.select(np.array([2, 0]))) == [(2, 0, 4.0), (0, 0, 1.5)]


def test_a_reference_by_its_words(tmp_path: Path) -> None:
    """b.jpg has "a dog runs" among its captions: the same words of a.jpg's caption are no news to it."""
    judgements = Judgements.of(DATASET, ["b.jpg", "b.jpg", "c.jpg"], ["a.jpg#0", "a.jpg#1", "a.jpg#0"], [4, 2, 1])
    assert judgements.is_relevant(Relevance.from_dataset(DATASET)).tolist() == [False, False, False]
    assert judgements.among_references(DATASET).tolist() == [True, False, False]


def test_file_names_are_names_of_images(tmp_path: Path) -> None:
    path = file(tmp_path, "image\ttext\tscore\ndog.jpg\ttwo birds\t1\n", "pairs.tsv")
    assert rows(read_judgements(path, DATASET)) == [(0, 4, 1.0)]


def test_several_judges(tmp_path: Path) -> None:
    long = file(tmp_path, "image,caption_id,score,judge\na.jpg,b.jpg#0,1,x\nb.jpg,b.jpg#0,4,x\na.jpg,b.jpg#0,2,y\n")
    wide = file(tmp_path, "image,caption_id,score_1,score_2\na.jpg,b.jpg#0,1,2\nb.jpg,b.jpg#0,,4\n", "wide.csv")
    for path, second in ((long, [4, np.nan]), (wide, [np.nan, 4])):
        judgements = read_judgements(path, DATASET)
        assert rows(judgements) == [(0, 2, 1.5), (1, 2, 4.0)]
        assert np.array_equal(judgements.judges, [[1, 2], second], equal_nan=True), "a column per judge"
        assert judgements.same_persons
    lines = ("a.jpg,b.jpg#0,2,y", "a.jpg,b.jpg#0,1,x", "b.jpg,b.jpg#0,4,y")
    turned = read_judgements(file(tmp_path, "image,caption_id,score,judge\n" + "\n".join(lines) + "\n"), DATASET)
    assert np.array_equal(turned.judges, [[1, 2], [np.nan, 4]], equal_nan=True)
    unnamed = [line.rpartition(",")[0] for line in lines]
    several = read_judgements(file(tmp_path, "image,caption_id,score\n" + "\n".join(unnamed) + "\n"), DATASET)
    assert np.array_equal(several.judges, [[2, 1], [4, np.nan]], equal_nan=True)
    assert not several.same_persons, "which row is whose is not known"
    many = "".join(f"a.jpg,b.jpg#0,1,judge {number}\n" for number in range(40))
    crowd = read_judgements(file(tmp_path, f"image,caption_id,score,judge\n{many}b.jpg,b.jpg#0,4,judge 9\n"), DATASET)
    assert crowd.judges[1, 0] == 4
    assert not crowd.same_persons


def test_crisscrossed_captions(tmp_path: Path) -> None:
    dataset = Dataset.of({"391895": ["a man on a moped"], "60623": ["a girl eats cake"]})
    captions = dataset.captions.with_columns(caption=np.array(["770337", "21"]))
    dataset = Dataset(dataset.name, dataset.images, captions)
    text = (
        "caption,image,agg_score,sampling_method\n"
        "COCO_val2014:sentid:770337,COCO_val2014_000000391895.jpg,4.97,c2i_original\n"
        "COCO_val2014:sentid:770337,COCO_val2014_000000060623.jpg,0.4,c2i_intrasim\n"
    )
    assert rows(read_judgements(file(tmp_path, text, "sits_val.csv"), dataset)) == [(0, 0, 4.97), (1, 0, 0.4)]
    again = "COCO_val2014:sentid:770337,COCO_val2014_000000060623.jpg,0.6,c2i_intrasim\n"
    raw = text.replace("agg_score", "score") + again
    judgements = read_judgements(file(tmp_path, raw, "sits_val_raw.csv"), dataset)
    assert judgements.scores.tolist() == pytest.approx([4.97, 0.5])
    with pytest.raises(InputError, match="from 0 to 5"):
        read_judgements(file(tmp_path, text.replace("4.97", "7"), "sits_bad.csv"), dataset)
    sts = "caption1,caption2,agg_score,sampling_method\nx,y,1,c2c\n"
    with pytest.raises(InputError, match="two captions"):
        read_judgements(file(tmp_path, sts, "sts_val.csv"), dataset)


def test_flickr8k(tmp_path: Path) -> None:
    expert = read_judgements(file(tmp_path, "a.jpg\tb.jpg#0\t1\t1\t2\n", "ExpertAnnotations.txt"), DATASET)
    assert rows(expert) == [(0, 2, pytest.approx(4 / 3))]
    crowd_lines = "a.jpg\ta.jpg#0\t1\t3\t0\nb.jpg\ta.jpg#1\t0.25\t1\t3\n"
    crowd = read_judgements(file(tmp_path, crowd_lines, "CrowdFlowerAnnotations.txt"), DATASET)
    assert rows(crowd) == [(0, 0, 1.0), (1, 1, 0.25)]
    assert not expert.same_persons, "the file sorts the scores of a pair"
    assert not crowd.same_persons
    assert np.isfinite(crowd.judges).sum(axis=1).tolist() == [3, 4]


def test_unknown_pairs_are_left_out_only_if_asked(tmp_path: Path) -> None:
    path = file(tmp_path, "image,caption,score\na.jpg,a.jpg#0,5\nz.jpg,a.jpg#0,1\nb.jpg,a.jpg#7,1\n")
    with pytest.raises(InputError, match=r"pairs.csv, line 3: unknown image 'z.jpg'"):
        read_judgements(path, DATASET)
    judgements = read_judgements(path, DATASET, skip_unknown=True)
    assert (len(judgements), judgements.skipped) == (1, 2)
    with pytest.raises(InputError, match="none of the judged pairs"):
        read_judgements(file(tmp_path, "image,caption,score\nz,y,1\n"), DATASET, skip_unknown=True)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("pairs.csv", "image,caption,score\na.jpg,a.jpg#0,good\n", "line 2: the score is 'good'"),
        ("pairs.csv", "image,caption,score\na.jpg,a.jpg#0,nan\n", "line 2: the score is 'nan'"),
        ("pairs.csv", "image,caption,score\na.jpg,a.jpg#0,1\na.jpg,a.jpg#9,1\n", "line 3: unknown caption 'a.jpg#9'"),
        ("pairs.csv", "image,caption,score\na.jpg,a.jpg#9,1\n", "line 2: unknown caption 'a.jpg#9'"),
        ("pairs.csv", "image,caption,score\na.jpg,,1\n", "line 2: the caption is empty"),
        ("pairs.csv", "image,caption\na.jpg,a.jpg#0\n", "line 1: no column for the score"),
        ("pairs.csv", "picture,caption,score\na.jpg,a.jpg#0,1\n", "line 1: no column for the image"),
        ("pairs.csv", "image,words,score\na.jpg,a.jpg#0,1\n", "line 1: no column for the caption"),
        ("pairs.csv", "image,caption,score_1,score_2\na.jpg,a.jpg#0,,\n", "line 2: the pair has no score"),
        (
            "pairs.csv",
            "image,caption,score,judge\na.jpg,a.jpg#0,1,x\na.jpg,a.jpg#0,2,x\n",
            "line 3: judge 'x' judged .* before",
        ),
        ("expert.txt", "a.jpg\ta.jpg#0\t1\t2\n", "line 1: 4 columns"),
        ("expert.txt", "a.jpg\ta.jpg#0\t1\t2\t3\n\nb.jpg\ta.jpg#0\t1\t2\tx\n", "line 3: the score is 'x'"),
        ("crowd.txt", "a.jpg\ta.jpg#0\t0.5\t3\t0\n", "line 1: 0.5 of yes with 3 yes and 0 no"),
        ("crowd.txt", "a.jpg\ta.jpg#0\t0\t0\t0\n", "line 1: 0 of yes with 0 yes and 0 no"),
    ],
)
def test_bad_files(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"{name}, {message}") as caught:
        read_judgements(file(tmp_path, text, name), DATASET)
    assert caught.value.fix


def test_a_form_that_is_named_is_taken_at_its_word(tmp_path: Path) -> None:
    path = file(tmp_path, "a.jpg\ta.jpg#0\t1\t3\t0\n", "annotations.txt")
    assert read_judgements(path, DATASET, "flickr8k-cf").scores.tolist() == [1.0]
    with pytest.raises(InputError, match="the grade is 0"):
        read_judgements(path, DATASET, "flickr8k-expert")
    with pytest.raises(UnknownNameError, match="did you mean flickr8k-expert"):
        read_judgements(path, DATASET, "flickr8k-experts")


def test_own_values() -> None:
    judgements = Judgements.of(DATASET, ["a.jpg", "b.jpg"], ["a.jpg#0", "a.jpg#0"], [[1, 2, 3], 5])
    assert judgements.scores.tolist() == [2, 5]
    with pytest.raises(InputError, match="row 0: the score is nan"):
        Judgements.of(DATASET, ["a.jpg"], ["a.jpg#0"], [float("nan")])
    with pytest.raises(InputError, match="1 images, 2 captions, 1 scores"):
        Judgements.of(DATASET, ["a.jpg"], ["a.jpg#0", "a.jpg#1"], [1])
    with pytest.raises(UsageError, match="another dataset"):
        judgements.check(DATASET.select(["a.jpg", "b.jpg"]))


@pytest.mark.slow  # both kinds of files are read above
def test_real_flickr8k(shared_data: Path) -> None:
    """Counts as published: 5,822 and 47,830 pairs; 158 expert pairs are an image with one of its own captions."""
    folder = shared_data / "flickr8k"
    dataset = load_dataset("flickr", captions=folder / "Flickr8k.token.txt", images=folder / "Flickr_8k.testImages.txt")
    truth = Relevance.from_dataset(dataset)
    expert = read_judgements(folder / "ExpertAnnotations.txt", dataset)
    assert (len(expert), int(expert.is_relevant(truth).sum()), expert.judges.shape[1]) == (5822, 158, 3)
    crowd = read_judgements(folder / "CrowdFlowerAnnotations.txt", dataset)
    assert (len(crowd), float(crowd.scores.max())) == (47830, 1.0)


def test_a_file_without_a_pair(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"pairs\.csv: no judged pairs"):
        read_judgements(file(tmp_path, "image,caption,score\n"), DATASET)


def test_blip_captions_have_no_coco_ids_and_the_error_says_which_file_has(tmp_path: Path) -> None:
    """CxC goes by COCO's caption ids: as a table of scores, as positives, and as a known dataset."""
    entries = [{"image": "val2014/COCO_val2014_000000391895.jpg", "caption": ["a man rides a bike", "a man"]}]
    blip = tmp_path / "coco" / "coco_karpathy_test.json"
    blip.parent.mkdir()
    blip.write_text(json.dumps(entries))
    dataset = load_dataset(blip)
    text = (
        "caption,image,agg_score,sampling_method\n"
        "COCO_val2014:sentid:770337,COCO_val2014_000000391895.jpg,4.9,c2i_original\n"
    )
    with pytest.raises(InputError, match=r"unknown caption(.|\n)*dataset_coco\.json, or COCO's captions_val2014\.json"):
        read_judgements(file(tmp_path, text, "sits_val.csv"), dataset)
    positives = Relevance.from_pairs(["391895"], ["770337"])
    for coco_ids in (False, True):
        ranked = load_dataset("blip", captions=blip, coco_ids=coco_ids)
        with pytest.raises(InputError, match=r"dataset_coco\.json, or COCO's captions_val2014\.json"):
            cl.evaluate(ranked, images=np.eye(1, 2), captions=np.eye(2), relevance={"i2t": positives})
    with pytest.raises(InputError, match=r"coco_karpathy_test\.json is there, and has no ids of captions"):
        load_dataset("cxc", data_folder=str(tmp_path))
