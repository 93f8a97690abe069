"""The options of the web application. Imports no web framework: the command line reads its flags here."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from crosslens.core import InputError, Options, UsageError, argument, option

if TYPE_CHECKING:  # a dataset brings polars, and the flags are read for every help text
    from crosslens.values import Dataset

DEFAULT_PORT = 8000
_SHORTEST_PASSWORD = 12
_LONGEST_PASSWORD_FILE = 4096


@dataclass(frozen=True)
class ServeOptions(Options, group="Server"):
    """Where the server listens, and who may use it."""

    port: int = option(DEFAULT_PORT, "Port to listen on; 0 takes a free one.", minimum=0, maximum=65535)
    host: str = option(
        "127.0.0.1", "Address to listen on. Any other than this computer's own requires a login.", metavar="ADDRESS"
    )
    allowed_hosts: tuple[str, ...] = option(
        (), "Further name under which browsers reach the server; may be repeated.", flags=("--allowed-host",)
    )
    forwarded_allow_ips: tuple[str, ...] = option(
        (), "Address or network of a proxy whose X-Forwarded-For and X-Forwarded-Proto are believed; may be repeated. "
        "Requires a login. [default: nobody's]",
        metavar="ADDRESS", flags=("--forwarded-allow-ips",),
    )  # fmt: skip
    password_file: Path | None = option(None, "Every page asks for the password in this file (its first line).")
    database: str | None = option(
        None, "Where judgements are kept. [default: SQLite in the served folder]", metavar="URL"
    )
    cache: Path | None = option(
        None, "Where thumbnails, vectors and maps are kept. [default: the cache folder of crosslens]"
    )
    thumbnails: int = option(
        1024, "Most megabytes of thumbnails that are kept; the oldest go first.", metavar="MB", minimum=1
    )
    models: tuple[str, ...] = option(
        (),
        "Further encoder for live search, such as clip:openai/clip-vit-base-patch32; may be repeated.",
        flags=("--model",),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for proxy in self.proxies:
            try:
                if not ipaddress.ip_network(proxy).prefixlen:
                    raise ValueError("it contains every address")
            except ValueError as error:
                raise UsageError(
                    f"{argument('forwarded_allow_ips')} is {proxy!r:.80}: not an address or a network ({error})",
                    fix="name the proxy, for example 127.0.0.1 or 10.0.0.0/8",
                    option="forwarded_allow_ips",
                ) from error

    @property
    def proxies(self) -> tuple[str, ...]:
        """The addresses and networks of proxies that are believed."""
        return tuple(proxy.strip() for value in self.forwarded_allow_ips for proxy in value.split(","))


@dataclass(frozen=True)
class WebSettings:
    """The served folder, the data beside it, and the options of the server.

    ``datasets`` are used for runs whose own recipe does not lead to their dataset; ``image_folders`` are further
    folders that pictures may come from.
    """

    folder: Path
    datasets: tuple[Dataset, ...] = ()
    image_folders: tuple[Path, ...] = ()
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    allowed_hosts: tuple[str, ...] = ()
    password: str | None = None
    database: str | None = None
    cache: Path | None = None
    models: tuple[str, ...] = ()
    thumbnails: int = 1024
    proxies: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.folder.is_dir():
            problem = "this is a file" if self.folder.exists() else "no such folder"
            raise InputError(problem, file=self.folder, expected="a folder of run folders", fix="check the path")

    @staticmethod
    def of(
        folder: Path, options: ServeOptions, datasets: tuple[Dataset, ...] = (), image_folders: tuple[Path, ...] = ()
    ) -> WebSettings:
        """The settings that the options of the command stand for; the password is the first line of its file."""
        password = None
        if (file := options.password_file) is not None:
            if not file.is_file():
                raise InputError("no such file", file=file, expected="a file with a password", fix="check the path")
            with file.open("rb") as stream:
                lines = stream.read(_LONGEST_PASSWORD_FILE).decode("utf-8", errors="replace").splitlines()
            password = lines[0].strip() if lines else ""
            if len(password) < _SHORTEST_PASSWORD:
                raise InputError(
                    f"the password has {len(password)} characters",
                    file=file,
                    expected=f"at least {_SHORTEST_PASSWORD}",
                    fix="write a longer one, for example with: openssl rand -base64 24",
                )
        return WebSettings(
            folder, datasets, image_folders, options.host, options.port, options.allowed_hosts, password,
            options.database, options.cache, options.models, options.thumbnails, options.proxies,
        )  # fmt: skip

    @property
    def is_local(self) -> bool:
        """Whether only this computer is to reach the server: neither by its address nor through a proxy do others."""
        return is_loopback(self.host) and not self.proxies and all(map(is_loopback, self.allowed_hosts))


def is_loopback(host: str) -> bool:
    """Whether an address is this computer's own."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
