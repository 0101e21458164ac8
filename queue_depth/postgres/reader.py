"""One consistent read of DBOS's tables."""

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import asyncpg

from queue_depth.core.errors import ReadError
from queue_depth.core.limits import QueueLimits, QueueOverride, QueueRow, RateLimit, resolve_all
from queue_depth.core.table import (
    LatestVersion,
    PartitionGroup,
    RateLimitedStarts,
    Status,
    TableRead,
    UsedRows,
    WaitingRows,
    WorkflowGroup,
)
from queue_depth.postgres import errors
from queue_depth.postgres import statements as sql
from queue_depth.postgres.connection import ConnectionSettings, connect
from queue_depth.postgres.schema import TABLES, Index, Schema, schema_of

_LOOK_AGAIN_SECONDS = 60.0
"""New grants and indexes do not show in a schema's shape, so it is looked at again this often."""

_RECONNECT_SECONDS = 300.0
"""A connection is not kept longer: after a failover it might stay with a server that is no longer the primary."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What was found out about the schema, when, and what the catalog said of its shape (None: not yet asked)."""

    schema: Schema
    statements: sql.Statements
    looked_at: float
    shape: str | None = None


class _TablesReplacedError(ReadError):
    """A table was replaced after the snapshot was taken, to which it looks empty."""

    reason = "schema_unreadable"


class PostgresTableReader:
    """Reads the tables in one REPEATABLE READ READ ONLY transaction, on one connection that it keeps.

    Args:
        settings: How to reach the database.
        schema: The DBOS system schema.
        overrides: What the configuration says of queues.
        window_seconds: How long a PENDING row counts as running where nobody knows its executor.
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        *,
        schema: str,
        overrides: Mapping[str, QueueOverride],
        window_seconds: float,
    ) -> None:
        self._settings = settings
        self._schema = schema
        self._overrides = overrides
        self._window_ms = round(window_seconds * 1000)
        self._connection: asyncpg.Connection | None = None
        self._connected_at = 0.0
        self._known: _Known | None = None
        self._may_be_standby = True
        self._was_behind = False

    async def read(self) -> TableRead:
        """Read once; bounded by three times the timeout.

        Raises:
            ReadError: The numbers cannot be known; nothing else is raised.
        """
        try:
            async with asyncio.timeout(3 * self._settings.timeout_seconds):
                return await self._read()
        except Exception as error:
            self._disconnect()
            raise errors.translated(error, self._settings.where()) from error

    async def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                await connection.close(timeout=1)
            except errors.ANY:
                connection.terminate()

    async def _read(self) -> TableRead:
        if time.monotonic() - self._connected_at > _RECONNECT_SECONDS:
            await self.close()
        connection, reused = self._connection, True
        if connection is None or connection.is_closed():
            connection, reused = await self._connect(), False
        try:
            return await self._read_on(connection)
        except Exception as error:
            # Once more, on a new connection: the server may have closed the old one while nothing was asked.
            changed = isinstance(error, _TablesReplacedError) or errors.is_schema_changed(error)
            if not (changed or (reused and errors.is_connection_lost(error))):
                raise
        self._disconnect()
        return await self._read_on(await self._connect())

    async def _connect(self) -> asyncpg.Connection:
        self._connection = await connect(self._settings)
        self._connected_at = time.monotonic()
        self._known = None
        self._may_be_standby = True
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

    async def _read_on(self, connection: asyncpg.Connection) -> TableRead:
        await connection.execute(sql.begin(statement_timeout_seconds=self._settings.timeout_seconds))
        # Before the rows: what is replayed while they are read is not among them.
        lag_seconds = await self._lag(connection) if self._may_be_standby else 0.0
        known = self._known
        if known is None or time.monotonic() - known.looked_at > _LOOK_AGAIN_SECONDS:
            known = await self._look(connection)
        groups, catalog = await self._groups_and_catalog(connection, known)
        if known.shape is not None and catalog["shape"] != known.shape:
            known = await self._look(connection)
            groups, catalog = await self._groups_and_catalog(connection, known)
        self._known = replace(known, shape=catalog["shape"])
        read = await self._table_read(connection, known, groups, catalog, lag_seconds)
        await connection.execute("COMMIT")
        return read

    async def _groups_and_catalog(
        self, connection: asyncpg.Connection, known: _Known
    ) -> tuple[list[asyncpg.Record], asyncpg.Record]:
        """Workflows first: from then on the transaction holds the table, so the catalog's word on it stays true."""
        groups = await connection.fetch(known.statements.workflows, self._window_ms)
        (catalog,) = await connection.fetch(known.statements.catalog, self._schema)
        if catalog["replaced"]:
            raise _TablesReplacedError(
                f'a table of "{self._schema}" was replaced or rewritten during the read; it is read again'
            )
        return groups, catalog

    async def _lag(self, connection: asyncpg.Connection) -> float:
        records = await connection.fetch(sql.LAG)
        # A primary becomes a standby only by a restart, which ends the connection.
        self._may_be_standby = bool(records)
        if not records:
            return 0.0
        lag_seconds, replayed_seconds_ago = records[0]
        if lag_seconds is None:
            raise ReadError("the standby cannot tell how far it is behind: it has replayed no commit yet")
        # Just after it has found its primary again, a standby has replayed all it received: nothing yet.
        was_behind, self._was_behind = self._was_behind, lag_seconds > 0
        return float(lag_seconds if lag_seconds or not was_behind else replayed_seconds_ago or 0)

    async def _look(self, connection: asyncpg.Connection) -> _Known:
        schema = await look(connection, self._schema)
        return _Known(schema, sql.statements(schema), looked_at=time.monotonic())

    async def _table_read(
        self,
        connection: asyncpg.Connection,
        known: _Known,
        groups: list[asyncpg.Record],
        catalog: asyncpg.Record,
        lag_seconds: float,
    ) -> TableRead:
        now_ms = catalog["now_ms"]
        limits = resolve_all(
            _queue_rows(catalog["queues"]), self._overrides, partition_columns=known.schema.partition_columns
        )
        return TableRead(
            observed_at_ms=now_ms - round(lag_seconds * 1000),
            lag_seconds=lag_seconds,
            groups=tuple(_group(record) for record in groups),
            partitions=await _partitions(connection, known.statements, limits, now_ms),
            starts=await _starts(connection, known.statements, limits, now_ms),
            limits=limits,
            latest_versions=_latest_versions(catalog["latest_versions"]),
            unregistered_may_run=known.schema.unregistered_may_run,
            notes=known.schema.notes,
        )


