"""Files behind an address (``s3://``, ``gs://``, ``hf://``, ``https://``), copied to the cache once, through fsspec.

Ranking reads blocks many times and in parallel: from a local file that is quick, from a bucket it would take days. A
copy belongs to the address and to what the store says of the file (size, time, hash): a changed file is copied again.
Every wait has an end, and so has every file: a server may be silent, send a byte a second, or never stop. A folder that
is written to an address is prepared in the cache, too, and copied there when it is complete.

:func:`_system` alone turns an address into a file system, of the few kinds that it knows: those that fsspec can build
read local files, unpack archives and evaluate templates, and its chains (``a::b``) put one behind another.
"""

from __future__ import annotations

import importlib
import json
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from crosslens.core import (
    ConflictError,
    CrosslensError,
    InputError,
    MissingExtraError,
    UsageError,
    address_of,
    host_of,
    is_hidden,
    safe_cause,
)
from crosslens.storage.hashing import fingerprint
from crosslens.storage.input_files import REMOTE_BYTES, REMOTE_SECONDS
from crosslens.storage.output import Layout, atomic_file, cache_folder, remove, require_own
from crosslens.storage.trust import require_address, require_redirect, whole_address

T = TypeVar("T")

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
_REFUSED = re.compile(r"credential|forbidden|access denied|unauthorized|access key|signature|\b40[13]\b", re.IGNORECASE)
_AGAIN = "check the address and the network, and run the same command again: what has arrived is kept"
_LISTED = 5
_MEGABYTE = 1 << 20
_POLL = 0.2
_WRITABLE = ("s3", "gs", "memory")
_STORES = {
    "s3": ("s3fs", "S3FileSystem", "s3fs"),
    "gs": ("gcsfs", "GCSFileSystem", "gcsfs"),
    "hf": ("huggingface_hub", "HfFileSystem", "huggingface_hub"),
    "http": ("fsspec.implementations.http", "HTTPFileSystem", "aiohttp"),
    "https": ("fsspec.implementations.http", "HTTPFileSystem", "aiohttp"),
}
"""Scheme → the class of its file system, and the package that it needs; all that an address can open."""
_AMBIGUOUS = re.compile(r"[\\\x00-\x20]|[?#@].*['\"<>]")
_SIGNATURE = re.compile(r"(?<=[?&])X-(Amz|Goog)-[^&]*", re.IGNORECASE)
"""Parts of a query that say who asks and until when, and never for what."""

_BEHIND = re.compile(r"[?#].*|;[^/;=]*=.*")
"""Whatever stands behind the name of a file in an http address, and may be a secret."""


def local_copy(address: str, folders: tuple[str, ...] = ()) -> Path:
    """A local copy of the file or folder at an address.

    Of a folder that has any of ``folders``, only those are copied. What an interrupted copy has fetched is kept.
    """
    address = whole_address(address)
    system, root = _system(address)
    with _explaining(address, system):
        info = _in_time(lambda _: system.info(root))
        if info["type"] != "directory":
            key = fingerprint("remote file", {"address": _asked(address), "info": _stable(info)})
            name = PurePosixPath(_BEHIND.sub("", root) if _is_http(address) else root).name
            target = cache_folder() / "remote" / key / name
            _fetch(system, root, target, info["size"])
            return target
        files: dict[str, Any] = {}
        for name, entry in sorted(_in_time(lambda _: system.find(root, detail=True)).items()):
            relative = PurePosixPath(name.removeprefix(root).lstrip("/"))
            if entry["type"] == "file" and (relative.is_absolute() or ".." in relative.parts):
                raise InputError(f"a file named {name!r:.80}", file=address, expected="files inside the folder")
            if entry["type"] == "file":
                files[relative.as_posix()] = entry
        inside = {name: entry for name, entry in files.items() if name.partition("/")[0] in folders and "/" in name}
        files = inside or files
    if not files:
        raise InputError("no files here", file=address, expected="a folder of shards", fix="check the address")
    stated = [[name, _stable(files[name])] for name in files]
    key = fingerprint("remote folder", {"address": _asked(address), "files": stated})
    target = cache_folder() / "remote" / key / (PurePosixPath(root).name or "root")
    with _explaining(address, system):
        for name, entry in files.items():
            _fetch(system, entry["name"], target / name, entry["size"])
    return target


