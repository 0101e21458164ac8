"""PgBouncer in front of a server, as many production databases have it."""

from __future__ import annotations

import socket
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

import psycopg

from harness.debian import program
from harness.ports import HOST, ClaimedPort, claim_port
from harness.postgres import SUPERUSER, give_to_server, unprivileged
from harness.waiting import wait_until
from harness.watchdog import Watchdog

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.postgres import PostgresServer


@dataclass(slots=True)
class PgBouncer:
    """A PgBouncer that pools every database of a server; a context manager that starts and stops it.

    Attributes:
        server: The running server behind it.
        pool_mode: `transaction`, `session` or `statement`.
        pool_size: Server connections for each database and user.
        users: Roles that may connect, with the password that PgBouncer logs in to the server with.
    """

    server: PostgresServer
    pool_mode: str = "transaction"
    pool_size: int = 2
    users: Mapping[str, str] = field(default_factory=lambda: {SUPERUSER: ""})
    settings: Mapping[str, str] = field(default_factory=dict)
    folder: Path = field(init=False)
    _port: ClaimedPort = field(init=False, default_factory=claim_port)
    _watchdog: Watchdog = field(init=False)
    _process: subprocess.Popen[bytes] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="qd-pgbouncer-", dir="/tmp"))
        give_to_server(self.folder, 0o755)
        self._watchdog = Watchdog(self.folder, self.folder / "pid")

    def __enter__(self) -> Self:
        bouncer, environment = program(
            "pgbouncer", "usr/sbin/pgbouncer", libraries=("libevent", "libc-ares", "libcares")
        )
        configuration = self.folder / "pgbouncer.ini"
        users = self.folder / "users"
        configuration.write_text(self._configuration(users))
        users.write_text("".join(f'"{user}" "{password}"\n' for user, password in self.users.items()))
        for path in (configuration, users):
            give_to_server(path, 0o600)
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [bouncer, configuration],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
                **unprivileged(),
            )
        try:
            wait_until(self._is_listening, message="PgBouncer listens")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def port(self) -> int:
        """Loopback TCP port it listens on."""
        return self._port.number

    @property
    def log(self) -> Path:
        """PgBouncer's log file."""
        return self.folder / "log"

    def stop(self) -> None:
        """Stop it and delete its files; what it held open is closed at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        (self.folder / "pid").unlink(missing_ok=True)
        self._watchdog.finish()
        self._port.release()

    def dsn(self, database: str = "postgres", user: str = SUPERUSER) -> str:
        """Return the URI of a database through the pool."""
        return f"postgresql://{user}@{HOST}:{self.port}/{database}"

    def pool_modes(self) -> dict[str, str]:
        """Return the pool mode of each database that is pooled at the moment, as PgBouncer itself says."""
        with psycopg.connect(self.dsn("pgbouncer"), autocommit=True) as connection:
            # The admin console speaks the simple protocol only, and psycopg keeps to it without parameters.
            cursor = connection.execute("SHOW POOLS")
            assert cursor.description is not None
            names = [column.name for column in cursor.description]
            rows = [dict(zip(names, row, strict=True)) for row in cursor]
        return {row["database"]: row["pool_mode"] for row in rows}

    def _configuration(self, users: Path) -> str:
        more = "".join(f"{name} = {value}\n" for name, value in self.settings.items())
        return f"""\
[databases]
* = host={HOST} port={self.server.port}

[pgbouncer]
listen_addr = {HOST}
listen_port = {self.port}
unix_socket_dir =
pidfile = {self.folder}/pid
auth_type = trust
auth_file = {users}
admin_users = {SUPERUSER}
pool_mode = {self.pool_mode}
default_pool_size = {self.pool_size}
max_client_conn = 200
ignore_startup_parameters = extra_float_digits
{more}"""

    def _is_listening(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log.read_text()
        with socket.socket() as probe:
            return probe.connect_ex((HOST, self.port)) == 0
