"""Extensions in a file of the user: loaded by --plugin, repeated by recipes, and not needed to read a stored run."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

import crosslens as cl
from crosslens.cli.app import GROUPS, HEADINGS

from .conftest import Call

HOW_TO = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "extend.md"

LATE = '''
import crosslens as cl

@cl.metric("Late", definition="the rank of the best relevant item", range=(1, float("inf")), higher_is_better=False)
def late(ranks, spec):
    """The best rank."""
    return ranks.first()
'''


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a dataset, two score matrices and a plugin, and the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))
    texts = {"one.jpg": ["a dog runs", "a brown dog"], "two.jpg": ["a cat sleeps"]}
    lines = [json.dumps({"image": image, "captions": captions}) for image, captions in texts.items()]
    (tmp_path / "captions.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    np.save(tmp_path / "scores.npy", np.array([[0.9, 0.2, 0.1], [0.8, 0.7, 0.3]], np.float32))
    np.save(tmp_path / "better.npy", np.array([[0.9, 0.9, 0.1], [0.2, 0.7, 0.8]], np.float32))
    (tmp_path / "pets.txt").write_text("one.jpg; a dog; a puppy\ntwo.jpg; a cat\n", encoding="utf-8")
    for image in texts:
        Image.new("RGB", (8, 8), "red").save(tmp_path / image)
    (tmp_path / "late.py").write_text(LATE, encoding="utf-8")
    return tmp_path


def evaluate(call: Call, *words: str | Path, scores: str = "scores.npy") -> None:
    given = ("--dataset", "captions.jsonl", "--scores", scores, "--metrics", "Hit@1 Late", "--plugin", "late.py")
    outcome = call("evaluate", *given, *words)
    assert outcome.code == 0, outcome.err


def test_the_how_to_page_is_true_on_the_command_line(desk: Path, call: Call) -> None:
    text = HOW_TO.read_text(encoding="utf-8")
    for name, content in re.findall(r'```python title="([\w.]+)"\n(.*?)```', text, re.DOTALL):
        (desk / name).write_text(content, encoding="utf-8")
    blocks = [block for block in re.findall(r"```bash\n(.*?)```", text, re.DOTALL) if "--plugin" in block]
    assert blocks
    for line in "".join(blocks).replace("\\\n", " ").splitlines():
        outcome = call(*shlex.split(line)[1:])
        assert outcome.code == 0, f"{line}\n{outcome.err}"
    for recipe in re.findall(r"```toml\n(plugins.*?)```", text, re.DOTALL):
        (desk / "by-hand.toml").write_text(recipe, encoding="utf-8")
        assert call("run", "by-hand.toml").code == 0


def test_every_command_takes_a_plugin(call: Call) -> None:
    paths = [(name,) for names in HEADINGS.values() for name in names.keys() - GROUPS.keys()]
    paths += [(group, name) for group, (_, commands) in GROUPS.items() for name in commands]
    assert not [path for path in paths if "--plugin" not in call(*path, "--help-all").out]


def test_a_recipe_repeats_what_a_plugin_computed(desk: Path, call: Call, forget_plugins: Callable[[], None]) -> None:
    evaluate(call, "-o", "runs/a")
    recipe = (desk / "runs/a/recipe.toml").read_text(encoding="utf-8")
    assert 'plugins = ["../../late.py"]' in recipe
    forget_plugins()
    assert "names code that would run" in call("run", "runs/a", "-o", "runs/again").err
    again = call("run", "runs/a", "-o", "runs/again", "--trust-code")
    assert again.code == 0, again.err
    assert "every query has the same value" in again.err
    forget_plugins()
    (desk / "late.py").write_text(LATE.replace("ranks.first()", "2 * ranks.first()"), encoding="utf-8")
    changed = call("run", "runs/a", "-o", "runs/changed", "--trust-code")
    assert changed.code == 3
    assert "late.py: the plugins changed since the recipe was stored" in changed.err


def test_a_changed_plugin_is_another_run(desk: Path, call: Call, forget_plugins: Callable[[], None]) -> None:
    evaluate(call, "-o", "runs/a")
    forget_plugins()
    (desk / "late.py").write_text(LATE.replace("ranks.first()", "2 * ranks.first()"), encoding="utf-8")
    words = ("--dataset", "captions.jsonl", "--scores", "scores.npy", "--metrics", "Hit@1 Late", "--plugin", "late.py")
    assert call("evaluate", *words, "-o", "runs/a").code == 5
    evaluate(call, "-o", "runs/b")
    compared = call("compare", "runs/a", "runs/b").out
    assert "different versions of the plugin late.py" in compared


def test_a_stored_run_is_read_without_its_plugin(desk: Path, call: Call, forget_plugins: Callable[[], None]) -> None:
    evaluate(call, "-o", "runs/a")
    evaluate(call, "-o", "runs/b", scores="better.npy")
    with_plugin = call("show", "runs/a").out, call("compare", "runs/a", "runs/b", "--json").json["comparisons"]
    forget_plugins()
    assert "Late" not in cl.metrics.METRICS
    assert call("show", "runs/a").out == with_plugin[0], "a rank is shown as a rank"
    without = call("compare", "runs/a", "runs/b", "--json").json
    assert without["comparisons"] == with_plugin[1]
    assert "t2i/Late" in {result["metric"] for result in without["comparisons"]}
    assert any("plugin is not loaded: i2t/Late, t2i/Late" in note for note in without["notes"])
    comparison = call("compare", "runs/a", "runs/b", "--metrics", "t2i/Late").out
    assert "t2i/Late ↓" in comparison
    assert "i2t" not in comparison
    assert call("export", "runs/a", "--to", "csv").code == 0
    assert call("show", "runs/a", "runs/b").code == 0


def test_a_run_that_does_not_say_the_unit_is_shown_with_a_note(
    desk: Path, call: Call, forget_plugins: Callable[[], None]
) -> None:
    for name, scores in (("a", "scores.npy"), ("b", "better.npy")):
        evaluate(call, "-o", f"runs/{name}", scores=scores)
        file = desk / "runs" / name / "run.json"
        content = json.loads(file.read_text(encoding="utf-8"))
        for figures in content["metrics"].values():
            for fact in ("higher_is_better", "unit", "pooled"):
                del figures[fact]
        content = {key: value for key, value in content.items() if key not in ("files", "checksum")}
        file.write_text(json.dumps(content), encoding="utf-8")
    forget_plugins()
    assert "Late: shown in percent, as neither the run nor a loaded plugin says the unit." in call("show", "runs/a").out
    compared = " ".join(call("compare", "runs/a", "runs/b").out.split())
    assert "Assumed, as the runs do not say it: higher is better in i2t/Late, t2i/Late." in compared


def test_a_built_in_name_is_refused_and_nothing_is_loaded_twice(desk: Path, call: Call) -> None:
    (desk / "hit.py").write_text(LATE.replace('"Late"', '"Hit"'), encoding="utf-8")
    refused = call("metrics", "--plugin", "hit.py")
    assert refused.code == 3
    assert "two metrics are registered as 'Hit'" in refused.err
    (desk / "copy.py").write_text(LATE, encoding="utf-8")
    assert call("metrics", "Late", "--plugin", "late.py", "--plugin", "late.py", "--plugin", "copy.py").code == 0
    (desk / "late.py").write_text(LATE.replace("the rank of", "the place of"), encoding="utf-8")
    assert "the place of the best" in call("metrics", "Late", "--plugin", "late.py").out
    assert call("metrics", "--plugin", "missing.py").code == 3


def test_a_plugin_from_python(desk: Path) -> None:
    cl.load_plugin(desk / "late.py")
    dataset = cl.load_dataset(desk / "captions.jsonl")
    run = cl.evaluate(dataset, scores=np.load(desk / "scores.npy"), metrics="Late")
    assert run["i2t/Late"].values.tolist() == [1.0, 3.0]
    assert run.provenance["plugins"].keys() == {"late.py"}
    assert isinstance(run.queries(), pl.DataFrame)


@pytest.mark.slow
def test_a_study_is_read_without_its_plugin_and_made_again_with_another(
    desk: Path, call: Call, forget_plugins: Callable[[], None]
) -> None:
    random = np.random.default_rng(0)
    np.savez(desk / "both.npz", image=random.standard_normal((2, 4)), text=random.standard_normal((3, 4)))
    (desk / "variants").mkdir()
    np.save(desk / "variants" / "char_swap.npy", random.standard_normal((3, 4)))
    vectors = ("--image-embeddings", "both.npz", "--caption-embeddings", "both.npz", "--variants", "variants")
    words = (
        "robustness",
        "--dataset",
        "captions.jsonl",
        *vectors,
        "--metrics",
        "Late",
        "-o",
        "study",
        "--resamples",
        "10",
    )
    second_study = call(*words, "--plugin", "late.py")
    assert second_study.code == 0, second_study.err
    table = call("show", "study", "--tables", "metrics").out
    assert "Late ↓" in table
    forget_plugins()
    assert call("show", "study", "--tables", "metrics").out == table
    (desk / "late.py").write_text(LATE.replace("ranks.first()", "2 * ranks.first()"), encoding="utf-8")
    assert call(*words, "--plugin", "late.py").code == 5, "other code, other values"


def test_explaining_a_run_names_the_plugin_of_its_reader(
    desk: Path, call: Call, forget_plugins: Callable[[], None]
) -> None:
    page = HOW_TO.read_text(encoding="utf-8")
    (code,) = re.findall(r'```python title="semicolons.py"\n(.*?)```', page, re.DOTALL)
    (desk / "semicolons.py").write_text(code, encoding="utf-8")
    words = ("--dataset", "semicolons", "--captions", "pets.txt", "--scores", "scores.npy", "--metrics", "Hit@1")
    assert call("evaluate", "--plugin", "semicolons.py", *words, "-o", "runs/pets").code == 0
    forget_plugins()
    refused = call("explain", "runs/pets")
    assert refused.code == 2
    assert "comes from a plugin that is not loaded" in refused.err
    assert "--plugin semicolons.py" in refused.err
