"""Rows in DBOS' tables, of whatever schema version, without running a workflow."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, Literal, LiteralString, TypeAlias

import psycopg
from psycopg import sql

from harness.dump import columns

if TYPE_CHECKING:
    from collections.abc import Mapping


class Unset(Enum):
    """Tells "as DBOS would write it" from None, which writes NULL."""

    AS_DBOS = "as DBOS"


@dataclass(frozen=True, slots=True)
class PerRow:
    """An SQL expression instead of one value for all rows; `i` counts the rows from 1.

    `PerRow("'executor-' || i % 20")` spreads the rows over twenty executors.
    """

    expression: LiteralString


When: TypeAlias = int | timedelta | PerRow
"""A time: epoch milliseconds, or a distance from the database's now (negative is in the past)."""

Text: TypeAlias = str | PerRow | None


def insert_workflows(
    dsn: str,
    *,
    count: int = 1,
    status: str | PerRow = "ENQUEUED",
    queue_name: Text = "queue",
    name: str = "workflow",
    executor_id: Text = None,
    application_version: Text = "v1",
    application_name: Text = None,
    created_at: When = timedelta(0),
    updated_at: When = timedelta(0),
    started_at: When | Literal[Unset.AS_DBOS] | None = Unset.AS_DBOS,
    completed_at: When | None = None,
    delay_until: When | None = None,
    deadline: When | None = None,
    queue_partition_key: Text = None,
    priority: int | PerRow = 0,
    rate_limited: bool = False,
    recovery_attempts: int = 0,
    schema: str = "dbos",
) -> None:
    """Insert `count` rows into workflow_status by one statement.

    A value for a column that this schema version lacks is left out: the same call serves every version.

    Args:
        dsn: The database.
        count: How many rows.
        status: DBOS' status, such as ENQUEUED, PENDING, DELAYED, SUCCESS.
        queue_name: Name of the queue, None for a workflow that was started directly.
        name: The workflow function's name.
        executor_id: Executor that has (or, if ENQUEUED, that wrote) the row.
        application_version: Version of the application, None for rows written by clients.
        application_name: Name of the application (DBOS 2.30 and newer).
        created_at: When it was enqueued or started.
        updated_at: When the row was last written.
        started_at: When it was last dequeued; by default now for PENDING rows of a queue, else NULL.
        completed_at: When it ended.
        delay_until: When a DELAYED row is due.
        deadline: When it times out.
        queue_partition_key: Its partition, on a partitioned queue.
        priority: Lower goes first.
        rate_limited: Whether it was dequeued under a rate limit.
        recovery_attempts: How often it was taken up.
        schema: Schema of DBOS' tables.
    """
    if started_at is Unset.AS_DBOS:
        started_at = timedelta(0) if status == "PENDING" and queue_name is not None else None
    _insert(
        dsn,
        schema,
        "workflow_status",
        {
            "workflow_uuid": PerRow("gen_random_uuid()::text"),
            "status": _literal(status),
            "name": _literal(name),
            "queue_name": _literal(queue_name),
            "executor_id": _literal(executor_id),
            "application_version": _literal(application_version),
            "application_name": _literal(application_name),
            "created_at": _time(created_at),
            "updated_at": _time(updated_at),
            "started_at_epoch_ms": _time(started_at),
            "completed_at": _time(completed_at),
            "delay_until_epoch_ms": _time(delay_until),
            "workflow_deadline_epoch_ms": _time(deadline),
            "queue_partition_key": _literal(queue_partition_key),
            "priority": _literal(priority),
            "rate_limited": _literal(rate_limited),
            "recovery_attempts": _literal(recovery_attempts),
        },
        count,
    )


