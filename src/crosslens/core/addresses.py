"""Addresses (``s3://bucket/folder``): what is one, and how it is written where others may read it.

Credentials in an address (``https://user:password@…``, signatures and tokens in its query) are for the store alone:
errors, notes, recipes and runs have ``***`` in their place.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

HIDDEN = "***"
_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")
_FOLDED = re.compile(r"(s3|gs|gcs|hf|https?|memory):/(?=[^/])")
"""How a path begins that was made from an address: with one slash."""
_USER = re.compile(r"(?<=://)[^/?#\s'\"<>]+@")
_SECRET_PARAMETER = re.compile(
    r"([?&;][^?&;=#\s'\"<>]*(?:sig|token|secret|passw|pwd|key|credential|auth|policy|session)[^?&;=#\s'\"<>]*=)"
    r"[^&;#\s'\"<>]*[^&;#\s'\"<>:,.)]",
    re.IGNORECASE,
)


def is_remote(path: Any) -> bool:
    """Whether a path is an address such as ``s3://bucket/folder``."""
    return isinstance(path, str) and _ADDRESS.match(path) is not None


def address_of(path: Any) -> str | None:
    """The address that a path is, or was before it became a ``Path``; None for a path of this machine."""
    if isinstance(path, Path) and _FOLDED.match(path.as_posix()):
        return path.as_posix().replace(":/", "://", 1)
    return path if is_remote(path) else None


def without_secrets(text: str) -> str:
    """The text with ``***`` for users and passwords in addresses, and for parameters that are credentials."""
    if "://" not in text:
        return text
    return _SECRET_PARAMETER.sub(rf"\g<1>{HIDDEN}", _USER.sub(f"{HIDDEN}@", text))


def harmless(error: BaseException) -> BaseException | None:
    """The error as the cause of ours; None where its text, or that of what led to it, has credentials of an address."""
    link: BaseException | None = error
    while link is not None:
        if without_secrets(text := f"{link} {link!r}") != text:
            return None
        link = link.__cause__ or link.__context__
    return error
