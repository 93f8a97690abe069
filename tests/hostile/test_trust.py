"""Code that somebody else's recipe, run folder or model folder names does not run unless the user says so."""

from __future__ import annotations

import builtins
import io
import json
import sys
import types
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import crosslens as cl
from crosslens.cli import main
from crosslens.core import InputError, user_code
from crosslens.encode import EncodeOptions, load_encoder, load_summariser, require_trusted_model
from crosslens.engine import SilentProgress
from crosslens.language.spacy_pipeline import Pipeline, parse_batches
from crosslens.pipeline import ModelOptions, Recipe, load_inputs, read_panel, recipe_of_run, run_recipe
from crosslens.storage import NamedCode, UntrustedCodeError, named_by, require_trust, trusting
from crosslens.synth.generation import _drive_worker
from crosslens.train import load_training_recipe
from tests.hostile.conftest import Call

EVIL = """
from pathlib import Path
import numpy as np

Path({mark!r}).write_text("the code ran")

class Model:
    def encode_images(self, images):
        return np.array([[1.0, len(str(image))] for image in images])
    def encode_texts(self, texts):
        return np.array([[1.0, len(text)] for text in texts])
    def score_pairs(self, images, texts):
        return [float(len(text)) for text in texts]
"""

DATASET = '[dataset]\nsource = "data"\n\n'
SCORES = '[inputs]\nscores = "scores.npy"\n'
WAYS = {
    "model": DATASET + '[model]\nname = "callable:evil.py:Model"\nimage_text = "mean"\n',
    "module": DATASET + '[model]\nname = "callable:evil:Model"\nimage_text = "mean"\n',
    "rerank": DATASET + SCORES + '[rerank]\nmodel = "callable:evil.py:Model"\n[model]\nimage_folder = "."\n',
    "similarity": DATASET + SCORES + '[options]\nmetrics = ["NCS[embed:callable:evil.py:Model]@2"]\n',
    "similarity-max": DATASET + SCORES + '[options]\nmetrics = ["NCS[embed-max:callable:evil.py:Model]@2"]\n',
    "semantic": DATASET + SCORES + '[options]\nmetrics = ["NCS[semantic:callable:evil.py:Model]@2"]\n',
    "scores_from": DATASET + SCORES + 'scores_from = ["x=callable:evil.py:Model"]\n'
    '[options]\nmetrics = ["DCGcm[scores_from=x]@2"]\n',
    "run of a run": DATASET + SCORES + 'scores_from = ["x=theirs"]\n[options]\nmetrics = ["DCGcm[scores_from=x]@2"]\n',
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that somebody sent: a dataset, scores, a run, and code that leaves a mark when it runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))
    cl.Dataset.of({f"p{n}": [f"a caption {n}", f"another {n}"] for n in range(3)}).save(tmp_path / "data")
    np.save("scores.npy", np.random.default_rng(0).random((3, 6), np.float32))
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "run.json").write_text('{"format": "crosslens/run", "version": 1}')
    (tmp_path / "theirs" / "recipe.toml").write_text(WAYS["model"].replace("evil.py", str(tmp_path / "evil.py")))
    (tmp_path / "theirs" / "data").symlink_to(tmp_path / "data")
    (tmp_path / "evil.py").write_text(EVIL.format(mark=str(tmp_path / "mark")))
    monkeypatch.delitem(sys.modules, "evil", raising=False)
    return tmp_path


def ran(folder: Path) -> bool:
    return (folder / "mark").exists()


@pytest.mark.parametrize("way", WAYS)
def test_code_named_by_a_recipe_does_not_run(way: str, folder: Path, call: Call) -> None:
    (folder / "recipe.toml").write_text(WAYS[way])
    outcome = call("run", "recipe.toml")
    assert not ran(folder)
    assert outcome.code == 2
    assert "names code that would run" in outcome.err
    assert "evil" in outcome.err
    assert "--trust-code" in outcome.err
    assert not (folder / "out").exists()


