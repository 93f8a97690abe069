"""Small files that would take gigabytes: each is refused at its limit, and each limit can be set."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import weakref
import zlib
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image, PngImagePlugin

import crosslens.encode.stream as stream
from crosslens.data import load_dataset, read_image_bytes, read_text
from crosslens.encode import as_picture, decode_image, encode_images
from crosslens.perturbations.images.changes import opened
from crosslens.storage import LIMITS
from crosslens.values import Dataset
from tests.hostile.conftest import Refuses

MEGAPIXEL = 1_000_000


def png(width: int, height: int) -> bytes:
    """A PNG of one colour: a few bytes per thousand pixels, written without holding its pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    packer = zlib.compressobj(1)
    line = bytes(1 + (width + 7) // 8)
    data = b"".join(packer.compress(line) for _ in range(height)) + packer.flush()
    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x01\x00\x00\x00\x00"
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("width", "height", "variable"),
    [
        (13_300, 13_300, "CROSSLENS_MAX_IMAGE_PIXELS"),
        (60_000, 60_000, "CROSSLENS_MAX_IMAGE_PIXELS"),
        (2**31 - 1, 2**31 - 1, "CROSSLENS_MAX_IMAGE_PIXELS"),
        (100_000, 1, "CROSSLENS_MAX_ASPECT_RATIO"),
        (1, 100_000, "CROSSLENS_MAX_ASPECT_RATIO"),
        (201, 1, "CROSSLENS_MAX_ASPECT_RATIO"),
    ],
)
def test_picture(width: int, height: int, variable: str, refuses: Refuses) -> None:
    content = png(8, 8)  # with another size in its header: nothing of it may be decoded
    header = content[12:16] + width.to_bytes(4, "big") + height.to_bytes(4, "big") + content[24:29]
    content = content[:12] + header + zlib.crc32(header).to_bytes(4, "big") + content[33:]
    assert variable in refuses(lambda: decode_image(content))


def test_largest_allowed_strip_is_read() -> None:
    assert decode_image(png(200, 1)).size == (200, 1)


def test_crop(tmp_path: Path, refuses: Refuses) -> None:
    (tmp_path / "a.png").write_bytes(png(8, 8))
    for box in ("0,0,1000000,1000000", "0,0,100000,1", f"0,0,{'9' * 400},{'9' * 400}", "0,0,0,0", "0,0,-5,-5"):
        refuses(lambda box=box: as_picture(f"{tmp_path}/a.png::box/{box}"))


def test_perturbed_picture(refuses: Refuses) -> None:
    assert "CROSSLENS_MAX_ASPECT_RATIO" in refuses(lambda: opened(png(100_000, 1)))


def test_program_instead_of_a_picture(refuses: Refuses) -> None:
    content = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n"
    assert "not a readable image" in refuses(lambda: decode_image(content))


def test_an_icon_is_not_decoded_as_it_is_opened(monkeypatch: pytest.MonkeyPatch, refuses: Refuses) -> None:
    """Pillow decodes the picture in an .ico file before anybody can ask for its size; the one in .icns has any size."""
    content = png(300, 300)
    decoded: list[object] = []
    load = PngImagePlugin.PngImageFile.load
    monkeypatch.setattr(PngImagePlugin.PngImageFile, "load", lambda self: (decoded.append(self), load(self))[1])
    entry = struct.pack("<BBBBHHII", 0, 0, 0, 0, 1, 32, len(content), 22)
    icons = (
        struct.pack("<HHH", 0, 1, 1) + entry + content,
        b"icns" + struct.pack(">I", 16 + len(content)) + b"ic07" + struct.pack(">I", 8 + len(content)) + content,
    )
    for icon in icons:
        assert "not a readable image" in refuses(lambda icon=icon: decode_image(icon))
    assert not decoded
    decode_image(content)
    assert decoded


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "BMP", "PPM", "TIFF", "JPEG2000"])
def test_formats(kind: str) -> None:
    content = io.BytesIO()
    Image.new("RGB", (8, 6), (1, 2, 3)).save(content, kind)
    assert decode_image(content.getvalue()).size == (8, 6)


