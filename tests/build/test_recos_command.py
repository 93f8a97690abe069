"""``crosslens build recos``: from scenes to figures by task, and again from the log."""

from __future__ import annotations

import inspect
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import crosslens as cl
from crosslens.build import RecosSettings
from crosslens.cli import main
from crosslens.cli.commands.build import recos
from crosslens.storage import Workspace
from tests.tables import rest_slow

pytest.importorskip("PIL", reason="pip install 'crosslens[scenes]'")

MODEL = "from tests.build.toy_models import Words\n\nModel = Words\n"
BUILD = ["build", "recos", "--candidates", "scenes/", "--encoder", "callable:model.py:Model", "--k", "10",
         "--originals", "12", "--descriptions", "3", "--similar", "3", "--source-column", "task"]  # fmt: skip


@pytest.fixture
def place(scenes: cl.Dataset, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    shutil.copytree(folder, tmp_path / "scenes", copy_function=os.link)
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def content(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def test_from_scenes_to_figures_by_task(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*BUILD, "-o", "bench"]) == 0
    printed = capsys.readouterr()
    assert "dis(t) of 300 descriptions" in printed.out
    assert "originals by task" in printed.out
    assert "written to bench" in printed.err
    assert all(len(line) <= 80 for line in printed.out.splitlines())
    assert {file.name for file in Path("bench").iterdir()} == {
        "README.md", "decisions.jsonl", "regenerate.csv", "verify.csv", "v0", "v1", "v2"
    }  # fmt: skip
    outside = pl.read_csv("bench/regenerate.csv")
    log = [json.loads(line) for line in Path("bench/decisions.jsonl").read_text().splitlines()]
    assert outside.height == sum(entry["step"] == "check" and entry["verdict"] != "kept" for entry in log)
    for version, directions in (("v0", ("i2t", "t2i")), ("v2", ("t2i",))):
        words = [word for direction in directions for word in ("--direction", direction)]
        command = ["evaluate", "--dataset", f"bench/{version}", "--model", "callable:model.py:Model", *words]
        assert main([*command, "--resamples", "0", "-o", f"runs/{version}"]) == 0
    assert main(["show", "runs/v0", "--by", "task"]) == 0
    output = capsys.readouterr().out
    assert all(task in output for task in set(cl.load_dataset("bench/v0").images["task"]))
    assert main([*BUILD, "-o", "bench", "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["versions"]["v0"]["fingerprint"] == cl.load_dataset("bench/v0").fingerprint


@pytest.mark.slow
def test_the_log_repeats_the_build_from_another_folder(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*BUILD, "-o", "bench"]) == 0
    (place / "elsewhere").mkdir()
    monkeypatch.chdir(place / "elsewhere")
    assert main(["build", "recos", "--trust-code", "--repeat", "../bench/decisions.jsonl", "-o", "again"]) == 0
    assert content(place / "bench") == content(place / "elsewhere" / "again")
    assert main(["build", "recos", "--trust-code", "--repeat", "../bench/", "-o", "third", "--eta", "0.7"]) == 2
    assert "--eta does not go with --repeat" in capsys.readouterr().err
    (place / "scenes").rename(place / "moved")
    moved = ["build", "recos", "--trust-code", "--repeat", "../bench/", "--candidates", "../moved/", "-o", "fourth"]
    assert main(moved) == 0
    log = "decisions.jsonl"
    assert content(place / "bench")[log] == content(place / "elsewhere" / "fourth")[log]


def test_quotas_grammar_and_verdicts_from_the_command_line(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build = [word for word in BUILD if word not in ("--originals", "12")]
    command = [*build, "--quota", "3", "--quota", "colour=50", "--grammar", "rules", "--check-gallery", "selected"]
    assert main([*command, "-o", "bench", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["tasks"]["object"] == {"quota": 3, "originals": 3}
    assert told["tasks"]["colour"]["quota"] == 50
    assert told["tasks"]["colour"]["originals"] < 50
    assert any(note.startswith("task colour:") for note in told["notes"])
    assert told["grammar"]["ungrammatical"] == 0, "the rules write no mistakes"
    assert told["verified"]["ok"] == 0
    sheet = pl.read_csv("bench/verify.csv", infer_schema=False)
    verdicts = ["bad", "ok", *[None] * (sheet.height - 2)]
    sheet.with_columns(pl.Series("verdict", verdicts, dtype=pl.String)).write_csv("filled.csv")
    again = ["build", "recos", "--trust-code", "--repeat", "bench/", "--verified", "filled.csv", "-o", "checked"]
    assert main(again) == 0
    assert "verification: 1 confirmed, 1 rejected, 0 corrected" in capsys.readouterr().err
    checked = cl.load_dataset("checked/v1")
    assert sheet["caption"][0] not in checked.caption_ids
    assert sheet["caption"][1] in checked.caption_ids
    assert main([*again[:-1], "third", "--quota", "5"]) == 2
    assert "--quota does not go with --repeat" in capsys.readouterr().err
    assert main([*again[:-3], "bench/verify.csv", "-o", "bench"]) == 0
    assert "up to date" in capsys.readouterr().err, "nobody has filled it in"


def test_wrong_use_is_explained(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, code, message in (
        (["build", "recos", "--candidates", "scenes/", "--encoder", "callable:model.py:Model"], 2, "missing option -o"),
        (["build", "recos", "-o", "x", "--encoder", "callable:model.py:Model"], 2, "missing option --candidates"),
        (["build", "recos", "-o", "x", "--candidates", "scenes/"], 2, "missing option --encoder"),
        ([*BUILD, "-o", "x", "--eta", "3"], 2, "eta = 3"),
        ([*BUILD, "-o", "x", "--quota", "5"], 2, "--quota does not go with --originals"),
        ([*BUILD, "-o", "x", "--check-gallery", "select"], 2, "did you mean selected"),
        ([*BUILD, "-o", "x", "--grammar", "ruels"], 2, "did you mean rules"),
        ([*BUILD, "-o", "x", "--verified", "none.csv"], 3, "none.csv"),
        ([*BUILD, "-o", "x", "--generator", "ruels"], 2, "did you mean rules"),
        ([*BUILD, "-o", "x", "--duplicate-cosine", "98"], 2, "duplicate_cosine = 98"),
        ([*BUILD, "-o", "x", "--duplicate-cosine", "-1.5"], 2, "'--duplicate-cosine'"),
        ([*BUILD, "-o", "x", "--duplicate-cosine", "nan"], 2, "'--duplicate-cosine'"),
        ([*BUILD, "-o", "x", "--duplicate-bits", "193"], 2, "at most 192"),
        ([*BUILD, "-o", "x", "--duplicate-bits", "-2"], 2, "'--duplicate-bits'"),
        ([*BUILD, "-o", "x", "--generator", "http:http://127.0.0.1/v1?model=m&worker=2"], 2, "known: model, pictures"),
        ([*BUILD, "-o", "x", "--task-column", "tsk"], 2, "no column 'tsk'"),
        (["build", "recos", "--trust-code", "--repeat", "none.jsonl", "-o", "x"], 3, "no such file"),
    ):
        assert main(arguments) == code, arguments
        error = capsys.readouterr().err
        assert message in error
        assert not Path("x").exists()


@pytest.mark.parametrize("form", rest_slow([["--json"], []]))
def test_when_nothing_is_left_the_histogram_shows_why(
    place: Path, capsys: pytest.CaptureFixture[str], form: list[str]
) -> None:
    assert main([*BUILD, "-o", "bench", "--temperature", "100", "--attempts", "0", *form]) == 2
    told = capsys.readouterr()
    assert not told.out, "there is no result"
    histogram, _, error = told.err.partition("no image is left")
    assert error
    assert "dis(t) of 300 descriptions" in histogram
    assert "0 kept (0%), 300 too vague (100%), 0 too sharp (0%)" in histogram
    assert not Path("bench/decisions.jsonl").exists()


@pytest.mark.slow
def test_many_tasks_fit_a_terminal(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenes = cl.load_dataset("scenes/")
    names = [f"a task-with a long name {row % 12}" for row in range(scenes.images.height)]
    many = replace(scenes, images=scenes.images.with_columns(pl.Series("kind", names)))
    many.save("kinds")
    build = [word.replace("scenes/", "kinds/") for word in BUILD]
    command = [*build, "-o", "bench", "--task-column", "kind", "--image-folder", "scenes"]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert main(command) == 0, "a second time, when all is there"
    assert capsys.readouterr().out == printed
    lines = printed[printed.index("originals by task") :].splitlines()
    assert len(lines) > 2
    assert all(len(line) <= 80 for line in lines)
    counts = Counter(cl.load_dataset("bench/v0").images["task"])
    for task, count in counts.items():
        assert sum(line.split() == [*task.split(), str(count)] for line in lines) == 1


def test_a_build_without_a_generator(place: Path) -> None:
    assert main([*BUILD, "-o", "bench", "--generator", "none", "--eta", "1"]) == 0
    assert set(cl.load_dataset("bench/v1").captions["origin"]) == {"candidate"}


def test_flags_have_the_defaults_of_the_settings() -> None:
    parameters = inspect.signature(recos).parameters
    for name, parameter in inspect.signature(RecosSettings).parameters.items():
        default = parameters[name].default  # a flag reads all its values, so that a second one is noticed
        assert (default[0] if isinstance(default, list) else default) == parameter.default, name


@pytest.mark.slow
def test_a_process_killed_for_good_is_gone_on_with(place: Path) -> None:
    """A generator of its own process, killed from within after seven answers."""
    (place / "deadly.py").write_text(
        "import os, sys\n"
        "from crosslens.build import RecosSettings, build_recos\n"
        "import crosslens as cl\n"
        "from tests.build.toy_models import Fickle, Words\n"
        "class Deadly(Fickle):\n"
        "    def _answer(self, request):\n"
        "        if self.asked >= int(sys.argv[1]):\n"
        "            os._exit(9)\n"
        "        return super()._answer(request)\n"
        "settings = RecosSettings(k=10, originals=12, descriptions=3, similar=3, eta=0.6, source_column='task')\n"
        "found = build_recos(cl.load_dataset('scenes/'), Words(), settings, generator=Deadly(), output='bench')\n"
        "print(len({one['request'] for one in found.log.of('answer')}))\n"
    )
    root = str(Path(__file__).resolve().parents[2])
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {root!r}); exec(open('deadly.py').read())"]
    assert subprocess.run([*command, "7"], check=False).returncode == 9
    assert not Path("bench").exists()
    assert len(list(Workspace(Path("bench")).beside("answers").rglob("??/*.json"))) == 7
    assert subprocess.run([*command, "10000"], check=False).returncode == 0
    assert Path("bench/decisions.jsonl").exists()
