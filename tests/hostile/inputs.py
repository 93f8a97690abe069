"""Files that somebody might hand over by mistake or on purpose: content that is wrong, and paths that are no files."""

from __future__ import annotations

import gzip
import io
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np

DEEP = 100_000

TEXTS: dict[str, bytes] = {
    "empty": b"",
    "blank": b" \n\t\n",
    "zero bytes": b"\x00" * 512,
    "byte order mark": b"\xef\xbb\xbf",
    "UTF-16": '{"image": "a"}'.encode("utf-16"),
    "latin-1": b'{"image": "caf\xe9", "text": "caf\xe9"}\n',
    "UTF-8 surrogate": b'{"image": "\xed\xa0\x80"}\n',
    "noise": bytes(range(256)) * 4,
    "deep lists": b"[" * DEEP + b"]" * DEEP,
    "deep objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "deep lists in a record": b'{"image": "a", "text": ' + b"[" * DEEP + b"]" * DEEP + b"}",
    "nearly too deep": b'{"image": ' + b"[" * 850 + b"]" * 850 + b"}",
    "lone surrogate": b'{"image": "a\\ud800", "text": "x\\udfff"}\n',
    "surrogates swapped": b'{"image": "a\\udc00\\ud800", "text": "x"}\n',
    "cut JSON": b'{"images": [{"id": 1',
    "JSON null": b"null",
    "JSON number": b"-0.0",
    "JSON NaN": b"NaN",
    "JSON text": b'"text"',
    "JSON list of nothing": b"[]",
    "JSON object of nothing": b"{}",
    "number of 400 digits": b'{"image": ' + b"9" * 400 + b"}",
    "number of 5000 digits": b'{"image": ' + b"9" * 5000 + b"}",
    "key twice": b'{"image": "a", "image": "b"}',
    "gzip cut": gzip.compress(b'{"image": "a"}' * 100)[:-9],
    "gzip of noise": b"\x1f\x8b" + b"\x99" * 64,
    "gzip twice": gzip.compress(gzip.compress(b"{}")),
    "zip": b"PK\x03\x04" + b"\x00" * 64,
    "PNG": b"\x89PNG\r\n\x1a\n" + b"\x00" * 64,
    "Parquet cut": b"PAR1" + b"\x15" * 64,
    "Parquet with a huge footer": b"PAR1" + b"\x00" * 32 + struct.pack("<I", 2**31 - 1) + b"PAR1",
    "tar header": (b"a.txt" + b"\x00" * 95 + b"7777777\x00" * 2).ljust(512, b"\xff"),
}
"""None of these is a file of any format."""


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    # The path of a socket is at most about a hundred characters long.
    here = os.open(path.parent, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(f"/proc/self/fd/{here}/{path.name}")
    finally:
        os.close(here)


SPECIAL: dict[str, Callable[[Path], object]] = {
    "named pipe": _fifo,
    "socket": _socket,
    "endless device": lambda path: path.symlink_to("/dev/zero"),
    "empty device": lambda path: path.symlink_to("/dev/null"),
    "folder": Path.mkdir,
    "link to nothing": lambda path: path.symlink_to("nowhere"),
    "link to itself": lambda path: path.symlink_to(path),
    "link to a pipe": lambda path: (os.mkfifo(path.with_name("pipe")), path.symlink_to("pipe")),
}
"""What may be where a file is expected."""

PATHS = {
    "empty": "",
    "name too long": "x" * 300,
    "path too long": "/".join(["x" * 200] * 40),
    "below a file": __file__ + "/x",
    "of a process": "/proc/self/mem",
    "root": "/",
    "with a NUL": "a\0b",
    "with half of a pair": "a\ud800b",
}
"""Paths that lead to no file."""


def npy(array: object, **options: bool) -> bytes:
    """The bytes of a ``.npy`` file."""
    content = io.BytesIO()
    np.save(content, np.asanyarray(array), **options)
    return content.getvalue()


def npy_header(header: str, data: bytes = b"\x00" * 256, version: bytes = b"\x01\x00") -> bytes:
    """The bytes of a ``.npy`` file with this header."""
    packed = header.encode("latin-1") + b"\n"
    length = struct.pack("<H" if version[0] == 1 else "<I", len(packed))
    return b"\x93NUMPY" + version + length + packed + data


def _shape(shape: str, descr: str = "'<f4'") -> bytes:
    return npy_header(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}")


_EYE = np.eye(4, dtype=np.float32)

ARRAYS: dict[str, bytes] = {
    "empty": b"",
    "magic only": b"\x93NUMPY",
    "header cut": npy(_EYE)[:40],
    "data cut": npy(_EYE)[:-1],
    "no data": npy(_EYE)[:128],
    "unknown version": npy_header("{}", version=b"\x09\x00"),
    "negative shape": _shape("(-4, 4)"),
    "two negative sides": _shape("(-4, -4)"),
    "huge shape": _shape("(4611686018427387904, 4)"),
    "shape beyond 64 bits": _shape("(" + "9" * 40 + ", 4)"),
    "shape of thousands of digits": _shape("(" + "9" * 5000 + ", 4)"),
    "shape of fractions": _shape("(4.0, 4.0)"),
    "shape a text": _shape("'4, 4'"),
    "shape of truths": _shape("(True, True)"),
    "shape missing": npy_header("{'descr': '<f4', 'fortran_order': False, }"),
    "header a list": npy_header("[1, 2, 3]"),
    "header a call": npy_header("__import__('os').system('touch stolen')"),
    "header nested": npy_header("(" * 5000 + ")" * 5000),
    "header of megabytes": npy_header("{" + " " * 2_000_000 + "}", version=b"\x02\x00"),
    "header not text": npy_header("\xff\xfe\xfd"),
    "unknown type": _shape("(4, 4)", "'<q9'"),
    "type a list": _shape("(4, 4)", "[('a', '<f4'), ('b', '<f4')]"),
    "type unhashable": _shape("(4, 4)", "{}"),
    "type of no size": _shape("(4611686018427387904, 4)", "'|V0'"),
    "objects": npy(np.array([[None] * 4] * 4), allow_pickle=True),
    "texts": npy(np.full((4, 4), "a")),
    "truths": npy(np.ones((4, 4), bool)),
    "complex": npy(_EYE.astype(complex)),
    "dates": npy(np.zeros((4, 4), "datetime64[s]")),
    "single number": npy(np.float32(1)),
    "one axis": npy(np.ones(4, np.float32)),
    "four axes": npy(np.ones((4, 1, 1, 4), np.float32)),
    "no rows": npy(np.ones((0, 4), np.float32)),
    "no columns": npy(np.ones((4, 0), np.float32)),
    "too few rows": npy(_EYE[:3, :3]),
    "NaN": npy(np.where(_EYE == 1, np.nan, _EYE)),
    "infinity": npy(np.where(_EYE == 1, np.inf, _EYE)),
    "pickle": b"\x80\x04K\x01.",
    "zip": b"PK\x03\x04" + b"\x00" * 64,
    "text": b"0.1 0.2 0.3\n",
    "Parquet": b"PAR1" + b"\x00" * 64,
}
"""None of these is a matrix of four rows and four columns."""

JSON_VALUES = (None, True, -1, 1.5, 10**400, "text", "\x00", [], [[]], {}, {"a": 1})
"""What an entry of a header may hold instead of what crosslens wrote."""