def test_a_tile_larger_than_its_picture(refuses: Refuses) -> None:
    """A TIFF of 64 × 64 pixels whose only tile would unpack to 400 MB."""
    side = 20_000
    tags = {256: 64, 257: 64, 258: 8, 259: 8, 262: 1, 277: 1, 322: side, 323: side, 324: 138, 325: 8}
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
    content = b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4) + zlib.compress(b"")
    assert "CROSSLENS_MAX_IMAGE_PIXELS" in refuses(lambda: decode_image(content))


class Counting:
    """An encoder that notes how many pixels it is given at once."""

    name, revision, abilities, dimension = "counting", "1", ("images",), 2

    def __init__(self) -> None:
        self.held: list[int] = []

    def encode_images(self, images: list[Image.Image]) -> np.ndarray:
        self.held.append(sum(image.width * image.height for image in images))
        return np.ones((len(images), 2), np.float32)


def test_pixels_in_flight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty pictures of a megapixel, four at a time: batches are cut, and the order stays."""
    monkeypatch.setenv("CROSSLENS_MAX_PIXELS_IN_FLIGHT", str(4 * MEGAPIXEL))
    files = []
    for number in range(30):
        files.append(tmp_path / f"{number}.png")
        Image.new("L", (1000, 1000), number).save(files[-1])
    decoding = _watch_decoding(monkeypatch)
    encoder = Counting()
    vectors = encode_images(encoder, files, batch_size=16)
    assert vectors.rows.shape == (30, 2)
    assert not vectors.bad
    assert sum(encoder.held) == 30 * MEGAPIXEL
    assert max(encoder.held) <= 4 * MEGAPIXEL
    # The budget ahead, the batch that is collected, the batch before it, and the picture on its way between them.
    assert max(decoding) <= 3 * 4 + 1


def _watch_decoding(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many decoded pictures were alive, after each was decoded."""
    alive: list[weakref.ref[Image.Image]] = []
    counts: list[int] = []

    def decode(content: bytes) -> Image.Image:
        picture = decode_image(content)
        alive.append(weakref.ref(picture))
        counts.append(sum(reference() is not None for reference in alive))
        return picture

    monkeypatch.setattr(stream, "decode_image", decode)
    return counts


