"""What may be done because a file asks for it, and which connections may be opened.

Recipes, runs, logs and models come from anywhere. Code that they name runs if somebody trusts it, and an address that
they name is opened if somebody has allowed its host: whoever reads names from a file does so inside :func:`named_by`.
On the command line an address must besides stand in one of its words, so that none is opened that was forgotten here.
Offline, the process opens no connection to another machine, whichever library asks for it.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crosslens.core import ADDRESS, UsageError, argument, host_of, is_hidden, is_remote, where_option, without_secrets


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
    allow_hosts: frozenset[str] = frozenset()
    origin: str | None = None
    addresses: tuple[str, ...] = ()
    fetches: bool = True


_USERS_OWN = _Policy()
_POLICY: ContextVar[_Policy] = ContextVar("policy", default=_USERS_OWN)
_CONFIRMED: set[NamedCode] = set()
"""What was asked about and allowed: nobody is asked twice."""


class UntrustedCodeError(UsageError):
    """A file names code, and nobody said that it may run."""


@contextmanager
def _policy(**changes: Any) -> Iterator[None]:
    token = _POLICY.set(replace(_POLICY.get(), **{name: value for name, value in changes.items() if value is not None}))
    try:
        yield
    finally:
        _POLICY.reset(token)


def trusting(
    trust_code: TrustCode | None = None, allow_hosts: Iterable[str] | None = None
) -> AbstractContextManager[None]:
    """Inside, ``trust_code`` decides about code that files name; None leaves it as it is.

    Addresses that files name are opened if their host is among ``allow_hosts``, or was among those before.
    """
    hosts = {host_of(host) if "://" in host else host.lower() for host in allow_hosts or ()}
    return _policy(trust_code=trust_code, allow_hosts=_POLICY.get().allow_hosts | hosts)


def named_by(origin: str | Path | None) -> AbstractContextManager[None]:
    """Inside, names of code and addresses come from the file ``origin``; None leaves it as it is."""
    return _policy(origin=None if origin is None else str(origin))


def giving(*addresses: str | None) -> AbstractContextManager[None]:
    """Inside, these addresses are the caller's own, also where a file names them that was written meanwhile."""
    return _policy(addresses=tuple(address for address in addresses if is_remote(address)))


def fetching_nothing() -> AbstractContextManager[None]:
    """Inside, no address is opened, whoever names it: the work of a server."""
    return _policy(fetches=False)


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


_words: tuple[str, ...] | None = None
"""The words of the command line that is carried out; None for calls from Python."""


@contextmanager
def command_line(words: Sequence[str]) -> Iterator[None]:
    """Inside, in every thread, an address is the user's only if it stands in one of these words."""
    global _words
    before, _words = _words, tuple(words)
    try:
        yield
    finally:
        _words = before


def require_address(address: str, *, local: bool = False) -> frozenset[str] | None:
    """Raise unless the address may be opened; the hosts that may answer, None for any: the user has named it.

    ``local``: it is on this machine, where an offline process may connect to.
    """
    policy, host = _POLICY.get(), host_of(address)
    if not policy.fetches or (_offline and not local):
        mode = "offline mode" if policy.fetches else "the server"
        fix = "copy it to this machine, and name the copy"
        raise UsageError(f"{address} is not opened: {mode} opens no connection", fix=fix, code="offline")
    if address in policy.addresses or (policy.origin is None if _words is None else _is_typed(address, _words)):
        return None
    if host in policy.allow_hosts:
        return policy.allow_hosts
    raise UsageError(
        f"{policy.origin or 'a file'} names {address}: an address in a file is not opened unasked",
        fix=f"name it in the command or call yourself{_allowing(host)}",
        code="untrusted-address",
        subject=host,
    )


