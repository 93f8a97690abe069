"""The folder of a study: resumed, extended, and never replaced unless told to."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import crosslens as cl
from crosslens.cli.console import LogLines
from crosslens.core import ConflictError
from crosslens.storage import Workspace, workspace
from tests.pipeline.robustness_study import letters
from tests.pipeline.robustness_study.letters import Letters, captions
from tests.tables import rest_slow

QUICK: dict[str, Any] = {**letters.QUICK, "metrics": "t2t/Rsum"}


def text_study(dataset: cl.Dataset, encoder: Any, perturbations: str, **options: Any) -> cl.Robustness:
    """A study of few metrics: what is measured makes no difference to the folder."""
    return letters.text_study(dataset, encoder, perturbations, **{**QUICK, **options})


def test_the_same_again_and_more_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dataset = captions(8)
    first = text_study(dataset, Letters(), "char_swap", output=tmp_path / "rob")
    stamp = (tmp_path / "rob" / "robustness.json").stat().st_mtime_ns
    again = Letters()
    text_study(dataset, again, "char_swap", output=tmp_path / "rob")
    assert again.texts == []
    assert (tmp_path / "rob" / "robustness.json").stat().st_mtime_ns == stamp
    more = Letters()
    grown = text_study(dataset, more, "char_swap,distraction_true", output=tmp_path / "rob", progress=LogLines())
    assert "note: letters: resumed at result 2 of 3\n" in capsys.readouterr().err
    changed = grown.captions.filter(pl.col("perturbation") == "distraction_true")["text"].to_list()
    assert sorted(more.texts) == sorted(changed)
    assert grown.changes.row(0) == first.changes.row(0)
    loaded = cl.Robustness.load(tmp_path / "rob")
    assert loaded.perturbations == ("char_swap", "distraction_true")
    assert json.loads((tmp_path / "rob" / "robustness.json").read_text())["headline"] == "t2t/Rsum"
    for name, table in grown.tables.items():
        assert loaded.tables[name].equals(table), name
    with pytest.raises(ConflictError, match="also has char_swap"):
        text_study(dataset, Letters(), "distraction_true", output=tmp_path / "rob")
    with pytest.raises(ConflictError, match="a different robustness study"):
        text_study(captions(9), Letters(), "char_swap", output=tmp_path / "rob")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(ConflictError, match="not empty"):
        text_study(dataset, Letters(), "char_swap", output=tmp_path / "mine")


def test_an_encoder_without_a_revision_encodes_again(tmp_path: Path) -> None:
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
from tests.pipeline.robustness_study.letters import Letters, captions, text_study

class Slow(Letters):
    def encode_texts(self, texts):
        with open(sys.argv[2], "a") as log:
            log.writelines(text + "\\n" for text in texts)
        time.sleep(0.15)
        return super().encode_texts(texts)

names = "distraction_true,distraction_false,shuffle_all_words,shuffle_within_trigrams,shuffle_trigrams"
text_study(captions(12), Slow(), names, output=sys.argv[1], cache=sys.argv[1] + "-cache")
"""


