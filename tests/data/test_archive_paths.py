"""Pictures inside other files: found under their address, the same bytes as went in."""

from __future__ import annotations

import io
import tarfile
import threading
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from crosslens.core import InputError
from crosslens.data import images as image_paths, load_dataset, read_image_bytes

CONTENT = [bytes([number]) * (number + 1) for number in range(150)]


def write_tar(path: Path, mode: str = "w") -> Path:
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for number, content in enumerate(CONTENT):
            member = tarfile.TarInfo(f"deep/{number}.jpg")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
            text = f"picture {number}".encode()
            caption = tarfile.TarInfo(f"deep/{number}.txt")
            caption.size = len(text)
            tar.addfile(caption, io.BytesIO(text))
    return path


def save_arrow(folder: Path, **options: Any) -> Any:
    library = pytest.importorskip("datasets", reason="needs the extra 'hf'")
    features = library.Features(
        {"img": library.Image(), "image_id": library.Value("int64"), "caption": library.Value("string")}
    )
    rows = {
        "img": [{"bytes": content, "path": None} for content in CONTENT],
        "image_id": list(range(len(CONTENT))),
        "caption": ["a"] * len(CONTENT),
    }
    saved = library.Dataset.from_dict(rows, features=features)
    saved.save_to_disk(str(folder), **options)
    return saved


def read_all(dataset: Any) -> list[bytes]:
    return [read_image_bytes(dataset.home / file) for file in dataset.images["file"]]


@pytest.mark.parametrize(("name", "mode"), [("s.tar", "w"), ("s.tar.gz", "w:gz"), ("s.tgz", "w:gz")])
def test_members_of_archives(tmp_path: Path, name: str, mode: str) -> None:
    shard = write_tar(tmp_path / name, mode)
    dataset = load_dataset("webdataset", shards=shard)
    assert dataset.images["file"][3] == f"{name}::deep/3.jpg"
    assert read_all(dataset) == CONTENT


