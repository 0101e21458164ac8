"""One refresh sees one moment: rows that move between two of its statements are neither lost nor counted twice."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg

from harness.reading import reader_on
from harness.rows import PerRow, insert_queue, insert_workflows
from harness.waiting import wait_until
from queue_depth.core.table import Status, TableRead

if TYPE_CHECKING:
    from collections.abc import Iterator

UNFINISHED = 2000
READS = 60

# What workers and an enqueuer do, in one transaction each, so that the number of unfinished rows never changes.
MOVES = (
    """UPDATE dbos.workflow_status SET status = 'PENDING', rate_limited = TRUE,
           started_at_epoch_ms = extract(epoch FROM clock_timestamp()) * 1000
       WHERE workflow_uuid IN
           (SELECT workflow_uuid FROM dbos.workflow_status WHERE status = 'ENQUEUED' LIMIT 150)""",
    """WITH finished AS (
           UPDATE dbos.workflow_status SET status = 'SUCCESS' WHERE workflow_uuid IN
               (SELECT workflow_uuid FROM dbos.workflow_status WHERE status = 'PENDING' LIMIT 150)
           RETURNING workflow_uuid, queue_name, queue_partition_key, application_version)
       INSERT INTO dbos.workflow_status
           (workflow_uuid, status, queue_name, queue_partition_key, application_version, priority)
       SELECT gen_random_uuid()::text, 'ENQUEUED', queue_name, queue_partition_key, application_version, 0
       FROM finished""",
)


@contextmanager
def busy_workers(dsn: str) -> Iterator[None]:
    """Move rows as fast as can be in the background; yields once it has begun."""
    stop, turns = threading.Event(), 0

    def work() -> None:
        nonlocal turns
        with psycopg.connect(dsn, autocommit=True) as connection:
            while not stop.is_set():
                for move in MOVES:
                    connection.execute(move.encode())
                turns += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        wait_until(lambda: turns > 1, message="rows move")
        yield
        before = turns
        wait_until(lambda: turns > before, message="rows still move")
    finally:
        stop.set()
        thread.join()


def counted(read: TableRead, status: Status) -> int:
    return sum(group.count for group in read.groups if group.status is status)


async def test_every_read_sees_one_moment_while_rows_move(dbos_database: str) -> None:
    insert_queue(dbos_database, partition_concurrency=9, rate_limit_max=9, rate_limit_period_sec=3600)
    # A partition that is never without waiting rows, so that `partitions` names all that runs.
    insert_workflows(dbos_database, count=UNFINISHED, queue_partition_key=PerRow("'key-' || i % 2"))
    enqueued = set()
    started = 0
    async with reader_on(dbos_database) as reader:
        await reader.read()
        with busy_workers(dbos_database):
            for _ in range(READS):
                read = await reader.read()
                assert sum(group.count for group in read.groups) == UNFINISHED
                assert counted(read, Status.ENQUEUED) == sum(
                    rows.count * partition.partitions for partition in read.partitions for rows in partition.waiting
                )
                assert counted(read, Status.PENDING) == sum(
                    rows.count * partition.partitions for partition in read.partitions for rows in partition.pending
                )
                enqueued.add(counted(read, Status.ENQUEUED))
                # Starts only ever grow here, and what runs has started.
                now_started = sum(row.count for row in read.starts)
                assert now_started >= max(started, counted(read, Status.PENDING))
                started = now_started
    assert len(enqueued) > 1, "nothing moved"


async def test_a_moment_is_the_databases_and_not_this_hosts(dbos_database: str) -> None:
    async with reader_on(dbos_database) as reader:
        reads = [await reader.read() for _ in range(5)]
    with psycopg.connect(dbos_database) as connection:
        row = connection.execute("SELECT (extract(epoch FROM now()) * 1000)::bigint").fetchone()
    assert row is not None
    moments = [read.observed_at_ms for read in reads]
    assert moments == sorted(moments)
    assert 0 <= row[0] - moments[0] < 60_000