def insert_queue(
    dsn: str,
    name: Text = "queue",
    *,
    count: int = 1,
    concurrency: int | None = None,
    worker_concurrency: int | None = None,
    rate_limit_max: int | None = None,
    rate_limit_period_sec: float | None = None,
    partition_queue: bool | None = None,
    partition_concurrency: int | None = None,
    partition_worker_concurrency: int | None = None,
    partition_rate_limit_max: int | None = None,
    partition_rate_limit_period_sec: float | None = None,
    application_name: Text = None,
    schema: str = "dbos",
) -> None:
    """Insert a row into queues (DBOS 2.20 and newer); arguments are named as the columns.

    Args:
        dsn: The database.
        name: The queue's name, `PerRow` for many queues.
        count: How many rows.
        concurrency: Most workflows at once, over all executors.
        worker_concurrency: Most workflows at once, for each executor.
        rate_limit_max: Most starts within `rate_limit_period_sec`.
        rate_limit_period_sec: Length of the rate limit's window, in seconds.
        partition_queue: By default, as DBOS writes it: whether any partition limit is set.
        partition_concurrency: Like `concurrency`, for each partition.
        partition_worker_concurrency: Like `worker_concurrency`, for each partition.
        partition_rate_limit_max: Like `rate_limit_max`, for each partition.
        partition_rate_limit_period_sec: Like `rate_limit_period_sec`, for each partition.
        application_name: The application that owns the queue.
        schema: Schema of DBOS' tables.
    """
    limits: dict[str, object] = {
        "partition_concurrency": partition_concurrency,
        "partition_worker_concurrency": partition_worker_concurrency,
        "partition_rate_limit_max": partition_rate_limit_max,
        "partition_rate_limit_period_sec": partition_rate_limit_period_sec,
    }
    if partition_queue is None:
        partition_queue = any(limit is not None for limit in limits.values())
    values: dict[str, object] = {
        "queue_id": PerRow("gen_random_uuid()::text"),
        "name": name,
        "concurrency": concurrency,
        "worker_concurrency": worker_concurrency,
        "rate_limit_max": rate_limit_max,
        "rate_limit_period_sec": rate_limit_period_sec,
        "partition_queue": partition_queue,
        "application_name": application_name,
        **limits,
    }
    _insert(dsn, schema, "queues", {column: _literal(value) for column, value in values.items()}, count)


def insert_application_version(
    dsn: str,
    version_name: Text = "v1",
    *,
    count: int = 1,
    version_timestamp: When = timedelta(0),
    application_name: Text = None,
    schema: str = "dbos",
) -> None:
    """Insert a row into application_versions (DBOS 2.14 and newer); the greatest timestamp is the latest."""
    _insert(
        dsn,
        schema,
        "application_versions",
        {
            "version_id": PerRow("gen_random_uuid()::text"),
            "version_name": _literal(version_name),
            "version_timestamp": _time(version_timestamp),
            "created_at": _time(version_timestamp),
            "application_name": _literal(application_name),
        },
        count,
    )


def _insert(dsn: str, schema: str, table: str, values: Mapping[str, PerRow | sql.Composable], count: int) -> None:
    present = columns(dsn, table, schema)
    if not present:
        raise ValueError(f"this version of DBOS has no table {schema}.{table}")
    chosen = {
        column: sql.SQL(value.expression) if isinstance(value, PerRow) else value
        for column, value in values.items()
        if column in present
    }
    statement = sql.SQL("INSERT INTO {} ({}) SELECT {} FROM generate_series(1, {}) AS i").format(
        sql.Identifier(schema, table),
        sql.SQL(", ").join(map(sql.Identifier, chosen)),
        sql.SQL(", ").join(chosen.values()),
        sql.Literal(count),
    )
    with psycopg.connect(dsn) as connection:
        connection.execute(statement)


def _literal(value: object) -> PerRow | sql.Composable:
    return value if isinstance(value, PerRow) else sql.Literal(value)


def _time(when: When | None) -> PerRow | sql.Composable:
    if isinstance(when, timedelta):
        milliseconds = when // timedelta(milliseconds=1)
        # clock_timestamp, as DBOS takes its clock per row and not per transaction.
        return sql.SQL("(extract(epoch FROM clock_timestamp()) * 1000)::bigint + {}").format(sql.Literal(milliseconds))
    return _literal(when)
