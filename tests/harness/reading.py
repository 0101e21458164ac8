"""The reader on a test's database, and what it sends there."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.waiting import wait_until_async
from queue_depth.postgres import reader as reader_module
from queue_depth.postgres.connection import ConnectionSettings, connect
from queue_depth.postgres.reader import PostgresTableReader

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    import asyncpg
    import psycopg
    import pytest

    from queue_depth.core.limits import QueueOverride
    from queue_depth.core.table import TableRead


@asynccontextmanager
async def reader_on(
    dsn: str | None = None,
    *,
    url_file: Path | None = None,
    schema: str = "dbos",
    overrides: Mapping[str, QueueOverride] | None = None,
    window_seconds: float = 1800.0,
    timeout_seconds: float = 5.0,
) -> AsyncIterator[PostgresTableReader]:
    """Make a reader and close it in the end; without `dsn` and file it follows libpq's variables."""
    reader = PostgresTableReader(
        ConnectionSettings(url=dsn, url_file=url_file, timeout_seconds=timeout_seconds),
        schema=schema,
        overrides=overrides or {},
        window_seconds=window_seconds,
    )
    try:
        yield reader
    finally:
        await reader.close()


async def read_once(
    dsn: str, *, schema: str = "dbos", overrides: Mapping[str, QueueOverride] | None = None
) -> TableRead:
    """Return one read by a reader made for it."""
    async with reader_on(dsn, schema=schema, overrides=overrides) as reader:
        return await reader.read()


@dataclass(slots=True)
class Wire:
    """What readers sent since `recorded_wire` was called.

    Attributes:
        connections: Every connection that was opened, the oldest first.
        sent: Every statement with its arguments, in order.
    """

    connections: list[asyncpg.Connection] = field(default_factory=list)
    sent: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)


def recorded_wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    """Record, until the test ends, the connections that readers open and the statements they send."""
    wire = Wire()

    def note(query: Any) -> None:  # noqa: ANN401 - asyncpg's LoggedQuery, which has no types
        wire.sent.append((query.query, tuple(query.args or ())))

    async def recording(settings: ConnectionSettings) -> asyncpg.Connection:
        connection = await connect(settings)
        connection.add_query_logger(note)
        wire.connections.append(connection)
        return connection

    monkeypatch.setattr(reader_module, "connect", recording)
    return wire


async def until_a_read_is_blocked(watching: psycopg.Connection[Any]) -> None:
    """Wait until a read waits for a lock that another session holds on a table.

    Args:
        watching: A session in autocommit mode on the same server.
    """
    statement = "SELECT FROM pg_stat_activity WHERE application_name = 'queue-depth' AND wait_event_type = 'Lock'"

    async def is_blocked() -> bool:
        return watching.execute(statement).fetchone() is not None

    await wait_until_async(is_blocked, message="a read waits for a lock")