_OUTPUTS = "outputs"
_SENT = "sent"
"""Beside a prepared folder: everything of it has been copied to the store."""


def is_prepared(folder: Path) -> bool:
    """Whether a folder is one of :func:`local_output`, whose place says nothing about where it will be."""
    return folder.absolute().is_relative_to((cache_folder() / _OUTPUTS).absolute())


@contextmanager
def local_output(output: str | Path | None, layout: Layout) -> Iterator[Path | None]:
    """The folder to write an output into: itself, or for an address one in the cache.

    That one has what the store has, and is copied there after the block: the marker of the layout last, so that nobody
    takes half of it for the whole. After an interruption the same command finds it, and copies it again.
    """
    address = address_of(output)
    if address is None:
        yield None if output is None else Path(output)
        return
    if _protocol(address) not in _WRITABLE:
        fix = f"write to {' or '.join(f'{name}://' for name in _WRITABLE[:2])}, or to a folder and upload that"
        raise UsageError(f"{layout.kind} cannot be written to {_protocol(address)}://", fix=fix)
    system, root = _system(address)
    beside = cache_folder() / _OUTPUTS / fingerprint("output", {"address": address.rstrip("/")})
    folder = beside / PurePosixPath(root).name
    with _explaining(address, system):
        there = _files_at(system, root)
    if layout.marker in there:
        copy, marker = local_copy(address), folder / layout.marker
        if not marker.is_file() or marker.read_bytes() != (copy / layout.marker).read_bytes():
            remove(folder)
            shutil.copytree(copy, folder)
    else:
        patterns = (layout.marker, *layout.files)
        foreign = [name for name in there if not any(fnmatchcase(name, pattern) for pattern in patterns)]
        if foreign:
            problem = f"{address} is not empty and is not {layout.kind}: it has {foreign[0]}"
            raise ConflictError(problem, fix="choose another output: it is not replaced")
        if (beside / _SENT).exists():  # it was there, and somebody has removed it
            remove(folder)
    remove(beside / _SENT)
    try:
        yield folder
    except CrosslensError as error:
        error.rename(str(folder), address)
        raise
    if (folder / layout.marker).is_file():
        with _explaining(address, system, "written"):
            _send(folder, system, root, layout)
        (beside / _SENT).touch()


def _files_at(system: Any, root: str) -> set[str]:
    """The names of the files below a folder of a store, which need not exist."""
    with suppress(FileNotFoundError):
        system.invalidate_cache()
        names = _in_time(lambda _: system.find(root))
        return {name.removeprefix(root).lstrip("/") for name in names} - {""}
    return set()


def _send(folder: Path, system: Any, root: str, layout: Layout) -> None:
    """Copy a folder to a store, unless it is there; files of another output that it replaces are removed."""
    there, marker = _files_at(system, root), f"{root}/{layout.marker}"
    files = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
    if layout.marker in there:
        if set(files) <= there and _in_time(lambda _: system.cat_file(marker)) == (folder / layout.marker).read_bytes():
            return
        _in_time(lambda _: system.rm_file(marker))
    for name in sorted(files, key=lambda name: name == layout.marker):
        source, target = str(folder / name), f"{root}/{name}"
        _in_time(lambda arriving: system.put_file(source, target, callback=arriving))  # noqa: B023
    for name in there - set(files):
        if any(fnmatchcase(name, pattern) for pattern in layout.files):
            _in_time(lambda _: system.rm_file(f"{root}/{name}"))  # noqa: B023


def _asked(address: str) -> str:
    """An address without what a signature changes every day: other values of its query may name another file."""
    return _SIGNATURE.sub("", re.sub(r"(?<=://)[^/?#]+@", "", address))


