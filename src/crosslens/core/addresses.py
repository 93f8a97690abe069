"""Addresses (``s3://bucket/folder``): what is one, whose it is, and how it is written where others may read it.

Credentials in an address (``https://user:password@…``, signatures and tokens in its query) are for the store alone.
Which part of a query is one, nobody can tell by its name: errors, notes, recipes and runs have ``***`` in place of
every user and of every value.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, TypeGuard

HIDDEN = "***"
ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")
_FOLDED = re.compile(r"(s3|gs|gcs|hf|https?|memory):/(?=[^/])")
"""How a path begins that was made from an address: with one slash."""
_IN_TEXT = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]{,30}:/|https?:)/((?:[^\s'\"<>\]]|\](?![@,\s'\"]|$))*[^\s'\"<>\]:;,.)])")
"""An address, also one that became a path: it ends before the punctuation of a sentence, or of a metric's name."""
_ECHO = re.compile(r"([?&]([^?&;=#\s'\"<>]+)=)[^&;#\s'\"<>\]]*[^&;#\s'\"<>\]:,.)]")
"""Part of a query beside an address: servers repeat in their messages what they were asked for."""
_USER = re.compile(r"^[^/?#]+@")
_IS_HIDDEN = re.compile(r"://\*\*\*@|[?&;#=]\*\*\*")
_PLAIN_NAMES = {"s3", "gs", "gcs", "hf"}
"""Stores whose file names may have ``?`` and ``#`` in them."""
ENDPOINT_NAMES = frozenset(
    ("model", "timeout", "retries", "first_wait", "max_bytes", "workers", "pictures", "max_descriptions")
)
"""Options of crosslens in the address of a language model: one that has others is refused, so that none is a secret."""


def is_remote(path: Any) -> TypeGuard[str]:
    """Whether a path is an address such as ``s3://bucket/folder``."""
    return isinstance(path, str) and ADDRESS.match(path) is not None


def address_of(path: Any) -> str | None:
    """The address that a path is, or was before it became a ``Path``; None for a path of this machine."""
    if isinstance(path, Path) and _FOLDED.match(path.as_posix()):
        return path.as_posix().replace(":/", "://", 1)
    return path if is_remote(path) else None


def host_of(address: str) -> str:
    """Who answers under an address, as it is written to allow it.

    Of ``https://user@example.org:8080/x`` it is ``example.org:8080``, of ``s3://bucket/x`` the bucket, ``s3://bucket``,
    and of ``hf://datasets/owner/name/x`` the owner, ``hf://owner``.
    """
    scheme, _, rest = address.partition("://")
    scheme = {"gcs": "gs"}.get(scheme.lower(), scheme.lower())
    if scheme == "hf":
        rest = re.sub(r"^(datasets|spaces|buckets|models)/(?=.)", "", rest).partition("@")[
            0
        ]  # what follows is a version
    host = re.split(r"[/?#]", rest, maxsplit=1)[0]
    return host.rpartition("@")[2].lower() if scheme in ("http", "https") else f"{scheme}://{host}"


def is_hidden(address: str) -> bool:
    """Whether parts of an address were left out by :func:`without_secrets`."""
    return _IS_HIDDEN.search(address) is not None


def without_secrets(text: str) -> str:
    """The text with ``***`` for users and passwords in addresses, and for the values of their queries and fragments."""
    if ":/" not in text:
        return text
    return _ECHO.sub(lambda part: part[0] if part[2] in ENDPOINT_NAMES else part[1] + HIDDEN, _IN_TEXT.sub(_hide, text))


def _hide(match: re.Match[str]) -> str:
    begin, rest = match.groups()
    place, *parts = re.split(r"([?&;#])", _USER.sub(f"{HIDDEN}@", rest))
    marks = (
        "?" if (is_plain := begin.partition(":")[0].lower() in _PLAIN_NAMES) else "?#;"
    )  # an & may be part of a name
    first = next((number for number, part in enumerate(parts) if part in marks), len(parts))
    place, parts = place + "".join(parts[:first]), parts[first:]
    options = {part.partition("=")[0] for part in parts[1::2] if part}
    if parts and not options <= ENDPOINT_NAMES:
        for number in range(1, len(parts), 2):
            name, mark, value = parts[number].partition("=")
            if value:
                parts[number] = f"{name}={HIDDEN}"
            elif name and not mark and not is_plain:
                parts[number] = HIDDEN
    return f"{begin}/{place}{''.join(parts)}"


def safe_cause(error: BaseException) -> BaseException | None:
    """The error as the cause of ours; None where its text, or that of what led to it, has credentials of an address."""
    link: BaseException | None = error
    while link is not None:
        if without_secrets(text := f"{link} {link!r}") != text:
            return None
        link = link.__cause__ or link.__context__
    return error
