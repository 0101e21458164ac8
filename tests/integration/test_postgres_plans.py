"""Every statement is found by an index: what a refresh costs does not grow with finished workflows."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import asyncpg
import psycopg
import pytest

from harness.dump import columns
from harness.postgres import PostgresServer
from harness.reading import reader_on, recorded_wire
from harness.rows import PerRow, insert_application_version, insert_queue, insert_workflows
from harness.schemas import DatabaseFactory
from queue_depth.core.limits import QueueOverride, RateLimit
from queue_depth.postgres import statements as sql
from queue_depth.postgres.reader import look

if TYPE_CHECKING:
    from collections.abc import Iterator

FEW, MANY = 100_000, 1_000_000
"""Finished workflows; the oldest schemas, with the fewest indexes, show it with less."""

ENQUEUED, PENDING, DELAYED, RECENT = 2400, 800, 800, 200
TO_VISIT = ENQUEUED + PENDING + DELAYED + RECENT
"""Unfinished workflows, and finished ones within the period of a rate limit."""

OVERRIDES = {
    "q0": QueueOverride(frozenset({"rate_limit"}), rate_limit=RateLimit(100, 60)),
    "q1": QueueOverride(
        frozenset({"partitioned", "partition_concurrency", "partition_rate_limit"}),
        partitioned=True,
        partition_concurrency=2,
        partition_rate_limit=RateLimit(5, 60),
    ),
}

SETTINGS = {"shared_buffers": "256MB", "wal_level": "minimal", "max_wal_senders": "0", "maintenance_work_mem": "256MB"}

PARTIAL = {
    "workflows": "delayed in_flight pending",
    "starts": "rate_limited",
    "partitions": "delayed in_flight rate_limited",
}
WHOLE = {"workflows": "status", "starts": "queue_status_started", "partitions": "queue_status_started"}
WHOLE_STATUS_ONLY = {"workflows": "status", "starts": "status", "partitions": "status"}
SERVED_BY = {
    "3.4.0": PARTIAL,
    "2.20.0": PARTIAL,
    "2.14.0": WHOLE,
    "2.2.0": WHOLE_STATUS_ONLY,
    "1.3.0": {name: index for name, index in WHOLE_STATUS_ONLY.items() if name != "partitions"},
}
"""Which indexes find the rows of each statement, by DBOS version; the other statements look at no workflow."""

SHORT_NAMES = {
    "idx_workflow_status_in_flight": "in_flight",
    "idx_workflow_status_in_flight_v2": "in_flight",
    # Holds the keyed rows of in_flight; statistics decide between the two.
    "idx_workflow_status_partition_dequeue_v3": "in_flight",
    "idx_workflow_status_pending": "pending",
    "idx_workflow_status_delayed": "delayed",
    "idx_workflow_status_rate_limited": "rate_limited",
    "idx_workflow_status_queue_status_started": "queue_status_started",
    "workflow_status_status_index": "status",
}


@dataclass(frozen=True, slots=True)
class Cost:
    """What one statement visited.

    Attributes:
        rows: Rows of workflow_status that were looked at, by the index that found them or in the table.
        buffers: Pages.
        indexes: Indexes that were used, for the table workflow_status.
    """

    rows: int
    buffers: int
    indexes: frozenset[str]


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def cost_of(plan: dict[str, Any]) -> Cost:
    of_index: dict[str, int] = defaultdict(int)
    in_table = 0
    for node in nodes(plan):
        visited = node["Actual Loops"] * (
            node["Actual Rows"] + node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
        )
        if "workflow_status" in node.get("Index Name", ""):
            of_index[node["Index Name"]] += int(visited)
        if node.get("Relation Name") == "workflow_status":
            assert node["Node Type"] != "Seq Scan", json.dumps(plan, indent=1)
            in_table += int(visited)
    return Cost(
        rows=max(in_table, sum(of_index.values())),
        buffers=plan["Shared Hit Blocks"] + plan["Shared Read Blocks"],
        indexes=frozenset(of_index),
    )


async def costs(dsn: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Cost]:
    """Explain what a reader really sends, with its own settings, by the statement's name."""
    with monkeypatch.context() as patch:
        wire = recorded_wire(patch)
        async with reader_on(dsn, overrides=OVERRIDES, timeout_seconds=60) as reader:
            await reader.read()
    connection = await asyncpg.connect(dsn, statement_cache_size=0)
    try:
        begin = sql.begin(statement_timeout_seconds=60)
        fitted = sql.statements(await look(connection, "dbos"))
        named = {getattr(fitted, name): name for name in ("catalog", "workflows", "starts", "partitions")}
        named |= {sql.COLUMNS: "columns", sql.INDEXES: "indexes", sql.LAG: "lag"}
        found = {}
        for query, arguments in wire.sent:
            if query in (begin, "COMMIT", "SELECT current_user"):
                continue
            await connection.execute(begin)
            text = await connection.fetchval(f"EXPLAIN (FORMAT JSON, ANALYZE, BUFFERS) {query}", *arguments)
            await connection.execute("ROLLBACK")
            # A KeyError is a statement that this test does not know: name it, and what serves it.
            found[named[query]] = cost_of(json.loads(text)[0]["Plan"])
        return found
    finally:
        await connection.close()


