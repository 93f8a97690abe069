"""A disk that is full is an error that says so, from every command, and the old result stays."""

from __future__ import annotations

import errno
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import crosslens
from crosslens.storage import mapped_array
from crosslens.values import Dataset
from tests.hostile.test_races import content
from tests.hostile.writing_commands import COMMANDS
from tests.tables import rest_slow

resource = pytest.importorskip("resource", reason="needs limits of processes")
LIMITED = """
import resource, sys
from crosslens.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
sys.argv = ["crosslens", *sys.argv[2:]]
sys.exit(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_files_that_cannot_grow(name: str, inputs: Path, tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk: in both cases a write comes back short."""
    command, work = COMMANDS[name], tmp_path / "work"
    shutil.copytree(inputs, work)
    environment = {**os.environ, "CROSSLENS_CACHE": str(tmp_path / "cache")}

    def run(words: str, limit: int) -> subprocess.CompletedProcess[str]:
        code = [sys.executable, "-c", LIMITED, str(limit), *shlex.split(words)]
        return subprocess.run(code, cwd=work, env=environment, capture_output=True, text=True, check=False)

    assert run(command.old, 1 << 30).returncode == 0
    before = content(work)
    for limit in (100, 300):
        done = run(command.new, limit)
        if limit > 100 and done.returncode == 0:  # every file is smaller
            return
        assert done.returncode == 3, done.stderr
        assert "Traceback" not in done.stderr
        after = {path: data for path, data in content(work).items() if "crosslens-partial" not in path}
        assert after == before or not command.whole
    assert run(command.new, 1 << 30).returncode == 0
    assert not list(work.rglob("*crosslens-partial*"))


# A file system of its own size: what is mapped for writing needs its space before.

MOUNT = "mount -t tmpfs -o size={size} tmpfs {folder} && exec {command}"
IN_SMALL_CACHE = {
    "encode": "encode --dataset scenes --model callable:wide.py:Wide --no-cache -o {small}/out",
    "unpacked table": "evaluate --dataset many --image-embeddings v.parquet --caption-embeddings v.parquet -o out",
    "vectors beyond memory": "encode --dataset scenes --model callable:wide.py:Wide --no-cache -o out",
}
WIDE = """
import numpy as np

class Wide:
    revision = "1"

    def encode_texts(self, texts):
        return np.ones((len(texts), 40_000), np.float32)

    def encode_images(self, images):
        return np.ones((len(images), 40_000), np.float32)
"""


def _on_small_disk(folder: Path, size: int, command: list[str], environment: dict[str, str], work: Path) -> Any:
    script = MOUNT.format(size=size, folder=shlex.quote(str(folder)), command=shlex.join(command))
    words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script]
    return subprocess.run(words, cwd=work, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", rest_slow(IN_SMALL_CACHE))
def test_a_disk_too_small_for_what_is_mapped(name: str, inputs: Path, tmp_path: Path) -> None:
    """Without a reservation the process would be ended by SIGBUS, without a word."""
    small, work = tmp_path / "small", tmp_path / "work"
    small.mkdir()
    if (
        shutil.which("unshare") is None
        or _on_small_disk(small, 100_000, ["true"], dict(os.environ), tmp_path).returncode
    ):
        pytest.skip("needs the right to mount a file system")
    shutil.copytree(inputs, work)
    (work / "wide.py").write_text(WIDE)
    rows = np.ones((40, 8_000), np.float32)
    Dataset.of({f"i{number}": ["a text"] for number in range(40)}).save(work / "many")
    pl.DataFrame({"image": rows, "text": rows}).write_parquet(work / "v.parquet")
    environment = {**os.environ, "CROSSLENS_CACHE": str(small), "CROSSLENS_MAX_VECTOR_BYTES": "1000000"}
    if name == "encode":
        environment |= {"CROSSLENS_CACHE": str(tmp_path / "cache")}
    code = "import crosslens.data.vectors as packed; packed._IN_MEMORY = 0\n" + LIMITED
    words = shlex.split(IN_SMALL_CACHE[name].format(small=small))
    command = [sys.executable, "-c", code, str(1 << 40), *words]
    done = _on_small_disk(small, 100_000, command, environment, work)
    assert done.returncode == 3, f"{done.returncode}: {done.stderr}"
    assert "error: " in done.stderr
    assert "No space left on device" in done.stderr or "no room for" in done.stderr
    assert "fix: free" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (work / "out").exists()


def test_everything_that_is_mapped_for_writing_is_reserved() -> None:
    """Nobody maps a new file but by the functions that reserve its space."""
    source = Path(crosslens.__file__).parent
    mapping = re.compile(r"open_memmap\(|memmap\([^)]*[\"'](?:w\+|r\+)|mmap\.mmap\(")
    mapping_files = {
        file.relative_to(source).as_posix() for file in source.rglob("*.py") if mapping.search(file.read_text("utf-8"))
    }
    assert mapping_files == {"storage/folders.py", "values/embeddings.py"}


def test_a_file_system_that_cannot_reserve_is_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(*_: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(os, "posix_fallocate", cannot)
    mapped = mapped_array(tmp_path / "a.npy", np.float32, (300_000, 2))
    mapped[:] = 1
    mapped.flush()
    status = (tmp_path / "a.npy").stat()
    assert 512 * status.st_blocks >= status.st_size > 300_000 * 2 * 4
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), np.ones((300_000, 2), np.float32))


def test_a_mapped_file_is_what_numpy_writes(tmp_path: Path) -> None:
    for shape in ((3, 2), (0, 4), (2, 3, 4)):
        mapped_array(tmp_path / "a.npy", np.float16, shape).flush()
        np.save(tmp_path / "b.npy", np.zeros(shape, np.float16))
        assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()
