"""``crosslens similarity``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import crosslens as cl
from crosslens.similarity import load_similarity

from .conftest import Call

ROWS = [
    {"image": "a", "captions": ["a dog runs", "the dog is running fast"]},
    {"image": "b", "captions": ["a cat sits on a mat"]},
    {"image": "c", "captions": ["two dogs run on the grass"]},
]


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    file = tmp_path / "captions.jsonl"
    file.write_text("\n".join(map(json.dumps, ROWS)))
    return file


def test_matrix_with_ids_and_summary(call: Call, dataset: Path, tmp_path: Path) -> None:
    output = tmp_path / "N.npy"
    done = call("similarity", "--dataset", dataset, "--phi", "cider", "-o", output, "--json")
    expected = cl.relevance_matrix(cl.load_dataset(str(dataset)))
    np.testing.assert_array_equal(np.load(output), expected)
    assert (done.json["phi"], done.json["images"], done.json["captions"]) == ("cider", 3, 4)
    assert done.json["min"] == expected.min()
    assert done.json["max"] == expected.max()
    assert done.json["mean"] == pytest.approx(expected.mean())
    assert done.json["mean_own"] == pytest.approx(expected[[0, 0, 1, 2], range(4)].mean())
    assert done.json["written"] == [str(output), str(output) + ".json"]
    again = call("similarity", "--dataset", dataset, "-o", output)
    assert "nothing to do" in again.err
    assert "3 × 4" in again.out
    second_call = call("similarity", "--dataset", dataset, "--phi", "bleu", "-o", output)
    assert second_call.code == 5
    assert call("similarity", "--dataset", dataset, "--phi", "bleu", "-o", output, "--overwrite").code == 0


def test_pairs(call: Call, dataset: Path, tmp_path: Path) -> None:
    pairs, output = tmp_path / "pairs.csv", tmp_path / "scores.csv"
    pairs.write_text("caption,image,note\nb#0,a,x\nc#0,c,y\n")
    printed = call("similarity", "--dataset", dataset, "--pairs", pairs)
    matrix = cl.relevance_matrix(cl.load_dataset(str(dataset)))
    lines = printed.out.splitlines()
    assert lines[0] == "image,caption,score"
    assert [float(line.split(",")[2]) for line in lines[1:]] == pytest.approx([matrix[0, 2], matrix[2, 3]], rel=1e-6)
    assert call("similarity", "--dataset", dataset, "--pairs", pairs, "-o", output, "--json").json["pairs"] == 2
    assert output.read_text() == printed.out
    assert call("similarity", "--dataset", dataset, "--pairs", pairs, "-o", output).code == 5


def test_bad_pairs_name_the_row(call: Call, dataset: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("image,caption\na,a#0\nz,a#0\n")
    done = call("similarity", "--dataset", dataset, "--pairs", pairs)
    assert done.code == 3
    assert f"{pairs}, row 1: unknown image id 'z'" in done.err
    pairs.write_text("picture,caption\na,a#0\n")
    assert "no column for the image" in call("similarity", "--dataset", dataset, "--pairs", pairs).err


def test_document_frequencies_of_another_dataset(call: Call, dataset: Path, tmp_path: Path) -> None:
    df_file = tmp_path / "other.jsonl"
    df_file.write_text("\n".join(map(json.dumps, ROWS[:2])))
    done = call("similarity", "--dataset", dataset, "--df-from", df_file, "--json")
    expected = cl.relevance_matrix(
        cl.load_dataset(str(dataset)), load_similarity("cider", df=cl.load_dataset(str(df_file)))
    )
    assert done.json["mean"] == pytest.approx(expected.mean())
    assert call("similarity", "--dataset", dataset, "--phi", "bleu", "--df-from", df_file).code == 2


def test_listing_and_mistakes(call: Call, dataset: Path, tmp_path: Path) -> None:
    listed = call("similarity", "--list")
    assert "CIDEr-D" in listed.out
    assert "embed-max" in listed.out
    assert {"cider", "embed"} <= {entry["name"] for entry in call("similarity", "--list", "--json").json}
    assert call("similarity").code == 2
    assert "did you mean cider" in call("similarity", "--dataset", dataset, "--phi", "cidr").err
    assert call("similarity", "--dataset", dataset, "-o", tmp_path / "N.csv").code == 2