def insert_finished(dsn: str, first: int, last: int) -> None:
    """Insert finished workflows of the same queues, executors and partitions, and build the indexes afterwards."""
    values = {
        "workflow_uuid": "lpad(i::text, 12, '0')",
        "status": "(ARRAY['SUCCESS', 'SUCCESS', 'ERROR', 'CANCELLED'])[1 + i / 7 % 4]",
        "queue_name": "'q' || i % 8",
        "executor_id": "'pod-' || i % 20",
        "application_version": "'v' || i % 3",
        "application_name": "'app'",
        "created_at": "1700000000000 + i",
        "updated_at": "1700000000000 + i",
        "started_at_epoch_ms": "1700000000000 + i",
        "completed_at": "1700000000000 + i",
        "queue_partition_key": "'key-' || i % 50",
        "rate_limited": "TRUE",
        "priority": "0",
    }
    present = columns(dsn, "workflow_status") & values.keys()
    with psycopg.connect(dsn, autocommit=True) as connection:
        indexes = connection.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'dbos' AND tablename = 'workflow_status'"
            " AND indexname NOT IN (SELECT conname FROM pg_constraint)"
        ).fetchall()
        for name, _ in indexes:
            connection.execute(f'DROP INDEX dbos."{name}"'.encode())
        connection.execute(
            f"INSERT INTO dbos.workflow_status ({', '.join(present)})"
            f" SELECT {', '.join(values[name] for name in present)} FROM generate_series({first}, {last}) AS i".encode()
        )
        for _, definition in indexes:
            connection.execute(definition.encode())


def insert_unfinished(dsn: str) -> None:
    delays = "delay_until_epoch_ms" in columns(dsn, "workflow_status")
    for status, count in (
        ("ENQUEUED", ENQUEUED),
        ("PENDING", PENDING),
        ("DELAYED", DELAYED if delays else 0),
        ("SUCCESS", RECENT),
    ):
        insert_workflows(
            dsn,
            count=count,
            status=status,
            queue_name=PerRow("'q' || i % 8"),
            executor_id=PerRow("'pod-' || i % 20"),
            application_version=PerRow("'v' || i % 3"),
            application_name="app",
            started_at=timedelta(seconds=-1) if status in {"PENDING", "SUCCESS"} else None,
            delay_until=timedelta(0) if status == "DELAYED" else None,
            queue_partition_key=PerRow("'key-' || i % 50"),
            rate_limited=status in {"PENDING", "SUCCESS"},
        )
    if columns(dsn, "queues"):
        insert_queue(dsn, PerRow("'q' || i"), count=20, worker_concurrency=4, application_name="app")
    if columns(dsn, "application_versions"):
        insert_application_version(dsn, PerRow("'v' || i"), count=50, application_name="app")


@pytest.mark.parametrize(
    ("version", "finished"), [(v, MANY if v in {"3.4.0", "2.20.0", "2.14.0"} else 3 * FEW) for v in SERVED_BY]
)
async def test_no_statement_visits_finished_workflows(
    version: str, finished: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PostgresServer(18, settings=SETTINGS) as server:
        dsn = DatabaseFactory(server).make(version)
        database = dsn.rpartition("/")[2]
        insert_unfinished(dsn)
        insert_finished(dsn, 1, FEW)
        few = await costs(dsn, monkeypatch)
        insert_finished(dsn, FEW + 1, finished)
        without_statistics = await costs(dsn, monkeypatch)
        server.execute("ANALYZE", database)
        with_statistics = await costs(dsn, monkeypatch)
    for found in (few, without_statistics, with_statistics):
        served_by = {
            name: " ".join(sorted({SHORT_NAMES[index] for index in cost.indexes}))
            for name, cost in found.items()
            if cost.indexes
        }
        assert served_by == SERVED_BY[version]
        assert all(cost.rows <= TO_VISIT for cost in found.values()), found
    for found in (without_statistics, with_statistics):
        for name, cost in found.items():
            assert cost.buffers <= 1.3 * few[name].buffers + 10, (name, few[name], cost)