async def _partitions(
    connection: asyncpg.Connection, statements: sql.Statements, limits: Mapping[str, QueueLimits], now_ms: int
) -> tuple[PartitionGroup, ...]:
    names = [name for name, queue in limits.items() if queue.partitioned]
    if not names or statements.partitions is None:
        return ()
    periods = {n: q.partition_rate_limit for n, q in limits.items() if q.partition_rate_limit is not None}
    records = await connection.fetch(statements.partitions, names, *_since(periods, now_ms))
    return tuple(_partition_group(record) for record in records)


def _partition_group(record: asyncpg.Record) -> PartitionGroup:
    looks = json.loads(record["looks"])

    def used(what: str) -> tuple[UsedRows, ...]:
        return tuple(UsedRows(application or None, count) for kind, application, _, count in looks if kind == what)

    return PartitionGroup(
        queue=record["queue_name"],
        waiting=tuple(
            WaitingRows(application or None, version, count)
            for kind, application, version, count in looks
            if kind == "waiting"
        ),
        pending=used("pending"),
        started=used("started"),
        partitions=record["partitions"],
    )


async def _starts(
    connection: asyncpg.Connection, statements: sql.Statements, limits: Mapping[str, QueueLimits], now_ms: int
) -> tuple[RateLimitedStarts, ...]:
    periods = {name: queue.rate_limit for name, queue in limits.items() if queue.rate_limit is not None}
    if not periods:
        return ()
    records = await connection.fetch(statements.starts, *_since(periods, now_ms))
    return tuple(
        RateLimitedStarts(record["queue_name"], record["application_name"] or None, record["count"])
        for record in records
    )


def _since(periods: Mapping[str, RateLimit], now_ms: int) -> tuple[list[str], list[str]]:
    """Queues and the beginnings of their periods, truncated to milliseconds as DBOS does."""
    return list(periods), [str(now_ms - int(rate.period_seconds * 1000)) for rate in periods.values()]


_STATUSES = {status.value: status for status in Status}


def _group(record: asyncpg.Record) -> WorkflowGroup:
    # By position, which halves the time that this takes for each of perhaps thousands of groups.
    queue, status, application, version, executor, due, count, keyed, recent, oldest_ms = record
    # Older Go SDKs, and some clients, write '' for NULL.
    return WorkflowGroup(
        queue or None,
        _STATUSES[status],
        application or None,
        version,
        executor or None,
        due,
        count,
        keyed,
        recent,
        oldest_ms,
    )


def _queue_rows(text: str | None) -> list[QueueRow]:
    return [
        QueueRow(
            name=name,
            application=application or None,
            concurrency=concurrency,
            worker_concurrency=worker_concurrency,
            rate_limit=_rate_limit(limit, period),
            partition_queue=bool(partition_queue),
            partition_concurrency=partition_concurrency,
            partition_worker_concurrency=partition_worker_concurrency,
            partition_rate_limit=_rate_limit(partition_limit, partition_period),
        )
        for (
            name,
            application,
            concurrency,
            worker_concurrency,
            limit,
            period,
            partition_queue,
            partition_concurrency,
            partition_worker_concurrency,
            partition_limit,
            partition_period,
        ) in json.loads(text or "[]")
    ]


def _rate_limit(limit: int | None, period: float | None) -> RateLimit | None:
    return None if limit is None or period is None else RateLimit(limit, period)


def _latest_versions(text: str | None) -> tuple[LatestVersion, ...]:
    return tuple(
        LatestVersion(application or None, version, timestamp_ms)
        for application, version, timestamp_ms in json.loads(text or "[]")
    )


async def look(connection: asyncpg.Connection, schema: str) -> Schema:
    """Find out what a schema has.

    Raises:
        ReadError: It cannot be read; see `schema_of`.
    """
    columns = await connection.fetch(sql.COLUMNS, schema, list(TABLES))
    indexes = await connection.fetch(sql.INDEXES, schema)
    role = await connection.fetchval("SELECT current_user")
    return schema_of(
        schema,
        [(record["table_name"], record["column_name"], record["readable"]) for record in columns],
        [Index(record["index_name"], tuple(record["key_columns"]), record["predicate"]) for record in indexes],
        role=role,
    )
