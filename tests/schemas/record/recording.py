"""Record the tables of an SDK that has just been launched, as a dump that loads on every supported PostgreSQL."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from harness.dump import dumped, remove_rows
from harness.postgres import PostgresServer

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMAS = Path(__file__).parent.parent

# The oldest supported: what it prints, every newer one understands.
POSTGRES_MAJOR = 13


def record(name: str, sdk: str, script: str, launch: Callable[[str], None]) -> None:
    """Launch an SDK on an empty database and write `tests/schemas/NAME.sql`.

    Args:
        name: File name without its ending, such as `go-1.8.0`.
        sdk: What was launched, package and exact version.
        script: The command that records it again.
        launch: Launches the SDK on the database with this connection URI.
    """
    with PostgresServer(POSTGRES_MAJOR) as server:
        server.create_database("recorded_dbos_sys")
        # Each SDK parses the URI by itself, and not all accept one without a password.
        dsn = server.dsn("recorded_dbos_sys", password="unused")
        launch(dsn)
        remove_rows(dsn)
        text = dumped(dsn)
        ((version,),) = server.execute("SHOW server_version")
    header = (
        f"-- SDK: {sdk}\n"
        f"-- PostgreSQL: {version}\n"
        f"-- How: the SDK was launched on an empty database, its rows were removed (but for the numbers of its\n"
        f"--      migrations), then pg_dump, without owners, rights and session settings.\n"
        f"-- Again: {script}\n\n"
    )
    (SCHEMAS / f"{name}.sql").write_text(header + text)
    sys.stdout.write(f"{name}.sql\n")
