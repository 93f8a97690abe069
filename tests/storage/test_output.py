"""Outputs: complete or not there at all, one writer at a time, nothing lost that crosslens did not write."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO

import pytest

from crosslens.core import ConflictError
from crosslens.storage import (
    Layout,
    Workspace,
    atomic_file,
    atomic_folder,
    hold_output,
    output as workspaces,
    refuse_existing,
    remove_abandoned,
    tidy_output,
    workspace,
    write_text,
)
from crosslens.storage.output import LOCK_FILE, PARTIAL, foreign_files, workspace_folder

SOUP = Layout("a soup", "soup.json", ("salt.npy", "bowl-*/spoon.txt"))
HOLDING = """
import sys, time
from crosslens.storage import workspace
with workspace(sys.argv[1], "key") as work:
    work.new.write_text("half")
    print("held", flush=True)
    time.sleep(60)
"""


def soup(folder: Path, content: str) -> None:
    with atomic_folder(folder, SOUP) as new:
        (new / "soup.json").write_text(content)


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    write_text(tmp_path / "f", "old")

    def fail() -> None:
        with atomic_file(tmp_path / "f") as partial:
            partial.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert (tmp_path / "f").read_text() == "old"
    assert names(tmp_path) == ["f"]


@pytest.mark.parametrize("in_one_step", [True, False])
def test_a_folder_appears_whole_and_replaces_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_one_step: bool
) -> None:
    if not in_one_step:
        monkeypatch.setattr(workspaces, "_exchange", lambda first, second: False)
    for content in ("first", "second"):
        with atomic_folder(tmp_path / "d", SOUP) as new:
            (new / "soup.json").write_text(content)
            assert content not in "".join(file.read_text() for file in tmp_path.glob("d/*"))
        assert (tmp_path / "d" / "soup.json").read_text() == content
    assert names(tmp_path) == ["d"]


def test_between_two_steps_the_old_folder_comes_back(tmp_path: Path) -> None:
    """Where folders cannot be exchanged, a process killed between the two renames leaves the old one aside."""
    soup(tmp_path / "d", "old")
    with workspace(tmp_path / "d", "key") as work:
        work.new.mkdir()
        work.new.replace(work.folder / "ready")
        (tmp_path / "d").replace(work.folder / "old")
    assert names(Workspace(tmp_path / "d").folder) == ["key", "old", "ready", LOCK_FILE]
    with workspace(tmp_path / "d", "other"):
        assert (tmp_path / "d" / "soup.json").read_text() == "old"
    assert names(tmp_path) == ["d"]


def test_a_file_never_replaces_a_folder(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "mine").write_text("mine")
    with pytest.raises(OSError, match="d"):
        write_text(tmp_path / "d", "text")
    assert (tmp_path / "d" / "mine").read_text() == "mine"
    assert names(tmp_path) == ["d"]


def test_a_killed_write_leaves_the_old_file_and_the_next_cleans_up(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "from crosslens.storage import atomic_file\n"
        "with atomic_file(sys.argv[1]) as partial:\n"
        "    partial.write_text('half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    for tidy in (lambda: remove_abandoned(tmp_path), lambda: write_text(tmp_path / "f", "new")):
        write_text(tmp_path / "f", "old")
        done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "f")], check=False)
        assert done.returncode == -signal.SIGKILL
        assert (tmp_path / "f").read_text() == "old"
        assert names(tmp_path) == [f".f{PARTIAL}", "f"]
        tidy()
        assert names(tmp_path) == ["f"]


def test_the_second_writer_is_told_who_the_first_is_and_a_kill_releases(tmp_path: Path) -> None:
    target = tmp_path / "out"
    writer = subprocess.Popen([sys.executable, "-c", HOLDING, str(target)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "held\n"
    message = rf"out is being written by process {writer.pid}, since \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d"
    for write in (lambda: write_text(target, "mine"), lambda: hold_output(target).__enter__()):
        with pytest.raises(ConflictError, match=message) as raised:
            write()
        assert raised.value.code == "locked"
    tidy_output(target, "key")
    remove_abandoned(tmp_path)
    assert workspace_folder(target).is_dir(), "nobody cleans up behind a process that is alive"
    writer.send_signal(signal.SIGKILL)
    writer.communicate()
    with workspace(target, "key") as work:
        assert work.new.read_text() == "half"
    with workspace(target, "another key") as work:
        assert not work.new.exists()
    assert names(tmp_path) == []


def test_a_lock_may_be_held_before_the_output_is_prepared(tmp_path: Path) -> None:
    with hold_output(tmp_path / "out"):
        write_text(tmp_path / "out", "text")
        with workspace(tmp_path / "out", "key"):
            pass
    assert names(tmp_path) == ["out"]


def test_a_lock_on_a_file_that_its_owner_has_just_removed_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits for a lock gets that of the file it opened, which the last owner takes away as it leaves."""
    lock, waits = workspaces._lock, []

    def lock_after_the_owner_left(handle: IO[str], wait: bool) -> bool:
        if not waits:
            shutil.rmtree(workspace_folder(tmp_path / "out"))
        waits.append(wait)
        return lock(handle, wait)

    monkeypatch.setattr(workspaces, "_lock", lock_after_the_owner_left)
    with hold_output(tmp_path / "out"):
        assert names(workspace_folder(tmp_path / "out")) == [LOCK_FILE]
    assert len(waits) == 2


