"""Code that a file names runs only if the user trusts it; code that the user names is the user's own.

A recipe, a run folder or a model folder may come from somebody else. While such a file is read or carried out, its
reader says so with :func:`code_named_by`; whoever is about to execute code first calls :func:`require_trust`, which
alone decides. Outside of :func:`code_named_by`, names were typed in or passed by a program, and nothing is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path

from crosslens.core.errors import UsageError, argument


@dataclass(frozen=True)
class NamedCode:
    """Code that a file asks for: the file, the name that it writes, and what would be executed."""

    origin: str
    source: str
    path: str


TrustCode = bool | Callable[[NamedCode], bool]
"""Whether code that files name may run: True, False, or a function that asks."""


@dataclass(frozen=True)
class _Policy:
    trust_code: TrustCode = False
    origin: str | None = None


_USERS_OWN = _Policy()
_POLICY: ContextVar[_Policy] = ContextVar("policy", default=_USERS_OWN)
_CONFIRMED: set[NamedCode] = set()
"""What was asked about and allowed: nobody is asked twice."""


class UntrustedCodeError(UsageError):
    """A file names code, and nobody said that it may run."""


@contextmanager
def trusting(trust_code: TrustCode | None) -> Iterator[None]:
    """Inside, ``trust_code`` decides about code that files name; None leaves it as it is."""
    token = _POLICY.set(_POLICY.get() if trust_code is None else replace(_POLICY.get(), trust_code=trust_code))
    try:
        yield
    finally:
        _POLICY.reset(token)


@contextmanager
def code_named_by(origin: str | Path | None) -> Iterator[None]:
    """Inside, names come from the file ``origin``; None leaves it as it is."""
    token = _POLICY.set(_POLICY.get() if origin is None else replace(_POLICY.get(), origin=str(origin)))
    try:
        yield
    finally:
        _POLICY.reset(token)


def require_trust(source: str, path: str | Path) -> None:
    """Raise unless the code at ``path``, which somebody wrote as ``source``, may run."""
    policy = _POLICY.get()
    if policy.origin is None or policy.trust_code is True:
        return
    code = NamedCode(policy.origin, source, str(path))
    if code in _CONFIRMED:
        return
    if callable(policy.trust_code) and policy.trust_code(code):
        _CONFIRMED.add(code)
        return
    raise UntrustedCodeError(
        f"{code.origin} names code that would run: {code.path} ({code.source})",
        fix=f"read that code; if you trust it, pass {argument('trust_code', True)}",
        code="untrusted-code",
        subject=code.path,
    )