def test_reading_ahead_ends_with_the_first_bad_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that wait for room must not keep the program from ending."""
    monkeypatch.setenv("CROSSLENS_MAX_PIXELS_IN_FLIGHT", "1000000")
    files = [tmp_path / f"{number}.png" for number in range(20)]
    for file in files:
        Image.new("L", (1000, 1000)).save(file)
    files[1].write_bytes(b"no picture")
    with pytest.raises(Exception, match="not a readable image"):
        encode_images(Counting(), files)


def test_image_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refuses: Refuses) -> None:
    monkeypatch.setenv("CROSSLENS_MAX_IMAGE_BYTES", "1000")
    (tmp_path / "a.png").write_bytes(bytes(1001))
    assert "CROSSLENS_MAX_IMAGE_BYTES" in refuses(lambda: read_image_bytes(tmp_path / "a.png"))
    pl.DataFrame({"image": [bytes(1001)]}).write_parquet(tmp_path / "r.parquet")
    assert "CROSSLENS_MAX_IMAGE_BYTES" in refuses(lambda: read_image_bytes(f"{tmp_path}/r.parquet::image/0"))


def test_path_in_a_table(tmp_path: Path, refuses: Refuses) -> None:
    pl.DataFrame({"image": ["/dev/zero"]}).write_parquet(tmp_path / "r.parquet")
    assert "a device" in refuses(lambda: read_image_bytes(f"{tmp_path}/r.parquet::image/0"))


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz"])
@pytest.mark.parametrize("name", ["a.jpg", "a.txt", "a.json"])
def test_tar_member(name: str, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refuses: Refuses) -> None:
    monkeypatch.setenv("CROSSLENS_MAX_MEMBER_BYTES", "1000000")
    shard = tmp_path / f"s.tar.{ending}"
    with tarfile.open(shard, f"w:{ending}") as tar:
        for member, size in {"a.jpg": 10, name: 1_000_001}.items():
            info = tarfile.TarInfo(member)
            info.size = size
            tar.addfile(info, io.BytesIO(bytes(size)))
    assert "CROSSLENS_MAX_MEMBER_BYTES" in refuses(lambda: load_dataset("webdataset", shards=shard))
    assert "CROSSLENS_MAX_MEMBER_BYTES" in refuses(lambda: read_image_bytes(f"{shard}::{name}"))


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGLINK])
def test_tar_header(kind: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refuses: Refuses) -> None:
    """A header that claims gigabytes would be read into memory whole."""
    monkeypatch.setenv("CROSSLENS_MAX_MEMBER_BYTES", "1000000")
    info = tarfile.TarInfo("long")
    info.type, info.size = kind, 4 << 30
    content = info.tobuf(tarfile.GNU_FORMAT) + bytes(1 << 20)
    (tmp_path / "s.tar").write_bytes(content)
    refuses(lambda: load_dataset("webdataset", shards=tmp_path / "s.tar"))
    (tmp_path / "s.tar.gz").write_bytes(gzip.compress(content))
    refuses(lambda: load_dataset("webdataset", shards=tmp_path / "s.tar.gz"))


def test_compressed_tar_in_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refuses: Refuses) -> None:
    monkeypatch.setenv("CROSSLENS_MAX_UNPACKED_BYTES", "1000000")
    shard = tmp_path / "s.tar.gz"
    with tarfile.open(shard, "w:gz") as tar:
        for number in range(20):
            info = tarfile.TarInfo(f"{number}.jpg")
            info.size = 100_000
            tar.addfile(info, io.BytesIO(bytes(100_000)))
    assert "CROSSLENS_MAX_UNPACKED_BYTES" in refuses(lambda: load_dataset("webdataset", shards=shard))
    assert "CROSSLENS_MAX_UNPACKED_BYTES" in refuses(lambda: read_image_bytes(f"{shard}::1.jpg"))


def test_gzip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refuses: Refuses) -> None:
    monkeypatch.setenv("CROSSLENS_MAX_UNPACKED_BYTES", "1000000")
    (tmp_path / "d.json.gz").write_bytes(gzip.compress(b" " * 50_000_000))
    assert "CROSSLENS_MAX_UNPACKED_BYTES" in refuses(lambda: read_text(tmp_path / "d.json.gz"))


def test_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refuses: Refuses) -> None:
    monkeypatch.setenv("CROSSLENS_MAX_UNPACKED_BYTES", "1000000")
    file = tmp_path / "d.parquet"
    pl.select(number=pl.repeat(0, 1_000_000, dtype=pl.UInt8)).write_parquet(file)
    assert file.stat().st_size < 100_000
    assert "CROSSLENS_MAX_UNPACKED_BYTES" in refuses(lambda: load_dataset(file))


def test_caption(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refuses: Refuses) -> None:
    long = "x" * 100_001
    assert "CROSSLENS_MAX_CAPTION_CHARACTERS" in refuses(lambda: Dataset.of({"a": [long]}))
    (tmp_path / "d.jsonl").write_text(f'{{"image": "a", "text": "{long}"}}\n', encoding="utf-8")
    assert "d.jsonl, line 1" in refuses(lambda: load_dataset(tmp_path / "d.jsonl"))
    monkeypatch.setenv("CROSSLENS_MAX_CAPTION_CHARACTERS", "100001")
    assert load_dataset(tmp_path / "d.jsonl").texts == (long,)


def test_every_limit_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "limits.md").read_text(encoding="utf-8")
    for limit in LIMITS:
        assert f"| `{limit.variable}` |" in page
        assert f"{limit.default:,}" in page
