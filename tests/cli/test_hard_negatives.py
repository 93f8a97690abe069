"""``crosslens hard-negatives`` as a person calls it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.analyze.hard_negatives.result import accuracy_bars
from tests.analyze.negative_files import write_sugar, write_winoground
from tests.data.files import write

from .conftest import Call

WORDS = """
import numpy as np

class Encoder:
    name = "words"

    def encode_texts(self, texts):
        known = ("red", "blue", "square", "tree")
        return np.array([[one.lower().count(word) + 0.01 for word in known] for one in texts])
"""


@pytest.fixture
def sugar(tmp_path: Path) -> Path:
    return write_sugar(tmp_path / "sugar")


def scores(source: Path, file: Path, seed: int) -> Path:
    from crosslens.analyze import load_hard_negatives

    cases = load_hard_negatives(source)
    random = np.random.default_rng(seed)
    ids = [(cases.dataset.caption_ids[c], cases.dataset.image_ids[i]) for _, c, i, _ in cases.pairs.iter_rows()]
    rows = [(caption, image, value) for (caption, image), value in zip(ids, random.random(len(ids)), strict=True)]
    pl.DataFrame(rows, ["caption", "image", "score"], orient="row").write_csv(file)
    return file


def test_figures_and_files(sugar: Path, tmp_path: Path, call: Call) -> None:
    table = tmp_path / "cases.parquet"
    words = ("hard-negatives", sugar, "--blind", "shorter", "--resamples", "20", "-o", table)
    outcome = call(*words)
    assert outcome.code == 0
    assert "the shorter caption on sugar_crepe: 4 cases, 2 photos" in outcome.out
    assert "by group" in outcome.out
    assert "Furthest from right:" in outcome.out
    assert "written to" in outcome.err
    assert pl.read_parquet(table)["correct"].to_list() == [True, True, False, False]
    assert call(*words).code == 5
    content = call(*words, "--overwrite", "--json").json
    expected = cl.analyze.score_hard_negatives(sugar, blind="shorter", resamples=20)
    assert content["results"][0]["figures"][0]["value"] == expected.figure().value == 0.5
    assert content["files"] == [str(table)]


def test_two_score_files_are_compared(tmp_path: Path, call: Call) -> None:
    folder = write_winoground(tmp_path / "w")
    files = [scores(folder, tmp_path / f"{seed}.csv", seed) for seed in (1, 2)]
    words = ("hard-negatives", folder, "--scores", files[0], "--scores", files[1], "--resamples", "9")
    outcome = call(*words)
    assert outcome.code == 0
    assert "1st: 1; 2nd: 2." in outcome.out
    assert "collapsed_tag Relation" in outcome.out
    content = call(*words, "--json").json
    assert [entry["model"] for entry in content["results"]] == ["1", "2"]
    assert content["comparisons"][0]["differences"][0]["measure"] == "text"


def test_a_text_model_with_captions_for_pictures(sugar: Path, tmp_path: Path, call: Call) -> None:
    model = write(tmp_path / "words.py", WORDS)
    lines = "image\ttext\n1.jpg\tred thing\n1.jpg\ta square\n2.jpg\tblue\n2.jpg\ta square\n"
    captions = write(tmp_path / "captions.tsv", lines)
    words = ("hard-negatives", sugar, "--model", f"callable:{model}:Encoder", "--no-cache", "--resamples", "9")
    outcome = call(*words, "--dataset", captions, "--image-text")
    assert outcome.code == 0, outcome.err
    assert "on sugar_crepe: 4 cases" in outcome.out
    without = call(*words)
    assert without.code == 2
    assert "not images" in without.err
    assert call(*words, "--image-text").code == 2


def test_the_dataset_that_is_encoded_elsewhere(sugar: Path, tmp_path: Path, call: Call) -> None:
    folder = tmp_path / "dataset"
    assert call("hard-negatives", sugar, "--write-dataset", folder).code == 0
    dataset = cl.load_dataset(folder)
    random = np.random.default_rng(1)
    for part, ids in (("images", dataset.image_ids), ("captions", dataset.caption_ids)):
        cl.Embeddings.of(random.normal(size=(len(ids), 4)), ids, "made elsewhere").save(tmp_path / "vectors" / part)
    outcome = call("hard-negatives", sugar, "--model", f"file:{tmp_path / 'vectors'}", "--resamples", "9")
    assert outcome.code == 0, outcome.err
    assert "made elsewhere on sugar_crepe" in outcome.out


def test_perturbed_captions(tmp_path: Path, call: Call) -> None:
    captions = write(tmp_path / "captions.tsv", "image\ttext\na\tone two three four\nb\tfive six seven\n")
    words = ("hard-negatives", "--dataset", captions, "--blind", "longer", "--resamples", "0")
    outcome = call(*words, "--perturb", "shuffle_all_words,extra_char")
    assert outcome.code == 0
    assert "Changed, of 2 captions: shuffle_all_words 2, extra_char 2." in outcome.out
    assert "extra_char" in outcome.out
    assert "they leave a caption right" in " ".join(outcome.out.split())
    assert call(*words).code == 2
    assert call(*words, "--perturb", "shufle_all_words").code == 2


def test_categories_can_be_left_out(sugar: Path, call: Call) -> None:
    words = ("hard-negatives", sugar, "--blind", "shorter", "--resamples", "0", "--json")
    content = call(*words, "--without", "swap_obj", "--by", "kind").json
    categories = {entry["category"] for entry in content["results"][0]["figures"]}
    assert categories == {"", "kind", "replace_att", "replace_obj"}
    assert call(*words, "--without", "swop").code == 2


def test_bars_as_a_page(tmp_path: Path, call: Call) -> None:
    folder = write_winoground(tmp_path / "w")
    page = tmp_path / "bars.html"
    file = scores(folder, tmp_path / "s.csv", 1)
    outcome = call("hard-negatives", folder, "--scores", file, "--write", page, "--resamples", "9")
    assert outcome.code == 0
    text = page.read_text(encoding="utf-8")
    assert text.count('<svg class="chart"') == 3
    assert "winoground: group score" in text
    assert ">collapsed_tag: Object</th>" in text


def test_what_does_not_fit_is_said(sugar: Path, tmp_path: Path, call: Call) -> None:
    assert call("hard-negatives", sugar).code == 2
    assert call("hard-negatives").code == 2
    assert call("hard-negatives", tmp_path / "nowhere", "--blind", "shorter").code == 3
    assert call("hard-negatives", sugar, "--blind", "shorter", "-o", tmp_path / "a.txt").code == 2
    assert call("hard-negatives", sugar, "--blind", "shorter", "--write", tmp_path / "a.xyz").code == 2
    bad = write(tmp_path / "bad.csv", "caption,score\nreplace_att/0:right,x\n")
    outcome = call("hard-negatives", sugar, "--scores", bad)
    assert outcome.code == 3
    assert f"{bad}, line 2: the score is 'x'" in outcome.err


def test_capital_endings_are_endings(sugar: Path, tmp_path: Path, call: Call) -> None:
    table = tmp_path / "CASES.CSV"
    assert call("hard-negatives", sugar, "--blind", "shorter", "--resamples", "0", "-o", table).code == 0
    assert pl.read_csv(table).height == 4


@pytest.mark.parametrize(
    "words", [("--perturb", "char_swap", "--by", "style"), ("--perturb", "char_swap", "--form", "aro")]
)
def test_options_without_effect_are_refused(words: tuple[str, ...], tmp_path: Path, call: Call) -> None:
    file = write(tmp_path / "captions.jsonl", '{"image": "a", "text": "a red square"}\n')
    outcome = call("hard-negatives", "--dataset", file, "--blind", "shorter", *words)
    assert (outcome.code, f"{words[2]} has no effect with perturbations" in outcome.err) == (2, True), outcome.err


def test_a_dataset_without_a_use_is_refused(sugar: Path, tmp_path: Path, call: Call) -> None:
    file = write(tmp_path / "captions.jsonl", '{"image": "a", "text": "a red square"}\n')
    outcome = call("hard-negatives", sugar, "--dataset", file, "--blind", "shorter")
    assert (outcome.code, "--image-text" in outcome.err) == (2, True)


def test_the_figure_counts_the_cases_of_every_model(sugar: Path, tmp_path: Path) -> None:
    table = pl.read_csv(scores(sugar, tmp_path / "scores.csv", 0))
    scored = cl.analyze.score_hard_negatives(sugar, scores=table.slice(2), skip_missing=True, resamples=20, name="some")
    blind = cl.analyze.score_hard_negatives(sugar, blind="shorter", resamples=20)
    assert (len(scored.negatives), len(blind.negatives)) == (3, 4)
    subtitle = accuracy_bars([scored, blind], "accuracy").about
    assert subtitle.startswith("3 cases (some), 4 cases (the shorter caption), 95% intervals")
    assert accuracy_bars([blind], "accuracy").about.startswith("4 cases, 95% intervals")
