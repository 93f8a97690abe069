"""``crosslens counterfactual`` as a person calls it."""

from __future__ import annotations

from pathlib import Path

import pytest

from crosslens.data import write_dataset
from crosslens.values import Dataset
from tests.cli.conftest import Call

ENCODER = """
import numpy as np

class Letters:
    revision = "1"

    def encode_texts(self, texts):
        return np.array([[1.0, *(text.count(letter) for letter in "abcdefghijklmnopqrstuvwxyz")] for text in texts])
"""


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """The flags of a small text-only search."""
    things = ("dog", "cat", "fish", "horse", "bird", "frog")
    dataset = Dataset.of({name: [f"a {name} in a garden", f"the {name}", f"one {name}"] for name in things})
    write_dataset(dataset, tmp_path / "captions.jsonl")
    (tmp_path / "letters.py").write_text(ENCODER)
    return [
        *("counterfactual", "--dataset", str(tmp_path / "captions.jsonl"), "--cache", str(tmp_path / "cache")),
        *("--model", f"callable:{tmp_path / 'letters.py'}:Letters", "--image-text", "mean"),
        *("--perturbations", "missing_char,nearby_char,char_swap"),
    ]


def test_one_query_is_shown_as_a_diff(call: Call, words: list[str]) -> None:
    outcome = call(*words, "--query", "dog#0")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert any(line.startswith("dog#0: ") for line in lines)
    assert any(line.startswith("  - ") for line in lines)
    assert any(line.startswith("  + ") for line in lines)
    assert "top-1 dog → " in outcome.out
    assert "rank of its own image 1 → " in outcome.out
    assert "characters   " not in outcome.out  # no summary of one query


def test_several_queries_have_a_summary_and_json_says_the_same(call: Call, words: list[str], tmp_path: Path) -> None:
    page = tmp_path / "flips.html"
    printed = call(*words, "--show", "2", "--write", page)
    assert printed.code == 0
    assert "… and 4 more queries" in printed.out
    assert "of 6 queries flipped" in printed.out
    content = call(*words, "--json").json
    assert content["direction"] == "t2t"
    assert (content["gallery"], content["budget"], len(content["queries"])) == (6, 200, 6)
    flipped = [query for query in content["queries"] if query["flipped"]]
    assert f"{len(flipped)} of 6 queries flipped" in printed.out
    right = content["summary"]["right"]
    assert right["queries"] + content["summary"]["wrong"]["queries"] == 6
    for step in right["radius"]:
        within = [
            query for query in flipped if query["before"]["rank"] == 1 and query["characters"] <= step["characters"]
        ]
        assert step["share"] == pytest.approx(len(within) / right["queries"])
    for query in content["queries"]:
        assert query["encodings"] <= 200
        assert (query["before"]["rank"] == 1) != (query["after"]["rank"] == 1) or not query["flipped"]
    text = page.read_text(encoding="utf-8")
    assert all(query["query"] in text for query in content["queries"])
    assert "<ins>" in text
    assert call(*words, "--write", page).code == 0, "it holds the same"


def test_no_flip_is_said_with_the_closest_edit(call: Call, words: list[str]) -> None:
    words[words.index("--perturbations") + 1] = "char_swap"
    outcome = call(*words, "--query", "horse#0", "--budget", "1")
    assert outcome.code == 0
    assert "no flip among 1 of " in outcome.out
    assert "margin +" in outcome.out


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        (("--query", "dgo#0"), 3, "did you mean 'dog#0'"),
        (("--only", "both"), 2, "unknown kind of query"),
        (("--budget", "0"), 2, "--budget"),
        (("--perturbations", "images"), 2, "changes images"),
    ],
)
def test_mistakes(call: Call, words: list[str], flags: tuple[str, ...], code: int, message: str) -> None:
    outcome = call(*words, *flags)
    assert outcome.code == code
    assert message in outcome.err
    assert not outcome.out


def test_a_caption_that_asks_needs_text_only(call: Call, words: list[str]) -> None:
    without = [word for word in words if word not in ("--image-text", "mean")]
    outcome = call(*without, "--query-caption", "1")
    assert outcome.code == 2
    assert "--image-text" in outcome.err