@pytest.mark.parametrize("way", ["model", "module", "similarity"])
def test_it_runs_once_it_is_trusted(way: str, folder: Path, call: Call) -> None:
    (folder / "recipe.toml").write_text(WAYS[way])
    assert call("run", "recipe.toml", "--trust-code").code == 0
    assert ran(folder)


def test_a_run_folder_is_a_recipe(folder: Path, call: Call) -> None:
    outcome = call("run", "theirs")
    assert (outcome.code, ran(folder)) == (2, False)
    assert f"theirs/recipe.toml names code that would run: {folder / 'evil.py'}" in outcome.err
    call("run", "theirs", "--trust-code")
    assert ran(folder)


@pytest.mark.parametrize("kind", ["CALLABLE", "Callable"])
def test_case_does_not_hide_code(kind: str, folder: Path, call: Call) -> None:
    for text in (WAYS["model"], WAYS["rerank"], WAYS["similarity"]):
        (folder / "recipe.toml").write_text(text.replace("callable", kind))
        assert (call("run", "recipe.toml").code, ran(folder)) == (2, False), text
    with named_by("their.toml"), pytest.raises(UntrustedCodeError):
        require_trusted_model(f"{kind}:evil.py:Model")


def test_whoever_reads_the_inputs_of_a_recipe_is_not_its_author(folder: Path) -> None:
    """As `calibrate` does with the recipes of an audit, which may be somebody else's."""
    (folder / "recipe.toml").write_text(WAYS["model"])
    recipe = Recipe.read("recipe.toml").absolute()
    with pytest.raises(UntrustedCodeError, match=r"recipe\.toml"):
        load_inputs(recipe, EncodeOptions())
    assert not ran(folder)
    run = run_recipe(recipe, "theirs-again", trust_code=True)
    (folder / "mark").unlink()
    user_code._FILES.clear()  # as in another process
    stored = recipe_of_run(cl.Run.load("theirs-again"))
    assert stored is not None
    with pytest.raises(UntrustedCodeError, match=r"theirs-again/recipe\.toml"):
        load_inputs(stored.absolute(), EncodeOptions())
    assert run.recipe
    assert not ran(folder)


@pytest.mark.slow
def test_an_audit_that_somebody_sent_runs_no_code(folder: Path, call: Call) -> None:
    rows = []
    for number in range(3):
        Image.new("RGB", (8 + number, 8)).save(folder / f"p{number}.png")
        rows.append(json.dumps({"image": f"p{number}.png", "text": f"a caption {number}"}))
    (folder / "pictures.jsonl").write_text("\n".join(rows))
    words = ["--dataset", "pictures.jsonl", "--model", "callable:evil.py:Model"]
    assert call("audit", *words, "-o", "sent", "--quick", "--only", "soundness").code == 0
    (folder / "mark").unlink()
    user_code._FILES.clear()
    outcome = call("calibrate", "sent", "--only", "hub", "--repeats", "1")
    assert (outcome.code, ran(folder)) == (2, False), outcome.err
    assert "recipe.toml names code that would run" in outcome.err
    assert call("calibrate", "sent", "--only", "hub", "--repeats", "1", "--trust-code").code == 0
    assert ran(folder)


TRAINING = """{top}
[data]
kind = "embeddings"
{data}
[model]
kind = "vse"
[[loss]]
kind = "infonce"
[training]
epochs = 1
{training}
"""
TRAININGS = {
    "text_model": {"top": 'text_model = "{}"'},
    "phi": {"top": 'phi = "embed:{}"'},
    "metric": {"training": 'test_metrics = "NCS@10 NCS[embed:{}]@10"'},
    "encoder": {"data": 'encoder = "{}"'},
    "nested": {"data": 'train = {{ source = "x", options = ["{}"] }}'},
}


