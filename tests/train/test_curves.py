"""The curves of a training: the page in its folder, and the line beside the bar."""

from __future__ import annotations

import io
import re
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from crosslens.cli.commands.training import LiveCurve, PlainCurve, sparkline
from crosslens.train import Trained, TrainingData, TrainingRecipe, load_training_recipe
from crosslens.train.trainer import HERE, recipe_text
from tests.commands import Call as Call, call as call

from .conftest import changed, write_flickr8k


def card(**changes: Any) -> dict[str, Any]:
    recipe = load_training_recipe("flickr8k-vse-sam-random")
    history = [{"step": 10 * row, "epoch": row, "loss": 9.0 / row, "value": value, "rate": 2e-4}
               for row, value in enumerate([50.0, 91.25, 80.0], start=1)]  # fmt: skip
    return {
        "recipe": "mine <b>", "identity": recipe.identity(), "training": {"dataset": "Flickr8k", "images": 600,
        "captions": 3000}, "steps": 30, "best_step": 20, "parameters": 12345, "validation": {"Rsum": 91.25},
        "test": {"Rsum": 90.0, "i2t/Hit@1": 0.125}, "history": history, **changes,
    }  # fmt: skip


# The page


def test_the_page_needs_no_other_file_and_shows_everything() -> None:
    page = Trained(HERE, card()).content(".html").decode()
    assert "<script" not in page
    assert not re.search(r'(?:src|href)="(?!data:|#)', page)
    texts_on_page = [
        "mine &lt;b&gt;", "600 images", "12,345 parameters", "Training loss", "Validation Rsum", "Learning rate",
        "at step 20, Rsum 91.3", "12.5", ">best</td>", "sampling = &quot;random&quot;",
    ]  # fmt: skip
    for text in texts_on_page:
        assert text in page, text
    assert "<b>" not in page
    assert len(page) < 60_000
    charts = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(charts) == 3
    for chart in charts:
        drawn = ElementTree.fromstring(chart)
        assert len(drawn.findall(".//circle[@class='point']")) == 3
    assert [chart.count('class="best"') for chart in charts] == [0, 1, 0], "the kept checkpoint is marked once"


def test_the_recipe_on_the_page_is_the_recipe(tmp_path: Path) -> None:
    recipe = load_training_recipe("flickr8k-vse-sam-random").with_settings({"fraction": 0.1, "seed": 3})
    text = recipe_text(recipe.identity())
    tomllib.loads(text)
    (tmp_path / "again.toml").write_text(text)
    assert load_training_recipe(tmp_path / "again.toml").identity() == recipe.identity()


def test_a_metric_of_which_less_is_better_says_so() -> None:
    history = [dict(row, value=row["step"]) for row in card()["history"]]
    page = str(Trained(HERE, card(history=history, validation={"t2i/MedR": 10}, best_step=10)).chart(1).svg)
    assert "Validation t2i/MedR (lower is better)" in page


# While it runs


def test_sparklines() -> None:
    assert sparkline([]) == ""
    assert sparkline([5.0]) == "▁"
    assert sparkline([2.0, 2.0]) == "▁▁"
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert sparkline([7, 0]) == "█▁"
    many = sparkline(list(range(1000)), 16)
    assert len(many) == 16
    assert many[-1] == "█"
    assert list(many) == sorted(many)


def test_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    curve = PlainCurve("Rsum")
    curve.start("training", 10)
    curve.watch({"epoch": 2.0, "loss": 0.5, "value": 91.25})
    curve.finish()
    assert capsys.readouterr().err == "epoch 2: loss 0.5000, validation Rsum 91.3\n"


def test_the_curve_stands_beside_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    import rich.console

    terminal = io.StringIO()
    make = rich.console.Console
    monkeypatch.setattr(
        rich.console, "Console", lambda **_: make(file=terminal, force_terminal=True, width=80, color_system=None)
    )
    curve = LiveCurve("Rsum")
    curve.watch({"epoch": 1.0, "loss": 1.0, "value": 50.0})  # before an interruption: no bar is there yet
    curve.start("training", 10)
    curve.advance(5)
    curve.watch({"epoch": 2.0, "loss": 0.5, "value": 91.25})
    curve.finish()
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "\n", terminal.getvalue()).split("\n")
    last = [line for line in lines if "training" in line][-1]
    assert "▁█ Rsum 91.3" in last
    assert "50%" in last
    assert len(last) <= 80


# The folder


def test_a_trained_folder_has_the_page_and_a_run(
    call: Call, tmp_path: Path, data: TrainingData, recipe: TrainingRecipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    folder = write_flickr8k(tmp_path / "data", data)
    (tmp_path / "mine.toml").write_text(
        recipe_text(changed(recipe, epochs=2).identity()).replace("precomp", "flickr8k")
    )
    words = ("train", tmp_path / "mine.toml", "--data", folder, "--device", "cpu", "--threads", "1")
    for seed in ("0", "1"):
        done = call(*words, "--seed", seed, "-o", tmp_path / seed)
        assert done.code == 0, done.err
        assert "epoch 2: loss" in done.err
    page = (tmp_path / "0" / "curves.html").read_text()
    assert re.search(r"best at step [\d]+ of 10</h2>", page)
    quiet = call(*words, "--seed", "2", "-o", tmp_path / "2", "--json")
    assert "epoch" not in quiet.err
    assert [set(row) for row in quiet.json["history"]] == [{"step", "epoch", "loss", "value", "rate"}] * 2
    assert quiet.json["history"][0]["rate"] == 0.01
    stored_run = call("show", tmp_path / "0" / "test", "--json")
    assert stored_run.json["metrics"]["Rsum"]["mean"] == pytest.approx(
        call(*words, "-o", tmp_path / "0", "--json").json["test"]["Rsum"]
    )
    compared = call("compare", tmp_path / "0" / "test", tmp_path / "1" / "test", "--metrics", "Rsum")
    assert compared.code == 0, compared.err
    (tmp_path / "0" / "curves.html").write_text("changed")
    from crosslens.train.stored.model_folder import read_model

    with pytest.raises(Exception, match=r"curves.html"):
        read_model(tmp_path / "0")
