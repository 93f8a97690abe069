"""The library follows its folder: runs that appear, change, break and go; ids that cannot be paths."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from crosslens.core import InputError, UnknownNameError
from crosslens.web import WebSettings, library as library_module
from crosslens.web.background import RecentCache
from crosslens.web.library import RunLibrary, address_name
from tests.web.conftest import copy_of, explorer_of, toys, write_run


@pytest.fixture(autouse=True)
def look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_module, "_SECONDS", 0.05)


def wait_for_the_next_look() -> None:
    time.sleep(0.06)


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file with its size and time."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return {str(file): (file.stat().st_size, file.stat().st_mtime_ns) for file in files}


def test_a_run_that_appears_shows_up(runs_folder: Path, tmp_path: Path) -> None:
    folder = copy_of(runs_folder, tmp_path)
    client = explorer_of(folder, tmp_path / "cache")
    assert "late model" not in client.get("/").text
    assert client.get("/runs/deep~late-model").status_code == 404
    write_run(folder / "deep", toys(), "late model", 9, source="../../toys")
    wait_for_the_next_look()
    assert "late model" in client.get("/").text
    assert client.get("/runs/deep~late-model").status_code == 200
    assert "late model" in client.get("/runs/model-a/query?id=img1%230").text, "beside the others on a query's page"


def test_a_run_that_is_replaced_or_removed(runs_folder: Path, tmp_path: Path) -> None:
    folder = copy_of(runs_folder, tmp_path)
    library = RunLibrary(folder)
    before = library.run("model-a")
    assert library.run("model-a") is before, "kept"
    time.sleep(0.01)
    for file in (folder / "model-a").rglob("*"):
        if file.is_file():
            file.unlink()
    write_run(folder / "new", toys(), "model a", 77)
    for file in sorted((folder / "new" / "model-a").rglob("*")):
        if file.is_file():
            file.rename(folder / "model-a" / file.relative_to(folder / "new" / "model-a"))
    wait_for_the_next_look()
    assert library.run("model-a").fingerprint != before.fingerprint
    (folder / "model-a" / "run.json").unlink()
    wait_for_the_next_look()
    with pytest.raises(UnknownNameError):
        library.run("model-a")


DAMAGE: dict[str, Callable[[Path], object]] = {
    "other-queries": lambda run: (run / "queries.parquet").write_bytes(b"nothing"),
    "no-queries": lambda run: (run / "queries.parquet").unlink(),
    "cut-header": lambda run: (run / "run.json").write_text("{"),
    "list": lambda run: (run / "run.json").write_text("[]"),
    "no-metrics": lambda run: (run / "run.json").write_text('{"format": "crosslens/run", "version": 1}'),
    "metric-a-number": lambda run: (run / "run.json").write_text(
        '{"format": "crosslens/run", "version": 1, "metrics": {"a": 3}}'
    ),
    "mean-a-text": lambda run: (run / "run.json").write_text(
        '{"format": "crosslens/run", "version": 1, "metrics": {"a": {"mean": "x"}}}'
    ),
    "newer": lambda run: (run / "run.json").write_text('{"format": "crosslens/run", "version": 99, "metrics": {}}'),
    "no-text": lambda run: (run / "run.json").write_bytes(b"\xff\xfe\x00"),
    "other-ranking": lambda run: (run / "ranking-t2i" / "top_items.npy").write_bytes(b"nothing"),
    "other-recipe": lambda run: (run / "recipe.toml").write_text("not = [toml"),
}


def test_a_damaged_run_is_a_row_and_never_a_bug(runs_folder: Path, tmp_path: Path) -> None:
    folder = copy_of(runs_folder, tmp_path)
    for name, damage in DAMAGE.items():
        damage(Path(shutil.copytree(folder / "model-b", folder / name)))
    client = explorer_of(folder, tmp_path / "cache")
    dataset = client.get("/api/runs/model-a").json()["dataset"]
    problems = {row["id"]: row["problem"] for row in client.get("/api/runs").json()["runs"]}
    assert problems.keys() >= {*DAMAGE, "model-a", "model-b", "broken"}
    assert problems["model-a"] is problems["model-b"] is None
    for address in (
        "/", "/runs/model-a/query?id=img1%230", "/datasets", f"/datasets/{dataset}",
        f"/datasets/{dataset}/image?id=img1",
    ):  # fmt: skip
        assert client.get(address).status_code == 200, address
    for run in DAMAGE:
        for address in (
            f"/runs/{run}", f"/runs/{run}?direction=t2i&sort=rank", f"/runs/{run}/query?id=img1%230",
            f"/compare?run=model-a&run={run}", f"/api/runs/{run}", f"/api/runs/{run}/queries",
        ):  # fmt: skip
            assert client.get(address).status_code in (200, 404, 422), address
        assert (problems[run] is None) == (client.get(f"/api/runs/{run}/queries").status_code == 200), run


def test_the_damaged_row_says_why(client: object, runs_folder: Path, tmp_path: Path) -> None:
    page = explorer_of(runs_folder, tmp_path).get("/").text
    assert re.search(r"Cannot be read.*the file has changed since it was written", page, re.S)


def test_links_and_hidden_folders_are_not_followed(runs_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "linked").symlink_to(runs_folder)
    (folder / "circle").symlink_to(folder)
    copy_of(runs_folder, folder / ".hidden")
    assert RunLibrary(folder).runs() == []


def test_looking_writes_nothing(runs_folder: Path, tmp_path: Path) -> None:
    before = tree(runs_folder)
    client = explorer_of(runs_folder, tmp_path)
    dataset = client.get("/api/runs").json()["runs"][0]["dataset"]
    for address in ("/", "/runs/model-a", "/runs/model-a/query?id=img1%230", f"/pictures/{dataset}/img1", "/datasets",
                    f"/datasets/{dataset}", "/compare?run=model-a&run=model-b"):  # fmt: skip
        assert client.get(address).status_code == 200
    assert tree(runs_folder) == before


def test_a_run_folder_itself_can_be_served(runs_folder: Path, tmp_path: Path) -> None:
    client = explorer_of(runs_folder / "model-a", tmp_path)
    assert client.get("/runs/model-a").status_code == 200


def test_a_dataset_given_beside_the_folder(runs_folder: Path, tmp_path: Path) -> None:
    folder = copy_of(runs_folder, tmp_path)
    for file in (folder / "toys").glob("*.parquet"):
        file.unlink()
    gone = explorer_of(folder, tmp_path / "cache")
    assert "Texts and pictures may be missing" in gone.get("/runs/model-a").text
    assert "Cannot be read" in gone.get("/datasets").text
    given = explorer_of(folder, tmp_path / "cache", datasets=(toys(),))
    assert "may be missing" not in given.get("/runs/model-a").text
    assert gone.get("/runs/model-a/query?id=img1%230").status_code == 200
    assert gone.get("/runs/model-a/query?id=img1&direction=i2t").status_code == 200


def test_the_folder_must_be_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        WebSettings(tmp_path / "none")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="this is a file"):
        WebSettings(tmp_path / "file")


def test_an_empty_folder(tmp_path: Path) -> None:
    client = explorer_of(tmp_path, tmp_path / "cache")
    assert "There is no run in this folder yet" in client.get("/").text
    assert client.get("/datasets").status_code == 200
    assert client.get("/compare").status_code == 422


@given(st.lists(st.text("aB./~ é-_#<\0", max_size=100), min_size=2, max_size=6, unique=True))
def test_address_names(texts: list[str]) -> None:
    """Safe in any address, and different for different texts."""
    texts = [text.encode("utf-8", "ignore").decode() for text in texts]
    names = [address_name(text) for text in texts]
    assert len(set(names)) == len(set(texts))
    assert all(re.fullmatch(r"[A-Za-z0-9._~-]+", name) and name not in (".", "..") for name in names)


def test_values_are_made_once_and_forgotten() -> None:
    kept: RecentCache[int] = RecentCache(2)
    keys: list[str] = []

    def make(key: str) -> int:
        keys.append(key)
        return len(keys)

    for key in ("a", "b", "a", "c", "a", "b"):
        kept.get(key, lambda key=key: make(key))  # type: ignore[misc]
    assert keys == ["a", "b", "c", "b"], "b was the least recently used when c came"
    with pytest.raises(ZeroDivisionError):
        kept.get("d", lambda: 1 // 0)
    assert kept.get("d", lambda: 5) == 5