@pytest.mark.parametrize("way", TRAININGS)
@pytest.mark.parametrize("command", ["train", "sweep"])
def test_code_named_by_a_training_does_not_run(way: str, command: str, folder: Path, call: Call) -> None:
    parts = {"top": "", "data": "", "training": ""} | TRAININGS[way]
    for name in ("callable:evil.py:Model", "CALLABLE:evil.py:Model"):
        text = TRAINING.format(**{key: part.format(name) for key, part in parts.items()})
        (folder / "mine.toml").write_text(text)
        (folder / "above.toml").write_text('base = "mine.toml"\n')
        for file in ("mine.toml", "above.toml"):
            words = ["--recipe", file] if command == "train" else [file]
            outcome = call(command, *words, "--data", ".", "-o", "out")
            assert (outcome.code, ran(folder)) == (2, False), outcome.err
            assert f"{file} names code that would run" in outcome.err
            assert "--trust-code" in outcome.err
            with pytest.raises(UntrustedCodeError):
                load_training_recipe(file)
            assert load_training_recipe(file, trust_code=True).data is not None


def test_an_address_named_by_a_training_is_not_opened(folder: Path, call: Call) -> None:
    metric = 'test_metrics = "NCS[embed:vectors:https://example.org/x]@10"'
    (folder / "mine.toml").write_text(
        TRAINING.format(top='about = "see https://example.com"', data="", training=metric)
    )
    outcome = call("train", "--recipe", "mine.toml", "--data", ".", "-o", "out")
    assert outcome.code == 2
    assert "mine.toml names https://example.org/x: an address in a file is not opened unasked" in outcome.err
    assert "--allow-host example.org" in outcome.err
    assert load_training_recipe("mine.toml", allow_hosts=["example.org"]).name == "mine"


def test_scores_from_somebody_elses_run(folder: Path, call: Call) -> None:
    words = ["evaluate", "--dataset", "./data", "--scores", "scores.npy", "--resamples", "0",
             "--metrics", "DCGcm[scores_from=x]@2", "--scores-from", "x=theirs"]  # fmt: skip
    outcome = call(*words)
    assert (outcome.code, ran(folder)) == (2, False)
    assert "theirs/recipe.toml names code" in outcome.err
    assert "--trust-code" in outcome.err
    call(*words, "--trust-code")
    assert ran(folder)


def test_trust_is_asked_for_before_anything_is_encoded(folder: Path, call: Call) -> None:
    """What the user typed, and what was allowed, would encode for hours; then comes code that may not run."""
    encoded = folder / "encoded"
    code = EVIL.format(mark=str(folder / "imported")).replace("return", f"Path({str(encoded)!r}).touch(); return")
    (folder / "mine.py").write_text(code)
    words = ["evaluate", "--dataset", "./data", "--model", "callable:mine.py:Model", "--image-text", "mean"]
    outcome = call(*words, "--metrics", "DCGcm[scores_from=x]@2", "--scores-from", "x=theirs")
    assert (outcome.code, ran(folder), encoded.exists()) == (2, False, False)
    assert "theirs/recipe.toml names code that would run" in outcome.err
    (folder / "allowed").mkdir()
    (folder / "allowed" / "run.json").write_text('{"format": "crosslens/run", "version": 1}')
    recipe = (folder / "theirs" / "recipe.toml").read_text()
    (folder / "allowed" / "recipe.toml").write_text(recipe.replace("evil.py", "mine.py"))
    (folder / "allowed" / "data").symlink_to(folder / "data")
    asked: list[str] = []

    def allow(code: NamedCode) -> bool:
        asked.append(Path(code.path).name)
        return asked[-1] == "mine.py"

    with pytest.raises(UntrustedCodeError, match="theirs"):
        read_panel(["allowed", "theirs"], trust_code=allow)
    assert (asked, encoded.exists()) == (["mine.py", "evil.py"], False)


