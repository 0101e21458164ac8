"""The table: rows as DBOS 3.4 leaves them, of 8 queues, 3 versions and 20 executors."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from dbos import DBOSClient

from harness.rows import insert_application_version, insert_queue

QUEUES = 8
VERSIONS = 3
EXECUTORS = 20
WORKER_CONCURRENCY = 4

_DEQUEUED_AT_ONCE = 80
"""What twenty processes of four take up at a time."""

_FINISHED = f"""
INSERT INTO dbos.workflow_status (
    workflow_uuid, status, name, queue_name, executor_id, application_version, serialization, recovery_attempts,
    created_at, started_at_epoch_ms, updated_at, completed_at
)
SELECT
    gen_random_uuid()::text, 'SUCCESS', 'workflow', 'queue-' || mod(i, {QUEUES}),
    'worker-' || mod(i / {QUEUES * VERSIONS}, {EXECUTORS}), 'v' || mod(i / {QUEUES}, {VERSIONS}), 'py_pickle', 1,
    enqueued_ms, enqueued_ms + 1000, enqueued_ms + 2000, enqueued_ms + 2000
FROM generate_series(1, %s) AS i,
    LATERAL (SELECT (extract(epoch FROM now() - interval '1 hour') * 1000)::bigint - i * 2000 AS enqueued_ms) AS times
"""

_ENQUEUED = f"""
WITH enqueued AS (
    INSERT INTO dbos.workflow_status (
        workflow_uuid, status, name, queue_name, application_version, queue_partition_key, serialization,
        recovery_attempts, created_at, updated_at, creator_xid
    )
    SELECT
        gen_random_uuid()::text, 'ENQUEUED', name, 'queue-' || mod(i, {QUEUES}),
        'v' || mod(i / {QUEUES}, {VERSIONS}),
        CASE WHEN mod(i, {QUEUES}) = 1 THEN 'customer-' || mod(i / {QUEUES}, 100) END,
        serialization, recovery_attempts, enqueued_ms, enqueued_ms, gen_random_uuid()::text
    FROM dbos.workflow_status, generate_series(1, %(count)s) AS i,
        LATERAL (SELECT (extract(epoch FROM now() - interval '10 minutes') * 1000)::bigint + i AS enqueued_ms) AS times
    WHERE workflow_uuid = %(template)s
    RETURNING workflow_uuid
)
INSERT INTO dbos.workflow_input (workflow_uuid, inputs)
SELECT enqueued.workflow_uuid, inputs FROM enqueued, dbos.workflow_input AS template
WHERE template.workflow_uuid = %(template)s
"""

_DEQUEUED = f"""
UPDATE dbos.workflow_status SET
    status = 'PENDING',
    executor_id = 'worker-' || floor(random() * {EXECUTORS}),
    started_at_epoch_ms = (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
    updated_at = (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
    rate_limited = queue_name = 'queue-0'
WHERE workflow_uuid = ANY(%s)
"""


@dataclass(frozen=True, slots=True)
class Table:
    """DBOS's tables in a database of their own.

    Attributes:
        dsn: The database.
    """

    dsn: str

    def __post_init__(self) -> None:
        for number in range(QUEUES):
            insert_queue(self.dsn, f"queue-{number}", worker_concurrency=WORKER_CONCURRENCY)
        for number in range(VERSIONS):
            insert_application_version(self.dsn, f"v{number}", version_timestamp=number)

    def add_finished(self, count: int) -> None:
        """Insert workflows that succeeded, one every two seconds until an hour ago."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(_FINISHED.encode(), (count,))
            connection.execute("VACUUM (ANALYZE)")

    def set_in_flight(self, count: int) -> None:
        """Replace what is unfinished, as DBOS does it: a real client enqueues, processes dequeue half of it in batches.

        What stays behind is what a live table has: index entries of rows that have moved on, pages that are not
        all-visible, and fresh statistics.
        """
        client = DBOSClient(system_database_url=self.dsn)
        try:
            template = client.enqueue(
                {"queue_name": "queue-0", "workflow_name": "workflow", "app_version": "v0"},
                {"customer": 17, "items": ["apple", "pear"], "note": "please ring twice"},
                attempt=1,
            ).workflow_id
        finally:
            client.destroy()
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            for leftover in ("workflow_status WHERE status IN ('ENQUEUED', 'PENDING')", "workflow_input WHERE TRUE"):
                connection.execute(f"DELETE FROM dbos.{leftover} AND workflow_uuid <> %s".encode(), (template,))
            connection.execute("VACUUM")
            connection.execute(_ENQUEUED.encode(), {"count": count, "template": template})
            connection.execute("DELETE FROM dbos.workflow_status WHERE workflow_uuid = %s", (template,))
            oldest = connection.execute(
                "SELECT workflow_uuid FROM dbos.workflow_status WHERE status = 'ENQUEUED' ORDER BY created_at LIMIT %s",
                (count // 2,),
            ).fetchall()
            for begin in range(0, len(oldest), _DEQUEUED_AT_ONCE):
                batch = [workflow for (workflow,) in oldest[begin : begin + _DEQUEUED_AT_ONCE]]
                connection.execute(_DEQUEUED.encode(), (batch,))
            connection.execute("ANALYZE")

    def vacuum(self) -> None:
        """Do what autovacuum does when it gets to it."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute("VACUUM (ANALYZE)")

    def set_special_queues(self, *, on: bool) -> None:
        """Give one queue a rate limit and one a limit per partition, or take them away again."""
        rate = "rate_limit_max = 100000, rate_limit_period_sec = 3600"
        none = "rate_limit_max = NULL, rate_limit_period_sec = NULL"
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(f"UPDATE dbos.queues SET {rate if on else none} WHERE name = 'queue-0'".encode())
            connection.execute(
                "UPDATE dbos.queues SET partition_concurrency = %s, partition_queue = %s WHERE name = 'queue-1'",
                (1 if on else None, on),
            )
