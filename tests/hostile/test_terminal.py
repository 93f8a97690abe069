"""Text from elsewhere cannot steer the terminal: wherever it is printed, control characters are spelled out."""

from __future__ import annotations

import io
import json
import re
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import crosslens as cl
from crosslens.cli import console, main, print_traceback
from crosslens.cli.app import run_command
from crosslens.core import (
    CrosslensError,
    Grid,
    InputError,
    printable,
    printable_json,
    printable_line,
    to_stderr,
    two_columns,
)
from crosslens.encode import ENCODERS
from crosslens.storage import NamedCode
from tests.hostile.conftest import Call

EVIL = "\x1b]0;title\x07\x1b[2J\x9b8m\x85\x08\x7f\u202e\u2066\u2028\rfake"
"""Title, cleared screen, hidden text, new line, backspaces, reversed text, a line written over."""
DIRECTIONS = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029")


def steering(text: str) -> list[str]:
    """The characters of a text that a terminal obeys, other than line feeds and tabs."""
    return [c for c in text if (unicodedata.category(c) == "Cc" and c not in "\n\t") or c in DIRECTIONS]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset, two runs and files whose every text is hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    ids = [f"p{n}{EVIL}" for n in range(6)]
    dataset = cl.Dataset.of(
        {image: [f"a dog {EVIL} {n}", f"two cats {n}"] for n, image in enumerate(ids)},
        images={f"kind{EVIL}": [f"{'ab'[n % 2]}{EVIL}" for n in range(6)]},
        name=f"data{EVIL}",
    )
    dataset.save(folder / "data")
    random = np.random.default_rng(0)
    for name in ("one", "two"):
        scores = random.random((6, 12)).astype(np.float32)
        np.save(folder / f"{name}.npy", scores)
        cl.evaluate(dataset, scores=scores, resamples=9, name=f"{name}{EVIL}", output=folder / name)
    provenance = json.loads((folder / "one" / "run.json").read_text())
    assert "\\u001b" in json.dumps(provenance)
    (folder / "model.py").write_text(ENCODER)
    (folder / "evil.npy").write_bytes(b"not an array")
    (folder / "recipe.toml").write_text(f"[inputs]\n{json.dumps('key' + EVIL)} = 1\n")
    (folder / "value.toml").write_text(f"[options]\nties = {_toml('first' + EVIL)}\n")
    (folder / "metric.toml").write_text(f"[options]\nmetrics = [{_toml('Hit' + EVIL + '@1')}]\n")
    (folder / "reader.toml").write_text(f"[dataset]\nsource = {_toml('coco' + EVIL)}\n")
    (folder / "model.toml").write_text(
        f'[dataset]\nsource = "data"\n[model]\nname = {_toml("callable:" + EVIL + ":x")}\n'
    )
    (folder / "broken.toml").write_text(f"[inputs\n# {printable(EVIL)}")
    (folder / "lists.trec").write_text(f"p0 Q0 c{EVIL.replace(chr(13), '')} 1 1.0 tag\n")
    (folder / "pairs.csv").write_text("image,caption,score\nno such image,c,1\n")
    (folder / f"file{EVIL}.jsonl").write_text('{"image": 1')
    return folder


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=True)


ENCODER = """
import numpy as np

class Letters:
    name = "letters\\x1b[2J"
    def encode_texts(self, texts):
        return np.array([[1.0, *(text.count(letter) for letter in "abcdefghijklmnopqrstuvwxyz")] for text in texts])
"""

SCORES = ["evaluate", "--dataset", "{root}/data", "--scores", "{root}/one.npy", "--resamples", "0"]
COUNTER = ["counterfactual", "--dataset", "{root}/data", "--model", "callable:{root}/model.py:Letters",
           "--image-text", "mean", "--perturbations", "char_swap", "--no-cache"]  # fmt: skip