def require_openable(address: str) -> frozenset[str] | None:
    """Raise unless this is an address that crosslens can open, and may; :func:`require_address` says who may answer."""
    address, protocol = whole_address(address), _protocol(address)
    if protocol not in _STORES or "::" in address:
        problem = (
            f"{protocol}:// is not supported" if protocol not in _STORES else "an address with :: is not supported"
        )
        raise InputError(problem, file=address, fix="use a local path, s3://, gs://, hf:// or https://")
    if _is_http(address) and _AMBIGUOUS.search(address):
        place = re.split(r"[?#]", address, maxsplit=1)[0]
        problem, fix = "spaces, quotes or backslashes in an address", "write them as %20, %22, %27 and %5C"
        raise InputError(problem, file=place, fix=fix)
    if is_hidden(address):
        fix = "write the whole address again, in the command or in a copy of the recipe"
        raise InputError("its parts *** are not here: runs and recipes do not keep them", file=address, fix=fix)
    return require_address(address)


def _system(address: str) -> tuple[Any, str]:
    """The file system of an address that may be opened, and the path in it."""
    hosts, protocol = require_openable(address), _protocol(address)
    module, name, package = _STORES[protocol]

    try:
        kind = getattr(importlib.import_module(module), name)
        options = kind._get_kwargs_from_urls(address)
        if _is_http(address):
            options["client_kwargs"] = _client_options(address, hosts)
        system = _in_time(lambda _: kind(skip_instance_cache=True, **options))  # it may look for credentials at once
    except ImportError as error:
        raise MissingExtraError(f"{protocol}://", package, "remote") from error
    except InputError as error:  # too late
        error.file, error.fix = address, "; ".join(filter(None, (_RIGHTS.get(protocol), error.fix)))
        raise
    except CrosslensError:
        raise
    except Exception as error:
        raise _refusal(address, error) from safe_cause(error)
    return system, str(kind._strip_protocol(address)).rstrip("/")


def _client_options(address: str, hosts: frozenset[str] | None) -> dict[str, Any]:
    """Of the client of http addresses: how long it waits, and which hosts it may be sent to."""
    from aiohttp import ClientRequest, ClientTimeout
    from yarl import URL

    host = host_of(str(URL(address)))  # as the client spells it

    class Request(ClientRequest):
        """One that is about to be sent, whatever led to it: clients follow more than the header ``Location``."""

        def __init__(self, method: str, url: Any, **options: Any) -> None:
            if host_of(str(url)) != host:
                require_redirect(address, str(url), hosts)
            super().__init__(method, url, **options)

    # By itself it gives up after five minutes, however much has arrived.
    seconds = REMOTE_SECONDS.value
    limit = ClientTimeout(total=None, sock_connect=seconds, sock_read=seconds)
    return {"timeout": limit, "request_class": Request}


def _stable(info: dict[str, Any]) -> str:
    identity = {name: info[name] for name in _IDENTITY if info.get(name) is not None}
    return json.dumps({"size": info["size"], **(identity or info)}, sort_keys=True, default=str)


def _fetch(system: Any, source: str, target: Path, size: int | None) -> None:
    """Copy a file unless it is there; a server that does not tell the size is asked every time."""
    if target.is_file() and target.stat().st_size == size:
        return
    if size is not None:
        REMOTE_BYTES.check(size, source)
    require_own(target)
    with atomic_file(target) as partial:
        _in_time(lambda arriving: system.get_file(source, str(partial), callback=arriving), size)
        if size is not None and partial.stat().st_size != size:
            problem = f"{partial.stat().st_size:,} of {size:,} bytes of {source} arrived"
            raise InputError(problem, expected="the whole file", fix="run the same command again")


class _Arriving:
    """What is known of something that a store sends; several threads look at it."""

    def __init__(self, announced: int | None) -> None:
        self._announced = announced
        self.bytes, self._counted, self._latest = 0, 0, time.monotonic()
        self._is_stopped = self.is_late = False

    def count(self, size: int | None, arrived: int, **_: Any) -> None:
        """Called by fsspec for every part; more than may come raises."""
        if self._is_stopped:
            raise InterruptedError("nobody waits for it any longer")
        self.bytes = arrived
        if arrived >= self._counted + _MEGABYTE:
            self._counted, self._latest = arrived, time.monotonic()
        if self._announced is not None and arrived > self._announced:
            raise InputError(f"{arrived:,} bytes arrive, and more", expected=f"{self._announced:,} bytes, as announced")
        REMOTE_BYTES.check(arrived, "what arrives")

    def check_time(self) -> None:
        """Raise if the first answer, or the next megabyte, has taken too long."""
        if self.is_late or time.monotonic() - self._latest > REMOTE_SECONDS.value:
            self._is_stopped = True
            since = f"less than a megabyte after {self.bytes:,} bytes" if self.bytes else "no answer"
            error = REMOTE_SECONDS.error(f"{since} within {REMOTE_SECONDS.value} seconds")
            error.fix = f"{_AGAIN}; a slow store needs a higher {REMOTE_SECONDS.variable}"
            raise error