def test_shards_in_different_folders(tmp_path: Path) -> None:
    for part in ("a", "b"):
        (tmp_path / part).mkdir()
        with tarfile.open(tmp_path / part / "0.tar", "w") as tar:
            for ending, content in (("jpg", part.encode()), ("txt", b"a caption")):
                member = tarfile.TarInfo(f"{part}{part}.{ending}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    dataset = load_dataset("webdataset", shards=f"{tmp_path}/*/0.tar")
    assert dataset.images["file"].to_list() == ["a/0.tar::aa.jpg", "b/0.tar::bb.jpg"]
    assert read_all(dataset) == [b"a", b"b"]


@pytest.mark.parametrize("shards", [1, 3])
def test_rows_of_arrow_files(tmp_path: Path, shards: int) -> None:
    save_arrow(tmp_path / "saved", num_shards=shards)
    dataset = load_dataset("huggingface", dataset=str(tmp_path / "saved"))
    assert len({file.partition("::")[0] for file in dataset.images["file"]}) == shards
    assert read_all(dataset) == CONTENT
    last_file = sorted((tmp_path / "saved").glob("*.arrow"))[-1]
    assert read_all(load_dataset("huggingface", dataset=str(last_file))) == CONTENT[-len(CONTENT) // shards :]


def test_rows_of_a_parquet_file(tmp_path: Path) -> None:
    (tmp_path / "kept.jpg").write_bytes(b"beside")
    pairs = [{"bytes": content, "path": "p"} for content in CONTENT[:-1]] + [{"bytes": None, "path": "kept.jpg"}]
    rows = {"photo": pairs, "image_id": list(range(len(CONTENT))), "caption": ["a"] * len(CONTENT), "raw": CONTENT}
    pl.DataFrame(rows).write_parquet(tmp_path / "rows[1].parquet", row_group_size=40)
    dataset = load_dataset("huggingface", dataset=str(tmp_path / "rows[1].parquet"))
    assert read_all(dataset) == [*CONTENT[:-1], b"beside"]
    with_brackets = load_dataset("huggingface", dataset=str(tmp_path / "rows[1].parquet"), image="raw")
    assert read_all(with_brackets) == CONTENT
    with pytest.raises(InputError, match="no column 'no'"):
        load_dataset("huggingface", dataset=str(tmp_path / "rows[1].parquet"), image="no")


def test_captions_that_share_a_picture_share_its_address(tmp_path: Path) -> None:
    rows = {"image_id": [7, 7, 8], "caption": ["a", "b", "c"], "raw": [b"x", b"x", b"y"], "file": ["1", "2", "3"]}
    pl.DataFrame(rows).write_parquet(tmp_path / "rows.parquet")
    dataset = load_dataset("huggingface", dataset=str(tmp_path / "rows.parquet"))
    assert dataset.images.rows() == [("7", "rows.parquet::raw/0"), ("8", "rows.parquet::raw/2")]
    assert dataset.captions["file"].to_list() == ["1", "2", "3"], "a column of the captions keeps its name"
    listed = {"image_id": [7], "caption": [["a", "b"]], "raw": [b"x"], "file": ["1"]}
    pl.DataFrame(listed).write_parquet(tmp_path / "listed.parquet")
    images = load_dataset("huggingface", dataset=str(tmp_path / "listed.parquet")).images
    assert images.rows(named=True) == [{"image": "7", "file": "listed.parquet::raw/0", "file_": "1"}]


def test_rows_that_are_not_simply_those_of_the_files_have_no_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_arrow(tmp_path / "saved")
    import datasets

    whole = datasets.load_from_disk(str(tmp_path / "saved"))
    for part in (whole.select(range(9)), whole.shuffle(seed=1), whole.select(range(5, 20)).flatten_indices()):
        monkeypatch.setattr(datasets, "load_dataset", lambda *_, part=part, **__: part)
        dataset = load_dataset("huggingface", dataset="owner/name", split="test")
        if "file" in dataset.images.columns:  # a library that wrote the rows anew may address them
            assert read_all(dataset) == [CONTENT[int(image)] for image in dataset.image_ids]


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    for content in (b"one", b"other"):
        pl.DataFrame({"raw": [content]}).write_parquet(tmp_path / "rows.parquet")
        assert read_image_bytes(tmp_path / "rows.parquet::raw/0") == content


@pytest.mark.parametrize("kind", ["tar", "parquet"])
def test_many_threads(tmp_path: Path, kind: str) -> None:
    write_tar(tmp_path / "s.tar")
    pl.DataFrame({"raw": CONTENT}).write_parquet(tmp_path / "s.parquet")
    address = {"tar": "s.tar::deep/{}.jpg", "parquet": "s.parquet::raw/{}"}[kind]
    wrong: list[int] = []

    def read(start: int) -> None:
        mine = range(start, len(CONTENT), 4)
        wrong.extend(
            number for number in mine if read_image_bytes(tmp_path / address.format(number)) != CONTENT[number]
        )

    threads = [threading.Thread(target=read, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_what_is_not_there(tmp_path: Path) -> None:
    write_tar(tmp_path / "s.tar")
    pl.DataFrame({"raw": [b"x", None]}).write_parquet(tmp_path / "s.parquet")
    (tmp_path / "bad.tar").write_bytes(b"no tar at all" * 99)
    for address in (
        "s.tar::other.jpg", "s.parquet::raw/2", "s.parquet::raw/1", "s.parquet::no/0", "s.parquet::raw", "bad.tar::x",
        "none.tar::x",
    ):  # fmt: skip
        with pytest.raises(OSError, match=r"."):
            read_image_bytes(tmp_path / address)


def test_a_file_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = load_dataset("webdataset", shards=write_tar(tmp_path / "s.tar.gz", "w:gz"))
    opened: list[str] = []
    monkeypatch.setattr(
        image_paths, "copy_unpacked", lambda *_, copy=image_paths.copy_unpacked: (opened.append(""), copy(*_))
    )
    assert read_all(dataset) == CONTENT
    assert len(opened) == 1
