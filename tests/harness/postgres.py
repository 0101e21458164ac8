"""Throw-away PostgreSQL servers of any supported major version."""

from __future__ import annotations

import grp
import os
import pwd
import signal
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self
from urllib.parse import quote, urlencode

import psycopg
from psycopg import sql

from harness.ports import HOST, ClaimedPort, claim_port
from harness.postgres_binaries import client_programs, server_programs
from harness.program import RunAs, run
from harness.waiting import wait_until
from harness.watchdog import Watchdog

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.tls import ServerCertificate

SUPERUSER = "postgres"

# A cluster that lives for one test needs no durability.
FAST_SETTINGS: dict[str, str] = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_connections": "50",
    "autovacuum": "off",
    "log_min_messages": "warning",
    "timezone": "UTC",
}

# PostgreSQL refuses to run as root; this user exists on every Linux and owns nothing.
UNPRIVILEGED_USER = "nobody"

StopMode = Literal["smart", "fast", "immediate"]

TRUST_EVERYONE = (
    "local all all trust",
    f"host all all {HOST}/32 trust",
    f"host replication all {HOST}/32 trust",
)


class ServerDidNotStartError(AssertionError):
    """The server ended, or was not ready in time; the message carries the end of its log."""


def unprivileged() -> RunAs:
    """Return who a server runs as: another user if the tests run as root, else nothing to change."""
    if os.geteuid() != 0:
        return {}
    entry = pwd.getpwnam(UNPRIVILEGED_USER)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def give_to_server(path: Path, mode: int) -> None:
    """Make a file or folder the server user's own, with that mode."""
    path.chmod(mode)
    if os.geteuid() == 0:
        entry = pwd.getpwnam(UNPRIVILEGED_USER)
        os.chown(path, entry.pw_uid, grp.getgrgid(entry.pw_gid).gr_gid)