def whole_address(address: str) -> str:
    """An address with the parts that :func:`without_secrets` hides, where the user has given it; else as it is."""
    typed_addresses = (word[begin.start() :] for word in _words or () if (begin := ADDRESS.search(word)))
    addresses = [*_POLICY.get().addresses, *typed_addresses] if is_hidden(address) else []
    return next((whole for whole in addresses if without_secrets(whole) == address), address)


def require_redirect(source: str, target: str, hosts: frozenset[str] | None) -> None:
    """Raise where a server redirects to another one than those that :func:`require_address` gave."""
    host = host_of(target)
    if hosts is not None and host not in hosts:
        problem = f"{host_of(source)} redirects to {host}, which nobody has allowed"
        raise UsageError(problem, fix=f"name the address yourself{_allowing(host)}", code="untrusted-address")


def _allowing(host: str) -> str:
    return where_option("allow_hosts", f", or if you trust {host} pass {argument('allow_hosts', (host,))}")


def _is_typed(address: str, words: Iterable[str]) -> bool:
    """Whether an address stands in one of the words; a path made from it has single slashes."""
    folded = re.sub("/+", "/", address)
    for word in words:
        _, mark, after = re.sub("/+", "/", word).partition(folded)
        # Behind a host alone may follow the rest of the name of another host.
        if mark and (folded.count("/") > 1 or after[:1] in ("", "/", "?", "#")):
            return True
    return False


_LOOKUPS = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")
_CONNECTIONS = ("socket.connect", "socket.sendto", "socket.sendmsg")
_REVERSE_LOOKUP = "socket.getnameinfo"
_HUB_OFFLINE = "HF_HUB_OFFLINE"
_hub_before: str | None = None
_offline = 0
_is_guarded = False
_lock = threading.Lock()
_own_hosts: set[str] = set()


def is_offline() -> bool:
    """Whether no connection to another machine may be opened now."""
    return _offline > 0 or not _POLICY.get().fetches


@contextmanager
def offline(wanted: bool = True) -> Iterator[None]:
    """Inside, no thread of this process opens a connection to another machine, or looks one up; unless not wanted."""
    global _offline, _is_guarded, _hub_before
    if not wanted:
        yield
        return
    with _lock:
        if not _offline:
            _hub_before = os.environ.get(_HUB_OFFLINE)
            _set_hub("1")
        _offline += 1
        if not _is_guarded:  # below all libraries: Python itself asks before each of its sockets connects
            sys.addaudithook(_refuse_connection)
            _is_guarded = True
    try:
        yield
    finally:
        with _lock:
            _offline -= 1
            if not _offline:
                _set_hub(_hub_before)


def _set_hub(value: str | None) -> None:
    """Have the libraries of the hub look into their caches alone, instead of trying again to connect; or no longer."""
    os.environ.pop(_HUB_OFFLINE, None)
    if value is not None:
        os.environ[_HUB_OFFLINE] = value
    for name in ("huggingface_hub.constants", "datasets.config"):  # read it when they are imported
        if (module := sys.modules.get(name)) is not None:
            module.HF_HUB_OFFLINE = (value or "").lower() in ("1", "true", "yes", "on")  # type: ignore[attr-defined]


def permit_host(host: str | None) -> None:
    """Let this machine be looked up, offline too: the database that a server was started with."""
    if host:
        _own_hosts.add(host)


def _refuse_connection(event: str, arguments: tuple[Any, ...]) -> None:
    if not _offline:
        return
    if event in _LOOKUPS:
        host = arguments[0]
    elif event == _REVERSE_LOOKUP:
        host = arguments[0][0]
    elif event in _CONNECTIONS and isinstance(arguments[1], tuple):  # others are names of sockets on this machine
        host = arguments[1][0]
    else:
        return
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host or "")
    if name in ("", "localhost") or name in _own_hosts:
        return
    try:
        if ipaddress.ip_address(name.partition("%")[0]).is_loopback:
            return
    except ValueError:
        pass
    raise OSError(errno.ENETUNREACH, f"offline mode opens no connection to {name}")
