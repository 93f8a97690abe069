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
_IDENTITY = (
    "ETag", "etag", "LastModified", "last_modified", "updated", "mtime", "generation", "md5Hash", "crc32c", "blob_id",
    "lfs", "created",
)  # fmt: skip
"""What stores say of a file that changes when the file does; other facts (scans, access times) change by themselves."""
_RIGHTS = {
    "s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; for a public bucket FSSPEC_S3_ANON=true",
    "gs": "log in with gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS; for a "
    "public bucket FSSPEC_GS_TOKEN=anon",
    "hf": "log in with hf auth login, or set HF_TOKEN, and ask for access on the repository's page",
}
_REFUSED = ("credential", "forbidden", "access denied", "unauthorized", "access key", "signature", "401", "403")
_LISTED = 5
_PACKAGES = {
    "s3": "s3fs",
    "gs": "gcsfs",
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
    with _explaining(address, system):
        info = system.info(root)
        if info["type"] != "directory":
            key = fingerprint("remote file", {"address": address, "info": _stable(info)})
            target = cache_folder() / "remote" / key / PurePosixPath(root).name
            _fetch(system, root, target, info["size"])
            return target
        files = _wanted({_relative(name, root, address): about for name, about in _listed(system, root)}, folders)
    if not files:
        raise InputError("no files here", file=address, expected="a folder of shards", fix="check the address")
    key = fingerprint("remote folder", {"address": address, "files": [[name, _stable(files[name])] for name in files]})
    target = cache_folder() / "remote" / key / (PurePosixPath(root).name or "root")
    with _explaining(address, system):
        for name, about in files.items():
            _fetch(system, about["name"], target / name, about["size"])
    return target


def _system(address: str) -> tuple[Any, str]:
    protocol = _protocol(address)
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
    except Exception as error:  # some stores look for credentials at once
        raise _refusal(address, error) from error
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
    known = {name: info[name] for name in _IDENTITY if info.get(name) is not None}
    return json.dumps({"size": info["size"], **(known or info)}, sort_keys=True, default=str)


def _fetch(system: Any, source: str, target: Path, size: int | None) -> None:
    """Copy a file unless it is there; a server that does not tell the size is asked every time."""
    if target.is_file() and target.stat().st_size == size:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(target) as partial:
        system.get_file(source, str(partial))
        if size is not None and partial.stat().st_size != size:
            problem = f"{partial.stat().st_size:,} of {size:,} bytes of {source} arrived"
            raise InputError(problem, expected="the whole file", fix="run the same command again")


@contextmanager
def _explaining(address: str, system: Any) -> Iterator[None]:
    """Whatever a store raises, in words; it is neither a mistake in crosslens nor one of the data."""
    try:
        yield
    except InputError as error:
        error.file = error.file or address
        raise
    except FileNotFoundError as error:
        expected, fix = "an existing file or folder", f"check the address{_existing(address, system)}"
        raise InputError("nothing is there", file=address, expected=expected, fix=fix) from error
    except ImportError as error:
        protocol = _protocol(address)
        raise MissingExtraError(f"{protocol}://", _PACKAGES.get(protocol, protocol), "remote") from error
    except Exception as error:  # each store has exceptions of its own
        raise _refusal(address, error) from error


def _existing(address: str, system: Any) -> str:
    """What there is instead, in the nearest folder that exists; nothing where that cannot be said."""
    scheme, _, path = address.rstrip("/").partition("://")
    while "/" in path:
        path = path.rpartition("/")[0]
        try:
            names = sorted(PurePosixPath(name).name for name in system.ls(path, detail=False))
        except Exception:  # it does not exist either, or may not be listed
            continue
        if names:
            more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
            return f": {scheme}://{path} has {', '.join(names[:_LISTED])}{more}"
    return f": there is no {path}, or you have no right to list it" if scheme in ("s3", "gs", "gcs", "hf") else ""


def _refusal(address: str, error: Exception) -> InputError:
    """The error of a store that could be reached and said no, or that could not be reached."""
    text = str(error).strip()
    reason = text.splitlines()[0] if text else type(error).__name__
    if isinstance(error, PermissionError) or any(word in text.lower() for word in _REFUSED):
        fix = _RIGHTS.get(_protocol(address), "check your rights to it")
        return InputError(f"access is refused: {reason}", file=address, fix=fix, code="no-access")
    fix = "check the address and the network, and run the same command again: files that have arrived are kept"
    return InputError(f"cannot be read: {reason}", file=address, fix=fix)


def _protocol(address: str) -> str:
    protocol = address.partition("://")[0].lower()
    return "gs" if protocol == "gcs" else protocol
