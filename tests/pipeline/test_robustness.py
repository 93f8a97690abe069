"""Robustness studies: the tables against plain loops, resuming, text-only, ready-made vectors, and nothing changed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crosslens as cl
from crosslens.core.errors import ConflictError, InputError, UsageError
from crosslens.encode import Cache, text_only
from crosslens.language.parse import Parse
from crosslens.perturb import Edit, perturb
from crosslens.perturb.caption import Caption
from crosslens.pipeline.robustness.place import PICTURES
from crosslens.pipeline.robustness.variants import whole_edit
from crosslens.pipeline.robustness.words import parts_of
from tests.pipeline import robustness_reference as reference

QUICK: dict[str, Any] = {"permutations": 50, "resamples": 50}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))


class Letters:
    """Counts letters, later ones a little more, and looks at colours; remembers what it was asked."""

    name, revision, preprocessing = "letters", "1", ""
    abilities = frozenset(("images", "texts"))
    dimension: int | None = 26
    logit_scale: float | None = None

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.pictures = 0

    def encode_texts(self, texts: Any) -> np.ndarray:
        self.texts += texts
        return np.stack([self._letters(text.lower()) for text in texts])

    def _letters(self, text: str) -> np.ndarray:
        vector = np.ones(26, np.float32)
        for place, letter in enumerate(text):
            if letter.isascii() and letter.isalpha():
                vector[ord(letter) - 97] += 1 + place / 100
        return vector

    def encode_images(self, images: Any) -> np.ndarray:
        self.pictures += len(images)
        return (
            np.array([np.resize(np.asarray(one.convert("RGB").resize((4, 4))), 26) for one in images], np.float32) + 1
        )


WORDS = ("dog", "cat", "tree", "house", "ball", "child", "river", "cloud", "small", "large", "red", "green", "running")


def captions(images: int, each: int = 3, seed: int = 0) -> cl.Dataset:
    random = np.random.default_rng(seed)
    return cl.Dataset.of(
        {
            f"i{n}": [
                f"A {' '.join(random.choice(WORDS, 5, replace=False))} {k}." for k in range(each)
            ]
            for n in range(images)
        }
    )  # fmt: skip


# The tables against plain loops


@st.composite
def studies(draw: st.DrawFn) -> tuple[np.ndarray, list[np.ndarray], list[list[bool]]]:
    images, each = draw(st.integers(2, 14)), draw(st.integers(1, 3))
    seed = draw(st.integers(0, 10_000))
    random = np.random.default_rng(seed)
    shape = images, images * each
    # Few distinct scores, so that there are ties.
    original = random.integers(0, 12, shape).astype(np.float32)
    original[np.repeat(np.arange(images), each), np.arange(shape[1])] += 4
    changed = [list(random.random(shape[1]) < 0.7) for _ in range(3)]
    for one in changed:
        one[0] = True
    variants = []
    for one in changed:
        noise = random.integers(-5, 6, shape) * np.array(one)
        variants.append((original + noise).astype(np.float32))
    return original, variants, changed


@settings(max_examples=8)
@given(studies())
def test_tables_equal_plain_loops(study: tuple[np.ndarray, list[np.ndarray], list[list[bool]]]) -> None:
    original, variants, changed = study
    images, count = original.shape
    image_of = [c // (count // images) for c in range(count)]
    dataset = cl.Dataset.of({f"i{n}": [f"t {n} {k}" for k in range(count // images)] for n in range(images)})
    perturbed = {
        f"v{n}": replace(
            dataset,
            captions=dataset.captions.with_columns(
                pl.Series("text", [t + "!" if c else t for t, c in zip(dataset.texts, one, strict=True)])
            ),
        )
        for n, one in enumerate(changed)
    }
    # With unit vectors as images, the dot product of a caption's vector is its column of the score matrix.
    found = cl.robustness(
        dataset, images=np.eye(images, dtype=np.float32), captions=original.T, score="dot", perturbed=perturbed,
        variants={f"v{n}": one.T for n, one in enumerate(variants)}, **QUICK,
    )  # fmt: skip
    before = reference.ranks(original, image_of)
    after = [reference.ranks(one, image_of) for one in variants]
    for n, matrix in enumerate(variants):
        row = found.changes.row(n, named=True)
        moves = reference.moves(before, after[n], changed[n])
        assert {name: pytest.approx(row[name]) for name in moves} == moves
        groups = reference.groups(before, after[n])
        assert {name: row[name] for name in groups} == {name: len(one) for name, one in groups.items()}
        assert row["up_while_similarity_down"] == reference.odd(original, matrix, image_of, changed[n])
        assert row["changed"] == sum(changed[n])
        over = [r for r, c in zip(after[n], changed[n], strict=True) if c]
        assert row["changed_MRR@10 after"] == pytest.approx(reference.mean([1 / r if r <= 10 else 0 for r in over]))
        assert row["Fails before"] == pytest.approx(reference.mean([r > 1 for r in before]))
        drops = {d["metric"]: d for d in found.drops.filter(pl.col("perturbation") == f"v{n}").to_dicts()}
        first, second = reference.rsum(original, image_of), reference.rsum(matrix, image_of)
        assert (drops["Rsum"]["before"], drops["Rsum"]["after"]) == (pytest.approx(first), pytest.approx(second))
        assert drops["Rsum"]["drop"] == pytest.approx(first - second)
        if first:
            assert drops["Rsum"]["relative"] == pytest.approx((first - second) / first)
        assert drops["t2i/MedR"]["drop"] == pytest.approx(np.median(after[n]) - np.median(before))
        hits = [100 * (a - b) for a, b in zip(reference.hits(before), reference.hits(after[n]), strict=True)]
        chosen = [one for one, c in zip(hits, changed[n], strict=True) if c]
        assert drops["t2i/Rsum"]["applied_drop"] == pytest.approx(reference.mean(chosen))
        assert drops["t2i/Rsum"]["applied_share"] == pytest.approx(reference.mean(changed[n]))
    for row in found.overlap.to_dicts():
        expected = reference.mean_jaccard(before, after, row["group"])
        assert row["jaccard"] == (None if expected is None else pytest.approx(expected))
    means = {
        dataset.caption_ids[c]: reference.mean(
            [reference.hits(before)[c] - reference.hits(one)[c] for one in after]
        )
        for c in range(count)
    }  # fmt: skip
    worst = max(means.values())
    listed = found.brittle.unique("query", maintain_order=True)
    assert len(listed) == min(20, sum(one > 0 for one in means.values()))
    if worst > 0:
        assert listed["mean_drop"][0] == pytest.approx(worst)
    assert all(means[row["query"]] == pytest.approx(row["mean_drop"]) for row in listed.to_dicts())


def test_drop_and_its_test_are_those_of_compare() -> None:
    dataset, encoder = captions(12), Letters()
    found = text_study(dataset, encoder, "char_swap,shuffle_all_words")
    row = found.drops.filter((pl.col("metric") == "t2t/Hit@1") & (pl.col("perturbation") == "char_swap")).to_dicts()[0]
    results = perturb("char_swap", text_only(dataset, encoder).dataset)
    made = text_only(dataset, encoder)
    new = encoder.encode_texts([one.text for one in results])
    runs = [
        cl.evaluate(
            made.dataset, images=made.images, captions=vectors, directions=["t2t"], metrics="Hit@1", resamples=50
        )
        for vectors in (made.captions.vectors, new)
    ]
    expected = cl.compare(*runs, permutations=50)["t2t/Hit@1"]
    assert row["drop"] == pytest.approx(-expected.difference)
    assert (row["low"], row["high"]) == (pytest.approx(-expected.high), pytest.approx(-expected.low))
    assert row["p"] == expected.p_value


def text_study(dataset: cl.Dataset, encoder: Any, perturbations: str, **options: Any) -> cl.Robustness:
    return cl.robustness(dataset, model=encoder, image_text="mean", perturbations=perturbations, **{**QUICK, **options})


# What changes, and what does not


def test_a_perturbation_that_applies_to_nothing_changes_nothing() -> None:
    dataset = cl.Dataset.of({f"i{n}": [f"one thing {n}", f"another thing {n}"] for n in range(8)})
    found = text_study(dataset, Letters(), "size,color_all")
    assert found.drops["applied_share"].to_list() == [0.0] * len(found.drops)
    for column in ("drop", "low", "high"):
        assert set(found.drops[column].to_list()) == {0.0}
    assert set(found.drops["adjusted_p"].to_list()) == {1.0}
    assert found.changes["unchanged"].to_list() == [8, 8]
    assert not len(found.brittle)
    assert found.captions["reason"].str.len_chars().min() > 0


def test_text_only_perturbs_the_queries_and_nothing_else(tmp_path: Path) -> None:
    dataset, encoder = captions(10), Letters()
    found = text_study(dataset, encoder, "char_swap", output=tmp_path / "rob", query_caption=1)
    asking = [text for id, text in zip(dataset.caption_ids, dataset.texts, strict=True) if id.endswith("#1")]
    assert found.captions["original"].to_list() == asking
    assert found.headline == "t2t/Rsum"
    runs = [cl.Run.load(tmp_path / "rob" / "letters" / name) for name in ("original", "char_swap")]
    inputs = [run.provenance["inputs"] for run in runs]
    assert inputs[0]["images"] == inputs[1]["images"]
    assert inputs[0]["captions"] != inputs[1]["captions"]
    plain = text_only(dataset, encoder, query=1)
    run = cl.evaluate(plain.dataset, images=plain.images, captions=plain.captions, directions=["t2t"], metrics="MRR")
    assert runs[0]["t2t/MRR"].mean == run["t2t/MRR"].mean


def test_only_what_changed_is_encoded() -> None:
    dataset, encoder = captions(10), Letters()
    found = text_study(dataset, encoder, "char_swap,size", cache=False)
    changed = found.captions.filter("applied")["text"].to_list()
    assert 10 < len(changed) < 20, "the words have sizes in some captions only"
    assert sorted(encoder.texts) == sorted([*dataset.texts, *changed])


def test_any_thread_count_gives_the_same(tmp_path: Path) -> None:
    dataset = captions(10)
    tables = [text_study(dataset, Letters(), "char_swap,shuffle_all_words", threads=n).tables for n in (1, 3)]
    for name, table in tables[0].items():
        assert table.equals(tables[1][name]), name


def test_several_seeds_show_their_spread() -> None:
    found = text_study(captions(12), Letters(), "char_swap,distraction_true", seeds=3)
    rows = found.spread.filter(pl.col("metric") == found.headline)
    assert rows["seeds"].to_list() == [3, 3]
    drops = found.drops.filter((pl.col("metric") == found.headline) & (pl.col("perturbation") == "char_swap"))["drop"]
    assert rows["mean"][0] == pytest.approx(np.mean(drops.to_list()))
    assert rows["deviation"][0] == pytest.approx(np.std(drops.to_list(), ddof=1))
    assert rows["deviation"][1] == 0, "an appended sentence does not depend on chance"
    assert len(found.changes) == 2


# Vectors that are there already


def test_ready_vectors_give_what_the_model_gives(tmp_path: Path) -> None:
    dataset, encoder = captions(10), Letters()
    asked = "char_swap,shuffle_all_words"
    images = encoder.encode_texts(dataset.texts[::3])
    variants = {
        name: encoder.encode_texts([one.text for one in perturb(name, dataset)]) for name in asked.split(",")
    }  # fmt: skip
    ready = cl.robustness(
        dataset, images=images, captions=encoder.encode_texts(dataset.texts), variants=variants, **QUICK
    )

    class Known(Letters):
        def encode_images(self, pictures: Any) -> np.ndarray:
            return images

    pictures(dataset, tmp_path)
    modelled = cl.robustness(
        with_files(dataset), model=Known(), image_folder=tmp_path, perturbations=asked, batch_size=100, **QUICK
    )
    assert ready.drops.drop("model").equals(modelled.drops.drop("model"))
    assert ready.captions.equals(modelled.captions)


def pictures(dataset: cl.Dataset, folder: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    random = np.random.default_rng(3)
    for id in dataset.image_ids:
        image.fromarray(random.integers(0, 255, (16, 16, 3), np.uint8)).save(folder / f"{id}.png")


def with_files(dataset: cl.Dataset) -> cl.Dataset:
    return replace(dataset, images=dataset.images.with_columns(file=pl.col("image") + ".png"))


def test_perturbed_folders_of_the_command_are_read(tmp_path: Path) -> None:
    from crosslens.perturb.writing import write_perturbations
    from crosslens.pipeline.robustness.given import read_variants

    dataset = captions(8)
    write_perturbations(dataset, "char_swap,distraction_true", tmp_path / "perturbed", seed=5)
    vectors, perturbed = read_variants(tmp_path / "perturbed")
    assert not vectors
    folders = text_study(dataset, Letters(), None, perturbed=perturbed)  # type: ignore[arg-type]
    made = text_study(dataset, Letters(), "char_swap,distraction_true", seed=5)
    assert folders.perturbations == made.perturbations
    for table in ("changes", "captions", "queries"):
        assert folders.tables[table].drop("seed").equals(made.tables[table].drop("seed")), table


def test_a_variant_of_other_captions_is_refused() -> None:
    dataset, other = captions(4), captions(5)
    with pytest.raises(UsageError, match="no embeddings of the variant 'char_swap'"):
        cl.robustness(dataset, images=np.eye(4), captions=np.ones((12, 4)), variants={}, perturbations="char_swap")
    with pytest.raises(InputError, match=r"variant 'char_swap'.*11"):
        cl.robustness(dataset, images=np.eye(4), captions=np.ones((12, 4)), variants={"char_swap": np.ones((11, 4))})
    texts = other.captions.with_columns(pl.col("caption") + "x")
    with pytest.raises(InputError, match="not of the same captions"):
        text_study(dataset, Letters(), None, perturbed={"mine": replace(other, captions=texts)})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "neither a model nor"),
        ({"model": "tiny", "variants": {"v": np.ones((12, 4))}}, "both a model and"),
        ({"model": "tiny", "image_text": "mean", "perturbations": "blur@3"}, "changes pictures"),
        ({"model": "tiny", "perturbations": "char_swop"}, "did you mean char_swap"),
        ({"model": "tiny", "seeds": 0}, "0 seeds"),
        ({"model": "tiny", "perturbations": ""}, "perturbation"),
        ({"model": "tiny", "correction": "bonferoni"}, "correction"),
    ],
)
def test_mistakes_are_said_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(cl.CrosslensError, match=message):
        cl.robustness(captions(4), **options)


# Pictures


def test_changed_pictures_are_encoded_and_both_directions_change(tmp_path: Path) -> None:
    dataset = with_files(captions(8))
    pictures(dataset, tmp_path)
    encoder = Letters()
    found = cl.robustness(
        dataset,
        model=encoder,
        image_folder=tmp_path,
        perturbations="char_swap,noise@5",
        output=tmp_path / "rob",
        **QUICK,
    )
    assert encoder.pictures == 16
    runs = {name: cl.Run.load(tmp_path / "rob" / "letters" / name) for name in ("original", "noise@5")}
    inputs = {name: run.provenance["inputs"] for name, run in runs.items()}
    assert inputs["original"]["captions"] == inputs["noise@5"]["captions"]
    assert inputs["original"]["images"] != inputs["noise@5"]["images"]
    assert found.changes.filter(pl.col("perturbation") == "noise@5")["changed"].to_list() == [24]
    assert not (tmp_path / "rob" / PICTURES).exists()
    again = Letters()
    cl.robustness(
        dataset, model=again, image_folder=tmp_path, perturbations="char_swap,noise@5", output=tmp_path / "rob", **QUICK
    )
    assert (again.pictures, again.texts) == (0, [])


# The folder


def test_the_same_again_and_more_of_it(tmp_path: Path) -> None:
    dataset = captions(8)
    first = text_study(dataset, Letters(), "char_swap", output=tmp_path / "rob", cache=False)
    stamp = (tmp_path / "rob" / "robustness.json").stat().st_mtime_ns
    again = Letters()
    text_study(dataset, again, "char_swap", output=tmp_path / "rob", cache=False)
    assert again.texts == []
    assert (tmp_path / "rob" / "robustness.json").stat().st_mtime_ns == stamp
    more = Letters()
    grown = text_study(dataset, more, "char_swap,distraction_true", output=tmp_path / "rob", cache=False)
    changed = grown.captions.filter(pl.col("perturbation") == "distraction_true")["text"].to_list()
    assert sorted(more.texts) == sorted([*dataset.texts, *changed])
    assert grown.changes.row(0) == first.changes.row(0)
    loaded = cl.Robustness.load(tmp_path / "rob")
    assert loaded.perturbations == ("char_swap", "distraction_true")
    assert json.loads((tmp_path / "rob" / "robustness.json").read_text())["headline"] == "t2t/Rsum"
    for name, table in grown.tables.items():
        assert loaded.tables[name].equals(table), name
    with pytest.raises(ConflictError, match="also has char_swap"):
        text_study(dataset, Letters(), "distraction_true", output=tmp_path / "rob")
    with pytest.raises(ConflictError, match="another robustness study"):
        text_study(captions(9), Letters(), "char_swap", output=tmp_path / "rob")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(ConflictError, match="not empty"):
        text_study(dataset, Letters(), "char_swap", output=tmp_path / "mine")


def test_an_encoder_without_a_revision_is_asked_again(tmp_path: Path) -> None:
    class Unknown(Letters):
        revision = ""

    dataset = captions(6)
    for _ in range(2):
        encoder = Unknown()
        text_study(dataset, encoder, "char_swap", output=tmp_path / "rob")
        assert len(encoder.texts) == 18 + 6


STUDY = """
import sys, time
from pathlib import Path
import crosslens as cl
from tests.pipeline.test_robustness import Letters, captions, text_study