def _in_time(work: Callable[[Any], T], announced: int | None = None) -> T:
    """The result of what a store is asked for, within the limits of time and size; ``work`` takes fsspec's callback.

    It runs in a thread of its own, which is left alone where it hangs, and ends with the next bytes.
    """
    from fsspec.callbacks import Callback

    arriving, outcome = _Arriving(announced), Future[T]()

    def run() -> None:
        try:
            outcome.set_result(work(Callback(hooks={"limits": arriving.count})))
        except BaseException as error:
            if isinstance(error, TimeoutError) or isinstance(error.__cause__, TimeoutError):  # of the connection
                arriving.is_late = True
            else:
                outcome.set_exception(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_POLL)
        if not outcome.done():
            arriving.check_time()
    return outcome.result(0)


@contextmanager
def _explaining(address: str, system: Any, done: str = "read") -> Iterator[None]:
    """Whatever a store raises, in words; it is neither a mistake in crosslens nor one of the data."""
    try:
        yield
    except CrosslensError as error:
        if isinstance(error, InputError):
            error.file = error.file or address
        raise
    except FileNotFoundError as error:
        cause = error.__cause__  # whatever fails there is called so, not only 404
        if isinstance(cause, CrosslensError):
            raise cause from None
        is_missing = cause is None or isinstance(cause, FileNotFoundError) or getattr(cause, "status", 0) == 404
        if _is_http(address) and not is_missing:
            raise _refusal(address, cause) from safe_cause(error)
        expected, fix = "an existing file or folder", f"check the address{_existing(address, system)}"
        raise InputError("nothing is there", file=address, expected=expected, fix=fix) from safe_cause(error)
    except ImportError as error:
        protocol = _protocol(address)
        raise MissingExtraError(f"{protocol}://", _STORES[protocol][2], "remote") from error
    except Exception as error:  # each store has exceptions of its own
        raise _refusal(address, error, done) from safe_cause(error)


def _existing(address: str, system: Any) -> str:
    """What there is instead, in the nearest folder that exists; nothing where that cannot be said."""
    scheme, _, path = address.rstrip("/").partition("://")
    while "/" in path and not scheme.startswith("http"):  # whose listings are pages of any length
        path = path.rpartition("/")[0]
        try:
            names = sorted(PurePosixPath(name).name for name in _in_time(lambda _: system.ls(path, detail=False)))  # noqa: B023
        except InputError:  # it takes too long
            return ""
        except Exception:  # it does not exist either, or may not be listed
            continue
        if names:
            more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
            return f": {scheme}://{path} has {', '.join(names[:_LISTED])}{more}"
    return f": there is no {path}, or you have no right to list it" if scheme in ("s3", "gs", "gcs", "hf") else ""


def _refusal(address: str, error: BaseException | None, done: str = "read") -> InputError:
    """The error of a store that could be reached and said no, or that could not be reached."""
    text = str(error).strip()
    reason = text.splitlines()[0] if text else type(error).__name__
    if isinstance(error, PermissionError) or _REFUSED.search(re.sub(r"[^\s'\"]*[/?][^\s'\"]*", "", text)):
        fix = _RIGHTS.get(_protocol(address), "check your rights to it")
        return InputError(f"access is refused: {reason}", file=address, fix=fix, code="no-access")
    return InputError(f"cannot be {done}: {reason}", file=address, fix=_AGAIN)


def _is_http(address: str) -> bool:
    return _protocol(address).startswith("http")


def _protocol(address: str) -> str:
    protocol = address.partition("://")[0].lower()
    return "gs" if protocol == "gcs" else protocol
