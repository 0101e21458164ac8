"""The reader on the tables of every DBOS: the same rows give the same numbers, wherever the schema can hold them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import sql

from harness.dbos_versions import launch_schema
from harness.dump import columns
from harness.postgres import PostgresServer
from harness.postgres_binaries import MAJORS
from harness.reading import read_once, reader_on, recorded_wire, until_a_read_is_blocked
from harness.rows import PerRow, insert_application_version, insert_queue, insert_workflows
from harness.schemas import ALL_SCHEMAS, DatabaseFactory
from queue_depth.core.errors import SchemaUnreadableError
from queue_depth.core.limits import QueueLimits, QueueOverride, RateLimit
from queue_depth.core.snapshot import Snapshot
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

if TYPE_CHECKING:
    from collections.abc import Callable

OVERRIDES = {
    "mail": QueueOverride(frozenset({"rate_limit"}), rate_limit=RateLimit(9, 60)),
    "shards": QueueOverride(
        frozenset({"partitioned", "partition_concurrency", "partition_rate_limit"}),
        partitioned=True,
        partition_concurrency=2,
        partition_rate_limit=RateLimit(7, 60),
    ),
}
"""For the versions before 2.20, which have no table for queues; the same limits stand in the table since."""

MISSING = {
    "table queues": ("1.3.0", "1.10.0", "2.2.0", "2.14.0", "2.16.0", "typescript-2.10.24", "typescript-4.16.7"),
    "table application_versions": ("1.3.0", "1.10.0", "2.2.0", "typescript-2.10.24"),
    "workflow_status.queue_partition_key": ("1.3.0", "1.10.0", "typescript-2.10.24"),
    "workflow_status.delay_until_epoch_ms": ("1.3.0", "1.10.0", "2.2.0", "2.14.0", "typescript-2.10.24"),
    "queues.partition_concurrency": (
        *("2.20.0", "2.27.0", "2.29.0", "2.30.0"),
        *("go-1.3.0", "java-1.1.0-m6"),
    ),
    "workflow_status.application_name": (
        *("1.3.0", "1.10.0", "2.2.0", "2.14.0", "2.16.0", "2.20.0", "2.27.0", "2.29.0"),
        *("java-1.1.0-m6", "typescript-2.10.24", "typescript-4.16.7"),
    ),
    "workflow_status.rate_limited, nor an index on started_at_epoch_ms": (
        *("1.3.0", "1.10.0", "2.2.0"),
        "typescript-2.10.24",
    ),
}
"""What the notes say is missing, and in which schemas."""


MADE_AGAIN = """
    CREATE TABLE dbos.made_again (LIKE dbos.workflow_status INCLUDING ALL);
    INSERT INTO dbos.made_again SELECT * FROM dbos.workflow_status;
    DROP TABLE dbos.workflow_status CASCADE;
    ALTER TABLE dbos.made_again RENAME TO workflow_status;