def test_a_decision_log_is_not_the_users(folder: Path, call: Call) -> None:
    origin = {"candidates": str(folder / "data"), "options": {}, "encoder": f"callable:{folder / 'evil.py'}:Model"}
    head = {"step": "settings", "format": "crosslens/recos-decisions", "version": 1, "settings": {},
            "origin": origin, "copy_images": False, "generator": None}  # fmt: skip
    (folder / "decisions.jsonl").write_text(json.dumps(head) + "\n")
    words = ["build", "recos", "--repeat", "decisions.jsonl", "-o", "again", "--no-cache"]
    outcome = call(*words)
    assert (outcome.code, ran(folder)) == (2, False)
    assert "decisions.jsonl names code" in outcome.err
    assert "--trust-code" in outcome.err
    call(*words, "--encoder", f"callable:{folder / 'evil.py'}:Model")
    assert ran(folder), "typed by the user"
    (folder / "mark").unlink()
    user_code._FILES.clear()  # as in another process
    call(*words, "--trust-code")
    assert ran(folder)


@pytest.mark.parametrize(
    "words",
    [
        ["--model", "callable:evil.py:Model", "--image-text", "mean"],
        ["--scores", "scores.npy", "--metrics", "NCS[embed:callable:evil.py:Model]@2"],
    ],
)
def test_what_the_user_types_is_the_users(words: list[str], folder: Path, call: Call) -> None:
    assert call("evaluate", "--dataset", "./data", "--resamples", "0", *words).code == 0
    assert ran(folder)


def test_python(folder: Path) -> None:
    (folder / "recipe.toml").write_text(WAYS["model"])
    with pytest.raises(UntrustedCodeError, match="trust_code=True") as raised:
        run_recipe(Recipe.read("recipe.toml"))
    assert raised.value.code == "untrusted-code"
    assert raised.value.subject == str(folder / "evil.py")
    with pytest.raises(UntrustedCodeError):
        run_recipe(Recipe.parse(WAYS["model"]))
    assert not ran(folder)
    run_recipe(Recipe("data", model=ModelOptions("callable:evil.py:Model", image_text="mean")))
    assert ran(folder), "a recipe made in Python is the program's own"
    run_recipe(Recipe.read("recipe.toml"), trust_code=True)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "runs"), [("y\n", True), ("n\n", False), ("\n", False), ("", False)])
def test_on_a_terminal_the_user_is_asked(
    answer: str, runs: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "recipe.toml").write_text(WAYS["similarity"])
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", terminal)
    assert main(["run", "recipe.toml"]) == (0 if runs else 2)
    assert ran(folder) is runs
    assert terminal.getvalue().count("Run it? [y/N]") == 1, "once, however often the code is needed"
    assert str(folder / "evil.py") in terminal.getvalue()


def test_one_place_decides() -> None:
    require_trust("callable:x.py:y", "x.py")
    with named_by("their.toml"):
        with pytest.raises(UntrustedCodeError, match=r"their\.toml"):
            require_trust("plugin", "x.py")
        with trusting(True):
            require_trust("plugin", "x.py")
        asked: list[NamedCode] = []
        with trusting(lambda code: bool(asked.append(code)) or True):
            require_trust("plugin", "asked.py")
            require_trust("plugin", "asked.py")
        assert asked == [NamedCode("their.toml", "plugin", "asked.py")]
        with pytest.raises(UntrustedCodeError):
            require_trust("plugin", "other.py")


def test_the_place_of_a_module_is_shown(folder: Path, call: Call) -> None:
    (folder / "recipe.toml").write_text(WAYS["module"])
    assert f"evil in {folder / 'evil.py'}" in call("run", "recipe.toml").err


# Worker processes


def parse_in_workers(folder: Path) -> None:
    list(parse_batches([["a dog"], ["a cat"]], Pipeline("not_installed", "1", "3"), 2))


def draw_in_a_worker(folder: Path) -> None:
    _drive_worker(folder, deque([0]), SilentProgress())