def test_foreign_files_are_named(tmp_path: Path) -> None:
    soup(tmp_path / "d", "old")
    (tmp_path / "d" / "bowl-1").mkdir()
    (tmp_path / "d" / "bowl-1" / "spoon.txt").write_text("ours")
    (tmp_path / "d" / ".DS_Store").write_text("of the system")
    soup(tmp_path / "d", "new")
    assert names(tmp_path / "d") == ["soup.json"]
    (tmp_path / "d" / "bowl-1").mkdir()
    for name in ("bowl-1/mine", "b", "c.npy", "salt.npy.bak", ".partial-mine"):
        (tmp_path / "d" / name).write_text("")
    (tmp_path / "d" / "empty").mkdir()
    with pytest.raises(
        ConflictError, match=r"d also holds \.partial-mine, b, bowl-1/mine and more, which would be lost"
    ):
        soup(tmp_path / "d", "third")
    mine = [".partial-mine", "b", "bowl-1/mine", "c.npy", "empty", "salt.npy.bak"]
    assert list(foreign_files(tmp_path / "d", ("soup.json", *SOUP.files))) == mine
    assert (tmp_path / "d" / "soup.json").read_text() == "new"
    assert names(tmp_path) == ["d"]


def test_a_file_that_comes_while_we_work_is_not_lost(tmp_path: Path) -> None:
    soup(tmp_path / "d", "old")

    def replace() -> None:
        with atomic_folder(tmp_path / "d", SOUP) as new:
            (new / "soup.json").write_text("new")
            (tmp_path / "d" / "mine").write_text("mine")

    with pytest.raises(ConflictError, match="also holds mine"):
        replace()
    assert names(tmp_path / "d") == ["mine", "soup.json"]
    assert (tmp_path / "d" / "soup.json").read_text() == "old"


def test_links_are_followed_and_a_dangling_one_is_kept(tmp_path: Path) -> None:
    soup(tmp_path / "elsewhere", "old")
    for name, target in (("link", "elsewhere"), ("dangling", "nowhere"), ("file", "nothing")):
        (tmp_path / name).symlink_to(target)
    soup(tmp_path / "link", "new")
    assert (tmp_path / "elsewhere" / "soup.json").read_text() == "new"
    assert (tmp_path / "link").is_symlink()
    with pytest.raises(ConflictError, match="dangling is a link to nowhere, which does not exist"):
        soup(tmp_path / "dangling", "new")
    with pytest.raises(ConflictError, match="file is a link to nothing, which does not exist"):
        refuse_existing(tmp_path / "file", overwrite=False)
    write_text(refuse_existing(tmp_path / "file", overwrite=True), "text")
    assert (tmp_path / "nothing").read_text() == "text"
    assert (tmp_path / "file").is_symlink()


