"""``crosslens agreement`` and ``crosslens missing-positives`` as a person calls them."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import crosslens as cl

from .conftest import Call

CAPTIONS = {
    "dog": ["a brown dog runs on the grass", "a dog is running over a lawn", "the brown dog runs"],
    "dogs": ["two brown dogs run on the grass", "a brown dog runs on the grass with another", "dogs running"],
    "cat": ["a white cat sleeps on a sofa", "the cat is asleep", "a cat lies on a couch"],
    "boat": ["a small boat on a lake", "a boat with a red sail", "someone sails a boat on the water"],
    "cake": ["a cake with candles", "a birthday cake stands on a table", "the table has a cake on it"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("judged")
    lines = [f"{image}\t{text}" for image, texts in CAPTIONS.items() for text in texts]
    (path / "captions.tsv").write_text("image\ttext\n" + "\n".join(lines) + "\n", encoding="utf-8")
    scores = {("dog", "dogs#1"): 3, ("dogs", "dog#0"): 3, ("cat", "boat#0"): 0, ("cake", "cake#1"): 5,
              ("dog", "cat#0"): 1, ("boat", "boat#2"): 4, ("boat", "dog#1"): 0, ("cat", "cat#2"): 5,
              ("dogs", "cake#0"): 0}  # fmt: skip
    rows = [f"{image},{caption},{score}" for (image, caption), score in scores.items()]
    (path / "pairs.csv").write_text("image,caption,score\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def words_of(folder: Path, resamples: int) -> tuple[str | Path, ...]:
    files = ("--dataset", folder / "captions.tsv", "--judgements", folder / "pairs.csv")
    return ("agreement", *files, "--resamples", str(resamples))


def test_agreement(folder: Path, call: Call) -> None:
    words = words_of(folder, 50)
    outcome = call(*words, "--phi", "cider", "--phi", "cider-plain")
    assert outcome.code == 0
    assert "Outside the ground truth: 6 pairs of 4 images" in outcome.out
    content = call(*words, "--phi", "cider", "--json").json
    dataset = cl.load_dataset(folder / "captions.tsv")
    expected = cl.agreement(dataset, folder / "pairs.csv", "cider", resamples=50)
    assert content["subsets"]["all"]["phi"]["cider"]["pearson"]["value"] == expected.figure("cider").mean
    assert content["subsets"]["non-gt"]["pairs"] == 6


def test_agreement_as_a_page(folder: Path, call: Call, tmp_path: Path) -> None:
    page = tmp_path / "agreement.html"
    words = words_of(folder, 9)
    assert call(*words, "--write", page).code == 0
    text = page.read_text(encoding="utf-8")
    assert "Agreement with people: pairs on captions" in text
    assert '<th scope="row">cider</th>' in text
    assert call(*words, "--write", page).code == 0, "it holds the same"
    assert page.read_text(encoding="utf-8") == text
    page.write_text("another page")
    outcome = call(*words, "--write", page)
    assert (outcome.code, "already exists with other content" in outcome.err) == (5, True)
    assert "cider" in outcome.out, "what was computed is printed"
    assert page.read_text() == "another page"
    assert call(*words, "--write", page, "--overwrite").code == 0
    assert page.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (("--phi", "cidre"), 2, "did you mean cider"),
        (("--kendall", "a"), 2, "must be b or c"),
        (("--form", "cxc"), 3, "expected: caption, image, agg_score"),
        (("--level", "95"), 2, "confidence level"),
    ],
)
def test_agreement_mistakes(folder: Path, call: Call, more: tuple[str, ...], code: int, message: str) -> None:
    path = folder / "pairs.csv"
    if "cxc" in more:
        path = folder / "other.csv"
        path.write_text("image,caption,points\ndog,dog#0,1\n", encoding="utf-8")
    outcome = call("agreement", "--dataset", folder / "captions.tsv", "--judgements", path, "--resamples", "5", *more)
    assert outcome.code == code
    assert message in outcome.err


def test_missing_positives(folder: Path, call: Call, tmp_path: Path) -> None:
    qrels, table = tmp_path / "completed.qrels", tmp_path / "missing.csv"
    words = ("missing-positives", "--dataset", folder / "captions.tsv", "--phi", "cider", "--threshold", "1")
    outcome = call(*words, "-o", qrels, "--table", table)
    assert outcome.code == 0
    assert "1 pair outside the ground truth worth a look" in outcome.out
    completed = cl.read_qrels(qrels)
    pairs = {
        (completed.query_ids[row], completed.item_ids[item])
        for row, item in zip(completed.rows, completed.items, strict=True)
    }
    assert ("dog", "dog#0") in pairs
    listed = set(pl.read_csv(table).select("image", "caption").iter_rows())
    assert {(image, caption.split("#")[0]) for image, caption in listed} == {("dog", "dogs")}
    assert listed < pairs, "and of two dogs one dog is not said"
    assert "a brown dog runs on the grass" in table.read_text(encoding="utf-8")
    assert call(*words, "-o", qrels).code == 5
    content = call(*words, "-o", qrels, "--overwrite", "--extra-only", "--json").json
    assert content["kept"] == len(cl.read_qrels(qrels).items) == len(pairs) - 15


def test_missing_positives_against_own_qrels(folder: Path, call: Call, tmp_path: Path) -> None:
    people = tmp_path / "people.qrels"
    people.write_text("dog 0 dogs#1 1\ndogs 0 dog#0 1\n", encoding="utf-8")
    words = ("missing-positives", "--dataset", folder / "captions.tsv", "--phi", "cider", "--verify", people, "--json")
    content = call(*words, "--threshold", "0.001").json
    assert content["verification"]["positives"] == 2
    assert content["verification"]["recall"]["value"] == 1
    assert content["verification"]["pairs"] == 2 * 12


def test_agreement_by_the_protocol_of_a_paper(folder: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its φ come first, named ones after them; SPICE is left to the tests of SPICE."""
    from crosslens.pipeline import PROTOCOLS

    monkeypatch.setitem(PROTOCOLS["five"].value.settings["agreement"], "phi", ("cider:split",))
    words = (*words_of(folder, 9), "--protocol", "five", "--phi", "cider")
    content = call(*words, "--json").json
    assert {"cider:split", "cider"} <= set(content["subsets"]["all"]["phi"])
    assert content["protocol"]["tokens"] == {"cider:split": "captions in lower case, split at spaces"}
    assert "Protocol five: Biten et al." in call(*words).out
    assert call(*words_of(folder, 9), "--protocol", "imp").err.startswith(
        "error: the protocol imp says nothing about agreement"
    )