class Slow(Letters):
    def encode_texts(self, texts):
        with open(sys.argv[2], "a") as log:
            log.writelines(text + "\\n" for text in texts)
        time.sleep(0.15)
        return super().encode_texts(texts)

names = "distraction_true,distraction_false,shuffle_all_words,shuffle_within_trigrams,shuffle_trigrams"
text_study(captions(12), Slow(), names, output=sys.argv[1], cache=False)
"""


def test_killed_and_run_again(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]

    def start(output: str, log: str) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-c", STUDY, str(tmp_path / output), str(tmp_path / log)]
        return subprocess.Popen(words, cwd=root, stderr=subprocess.PIPE)

    whole = start("whole", "whole.log")
    assert whole.communicate()[1] == b""
    process = start("killed", "first.log")
    while not (tmp_path / "killed" / "letters" / "distraction_false.parquet").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (tmp_path / "killed" / "robustness.json").exists()
    done = [file.stem for file in (tmp_path / "killed" / "letters").glob("*.parquet") if file.stem != "original"]
    second = start("killed", "second.log")
    assert second.communicate()[1] == b""
    table = cl.Robustness.load(tmp_path / "whole").captions.filter("applied")
    asked = set((tmp_path / "second.log").read_text().splitlines())
    for name in done:
        assert not asked & set(table.filter(pl.col("perturbation") == name)["text"]), name
    assert set(table.filter(pl.col("perturbation") == "shuffle_trigrams")["text"]) <= asked
    mine, other = (cl.Robustness.load(tmp_path / name).tables for name in ("killed", "whole"))
    for name, one in mine.items():
        assert one.equals(other[name]), name
    assert not (tmp_path / "killed" / "pending.json").exists()


# Words


def parsed(text: str, parts: str) -> Caption:
    words = tuple(text.split())
    empty = ("",) * len(words)
    return Caption(text, parse=Parse(words, empty, tuple(parts.split()), empty, empty, (0,) * len(words)))


def test_the_part_of_speech_of_an_edit() -> None:
    caption = parsed("A old dog runs", "DET ADJ NOUN VERB")
    assert parts_of(caption, [Edit(6, 9, "dog", "cat")]) == {"NOUN"}
    assert parts_of(caption, [Edit(7, 7, "", "x")]) == {"NOUN"}
    assert parts_of(caption, [Edit(9, 9, "", "s")]) == {"NOUN"}
    assert parts_of(caption, [Edit(0, 0, "", "x")]) == {"DET"}
    assert parts_of(caption, [Edit(0, 1, "A", "An"), Edit(2, 5, "old", "aged")]) == {"ADJ"}
    assert parts_of(caption, [Edit(0, 1, "A", "Q")]) == {"DET"}
    assert parts_of(caption, [Edit(2, 5, "old", "new"), Edit(10, 14, "runs", "sits")]) == {"ADJ", "VERB"}


@pytest.mark.parametrize(
    ("old", "new", "edit"),
    [
        ("a dog", "a dog and", (5, 5, "", " and")),
        ("a dog", "a dgo", (3, 5, "og", "go")),
        ("aa", "a", (1, 2, "a", "")),
        ("a", "b", (0, 1, "a", "b")),
    ],
)
def test_whole_edit(old: str, new: str, edit: tuple[int, int, str, str]) -> None:
    assert whole_edit(old, new) == (Edit(*edit),)


def test_words_that_cost(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    found = text_study(captions(30), Letters(), "char_swap,missing_char")
    rows = found.words.filter(pl.col("perturbation") == "typos")
    single = found.words.filter(pl.col("perturbation") != "typos")
    assert rows["captions"].sum() == single["captions"].sum() >= 60
    nouns = single.filter(pl.col("part_of_speech") == "NOUN")
    pooled = rows.filter(pl.col("part_of_speech") == "NOUN")
    assert pooled["change"][0] == pytest.approx(np.average(nouns["change"], weights=nouns["captions"]))
    assert Cache(None).folder.exists()


def test_another_study_takes_the_place_if_asked(tmp_path: Path) -> None:
    text_study(captions(6), Letters(), "char_swap,distraction_true", output=tmp_path / "rob")
    found = text_study(captions(7), Letters(), "char_swap", output=tmp_path / "rob", overwrite=True)
    assert found.changes["queries"].to_list() == [7]
    assert not (tmp_path / "rob" / "letters" / "distraction_true").exists()


def test_more_permutations_need_no_new_runs(tmp_path: Path) -> None:
    text_study(captions(6), Letters(), "distraction_true", output=tmp_path / "rob")
    encoder = Letters()
    found = text_study(captions(6), encoder, "distraction_true", output=tmp_path / "rob", permutations=70, cache=False)
    assert encoder.texts == []
    assert found.about["testing"]["permutations"] == 70


def test_any_choice_of_metrics_will_do() -> None:
    dataset = captions(5)
    vectors = Letters().encode_texts(dataset.texts)
    ready: dict[str, Any] = {"images": vectors[::3], "captions": vectors, "variants": {"mine": vectors[::-1].copy()}}
    found = cl.robustness(dataset, **ready, metrics="Rsum[capped]", **QUICK)
    assert found.headline == "Rsum[capped]"
    assert found.drops["metric"].to_list() == ["Rsum[capped]", "t2i/Rsum"]
    images = cl.robustness(dataset, **ready, metrics="i2t/MedR[all] Hit@1", directions=["i2t"], **QUICK)
    assert images.headline == "i2t/Rsum"
    assert images.changes["queries"].to_list() == [5]