@pytest.mark.parametrize("work", [parse_in_workers, draw_in_a_worker])
def test_workers_import_nothing_from_the_current_folder(
    work: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("numpy", "polars", "spacy", "PIL"):
        (tmp_path / f"{module}.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w').close()\nraise SystemExit\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(cl.CrosslensError):
        work(tmp_path)
    assert not ran(tmp_path)


# Model folders


@pytest.fixture
def model_folder(tmp_path: Path) -> Callable[[dict[str, Any]], Path]:
    def write(files: dict[str, Any]) -> Path:
        model = tmp_path / "model"
        model.mkdir()
        for name, content in files.items():
            (model / name).parent.mkdir(exist_ok=True)
            (model / name).write_text(json.dumps(content))
        (model / "model.safetensors").write_bytes(b"")
        (model / "modeling_evil.py").write_text(EVIL.format(mark=str(tmp_path / "mark")))
        return model

    return write


AUTO_MAP = {
    "AutoConfig": "modeling_evil.Model",
    "AutoModel": "modeling_evil.Model",
    "AutoModelForSeq2SeqLM": "modeling_evil.Model",
}


def test_auto_map_does_not_run_even_after_a_yes(
    model_folder: Callable[[dict[str, Any]], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers", reason="pip install 'crosslens[encoders]'")
    monkeypatch.setattr(builtins, "input", lambda *question: "y")  # what the library asks, crosslens does not
    model = model_folder({"config.json": {"model_type": "evil", "auto_map": AUTO_MAP}})
    with pytest.raises(InputError, match="code of a model folder never runs"):
        load_summariser(f"transformers:{model}")
    assert not ran(tmp_path)


SENTENCE_FILES = {
    "modules.json": [{"idx": 0, "name": "0", "path": "", "type": "modeling_evil.Model"}],
    "0_Router/router_config.json": {"types": {"a": "modeling_evil.Model"}},
    "2_Dense/config.json": {"in_features": 2, "out_features": 2, "activation_function": "modeling_evil.Model"},
}


@pytest.mark.parametrize("file", SENTENCE_FILES)
def test_modules_of_a_sentence_model_do_not_run(
    file: str, model_folder: Callable[[dict[str, Any]], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="pip install 'crosslens[sentence]'")

    def careless(folder: str, **options: Any) -> None:
        """As versions before 6 do with a local folder."""
        exec((Path(folder) / "modeling_evil.py").read_text())

    library = types.ModuleType("sentence_transformers")
    library.SentenceTransformer = careless  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)
    model = model_folder({"config.json": {}, file: SENTENCE_FILES[file]})
    with pytest.raises(InputError, match="code of a model folder never runs") as raised:
        load_encoder(f"sentence:{model}", device="cpu")
    assert raised.value.file == str(model / file)
    assert not ran(tmp_path)


def test_a_sentence_model_is_loaded_without_its_code(
    model_folder: Callable[[dict[str, Any]], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="pip install 'crosslens[sentence]'")
    options_received: dict[str, Any] = {}
    library = types.ModuleType("sentence_transformers")

    def note(folder: str, **options: Any) -> None:
        options_received.update(options)
        raise ValueError("enough")

    library.SentenceTransformer = note  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)
    modules = [{"path": "", "type": "sentence_transformers.models.Transformer"}]
    dense = {"in_features": 2, "activation_function": "torch.nn.modules.linear.Identity"}
    model = model_folder({"modules.json": modules, "2_Dense/config.json": dense, "config.json": {}})
    with pytest.raises(InputError, match="enough"):
        load_encoder(f"sentence:{model}", device="cpu")
    assert options_received["trust_remote_code"] is False


@pytest.mark.parametrize("architecture", ["local-dir:evil", "hf-hub:evil"])
def test_open_clip_reads_no_configuration_from_elsewhere(architecture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="pip install 'crosslens[encoders]'")
    monkeypatch.setitem(sys.modules, "open_clip", types.ModuleType("open_clip"))
    with pytest.raises(cl.CrosslensError, match="is not an architecture of open_clip"):
        load_encoder(f"openclip:{architecture}/weights.pt", device="cpu")
