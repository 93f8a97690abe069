"""Folders of a key: finished ones are read, other content stays unless it is to be replaced, damage is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from crosslens.core import ConflictError, InputError
from crosslens.storage import Layout, ResumableFolder, Workspace

LAYOUT = Layout("a note", "key.txt", ("text.txt",))


def stored_key(folder: Path) -> str | None:
    return (folder / "key.txt").read_text()


def read(folder: Path) -> str:
    if not (folder / "text.txt").exists():
        raise InputError("no text", file=folder, fix="write it again")
    return (folder / "text.txt").read_text()


def write(path: Path, key: str, text: str, *, overwrite: bool = False) -> str:
    with ResumableFolder(LAYOUT, path, key, overwrite).prepare(stored_key, read) as (work, finished):
        if finished is not None:
            return finished
        assert work is not None
        (work.new / "key.txt").write_text(key)
        (work.new / "text.txt").write_text(text)
        work.publish(LAYOUT)
    return text


def test_the_same_key_finds_its_content_and_another_one_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "note"
    assert write(folder, "a", "first") == "first"
    assert write(folder, "a", "never written") == "first"
    with pytest.raises(ConflictError, match="already contains a different note\n  fix: choose another output"):
        write(folder, "b", "second")
    assert write(folder, "b", "second", overwrite=True) == "second"
    (folder / "mine.txt").write_text("keep me")
    with pytest.raises(ConflictError, match=r"also holds mine\.txt"):
        write(folder, "c", "third", overwrite=True)
    assert (folder / "mine.txt").read_text() == "keep me"


def test_damaged_content_is_named_and_can_be_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "note"
    write(folder, "a", "first")
    (folder / "text.txt").unlink()
    with pytest.raises(InputError, match="no text") as caught:
        write(folder, "a", "first")
    assert "overwrite" in str(caught.value)
    assert write(folder, "a", "again", overwrite=True) == "again"


def test_interrupted_work_of_the_key_is_resumed(tmp_path: Path) -> None:
    folder = ResumableFolder(LAYOUT, tmp_path / "note", "a")

    def interrupted() -> None:
        with folder.prepare(stored_key, read) as (work, _):
            assert work is not None
            (work.new / "text.txt").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with folder.prepare(stored_key, read) as (work, finished):
        assert finished is None
        assert work is not None
        assert (work.new / "text.txt").read_text() == "half"
    with ResumableFolder(LAYOUT, tmp_path / "note", "b").prepare(stored_key, read) as (work, _):
        assert work is not None
        assert not (work.new / "text.txt").exists(), "it is of another key"


def test_content_is_made_once_and_a_refusal_says_what_differs(tmp_path: Path) -> None:
    def write(work: Workspace) -> str:
        (work.new / "key.txt").write_text("a")
        (work.new / "text.txt").write_text("made")
        (work.new / "extra.txt").write_text("")
        work.publish(LAYOUT)
        return "made"

    path = tmp_path / "note"
    assert ResumableFolder(LAYOUT, path, "a").make(stored_key, read, write) == "made"
    assert ResumableFolder(LAYOUT, path, "a").make(stored_key, read, lambda _: "never") == "made"
    with pytest.raises(ConflictError, match=r"a different note \(different: seed\)"):
        ResumableFolder(LAYOUT, path, "b", why=lambda _: " (different: seed)").finished(stored_key, read)
    with pytest.raises(ConflictError, match=r"also holds extra\.txt"):
        ResumableFolder(LAYOUT, path, "b", overwrite=True).finished(stored_key, read)
    folder = ResumableFolder(LAYOUT, path, "b", overwrite=True, more=lambda _: ["extra.txt"])
    assert folder.finished(stored_key, read) is None
