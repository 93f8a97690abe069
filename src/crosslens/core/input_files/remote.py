"""Files behind an address (``s3://``, ``gs://``, ``hf://``, ``https://``), copied to the cache once, through fsspec.

Ranking reads blocks many times and in parallel: from a local file that is quick, from a bucket it would take days. A
copy belongs to the address and to what the store says of the file (size, time, hash): a changed file is copied again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from crosslens.core.errors import InputError, MissingExtraError
from crosslens.core.hashing import fingerprint
from crosslens.core.output.workspace import atomic_file
from crosslens.core.storage import cache_folder

_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")
_PACKAGES = {
    "s3": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "hf": "huggingface_hub",
    "http": "aiohttp",
    "https": "aiohttp",
}


def is_remote(path: Any) -> bool:
    """Whether a path is an address such as ``s3://bucket/folder``."""
    return isinstance(path, str) and _ADDRESS.match(path) is not None


def local_copy(address: str, folders: tuple[str, ...] = ()) -> Path:
    """A local copy of the file or folder at an address.

    Of a folder that has any of ``folders``, only those are copied. What an interrupted copy has fetched is kept.
    """
    system, root = _system(address)
    with _explaining(address):
        info = system.info(root)
        if info["type"] != "directory":
            key = fingerprint("remote file", {"address": address, "info": _stable(info)})
            target = cache_folder() / "remote" / key / PurePosixPath(root).name
            _fetch(system, root, target, int(info["size"]))
            return target
        files = _wanted({_relative(name, root, address): about for name, about in _listed(system, root)}, folders)
    if not files:
        raise InputError("no files here", file=address, expected="a folder of shards", fix="check the address")
    key = fingerprint("remote folder", {"address": address, "files": [[name, _stable(files[name])] for name in files]})
    target = cache_folder() / "remote" / key / (PurePosixPath(root).name or "root")
    with _explaining(address):
        for name, about in files.items():
            _fetch(system, about["name"], target / name, int(about["size"]))
    return target


def _system(address: str) -> tuple[Any, str]:
    protocol = address.partition("://")[0].lower()
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise MissingExtraError(f"{protocol}://", "fsspec", "remote") from error
    try:
        system, root = url_to_fs(address)
    except ImportError as error:
        raise MissingExtraError(f"{protocol}://", _PACKAGES.get(protocol, protocol), "remote") from error
    except ValueError as error:
        fix = "use a local path, s3://, gs://, hf:// or https://"
        raise InputError(f"{protocol}:// is not supported", file=address, fix=fix) from error
    return system, str(root).rstrip("/")


def _listed(system: Any, root: str) -> list[tuple[str, dict[str, Any]]]:
    return sorted((name, about) for name, about in system.find(root, detail=True).items() if about["type"] == "file")


def _relative(name: str, root: str, address: str) -> str:
    relative = PurePosixPath(name.removeprefix(root).lstrip("/"))
    if relative.is_absolute() or ".." in relative.parts:
        raise InputError(f"a file named {name!r:.80}", file=address, expected="files inside the folder")
    return relative.as_posix()


def _wanted(files: dict[str, Any], folders: tuple[str, ...]) -> dict[str, Any]:
    inside = {name: about for name, about in files.items() if name.partition("/")[0] in folders and "/" in name}
    return inside or files


def _stable(info: dict[str, Any]) -> str:
    return json.dumps(info, sort_keys=True, default=str)


def _fetch(system: Any, source: str, target: Path, size: int) -> None:
    if target.is_file() and target.stat().st_size == size:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(target) as partial:
        system.get_file(source, str(partial))
        if partial.stat().st_size != size:
            problem = f"{partial.stat().st_size:,} of {size:,} bytes of {source} arrived"
            raise InputError(problem, expected="the whole file", fix="run the same command again")


@contextmanager
def _explaining(address: str) -> Iterator[None]:
    """Whatever a store raises, in words; it is neither a mistake in crosslens nor one of the data."""
    try:
        yield
    except InputError as error:
        error.file = error.file or address
        raise
    except FileNotFoundError as error:
        raise InputError("no such file", file=address, expected="an existing file or folder", fix="check it") from error
    except ImportError as error:
        protocol = address.partition("://")[0].lower()
        raise MissingExtraError(f"{protocol}://", _PACKAGES.get(protocol, protocol), "remote") from error
    except Exception as error:  # each store has exceptions of its own
        first = (str(error).splitlines() or [""])[0]
        problem = f"cannot be read: {first or type(error).__name__}"
        fix = "check the address, your rights to it (credentials) and the network"
        raise InputError(problem, file=address, fix=fix) from error
