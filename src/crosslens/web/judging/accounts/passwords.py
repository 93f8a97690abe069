"""Passwords: kept as argon2 hashes only."""

from __future__ import annotations

import threading

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from crosslens.core import CrosslensError

SHORTEST_PASSWORD = 10
LONGEST_PASSWORD = 200
_HASHER = PasswordHasher()
_TURNS = threading.Semaphore(4)
"""A hash takes 64 MiB of memory: many logins at once must not use it all up."""
_NOBODY = _HASHER.hash("the password of an account that does not exist")
"""Compared with where there is no account, so that the time taken does not tell which names exist."""


def check_password(password: str) -> str:
    """Refuse passwords that are too short to be kept."""
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise CrosslensError(
            f"a password has {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters",
            fix="choose another password",
            code="bad-password",
        )
    return password


def hash_password(password: str) -> str:
    """What is stored of a password."""
    with _TURNS:
        return _HASHER.hash(password)


def is_password(stored: str | None, password: str) -> bool:
    """Whether this is the password; takes as long where nothing is stored."""
    with _TURNS:
        try:
            return _HASHER.verify(stored or _NOBODY, password[: LONGEST_PASSWORD + 1]) and stored is not None
        except (VerificationError, InvalidHashError):
            return False
