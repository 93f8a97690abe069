"""Links that somebody put where crosslens writes: what they lead to stays as it is."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from crosslens.cli import main
from crosslens.core import ConflictError
from crosslens.storage import being_written, hold_output, output, remove_abandoned, workspace, write_text
from crosslens.storage.output import LOCK_FILE, PARTIAL
from tests.hostile.killing import WRITING
from tests.hostile.writing_commands import AUDITS, COMMANDS

THESIS = "three years of work"


@dataclass
class Watch:
    """Which paths below a folder are written to, and the folders in which outputs are prepared, as they were then."""

    folder: Path
    written: set[Path] = field(default_factory=set)
    keys: dict[Path, str] = field(default_factory=dict)

    def see(self, event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING:
            path = arguments[0]
        elif event in ("os.mkdir", "os.rename"):
            path = arguments[event == "os.rename"]
        else:
            return
        if not isinstance(path, str | bytes | os.PathLike):
            return
        path = Path(os.path.abspath(os.fsdecode(path)))
        if path.is_relative_to(self.folder):
            self.written.add(path.relative_to(self.folder))
            for parent in path.parents:
                key = parent / "key"
                if parent.name.endswith(PARTIAL) and key.is_file():
                    self.keys[parent.relative_to(self.folder)] = key.read_text()


_watch: list[Watch] = []
_installed: list[bool] = []


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if _watch and event in ("open", "os.mkdir", "os.rename"):
        watch = _watch.pop()  # what it reads itself is not seen
        try:
            watch.see(event, arguments)
        finally:
            _watch.append(watch)


@contextmanager
def watching(folder: Path) -> Iterator[Watch]:
    if not _installed:
        sys.addaudithook(_hook)  # stays until the process ends
        _installed.append(True)
    _watch.append(Watch(folder))
    try:
        yield _watch[0]
    finally:
        _watch.clear()


def _link(path: Path, thesis: Path) -> None:
    path.symlink_to(thesis)


def _dangling(path: Path, thesis: Path) -> None:
    path.symlink_to(thesis.with_name("nothing.txt"))


def _second_name(path: Path, thesis: Path) -> None:
    os.link(thesis, path)


def _folder(path: Path, thesis: Path) -> None:
    path.symlink_to(thesis.parent)


def _pipe(path: Path, thesis: Path) -> None:
    os.mkfifo(path)


PLANTED = (_link, _dangling, _second_name, _folder, _pipe)


@pytest.fixture
def start(inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Path]:
    """A fresh copy of the inputs, with a thesis beside it."""
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))

    def copy() -> Path:
        monkeypatch.chdir(tmp_path)
        shutil.rmtree(tmp_path / "work", ignore_errors=True)
        shutil.rmtree(tmp_path / "home", ignore_errors=True)
        shutil.copytree(inputs, tmp_path / "work")
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / "thesis.txt").write_text(THESIS)
        monkeypatch.chdir(tmp_path / "work")
        return tmp_path / "work"

    return copy


def attack(words: str, start: Callable[[], Path], capsys: pytest.CaptureFixture[str], step: int) -> None:
    """Plant every kind of link at every ``step``-th name that the command writes to, one at a time."""
    work = start()
    home = work.with_name("home")
    with watching(work) as watch:
        assert main(shlex.split(words)) == 0
    names = sorted(name for name in watch.written if any(part.endswith(PARTIAL) for part in name.parts))
    assert any(name.name == LOCK_FILE for name in names)
    assert names[0].name.endswith(PARTIAL), "the folder itself"
    cases = [(name, plant) for name in names for plant in PLANTED][::step]
    for name, plant in cases:
        start()
        for parent in [parent for parent in name.parents if parent.name.endswith(PARTIAL)][::-1]:
            (work / parent).mkdir(parents=True, exist_ok=True)
            (work / parent / LOCK_FILE).write_text("{}")
            (work / parent / "key").write_text(watch.keys.get(parent, ""))
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).unlink(missing_ok=True)
        plant(work / name, home / "thesis.txt")
        code = main(shlex.split(words))
        error = capsys.readouterr().err
        case = f"{plant.__name__} at {name}: {error}"
        assert [path.name for path in home.iterdir()] == ["thesis.txt"], case
        assert (home / "thesis.txt").read_text() == THESIS, case
        assert code in (0, 3, 5), case  # 3: a file where a folder of interrupted work was
        assert code == 0 or "error: " in error, case


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs links and pipes")
@pytest.mark.parametrize("name", ["evaluate", "similarity"])
def test_links_at_some_names_that_are_written(
    name: str, start: Callable[[], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    attack(COMMANDS[name].old, start, capsys, step=31)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs links and pipes")
@pytest.mark.parametrize("name", COMMANDS)
def test_links_at_every_name_that_is_written(
    name: str, start: Callable[[], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    attack(COMMANDS[name].old, start, capsys, step=7 if COMMANDS[name].slow else 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["audit", "sweep"])
def test_links_inside_an_output_that_grows_are_not_followed(
    name: str, start: Callable[[], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each file is moved away and a link left in its place: what was moved is still what it was."""
    commands = {**COMMANDS, **AUDITS}
    if name not in commands:
        pytest.skip("needs torch")
    work, command = start(), commands[name]
    assert main(shlex.split(command.old)) == 0
    shutil.copytree(work / "out", work / "done")
    files = sorted(path.relative_to(work / "out") for path in (work / "out").rglob("*") if path.is_file())
    for file in files[:: 1 + len(files) // 8]:
        shutil.rmtree(work / "out")
        shutil.copytree(work / "done", work / "out")
        moved = work.with_name("home") / file.name
        (work / "out" / file).rename(moved)
        (work / "out" / file).symlink_to(moved)
        before = moved.read_bytes()
        assert main(shlex.split(command.new)) in (0, 5), capsys.readouterr().err
        assert moved.read_bytes() == before, file
        moved.unlink()


def test_the_reported_case(start: Callable[[], Path], capsys: pytest.CaptureFixture[str]) -> None:
    work = start()
    (work / f".out{PARTIAL}").mkdir()
    (work / f".out{PARTIAL}" / LOCK_FILE).symlink_to("../../home/thesis.txt")
    assert main(shlex.split(COMMANDS["evaluate"].old)) == 5
    assert f"{LOCK_FILE} is a link to ../../home/thesis.txt" in capsys.readouterr().err
    assert (work.with_name("home") / "thesis.txt").read_text() == THESIS


@pytest.fixture
def thesis(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text(THESIS)
    return tmp_path / "home" / "thesis.txt"


def test_links_inside_an_output_of_this_process(tmp_path: Path, thesis: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "page.html").symlink_to(thesis)
    (out / "runs").symlink_to(thesis.parent)
    (tmp_path / "linked").symlink_to("out")
    for root in (out, tmp_path / "linked"):
        for name in ("page.html", "runs/thesis.txt", "runs/new.txt"):
            with hold_output(root), pytest.raises(ConflictError, match="links inside an output are not followed"):
                write_text(root / name, "page")
    with hold_output(tmp_path / "linked"):  # the output itself may be a link
        write_text(tmp_path / "linked" / "table.csv", "table")
    assert (out / "table.csv").read_text() == "table"
    assert sorted(path.name for path in thesis.parent.iterdir()) == ["thesis.txt"]
    assert thesis.read_text() == THESIS


def test_a_link_in_a_cache_is_replaced(tmp_path: Path, thesis: Path) -> None:
    (tmp_path / "entry").symlink_to(thesis)
    write_text(tmp_path / "entry", "new", wait=True)
    assert (thesis.read_text(), (tmp_path / "entry").read_text()) == (THESIS, "new")


def test_a_folder_of_a_cache_that_is_a_link_is_not_followed(
    tmp_path: Path, thesis: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "elsewhere"))
    (tmp_path / "cache").mkdir()
    (tmp_path / "elsewhere").symlink_to(tmp_path / "cache")  # the cache itself may be one
    write_text(tmp_path / "elsewhere" / "plain" / "x.json", "mine", wait=True)
    (tmp_path / "cache" / "remote").symlink_to(thesis.parent)
    before = sorted(thesis.parent.iterdir())
    for name in ("x.json", thesis.name, "below/x.json"):
        with pytest.raises(ConflictError, match="links inside a cache are not followed"):
            write_text(tmp_path / "elsewhere" / "remote" / name, "theirs", wait=True)
    assert (sorted(thesis.parent.iterdir()), thesis.read_text()) == (before, THESIS)


def test_what_a_resumed_file_is_linked_to_is_not_changed(tmp_path: Path, thesis: Path) -> None:
    with workspace(tmp_path / "out", "key") as work:
        work.new.mkdir()
        os.link(thesis, work.new / "log")
    with workspace(tmp_path / "out", "key") as work, (work.new / "log").open("a") as log:
        log.write(", and a line")
    assert thesis.read_text() == THESIS
    assert (work.new / "log").read_text() == f"{THESIS}, and a line"


def test_nothing_behind_a_link_is_removed(tmp_path: Path, thesis: Path) -> None:
    (thesis.parent / LOCK_FILE).write_text("{}")  # as if it were prepared there
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / f".a{PARTIAL}").symlink_to(thesis.parent)
    remove_abandoned(tmp_path / "cache", resumable=True)
    assert thesis.read_text() == THESIS


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
@pytest.mark.parametrize("name", [LOCK_FILE, "key"])
def test_nobody_waits_for_a_pipe(tmp_path: Path, name: str) -> None:
    folder = tmp_path / f".out{PARTIAL}"
    folder.mkdir()
    (folder / LOCK_FILE).write_text("{}")
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    assert being_written(tmp_path / "out") is None
    if name == LOCK_FILE:
        with pytest.raises(ConflictError, match="is a named pipe"):
            write_text(tmp_path / "out", "text")
    else:
        write_text(tmp_path / "out", "text")


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs owners")
def test_a_folder_that_belongs_to_somebody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They could put a link there at any time; whoever owns the folder around it could do so anyway."""
    (tmp_path / f".out{PARTIAL}").mkdir()
    mine, lstat = os.geteuid(), os.lstat

    def owned(path: str | Path) -> os.stat_result:
        values = list(lstat(path))
        values[4] = mine + 1 if Path(path).name.endswith(PARTIAL) else around
        return os.stat_result(values)

    monkeypatch.setattr(output.os, "lstat", owned)
    around = mine
    with pytest.raises(ConflictError, match="is where out is prepared, but belongs to another user"):
        write_text(tmp_path / "out", "text")
    around = mine + 1
    write_text(tmp_path / "out", "text")


def test_a_link_put_there_between_looking_and_opening(
    tmp_path: Path, thesis: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / LOCK_FILE

    def late(path: Path) -> None:
        path.unlink(missing_ok=True)
        path.symlink_to(thesis)

    monkeypatch.setattr(output, "require_own", late)
    with pytest.raises(OSError, match="symbolic link"):
        output.open_own(file)
    assert thesis.read_text() == THESIS