PLACES: dict[str, Sequence[str]] = {
    "run: table": ["show", "{root}/one"],
    "run: groups": ["show", "{root}/one", "--by", f"kind{EVIL}"],
    "run: several": ["show", "{root}/one", "{root}/two", "--by", f"kind{EVIL}", "--metrics", "t2i/Hit@1"],
    "run: unknown column": ["show", "{root}/one", "--by", f"kinds{EVIL}"],
    "run: unknown metric": ["show", "{root}/one", "--metrics", f"Hit{EVIL}@1"],
    "run: no folder": ["show", f"{{root}}/none{EVIL}"],
    "run: a file": ["show", f"{{root}}/file{EVIL}.jsonl"],
    "compare": ["compare", "{root}/one", "{root}/two", "--permutations", "99"],
    "export: table": ["export", "{root}/one", "--to", "markdown"],
    "export: unknown": ["export", "{root}/one", "--to", f"trec{EVIL}"],
    "evaluate": [*SCORES, "--name", f"mine{EVIL}"],
    "evaluate: written": [*SCORES, "-o", f"{{tmp}}/out{EVIL}"],
    "evaluate: no dataset": ["evaluate", "--dataset", f"{{root}}/none{EVIL}.jsonl", "--scores", "{root}/one.npy"],
    "evaluate: bad dataset": ["evaluate", "--dataset", f"{{root}}/file{EVIL}.jsonl", "--scores", "{root}/one.npy"],
    "evaluate: bad array": ["evaluate", "--dataset", "{root}/data", "--scores", "{root}/evil.npy"],
    "evaluate: wrong items": ["evaluate", "--dataset", "{root}/data", "--run", "{root}/lists.trec"],
    "evaluate: unknown model": ["evaluate", "--dataset", "{root}/data", "--model", f"clip{EVIL}:x"],
    "evaluate: no code": ["evaluate", "--dataset", "{root}/data", "--model", f"callable:none{EVIL}.py:x"],
    "evaluate: no module": ["evaluate", "--dataset", "{root}/data", "--model", f"callable:none{EVIL}:x"],
    "evaluate: ties": [*SCORES, "--ties", f"first{EVIL}"],
    "evaluate: JSON": [*SCORES, "--name", f"mine{EVIL}", "--json"],
    "recipe: none": ["run", f"{{root}}/none{EVIL}.toml"],
    "recipe: key": ["run", "{root}/recipe.toml"],
    "recipe: value": ["run", "{root}/value.toml"],
    "recipe: metric": ["run", "{root}/metric.toml"],
    "recipe: reader": ["run", "{root}/reader.toml"],
    "recipe: code": ["run", "{root}/model.toml"],
    "recipe: broken": ["run", "{root}/broken.toml"],
    "unknown command": [f"evaluate{EVIL}"],
    "unknown option": ["evaluate", f"--dataset{EVIL}"],
    "bad number": ["evaluate", "--depth", f"1{EVIL}"],
    "unknown metric": ["metrics", f"Hit{EVIL}"],
    "unknown format": ["data", "formats", f"coco{EVIL}"],
    "describe": ["data", "describe", "{root}/data"],
    "convert": ["data", "convert", "{root}/data", f"{{tmp}}/out{EVIL}.jsonl"],
    "perturb": ["perturb", "--dataset", "{root}/data", "--name", "char_swap", "--show", "3"],
    "perturb: unknown": ["perturb", "--dataset", "{root}/data", "--name", f"swap{EVIL}", "--show", "3"],
    "counterfactual": [*COUNTER, "--show", "3"],
    "counterfactual: unknown query": [*COUNTER, "--query", f"none{EVIL}"],
    "similarity: pairs": ["similarity", "--dataset", "{root}/data", "--phi", "cider", "--pairs", "{root}/pairs.csv"],
    "similarity: unknown": ["similarity", "--dataset", "{root}/data", "--phi", f"cider{EVIL}"],
    "curve": ["curve", "{root}/one", "--dataset", "{root}/data", "--phi", "cider", "--m", "1,2", "--resamples", "0"],
    "curve: gallery": ["curve", "{root}/one", "--over", "gallery", "--metrics", "t2i/Hit@1", "--resamples", "0"],
    "curve: unknown": ["curve", "{root}/one", "--over", f"gallery{EVIL}"],
    "curve: sizes": ["curve", "{root}/one", "--over", "gallery", "--sizes", f"1{EVIL}"],
    "plan: number": ["plan", "--images", f"1{EVIL}", "--captions", "1", "--dim", "1"],
    "plan: device": ["plan", "--images", "1", "--captions", "1", "--dim", "1", "--device", f"h200{EVIL}"],
    "plan: rates": ["plan", "--images", "1", "--captions", "1", "--dim", "1", "--rates", f"{{root}}/none{EVIL}.json"],
    "missing positives": ["missing-positives", "--dataset", "{root}/data", "--phi", "cider"],
    "explain: unknown query": ["explain", "{root}/one", "--dataset", "{root}/data", "--query", f"none{EVIL}"],
    "labels": ["analyze", "labels", "{root}/one", "--dataset", "{root}/data"],
    "difficulty": ["analyze", "difficulty", "--runs", f"{{root}}/none{EVIL}", "--calibration", "self"],
    "filter loss": ["analyze", "filter-loss", f"{{root}}/none{EVIL}.csv"],
    "columns": ["show", "{root}/one", "--columns", f"{{root}}/none{EVIL}.csv", "--by", "kind"],
    "granularity": ["analyze", "granularity", "--dataset", "{root}/data", "--by", f"kind{EVIL}"],
    "polysemy": ["analyze", "polysemy", "--dataset", "{root}/data", "--model", f"tiny{EVIL}:x"],
    "polysemy: by": ["analyze", "polysemy", "--dataset", "{root}/data", "--by", f"kinds{EVIL}", "--model", "tiny"],
    "robustness": ["robustness", "--dataset", "{root}/data", "--model", "callable:{root}/model.py:Letters",
                   "--image-text", "mean", "--perturbations", "char_swap", "--no-cache", "--resamples", "0",
                   "--permutations", "9", "-o", "{tmp}/study"],
    "hard negatives": ["hard-negatives", f"{{root}}/none{EVIL}", "--model", "tiny"],
    "build": ["build", "recos", "--candidates", f"{{root}}/none{EVIL}", "--encoder", "tiny", "-o", "{tmp}/bench"],
}  # fmt: skip