"""


def execute(dsn: str, statement: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(statement.encode())


def fill(dsn: str, schema: str = "dbos") -> None:
    """Insert the same rows into any schema: no value is left out that any of them needs."""
    insert = partial(insert_workflows, dsn, application_name="app", schema=schema)
    keyed = partial(insert, queue_name="shards", queue_partition_key="k1")
    insert(count=3, queue_name="mail", executor_id=PerRow("'api-' || i"))
    insert(count=2, queue_name="mail", application_version=None)
    insert(count=4, status="PENDING", queue_name="mail", executor_id="pod-1", rate_limited=True)
    insert(status="PENDING", queue_name="mail", executor_id="pod-2", started_at=timedelta(hours=-2))
    insert(count=5, status="SUCCESS", queue_name="mail", started_at=timedelta(0), rate_limited=True)
    insert(status="CANCELLED", queue_name="mail")
    insert(status="MAX_RECOVERY_ATTEMPTS_EXCEEDED", queue_name="mail")
    keyed(count=6)
    keyed(status="PENDING", executor_id="pod-1", rate_limited=True)
    if "delay_until_epoch_ms" in columns(dsn, "workflow_status", schema):
        keyed(count=2, status="DELAYED", delay_until=timedelta(seconds=-9))
        keyed(count=7, status="DELAYED", delay_until=timedelta(hours=9))
    if columns(dsn, "queues", schema):
        insert_queue(dsn, "mail", worker_concurrency=4, rate_limit_max=9, rate_limit_period_sec=60, schema=schema)
        insert_queue(
            dsn,
            "shards",
            worker_concurrency=4,
            partition_concurrency=2,
            partition_rate_limit_max=7,
            partition_rate_limit_period_sec=60,
            schema=schema,
        )
    if columns(dsn, "application_versions", schema):
        register = partial(insert_application_version, dsn, application_name="app", schema=schema)
        register("v0", version_timestamp=timedelta(days=-1))
        register("v1")


def expected_groups(*, application: str | None, keys: bool, delays: bool) -> list[WorkflowGroup]:
    def group(
        queue: str,
        status: Status,
        count: int,
        *,
        version: str | None = "v1",
        executor: str | None = None,
        recent: int = 0,
        due: bool = False,
    ) -> WorkflowGroup:
        keyed = count if queue == "shards" and keys else 0
        return WorkflowGroup(queue, status, application, version, executor, due, count, keyed, recent, None)

    found = [
        group("mail", Status.ENQUEUED, 3),
        group("mail", Status.ENQUEUED, 2, version=None),
        group("mail", Status.PENDING, 4, executor="pod-1", recent=4),
        group("mail", Status.PENDING, 1, executor="pod-2"),
        group("shards", Status.ENQUEUED, 6),
        group("shards", Status.PENDING, 1, executor="pod-1", recent=1),
    ]
    if delays:
        found += [group("shards", Status.DELAYED, 2, due=True), group("shards", Status.DELAYED, 7)]
    return sorted(found, key=repr)


def without_times(read: TableRead) -> list[WorkflowGroup]:
    for group in read.groups:
        assert (group.oldest_ms is None) == (group.status is Status.PENDING)
        if group.waits:
            assert group.oldest_ms is not None
            assert 0 <= read.observed_at_ms - group.oldest_ms < 60_000
    return sorted((replace(group, oldest_ms=None) for group in read.groups), key=repr)


def assert_numbers_of_filled(read: TableRead, dsn: str, schema: str = "dbos") -> None:
    """Compare with what `fill` inserted, as far as this schema can hold it."""
    in_status = columns(dsn, "workflow_status", schema)
    application = "app" if "application_name" in in_status else None
    keys, delays = "queue_partition_key" in in_status, "delay_until_epoch_ms" in in_status
    finished_starts_show = "rate_limited" in in_status or has_index_on_starts(dsn)
    assert without_times(read) == expected_groups(application=application, keys=keys, delays=delays)
    # 'pod-2' started two hours ago, outside of the period.
    assert read.starts == (RateLimitedStarts("mail", application, 9 if finished_starts_show else 4),)
    waiting = tuple(WaitingRows(application, "v1", count) for count in ((2, 6) if delays else (6,)))
    used = (UsedRows(application, 1),)
    in_partitions = PartitionGroup("shards", waiting, pending=used, started=used, partitions=1)
    assert read.partitions == ((in_partitions,) if keys else ())
    assert {name: (q.rate_limit, q.partitioned, q.partition_concurrency) for name, q in read.limits.items()} == {
        "mail": (RateLimit(9, 60), False, None),
        "shards": (None, True, 2),
    }
    latest = [version.version for version in read.latest_versions]
    assert latest == (["v1"] if columns(dsn, "application_versions", schema) else [])


def has_index_on_starts(dsn: str) -> bool:
    """Tell whether this schema is of DBOS 2.4 to 2.19, where finished starts can be found again."""
    with psycopg.connect(dsn) as connection:
        statement = "SELECT FROM pg_indexes WHERE indexname = 'idx_workflow_status_queue_status_started'"
        return connection.execute(statement).fetchone() is not None


@pytest.mark.parametrize("source", ALL_SCHEMAS)
async def test_the_same_rows_give_the_same_numbers_in_every_schema(
    source: str, database_of: Callable[..., str]
) -> None:
    dsn = database_of(source)
    fill(dsn)
    read = await read_once(dsn, overrides=OVERRIDES)
    assert_numbers_of_filled(read, dsn)
    missing = {note.missing.removeprefix("no ") for note in read.notes}
    assert missing == {what for what, sources in MISSING.items() if source in sources}
    assert all(note.effect for note in read.notes)
    assert read.lag_seconds == 0
    assert read.unregistered_may_run == (not columns(dsn, "workflow_input"))


@pytest.mark.parametrize(
    ("major", "source"), list(zip(MAJORS, ("1.3.0", "2.2.0", "2.14.0", "2.20.0", "2.31.1", "3.4.0"), strict=True))
)
async def test_every_postgresql_major_gives_the_same_numbers(major: int, source: str) -> None:
    with PostgresServer(major) as server:
        dsn = DatabaseFactory(server).make(source)
        fill(dsn)
        assert_numbers_of_filled(await read_once(dsn, overrides=OVERRIDES), dsn)


@pytest.mark.parametrize("schema", ['My "schema"', "Schéma mit Lücke 日本", "{schema}; '$1' %I"])
async def test_a_schema_of_any_name_is_read(schema: str, dbos_database: str) -> None:
    with psycopg.connect(dbos_database, autocommit=True) as connection:
        connection.execute(sql.SQL("ALTER SCHEMA dbos RENAME TO {}").format(sql.Identifier(schema)))
    fill(dbos_database, schema)
    assert_numbers_of_filled(await read_once(dbos_database, schema=schema, overrides=OVERRIDES), dbos_database, schema)


@pytest.mark.parametrize(
    "name",
    [
        "'; DROP TABLE dbos.workflow_status; --",
        '"} or vector(1) #',
        "{schema}",
        "%s $1 \\ \\n",
        "очередь 🚀",
        "a/b.c d?e#f",
        " ",
    ],
)
async def test_a_queue_of_any_name_is_counted(name: str, dbos_database: str) -> None:
    insert_queue(
        dbos_database,
        name,
        rate_limit_max=5,
        rate_limit_period_sec=60,
        partition_concurrency=3,
        partition_rate_limit_max=7,
        partition_rate_limit_period_sec=60,
    )
    insert_workflows(dbos_database, count=2, queue_name=name, queue_partition_key=name)
    insert_workflows(
        dbos_database, status="PENDING", queue_name=name, queue_partition_key=name, executor_id=name, rate_limited=True
    )
    read = await read_once(dbos_database)
    depth = Snapshot(read).queue(name)
    assert depth is not None
    assert (depth.queue_length, depth.in_flight, depth.runnable) == (2, 1, 2)
    assert read.starts == (RateLimitedStarts(name, None, 1),)
    used = (UsedRows(None, 1),)
    assert read.partitions == (PartitionGroup(name, (WaitingRows(None, "v1", 2),), used, used, 1),)


@pytest.mark.parametrize("source", ["3.4.0", "go-1.3.0", "java-1.1.0-m6", "typescript-4.16.7", "1.3.0"])
async def test_the_empty_string_and_null_are_the_same_absence(source: str, database_of: Callable[..., str]) -> None:
    dsn = database_of(source)
    for nothing in ("", None):
        insert_workflows(dsn, status="PENDING", queue_name=nothing, executor_id=nothing, application_name=nothing)
    read = await read_once(dsn)
    assert {(g.queue, g.executor, g.application) for g in read.groups} == {(None, None, None)}
    assert sum(group.count for group in read.groups) == 2
    assert sum(group.recent for group in read.groups) == 2
    assert Snapshot(read).queues == ()


async def test_the_legacy_partition_flag_applies_the_limits_to_each_partition_and_leaves_a_doubt_where_sdks_differ(
    database_of: Callable[..., str],
) -> None:
    for source, doubtful in (("2.20.0", False), ("3.4.0", True)):
        dsn = database_of(source)
        insert_queue(dsn, "queue", concurrency=1, worker_concurrency=2, partition_queue=True)
        insert_workflows(dsn, count=6, queue_partition_key=PerRow("'key-' || i % 3"))
        read = await read_once(dsn)
        limits = read.limits["queue"]
        assert limits == QueueLimits(partitioned=True, partition_concurrency=1, partition_worker_concurrency=2)
        assert bool(limits.doubt) == doubtful
        depth = Snapshot(read).queue("queue")
        assert depth is not None
        assert depth.runnable == 3


@pytest.mark.parametrize("column", ["status", "queue_name", "executor_id", "application_version", "updated_at"])
async def test_a_missing_column_is_an_error_that_names_it(column: str, dbos_database: str) -> None:
    execute(dbos_database, f"ALTER TABLE dbos.workflow_status RENAME COLUMN {column} TO gone")
    with pytest.raises(SchemaUnreadableError, match=f"workflow_status has no column {column}"):
        await read_once(dbos_database)


async def test_a_missing_table_or_schema_is_an_error_that_names_it_and_the_setting(empty_database: str) -> None:
    with pytest.raises(SchemaUnreadableError, match=r'no table "dbos"\.workflow_status: set QUEUE_DEPTH_SCHEMA'):
        await read_once(empty_database)
    with pytest.raises(SchemaUnreadableError, match=r'no table "other"\.workflow_status'):
        await read_once(empty_database, schema="other")


async def test_lost_indexes_are_noted(dbos_database: str) -> None:
    insert_workflows(dbos_database)
    execute(dbos_database, "DROP INDEX dbos.idx_workflow_status_in_flight_v2")
    read = await read_once(dbos_database)
    assert [note.missing for note in read.notes] == ["no index on the status of workflow_status"]
    assert read.groups[0].count == 1


async def test_an_upgrade_of_dbos_is_noticed_while_serving(database_of: Callable[..., str]) -> None:
    dsn = database_of("2.29.0")
    fill(dsn)
    async with reader_on(dsn, overrides=OVERRIDES) as reader:
        before = await reader.read()
        assert {note.missing for note in before.notes} == {
            "no queues.partition_concurrency",
            "no workflow_status.application_name",
        }
        # A real launch of the real DBOS 3.4 migrates, and the tables are read as fast as can be meanwhile.
        upgrade = asyncio.create_task(asyncio.to_thread(launch_schema, "3.4.0", dsn))
        during = 0
        while not upgrade.done():
            read = await reader.read()
            assert sum(group.count for group in read.groups) == sum(group.count for group in before.groups)
            during += 1
        await upgrade
        assert during > 10
        insert_workflows(dsn, count=3, queue_name="mail", application_name="new")
        after = await reader.read()
    assert after.notes == ()
    assert not after.unregistered_may_run
    assert ("mail", "new", 3) in {(group.queue, group.application, group.count) for group in after.groups}


async def test_a_queue_table_that_appears_and_goes_is_noticed(database_of: Callable[..., str]) -> None:
    dsn = database_of("3.4.0")
    insert_queue(dsn, "mail", worker_concurrency=3)
    async with reader_on(dsn) as reader:
        assert (await reader.read()).limits["mail"].worker_concurrency == 3
        execute(dsn, "ALTER TABLE dbos.queues RENAME TO hidden")
        read = await reader.read()
        assert read.limits == {}
        assert "no table queues" in {note.missing for note in read.notes}
        execute(dsn, "ALTER TABLE dbos.hidden RENAME TO queues")
        assert (await reader.read()).limits["mail"].worker_concurrency == 3


async def test_columns_that_go_and_come_are_noticed(dbos_database: str) -> None:
    insert_workflows(dbos_database, application_name="app")
    async with reader_on(dbos_database) as reader:
        assert (await reader.read()).groups[0].application == "app"
        execute(dbos_database, "ALTER TABLE dbos.workflow_status DROP COLUMN application_name CASCADE")
        assert (await reader.read()).groups[0].application is None
        execute(dbos_database, "ALTER TABLE dbos.workflow_status ADD COLUMN application_name TEXT DEFAULT 'again'")
        assert (await reader.read()).groups[0].application == "again"


async def test_a_table_that_is_dropped_while_serving_is_an_error_until_it_is_back(
    database_of: Callable[..., str],
) -> None:
    dsn = database_of("3.4.0")
    insert_workflows(dsn)
    async with reader_on(dsn) as reader:
        assert len((await reader.read()).groups) == 1
        execute(dsn, "ALTER TABLE dbos.workflow_status RENAME TO saved")
        for _ in range(2):
            with pytest.raises(SchemaUnreadableError, match="there is no table"):
                await reader.read()
        execute(dsn, "ALTER TABLE dbos.saved RENAME TO workflow_status")
        assert len((await reader.read()).groups) == 1
        execute(dsn, "DROP SCHEMA dbos CASCADE")
        with pytest.raises(SchemaUnreadableError, match="there is no table"):
            await reader.read()


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE dbos.workflow_status ALTER COLUMN priority TYPE bigint",
        MADE_AGAIN,
    ],
    ids=["rewritten", "made again"],
)
async def test_a_table_that_is_replaced_during_a_read_never_looks_empty(change: str, dbos_database: str) -> None:
    insert_workflows(dbos_database, count=5)
    async with reader_on(dbos_database) as reader:
        await reader.read()
        with psycopg.connect(dbos_database) as changing:
            changing.execute(change.encode())
            # The read has its snapshot and waits for the table's lock, which the change holds until it commits.
            reading = asyncio.create_task(reader.read())
            with psycopg.connect(dbos_database, autocommit=True) as watching:
                await until_a_read_is_blocked(watching)
            changing.commit()
        assert sum(group.count for group in (await reading).groups) == 5


async def test_the_queues_of_a_database_are_told_from_json_with_any_characters(dbos_database: str) -> None:
    names = ["naïve", "日本語", 'quote " backslash \\', "tab\tnewline\n"]
    for name in names:
        insert_queue(dbos_database, name, worker_concurrency=1, application_name=name)
        insert_application_version(dbos_database, name, application_name=name, version_timestamp=7)
    read = await read_once(dbos_database)
    assert sorted(read.limits) == sorted(names)
    assert {queue.application for queue in read.limits.values()} == set(names)
    assert set(read.latest_versions) == {LatestVersion(name, name, 7) for name in names}
    assert json.dumps(sorted(read.limits))


async def test_of_versions_with_the_same_time_every_exporter_calls_the_same_one_the_latest(dbos_database: str) -> None:
    for name in ("b", "c", "a"):
        insert_application_version(dbos_database, name, version_timestamp=7, application_name="app")
    assert (await read_once(dbos_database)).latest_versions == (LatestVersion("app", "c", 7),)
    execute(dbos_database, "DELETE FROM dbos.application_versions WHERE version_name = 'b'")
    insert_application_version(dbos_database, "b", version_timestamp=7, application_name="app")
    assert (await read_once(dbos_database)).latest_versions == (LatestVersion("app", "c", 7),)


async def test_a_connection_learns_nothing_of_types_and_so_changes_no_setting(
    dbos_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(dbos_database)
    wire = recorded_wire(monkeypatch)
    async with reader_on(dbos_database) as reader:
        await reader.read()
    assert len(wire.connections) == 1
    assert not [query for query, _ in wire.sent if "set_config" in query or "pg_type" in query]