@dataclass(slots=True)
class PostgresServer:
    """One PostgreSQL cluster of its own, listening on a loopback port and on a Unix socket.

    A context manager: entered it runs, left it is stopped and removed. `start` and `stop` can be called at
    will in between; port, socket and data stay the same.

    Attributes:
        major: PostgreSQL major version, 13 to 18.
        settings: postgresql.conf entries, over `FAST_SETTINGS`.
        hba: The lines of pg_hba.conf; everybody is trusted by default.
        tls: Certificate and key to serve TLS with.
        folder: Temporary folder with the data, the socket and `log`.
    """

    major: int = 18
    settings: Mapping[str, str] = field(default_factory=dict)
    hba: Sequence[str] = TRUST_EVERYONE
    tls: ServerCertificate | None = None
    folder: Path = field(init=False)
    _port: ClaimedPort = field(init=False, default_factory=claim_port)
    _watchdog: Watchdog = field(init=False)
    _postmaster: subprocess.Popen[bytes] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        # Directly under /tmp: a socket's path may have at most 107 bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="qd-pg-", dir="/tmp"))
        give_to_server(self.folder, 0o755)
        self._watchdog = Watchdog(self.folder, self.data / "postmaster.pid")

    def __enter__(self) -> Self:
        try:
            if not self.running:
                self.start()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    @property
    def port(self) -> int:
        """Loopback TCP port, this server's own also while it is stopped."""
        return self._port.number

    @property
    def data(self) -> Path:
        """The cluster's data directory."""
        return self.folder / "data"

    @property
    def log(self) -> Path:
        """The server's log file."""
        return self.folder / "log"

    @property
    def running(self) -> bool:
        """Whether the postmaster process lives."""
        return self._postmaster is not None and self._postmaster.poll() is None

    @property
    def pid(self) -> int:
        """Process id of the running postmaster."""
        assert self._postmaster is not None
        return self._postmaster.pid

    def dsn(
        self,
        database: str = "postgres",
        user: str = SUPERUSER,
        password: str | None = None,
        *,
        by_socket: bool = False,
        **parameters: str,
    ) -> str:
        """Return a connection URI for a database.

        Args:
            database: Name of the database.
            user: Role to connect as.
            password: Left out of the URI when None.
            by_socket: Through the Unix socket instead of TCP.
            parameters: More libpq parameters, such as `sslmode="verify-full"`.
        """
        who = quote(user, safe="") + ("" if password is None else f":{quote(password, safe='')}")
        where = "" if by_socket else f"{HOST}:{self.port}"
        if by_socket:
            parameters = {"host": str(self.folder), "port": str(self.port), **parameters}
        query = f"?{urlencode(parameters)}" if parameters else ""
        return f"postgresql://{who}@{where}/{quote(database, safe='')}{query}"

    def start(self, timeout: float = 30.0) -> None:
        """Start the server, making the cluster first if there is none, and wait until it answers queries.

        Raises:
            ServerDidNotStartError: With the end of the server's log.
        """
        assert not self.running, "already running"
        if not self.data.exists():
            self._initdb()
        self._configure()
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        with self.log.open("ab") as log:
            self._postmaster = subprocess.Popen(
                [server_programs(self.major) / "postgres", "-D", self.data],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=self.folder,
                **unprivileged(),
            )
        try:
            wait_until(self._is_ready, timeout)
        except TimeoutError as late:
            raise ServerDidNotStartError(f"not ready after {timeout} s\n{self.log_tail()}") from late

    def stop(self, mode: StopMode = "fast", timeout: float = 30.0) -> None:
        """Stop the server in one of PostgreSQL's shutdown modes and wait until it is gone; no-op if stopped."""
        if not self.running:
            return
        assert self._postmaster is not None
        signals = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
        self._postmaster.send_signal(signals[mode])
        self._postmaster.wait(timeout)

    def restart(self, mode: StopMode = "fast") -> None:
        """Stop and start again, on the same port and data."""
        self.stop(mode)
        self.start()

    def kill(self) -> None:
        """Kill the postmaster with SIGKILL, as the kernel would; its children notice and end by themselves."""
        assert self._postmaster is not None
        self._postmaster.kill()
        self._postmaster.wait()
        wait_until(self._has_no_processes, message="the backends of the killed server ended")

    def pause(self) -> None:
        """Freeze every process of the server (SIGSTOP): connections stay open and nothing answers."""
        os.killpg(self.pid, signal.SIGSTOP)
        for pid in self._backends():
            os.kill(pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Undo `pause`."""
        os.killpg(self.pid, signal.SIGCONT)
        for pid in self._backends():
            with suppress(ProcessLookupError):  # its client has given up, and it ends at once
                os.kill(pid, signal.SIGCONT)

    def remove(self) -> None:
        """Stop the server, if it runs, and delete everything it wrote."""
        self.stop("immediate")
        self._watchdog.finish()
        self._port.release()

    def log_tail(self, lines: int = 30) -> str:
        """Return the last lines of the server's log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run one statement as superuser outside of a transaction; return its rows, if it has any."""
        with psycopg.connect(self.dsn(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def create_database(self, name: str, template: str | None = None) -> str:
        """Create a database, as a copy of another if `template` is given, and return its connection URI.

        Nobody may be connected to the template meanwhile.
        """
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
            sql.Identifier(name), sql.Identifier(template or "template0")
        )
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            connection.execute(statement)
        return self.dsn(name)

    def drop_database(self, name: str) -> None:
        """Drop a database, ending the sessions that are connected to it."""
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def reload(self, *, settings: Mapping[str, str] | None = None, hba: Sequence[str] | None = None) -> None:
        """Write new settings or pg_hba lines and have the running server read them."""
        self.settings = {**self.settings, **(settings or {})}
        self.hba = self.hba if hba is None else hba
        self._configure()
        os.kill(self.pid, signal.SIGHUP)

    def make_standby(self, settings: Mapping[str, str] | None = None) -> PostgresServer:
        """Return a running hot standby that streams from this server, made by `pg_basebackup`."""
        standby = PostgresServer(
            major=self.major, settings={**self.settings, **(settings or {})}, hba=self.hba, tls=self.tls
        )
        try:
            run(
                [
                    client_programs() / "pg_basebackup",
                    f"--pgdata={standby.data}",
                    f"--dbname={self.dsn()}",
                    "--checkpoint=fast",
                    "--no-sync",
                ],
                run_as=unprivileged(),
                cwd=standby.folder,
            )
            # Not --write-recovery-conf: a newer pg_basebackup writes words an older server does not know.
            source = f"host={HOST} port={self.port} user={SUPERUSER}"
            standby._write("postgresql.auto.conf", f"primary_conninfo = '{source}'\n")
            standby._write("standby.signal", "")
            standby.start()
        except BaseException:
            standby.remove()
            raise
        return standby

    def promote(self) -> None:
        """Turn this standby into a primary and wait until it takes writes."""
        self.execute("SELECT pg_promote(wait => true)")

    def wait_for_replay_of(self, primary: PostgresServer, timeout: float = 10.0) -> None:
        """Wait until this standby has replayed everything the primary has written so far."""
        primary.execute("CHECKPOINT")  # writes out what synchronous_commit = off held back
        ((position,),) = primary.execute("SELECT pg_current_wal_flush_lsn()::text")
        wait_until(
            lambda: self.execute(f"SELECT pg_last_wal_replay_lsn() >= '{position}'::pg_lsn")[0][0],
            timeout,
            f"the standby has replayed up to {position}",
        )

    def _initdb(self) -> None:
        run(
            [
                server_programs(self.major) / "initdb",
                f"--pgdata={self.data}",
                f"--username={SUPERUSER}",
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
            ],
            run_as=unprivileged(),
            cwd=self.folder,
        )

    def _configure(self) -> None:
        settings = {
            **FAST_SETTINGS,
            "listen_addresses": HOST,
            **self.settings,
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
        }
        if self.tls is not None:
            settings |= {"ssl": "on", "ssl_cert_file": "server.crt", "ssl_key_file": "server.key"}
            self._write("server.crt", self.tls.certificate)
            self._write("server.key", self.tls.key)
        escaped = {name: value.replace("'", "''") for name, value in settings.items()}
        self._write("postgresql.conf", "".join(f"{name} = '{value}'\n" for name, value in escaped.items()))
        self._write("pg_hba.conf", "".join(f"{line}\n" for line in self.hba))

    def _write(self, name: str, text: str) -> None:
        path = self.data / name
        path.write_text(text)
        give_to_server(path, 0o600)

    def _is_ready(self) -> bool:
        if not self.running:
            raise ServerDidNotStartError(self.log_tail())
        try:
            # The eighth line is the state, kept there by the postmaster for pg_ctl.
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) > 7 and lines[7].strip() == "ready"

    def _backends(self) -> list[int]:
        """Return the server's processes but the postmaster; each leads a process group of its own."""
        children = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                after_name = stat.read_text().rsplit(")", 1)[1].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(after_name[1]) == self.pid:
                children.append(int(stat.parent.name))
        return children

    def _has_no_processes(self) -> bool:
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if (folder / "cwd").readlink() == self.data:
                    return False
            except OSError:
                continue
        return True