SLOW = ("labels",)


@pytest.mark.parametrize(
    "place", [pytest.param(place, marks=pytest.mark.slow) if place in SLOW else place for place in PLACES]
)
def test_nothing_steers_the_terminal(place: str, root: Path, tmp_path: Path, call: Call) -> None:
    words = [word.replace("{root}", str(root)).replace("{tmp}", str(tmp_path)) for word in PLACES[place]]
    outcome = call(*words, mistyped=place.startswith("unknown"))
    assert outcome.out + outcome.err
    assert not steering(outcome.out)
    assert not steering(outcome.err)
    assert "\n" + "fake" not in outcome.out + outcome.err
    if "--json" in words:
        assert outcome.json["name"] == f"mine{EVIL}", "JSON holds the same text, escaped"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


OWN_COLOURS = re.compile(r"\x1b\[(?:0|1|2|31|32)m")


ON_A_TERMINAL = {
    "perturb": PLACES["perturb"],
    "counterfactual": PLACES["counterfactual"],
    "export": ["export", "{root}/one", "{root}/two", "--to", "csv"],
}


@pytest.mark.parametrize("place", ON_A_TERMINAL)
def test_on_a_terminal_only_our_own_colours_remain(place: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    words = [word.replace("{root}", str(root)) for word in ON_A_TERMINAL[place]]
    assert run_command(words) == 0
    assert "\\x1b" in terminal.getvalue()
    assert bool(OWN_COLOURS.search(terminal.getvalue())) == (place != "export")
    assert not steering(OWN_COLOURS.sub("", terminal.getvalue()))


def test_a_pipe_gets_the_file_itself(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_file(f"name\n{EVIL}\n")
    assert capsys.readouterr().out == f"name\n{EVIL}\n"


def test_a_list_of_names(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = {**ENCODERS._entries, EVIL: SimpleNamespace(name=EVIL, summary=f"Does {EVIL}.", details={})}
    monkeypatch.setattr(ENCODERS, "_entries", entries)
    for words in (["encode", "--list"], ["encode", "--list", "--json"]):
        outcome = call(*words)
        assert outcome.code == 0
        assert not steering(outcome.out)


def test_python_prints_and_raises(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, second_run = cl.Run.load(root / "one"), cl.Run.load(root / "two")
    assert not steering(str(cl.compare(run, second_run, permutations=9)))
    assert not steering(str(InputError(EVIL, file=EVIL, row=EVIL, expected=EVIL, fix=EVIL)))
    assert not steering(str(CrosslensError(f"the server says {EVIL}", fix=EVIL)))
    to_stderr(EVIL)
    assert not steering(capsys.readouterr().err)


def test_a_file_name_begins_no_line_of_its_own() -> None:
    message = str(InputError("cannot be read", file="x\n  fix: run this", row="line\n1"))
    assert message == "x\\n  fix: run this, line\\n1: cannot be read"


def test_cells_and_names_are_one_line() -> None:
    grid = Grid(("name",), ((f"a\nb{EVIL}",),), "l").text()
    assert len(grid.splitlines()) == 2
    assert not steering(grid)
    assert two_columns([("a\nb", "text")]).splitlines() == ["a\\nb   text"]


def test_the_question_whether_code_may_run(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    monkeypatch.setattr(sys, "stderr", terminal)
    assert not console.confirm_code(NamedCode(f"a\n{EVIL}", EVIL, f"harmless.py{EVIL}"))
    assert not steering(terminal.getvalue())
    assert terminal.getvalue().count("\n") == 3


def test_a_progress_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    import rich.progress

    labels: list[Any] = []
    monkeypatch.setattr(rich.progress.Progress, "start", lambda self: None)
    monkeypatch.setattr(rich.progress.Progress, "add_task", lambda self, label, **_: labels.append(label))
    bar = console.Bar()
    bar.start(f"encoding [red]{EVIL}", 3)
    bar.finish()
    assert not steering(labels[0])
    assert labels[0].startswith(r"encoding \[red]")


def test_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    print_traceback(ValueError, ValueError(EVIL), None)
    assert not steering(capsys.readouterr().err)


def test_a_refused_file(call: Call, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cl.Run, "load", Mock(side_effect=OSError(13, f"Permission denied {EVIL}", EVIL)))
    outcome = call("show", root / "one")
    assert outcome.code == 3
    assert not steering(outcome.err)


@pytest.mark.parametrize("text", ["plain", "tab\tand\nline", "日本語 · café · 👩‍👩‍👧", "שלום", "windows\r\n"])
def test_harmless_text_stays(text: str) -> None:
    assert printable(text) == text
    assert printable_json(text) == text


def test_every_control_is_spelled_out() -> None:
    every = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0), *map(ord, sorted(DIRECTIONS))]))
    assert not steering(printable(every))
    assert printable(printable(every)) == printable(every)
    assert printable_line("\x1b[31m\t\n\u202e") == "\\x1b[31m\\t\\n\\u202e"
    assert json.loads(printable_json(json.dumps(every, ensure_ascii=False))) == every


def test_main_is_the_command_line() -> None:
    assert main(["--version"]) == 0
