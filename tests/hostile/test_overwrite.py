"""Nothing that crosslens did not write is removed: not by ``--overwrite``, nor by a command that is refused."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from crosslens.cli import main
from tests.hostile.test_races import content
from tests.hostile.writing_commands import COMMANDS

_FOLDERS = [
    pytest.param(name, marks=[pytest.mark.slow] if command.slow else [])
    for name, command in COMMANDS.items()
    if command.outputs == ("out",)
]
_REPLACED = [param for param in _FOLDERS if not COMMANDS[str(param.values[0])].grows]
_GROWING = [param for param in _FOLDERS if param not in _REPLACED]


@pytest.fixture
def work(inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(inputs, tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "work"


@pytest.mark.parametrize("name", _REPLACED)
def test_foreign_files_are_named_and_kept(name: str, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command, out = COMMANDS[name], work / "out"
    assert main(shlex.split(command.old)) == 0
    folders = [out, *(path for path in out.rglob("*") if path.is_dir())]
    for folder in folders:
        mine = folder / "mine.txt"
        mine.write_text("mine")
        before = content(work)
        assert main(shlex.split(command.new)) == 5, folder
        assert f"{mine.relative_to(out)}, which would be lost" in capsys.readouterr().err
        assert content(work) == before
        mine.unlink()
    assert main(shlex.split(command.new)) == 0


@pytest.mark.parametrize("name", _GROWING)
def test_foreign_files_in_a_folder_that_grows_are_kept(name: str, work: Path) -> None:
    command, out = COMMANDS[name], work / "out"
    assert main(shlex.split(command.old)) == 0
    mine = [folder / "mine.txt" for folder in (out, *(path for path in out.rglob("*") if path.is_dir()))]
    for file in mine:
        file.write_text("mine")
    before = content(out)
    assert main(shlex.split(command.new)) == 0
    after = content(out)
    assert before.keys() < after.keys()
    assert all(file.read_text() == "mine" for file in mine)


@pytest.mark.parametrize("name", _FOLDERS)
def test_a_folder_of_a_person_is_not_touched(name: str, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither a file that looks like a temporary one, nor anything behind a link that leads nowhere."""
    command, out = COMMANDS[name], work / "out"
    out.mkdir()
    (out / ".partial-mine").write_text("mine")
    before = content(work)
    assert main([*shlex.split(command.old), "--overwrite"]) == 5
    assert "is not empty and is not" in capsys.readouterr().err
    assert content(work) == before
    shutil.rmtree(out)
    out.symlink_to("nowhere")
    assert main(shlex.split(command.old)) == 5
    assert "is a link to nowhere, which does not exist" in capsys.readouterr().err
    assert out.is_symlink()
    assert content(work).keys() == before.keys() - {"out/.partial-mine"}


@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if command.outputs != ("out",)])
def test_a_dangling_link_is_not_replaced_by_a_file(name: str, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = COMMANDS[name]
    (work / command.outputs[0]).symlink_to("nowhere")
    assert main(shlex.split(command.old)) == 5
    assert "is a link to nowhere, which does not exist" in capsys.readouterr().err
    assert (work / command.outputs[0]).is_symlink()
    assert not (work / "nowhere").exists()


def test_a_dataset_converted_onto_itself_keeps_its_pictures(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = content(work)
    for path in ("scenes", "scenes/", "./scenes"):
        assert main(["data", "convert", "scenes", path, "--overwrite"]) == 5
        assert "also holds README.md, coco, images" in capsys.readouterr().err
    assert content(work) == before


def test_a_run_keeps_its_place_behind_a_link(work: Path) -> None:
    (work / "disk").mkdir()
    (work / "out").symlink_to("disk")
    for words in (COMMANDS["evaluate"].old, COMMANDS["evaluate"].new):
        assert main(shlex.split(words)) == 0
        assert (work / "out").is_symlink()
        assert (work / "disk" / "run.json").is_file()
