"""Small files that unpack to much: what does not fit is refused by its shape, and memory stays what it was."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from crosslens.data import read_array
from crosslens.storage import open_npz
from tests.hostile.conftest import Refuses

pytest.importorskip("resource", reason="needs the peak memory of processes")
MEGABYTES = 400
"""What the bombs unpack to."""
ALLOWED = 200
MEASURED = """
import json, resource, sys
from crosslens.cli.app import run_command

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

def code(words):
    try:
        return run_command(["evaluate", "--dataset", "d.jsonl", "--resamples", "5", *words])
    except SystemExit as error:
        return error.code

code(["--scores", "good.npy"])
if sys.argv[2] == "torch":
    import torch
before = peak()
codes = [code(words) for words in json.loads(sys.argv[1])]
print(json.dumps([peak() - before, codes]))
"""


def bomb(file: Path, rows: int, width: int, name: str = "array") -> Path:
    """An archive with one array of zeros, written without holding it."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (rows, width)})
    packed = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
    with packed as archive, archive.open(f"{name}.npy", "w") as member:
        member.write(header.getvalue())
        for _ in range(rows):
            member.write(bytes(4 * width))
    return file


FLAGS = {
    "image embeddings": ("--image-embeddings", "{bomb}", "--caption-embeddings", "good.npy"),
    "caption embeddings": ("--image-embeddings", "good.npy", "--caption-embeddings", "{bomb}"),
    "scores": ("--scores", "{bomb}"),
    "similarity": ("--scores", "good.npy", "--metrics", "NCS[mine]@1", "--phi", "mine={bomb}"),
    "relevance encoder": (
        "--scores", "good.npy", "--metrics", "DCGcm[scores_from=mine]@1", "--scores-from", "mine={bomb}",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def bombs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Arrays of the wrong shape in all compressed formats, and what an evaluation needs besides."""
    folder = tmp_path_factory.mktemp("bombs")
    rows = [{"image": str(number), "text": f"Caption {number}."} for number in range(4)]
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    np.save(folder / "good.npy", np.eye(4, dtype=np.float32) + 0.1)
    width = 1 << 18
    bomb(folder / "bomb.npz", MEGABYTES, width)
    column = pl.DataFrame({"array": np.zeros((16, width), np.float32)})
    pl.concat([column] * (MEGABYTES // 16)).write_parquet(folder / "bomb.parquet", row_group_size=16)
    torch = pytest.importorskip("torch")
    torch.save(torch.zeros(1).expand(MEGABYTES, width), folder / "expanded.pt")
    plain = io.BytesIO()
    torch.save(torch.zeros(8, 1 << 18), plain)
    with zipfile.ZipFile(plain) as stored, zipfile.ZipFile(folder / "deflated.pt", "w", zipfile.ZIP_DEFLATED) as packed:
        for info in stored.infolist():
            packed.writestr(info.filename, stored.read(info))
    return folder


@pytest.mark.parametrize(
    "file",
    [
        "bomb.npz",
        pytest.param("bomb.parquet", marks=pytest.mark.slow),
        pytest.param("expanded.pt", marks=pytest.mark.slow),
    ],
)
def test_an_array_of_another_shape_is_not_unpacked(file: str, bombs: Path) -> None:
    """As image or caption embeddings, scores, similarities, scores of a relevance encoder."""
    assert (bombs / file).stat().st_size < 4_000_000
    words = [[flag.format(bomb=file) for flag in flags] for flags in FLAGS.values()]
    library = "torch" if file.endswith(".pt") else ""
    run = subprocess.run(
        [sys.executable, "-c", MEASURED, json.dumps(words), library],
        cwd=bombs, capture_output=True, text=True, check=False,
    )  # fmt: skip
    grown, codes = json.loads(run.stdout.splitlines()[-1])
    assert codes == [3] * len(FLAGS), run.stderr
    assert run.stderr.count("error: ") == len(FLAGS)
    assert grown < ALLOWED, f"{grown} MB"


def test_an_archive_is_held_to_the_limit(bombs: Path, monkeypatch: pytest.MonkeyPatch, refuses: Refuses) -> None:
    """Where no shape is expected, too, and whichever way it is packed."""
    monkeypatch.setenv("CROSSLENS_MAX_UNPACKED_BYTES", "1000000")
    for file in ("bomb.npz", "bomb.parquet", "expanded.pt", "deflated.pt"):
        assert "CROSSLENS_MAX_UNPACKED_BYTES" in refuses(lambda file=file: read_array(bombs / file)), file


def test_a_header_of_gigabytes_is_not_read(tmp_path: Path, refuses: Refuses) -> None:
    header = b"\x93NUMPY\x02\x00" + (3_000_000_000).to_bytes(4, "little") + b" " * 100
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", header + bytes(1_000_000))
    (tmp_path / "a.npy").write_bytes(header)
    for file in ("a.npz", "a.npy"):
        assert "a header of 3,000,000,000 bytes" in refuses(lambda file=file: read_array(tmp_path / file))


def test_a_member_cannot_claim_more_than_its_bytes_unpack_to(tmp_path: Path, refuses: Refuses) -> None:
    file = bomb(tmp_path / "a.npz", 8, 8)
    content = file.read_bytes()
    size = 8 * 8 * 4 + 128
    assert content.count(size.to_bytes(4, "little")) >= 1
    file.write_bytes(content.replace(size.to_bytes(4, "little"), (1 << 31).to_bytes(4, "little")))
    assert "cannot be read: " in refuses(lambda: read_array(file))


def test_archives_are_read_as_numpy_reads_them(tmp_path: Path) -> None:
    """In both orders of numbers, compressed or not, of several types."""
    rng = np.random.default_rng(0)
    arrays = {
        "rows": rng.standard_normal((5, 3)), "columns": np.asfortranarray(rng.standard_normal((5, 3))),
        "deep": np.asfortranarray(rng.integers(0, 9, (2, 3, 4))), "empty": np.zeros((0, 3), np.float32),
        "number": np.float32(3), "texts": np.array(["a", "bc"]), "big": rng.standard_normal((2, 2)).astype(">f8"),
    }  # fmt: skip
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "a.npz", **arrays)
        for name, packed in open_npz(tmp_path / "a.npz").items():
            np.testing.assert_array_equal(packed.unpack(), arrays[name])
            assert packed.dtype == arrays[name].dtype


def test_an_array_that_an_archive_has_twice(tmp_path: Path, refuses: Refuses) -> None:
    """The second would hide the first."""
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        for rows in (4, 2):
            content = io.BytesIO()
            np.save(content, np.ones((rows, 3), np.float32))
            with pytest.warns(UserWarning, match="Duplicate") if rows == 2 else nullcontext():
                archive.writestr("image.npy", content.getvalue())
    assert "'image.npy' twice" in refuses(lambda: read_array(tmp_path / "a.npz", "image"))


def test_the_names_of_very_many_arrays_are_not_all_listed(tmp_path: Path, refuses: Refuses) -> None:
    np.savez(tmp_path / "a.npz", **{f"part{number}": np.ones((2, 3), np.float32) for number in range(500)})
    message = refuses(lambda: read_array(tmp_path / "a.npz", "image"))
    assert "part0 (2×3)" in message
    assert "492 more" in message
    assert len(message) < 500


@pytest.mark.parametrize("shape", [[4.5, 3], ["4", 3], "43", [4, True, 3]], ids=str)
def test_a_shape_in_safetensors_is_of_whole_numbers(shape: object, tmp_path: Path, refuses: Refuses) -> None:
    header = json.dumps({"image": {"dtype": "F32", "shape": shape, "data_offsets": [0, 48]}}).encode()
    (tmp_path / "a.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(48))
    assert "not where the header says" in refuses(lambda: read_array(tmp_path / "a.safetensors"))
