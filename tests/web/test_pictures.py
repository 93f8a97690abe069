"""Pictures: only from the folders of their dataset, decoded and encoded again, kept; what is none is refused."""

from __future__ import annotations

import io
import os
import struct
import zlib
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from fastapi.testclient import TestClient
from PIL import Image

import crosslens as cl
from crosslens.web import WebSettings, create_app
from crosslens.web.pictures import picture_file
from tests.tables import each_row
from tests.web.conftest import copy_of, explorer_of


@pytest.fixture
def served(runs_folder: Path, tmp_path: Path) -> tuple[TestClient, Path, str]:
    """A client over a folder of its own, the folder of the pictures, and the start of their addresses."""
    folder = copy_of(runs_folder, tmp_path)
    client = explorer_of(folder, tmp_path / "cache")
    dataset = client.get("/api/runs").json()["runs"][0]["dataset"]
    return client, folder / "toys" / "pictures", f"/pictures/{dataset}"


@pytest.fixture
def only_read(client: TestClient) -> tuple[TestClient, str]:
    """The client that tests share, and the start of the pictures' addresses, for requests that are refused."""
    return client, f"/pictures/{client.get('/api/runs').json()['runs'][0]['dataset']}"


def test_pictures_are_made_small_and_kept(served: tuple[TestClient, Path, str]) -> None:
    client, pictures, start = served
    Image.new("RGB", (2000, 1000), (1, 2, 3)).save(pictures / "img1.png")
    for size in (96, 160, 256, 320, 640, 1280):
        answer = client.get(f"{start}/img1?size={size}")
        assert answer.headers["content-type"] == "image/jpeg"
        assert Image.open(io.BytesIO(answer.content)).size == (size, size // 2)
    kept = list(pictures.parents[2].glob("cache/web/pictures/*/*.jpg"))
    assert len(kept) == 6
    kept[0].write_bytes(b"kept")
    assert b"kept" in [client.get(f"{start}/img1?size={size}").content for size in (96, 160, 256, 320, 640, 1280)]
    Image.new("RGB", (30, 20)).save(pictures / "img1.png")
    assert Image.open(io.BytesIO(client.get(f"{start}/img1?size=96").content)).size == (30, 20), "the file changed"


@pytest.mark.parametrize("size", ["0", "-1", "97", "100000", "x", "1e3", ""])
def test_other_sizes_are_refused(only_read: tuple[TestClient, str], size: str) -> None:
    client, start = only_read
    assert client.get(f"{start}/img1", params={"size": size}).status_code == 422


@pytest.mark.parametrize(
    "image",
    ["../../../etc/passwd", "..%2f..%2fetc%2fpasswd", "/etc/passwd", "%2fetc%2fpasswd", "img1.png", "pictures/img1.png",
     "img1%00", "nothing", "%2e%2e/img1", "a" * 3000, "img1::box/0,0,5,5", "CON", "~root"],
)  # fmt: skip
def test_only_ids_of_the_dataset(only_read: tuple[TestClient, str], image: str) -> None:
    client, start = only_read
    assert client.get(f"{start}/{image}").status_code == 404


def test_files_outside_the_folders(served: tuple[TestClient, Path, str], tmp_path: Path) -> None:
    """Links may lead anywhere inside the folders of the dataset, and nowhere else."""
    client, pictures, start = served
    outside = tmp_path / "private.png"
    Image.new("RGB", (9, 9)).save(outside)
    for image, target in (("img1", outside), ("img2", pictures / "img5.png")):
        (pictures / f"{image}.png").unlink()
        (pictures / f"{image}.png").symlink_to(target)
    assert client.get(f"{start}/img1").status_code == 403
    assert str(tmp_path) not in client.get(f"{start}/img1").text
    assert client.get(f"{start}/img2").status_code == 200
    assert not client.app.state.services.pictures.exists(start.split("/")[-1], "img1")  # type: ignore[attr-defined]


def test_a_linked_folder_of_pictures(runs_folder: Path, tmp_path: Path) -> None:
    """A disk that is linked into the dataset is shown here; to other computers, once ``--data`` names it."""
    folder = copy_of(runs_folder, tmp_path)
    elsewhere = tmp_path / "disk"
    (folder / "toys" / "pictures").rename(elsewhere)
    (folder / "toys" / "pictures").symlink_to(elsewhere)
    (elsewhere / "img2.png").unlink()
    (elsewhere / "img2.png").symlink_to(tmp_path / "private.png")
    Image.new("RGB", (9, 9)).save(tmp_path / "private.png")
    client = explorer_of(folder, tmp_path / "cache")
    dataset = client.get("/api/runs").json()["runs"][0]["dataset"]
    assert client.get(f"/pictures/{dataset}/img1").status_code == 200
    assert client.get(f"/pictures/{dataset}/img2").status_code == 403, "a file that is a link leads nowhere"
    linked = client.app.state.services.library.dataset(dataset)  # type: ignore[attr-defined]
    roots = [(folder / "toys").resolve()]
    with pytest.raises(cl.CrosslensError, match="outside the folders"):
        picture_file(linked, "img1", roots)
    assert picture_file(linked, "img1", [*roots, elsewhere.resolve()])
    up = replace(linked, images=linked.images.with_columns(file=pl.lit("pictures/../private.png")))
    with pytest.raises(cl.CrosslensError, match="outside the folders"):
        picture_file(up, "img1", roots, linked_folders=True)
    absolute = replace(linked, images=linked.images.with_columns(file=pl.lit(f"{elsewhere.resolve()}/img1.png")))
    assert picture_file(absolute, "img1", [*roots, elsewhere.resolve()])
    with pytest.raises(cl.CrosslensError, match="outside the folders"):
        picture_file(absolute, "img1", roots, linked_folders=True)
    login = {"host": "0.0.0.0", "password": "a long enough password"}
    network = create_app(WebSettings(folder, cache=tmp_path / "cache", **login)).state.services.pictures
    assert not network.exists(dataset, "img1")
    with_folders = WebSettings(folder, cache=tmp_path / "cache", image_folders=(elsewhere,), **login)
    assert create_app(with_folders).state.services.pictures.exists(dataset, "img1")


def bomb(width: int, height: int) -> bytes:
    """A PNG file of a few bytes that claims to be this large."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 99)) + chunk(b"IEND", b"")
    )


@each_row(
    "content",
    [b"", b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", b"GIF89a", b"<html>", b"%PDF-1.4",
     b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", bomb(60_000, 60_000), bomb(100_000, 10), bomb(64, 48)],
    ids=["empty", "svg", "gif", "html", "pdf", "eps", "bomb", "strip", "cut"],
)  # fmt: skip
def test_what_is_no_picture_is_refused(served: tuple[TestClient, Path, str], content: bytes) -> None:
    client, pictures, start = served
    (pictures / "img1.png").write_bytes(content)
    answer = client.get(f"{start}/img1")
    assert answer.status_code == 422
    assert answer.headers["content-type"].startswith("application/json")


def test_large_files_and_pipes(served: tuple[TestClient, Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    client, pictures, start = served
    monkeypatch.setenv("CROSSLENS_MAX_IMAGE_BYTES", "50")
    assert client.get(f"{start}/img1").status_code == 422
    monkeypatch.delenv("CROSSLENS_MAX_IMAGE_BYTES")
    (pictures / "img2.png").unlink()
    os.mkfifo(pictures / "img2.png")
    assert client.get(f"{start}/img2").status_code == 404, "waiting for a writer would hold a thread for good"


def test_missing_pictures_are_shown_as_such(served: tuple[TestClient, Path, str]) -> None:
    client, pictures, start = served
    (pictures / "img1.png").unlink()
    assert client.get(f"{start}/img1").status_code == 404
    page = client.get(start.replace("/pictures/", "/datasets/") + "/image?id=img1").text
    assert "no picture" in page
    assert f"{start}/img1?" not in page, "the browser asks for no file that is not there"


def test_a_full_disk_costs_only_the_cache(runs_folder: Path, tmp_path: Path) -> None:
    folder = copy_of(runs_folder, tmp_path)
    (tmp_path / "cache").write_text("a file where the folder should be")
    client = explorer_of(folder, tmp_path / "cache")
    dataset = client.get("/api/runs").json()["runs"][0]["dataset"]
    assert client.get(f"/pictures/{dataset}/img1").status_code == 200