@pytest.mark.slow
def test_killed_and_run_again(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[3]

    def start(output: str, log: str) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-c", STUDY, str(tmp_path / output), str(tmp_path / log)]
        return subprocess.Popen(words, cwd=root, stderr=subprocess.PIPE)

    whole = start("whole", "whole.log")
    assert whole.communicate()[1] == b""
    process, begun = start("killed", "first.log"), Workspace(tmp_path / "killed").new
    while not (begun / "letters" / "distraction_false" / "run.json").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (tmp_path / "killed").exists()
    done = {file.parent.name: file.stat().st_mtime_ns for file in (begun / "letters").glob("*/run.json")}
    second = start("killed", "second.log")
    assert second.communicate()[1] == b""
    table = cl.Robustness.load(tmp_path / "whole").captions.filter("applied")
    encoded = set((tmp_path / "second.log").read_text().splitlines())
    for name, stamp in done.items():
        assert not encoded & set(table.filter(pl.col("perturbation") == name)["text"]), name
        assert (tmp_path / "killed" / "letters" / name / "run.json").stat().st_mtime_ns == stamp, "ranked once"
    assert set(table.filter(pl.col("perturbation") == "shuffle_trigrams")["text"]) <= encoded
    mine, tables_of_whole = (cl.Robustness.load(tmp_path / name).tables for name in ("killed", "whole"))
    for name, rows in mine.items():
        assert rows.equals(tables_of_whole[name]), name
    assert not list(tmp_path.rglob(".*"))


@pytest.mark.slow
def test_another_study_is_overwritten_if_told_to(tmp_path: Path) -> None:
    text_study(captions(6), Letters(), "char_swap,distraction_true", output=tmp_path / "rob")
    result = text_study(captions(7), Letters(), "char_swap", output=tmp_path / "rob", overwrite=True)
    assert result.changes["queries"].to_list() == [7]
    assert not (tmp_path / "rob" / "letters" / "distraction_true").exists()


def test_more_permutations_need_no_new_runs(tmp_path: Path) -> None:
    text_study(captions(6), Letters(), "distraction_true", output=tmp_path / "rob")
    encoder = Letters()
    result = text_study(captions(6), encoder, "distraction_true", output=tmp_path / "rob", permutations=70)
    assert encoder.texts == []
    assert result.about["testing"]["permutations"] == 70


def test_a_model_that_would_be_lost_is_refused_before_the_work(tmp_path: Path) -> None:
    dataset = captions(6)
    text_study(dataset, Letters(), "char_swap", output=tmp_path / "rob")
    letters = Letters()
    letters.name = "others"
    with pytest.raises(ConflictError, match="also has letters"):
        text_study(dataset, letters, "char_swap", output=tmp_path / "rob")
    assert letters.texts == []
    both = cl.robustness(
        dataset, models=[letters, Letters()], perturbations="char_swap", image_text="mean", output=tmp_path / "rob",
        cache=False, **QUICK,
    )  # fmt: skip
    assert both.models == ("others", "letters")


def test_fewer_seeds_and_other_options_do_not_replace_a_study(tmp_path: Path) -> None:
    dataset = captions(6)
    options: dict[str, Any] = {"output": tmp_path / "rob"}
    text_study(dataset, Letters(), "synonym_noun", seeds=2, **options)
    before = (tmp_path / "rob" / "robustness.json").read_bytes()
    with pytest.raises(ConflictError, match="2 seeds"):
        text_study(dataset, Letters(), "synonym_noun", **options)
    with pytest.raises(ConflictError, match="a different robustness study"):
        text_study(dataset, Letters(), "synonym_noun", seeds=2, options={"k": 2}, **options)
    assert (tmp_path / "rob" / "robustness.json").read_bytes() == before
    assert text_study(dataset, Letters(), "synonym_noun", seeds=3, **options).spread["seeds"].unique().to_list() == [3]
    again = text_study(dataset, Letters(), "synonym_noun", options={"k": 2}, overwrite=True, **options)
    assert again.about["options"]["perturbing"] == {"k": 2}
    assert not len(again.spread)


def test_unfinished_work_of_another_study_is_not_taken_over(tmp_path: Path) -> None:
    with workspace(tmp_path / "rob", "another setting") as work:
        (work.new / "letters").mkdir(parents=True)
    assert list(tmp_path.glob(".*"))
    text_study(captions(4), Letters(), "char_swap", output=tmp_path / "rob")
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    "damaged",
    rest_slow(
        [
            "drops.parquet",
            "letters/original/ranking-t2t/above.npy",
            "letters/char_swap/run.json",
            "letters/char_swap/queries.parquet",
            "letters/char_swap/ranking-t2t/header.json",
        ],
        2,
    ),
)
def test_damaged_files_are_computed_again(tmp_path: Path, damaged: str) -> None:
    dataset = captions(6)
    whole = text_study(dataset, Letters(), "char_swap", output=tmp_path / "rob")
    (tmp_path / "rob" / damaged).write_text("half a")
    again = text_study(dataset, Letters(), "char_swap", output=tmp_path / "rob")
    for name, table in whole.tables.items():
        assert again.tables[name].equals(table), name
        assert cl.Robustness.load(tmp_path / "rob").tables[name].equals(table), name
    for variant in ("original", "char_swap"):
        assert cl.Run.load(tmp_path / "rob" / "letters" / variant).rankings["t2t"].query_ids, (
            "whole again in the folder"
        )


def test_a_model_may_be_called_pictures(tmp_path: Path) -> None:
    cl.robustness(
        captions(4), models={"pictures": Letters()}, perturbations="char_swap", image_text="mean",
        output=tmp_path / "rob", **QUICK,
    )  # fmt: skip
    assert cl.Run.load(tmp_path / "rob" / "pictures" / "char_swap")