def test_the_current_folder_is_not_pulled_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConflictError, match="the current folder, or contains it: it cannot be replaced"):
        soup(Path("."), "new")
    assert names(tmp_path) == []


def test_a_folder_of_a_person_by_our_name_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / f".f{PARTIAL}").mkdir()
    (tmp_path / f".f{PARTIAL}" / "mine").write_text("mine")
    with pytest.raises(ConflictError, match="crosslens did not write it"):
        write_text(tmp_path / "f", "text")
    remove_abandoned(tmp_path)
    assert (tmp_path / f".f{PARTIAL}" / "mine").read_text() == "mine"


def test_what_is_left_inside_of_what_is_left(tmp_path: Path) -> None:
    """A file that was being written into a folder that was being written into a folder."""
    with workspace(tmp_path / "out", "key") as work:
        inner = work.new / f".part{PARTIAL}" / "new" / f".file{PARTIAL}"
        inner.mkdir(parents=True)
        for folder in (inner, inner.parents[1]):
            (folder / LOCK_FILE).write_text("")
    with workspace(tmp_path / "out", "key") as work:
        assert names(work.new) == []
    assert names(tmp_path) == []


def test_long_names(tmp_path: Path) -> None:
    for name in ("x" * 255, "y." + "z" * 250):
        write_text(tmp_path / name, "text")
        assert (tmp_path / name).read_text() == "text"
    assert len(names(tmp_path)) == 2


def test_one_place_removes_and_renames_files() -> None:
    """Elsewhere only damaged or old files of caches go, and the description of a matrix that is replaced."""
    source = Path(workspaces.__file__).parents[1]
    removing = re.compile(r"unlink\(|rmdir\(|rmtree\(|os\.(remove|replace|rename)\(|mkstemp|mkdtemp")
    files = {
        str(file.relative_to(source))
        for file in source.rglob("*.py")
        if removing.search(file.read_text(encoding="utf-8"))
    }
    assert files == {
        "storage/arrays.py",
        "storage/output.py",
        "encode/cache.py",
        "language/parsing.py",
        "similarity/matrix.py",
        "web/pictures.py",
    }


def test_parquet_files_are_written_by_python() -> None:
    """Of a full disk, polars would say that the file is invalid."""
    source = Path(workspaces.__file__).parents[1]
    files = [file for file in source.rglob("*.py") if ".write_parquet" in file.read_text(encoding="utf-8")]
    assert [file.name for file in files] == ["folders.py"]


def test_a_forked_child_does_not_keep_the_lock(tmp_path: Path) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    code = (
        "import os, sys, time\n"
        "from crosslens.storage import hold_output\n"
        "with hold_output(sys.argv[1]):\n"
        "    if os.fork() == 0:\n"
        "        os.close(1)\n"
        "        time.sleep(5)\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "out")], stdout=subprocess.PIPE, check=False)
    assert done.returncode == -signal.SIGKILL
    write_text(tmp_path / "out", "text")


def test_folders_that_others_remove_meanwhile_are_no_error(tmp_path: Path) -> None:
    """A cache that two processes fill: what one is preparing comes and goes while the other looks for leftovers."""
    ended = threading.Event()

    def prepare() -> None:
        while not ended.is_set():
            for number in range(20):
                with suppress(OSError):  # the other side may remove the parent just now
                    (tmp_path / f".{number}{PARTIAL}" / "new").mkdir(parents=True, exist_ok=True)
            for number in range(20):
                shutil.rmtree(tmp_path / f".{number}{PARTIAL}", ignore_errors=True)

    writer = threading.Thread(target=prepare, daemon=True)
    writer.start()
    try:
        for _ in range(300):
            remove_abandoned(tmp_path, resumable=False)
        assert writer.is_alive(), "it was writing all the time"
    finally:
        ended.set()
        writer.join()
