"""The truth test: what is served as `runnable` and `wanted_replicas` against what real DBOS workers start.

Every scenario is a queue of its own in one database. The numbers are read first; then real worker processes are added
one by one, and the rows that each addition makes them start are counted.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import psycopg
from dbos import DBOSClient

from harness import dbos_worker
from harness.rows import insert_application_version, insert_queue, insert_workflows
from harness.waiting import wait_until
from queue_depth.core.limits import QueueOverride
from queue_depth.core.pool import Pool
from queue_depth.core.snapshot import Snapshot
from queue_depth.core.table import INTERNAL_QUEUE
from queue_depth.postgres.connection import ConnectionSettings
from queue_depth.postgres.reader import PostgresTableReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dbos import EnqueueOptions

    from queue_depth.core.depth import PoolDepth

APPLICATION = "shop"
LATEST, OLDER = "v2", "v1"
HOUR = 3600.0

CANARY = "canary"
"""A queue from which each worker takes exactly one row: one that did has begun to work."""

POLL_SECONDS = 0.3
QUIET_SECONDS = 8 * POLL_SECONDS
"""Nothing was started for so long: every worker has polled every queue several times."""

STARTUP_SECONDS = 60.0
MOST_WORKERS = 4
CANARIES = MOST_WORKERS + 1


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows enqueued by the real client.

    Attributes:
        count: How many.
        options: Enqueue options of `DBOSClient`.
    """

    count: int
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Past:
    """Rows that earlier processes left behind: what they started, and did not finish or just did.

    Attributes:
        count: How many.
        status: PENDING for rows of an executor that died hours ago, SUCCESS for rows started a moment ago.
        key: Their partition.
        application: Their application.
    """

    count: int
    status: str = "PENDING"
    key: str | None = None
    application: str = APPLICATION


@dataclass(frozen=True, slots=True)
class Scenario:
    """One queue, what is in it, and what must come of it.

    Attributes:
        name: The situation; also the queue's name.
        limits: Arguments of the real `register_queue`; None leaves the queue unregistered.
        rows: What waits.
        past: What earlier processes left.
        starts: How many rows start when there are pods enough.
        pods: How many pods it takes.
    """

    name: str
    limits: dict[str, Any] | None
    rows: Sequence[Rows]
    starts: int
    pods: int
    past: Sequence[Past] = ()


def keyed(count: int, key: str, **options: Any) -> Rows:  # noqa: ANN401 - DBOS's own options
    return Rows(count, {"queue_partition_key": key, **options})


def rate(limit: int) -> dict[str, float]:
    return {"limit": limit, "period": HOUR}


SCENARIOS = [
    Scenario("no limits: the first pod takes all", {}, [Rows(30)], starts=30, pods=1),
    Scenario("W", {"worker_concurrency": 2}, [Rows(5)], starts=5, pods=3),
    Scenario("G with W", {"global_concurrency": 5, "worker_concurrency": 2}, [Rows(9)], starts=5, pods=3),
    Scenario("G alone", {"global_concurrency": 3}, [Rows(9)], starts=3, pods=1),
    Scenario("L/T with W", {"limiter": rate(3), "worker_concurrency": 1}, [Rows(9)], starts=3, pods=3),
    Scenario(
        "L/T partly spent",
        {"limiter": rate(5), "worker_concurrency": 1},
        [Rows(9)],
        starts=2,
        pods=2,
        past=[Past(2, "SUCCESS"), Past(1, "ERROR")],
    ),
    Scenario(
        "PC over partitions",
        {"partition_concurrency": 1, "worker_concurrency": 1},
        [keyed(4, "a"), keyed(2, "b")],
        starts=2,
        pods=2,
    ),
    Scenario(
        "PL over partitions",
        {"partition_limiter": rate(2), "worker_concurrency": 3},
        [keyed(3, "a"), keyed(3, "b"), keyed(3, "spent")],
        starts=4 + 1,
        pods=2,
        past=[Past(1, "SUCCESS", "spent")],
    ),
    Scenario("PW", {"partition_worker_concurrency": 1}, [keyed(3, "a"), keyed(1, "b")], starts=4, pods=3),
    Scenario(
        "G over partitions",
        {"partition_concurrency": 1, "global_concurrency": 2, "worker_concurrency": 1},
        [keyed(2, "a"), keyed(2, "b"), keyed(2, "c")],
        starts=2,
        pods=2,
    ),
    Scenario(
        "G with L",
        {"global_concurrency": 6, "limiter": rate(4), "worker_concurrency": 2},
        [Rows(9)],
        starts=3,
        pods=2,
        past=[Past(1, "SUCCESS")],
    ),
    Scenario(
        "dead rows use up G",
        {"global_concurrency": 4, "worker_concurrency": 1},
        [Rows(9)],
        starts=2,
        pods=2,
        past=[Past(2)],
    ),
    Scenario("dead rows fill G", {"global_concurrency": 2}, [Rows(3)], starts=0, pods=0, past=[Past(3)]),
    Scenario(
        "a dead row blocks its partition",
        {"partition_concurrency": 1, "worker_concurrency": 1},
        [keyed(2, "a"), keyed(2, "b"), keyed(1, "blocked")],
        starts=2,
        pods=2,
        past=[Past(1, key="blocked")],
    ),
    Scenario(
        "a dead row in a partition of two",
        {"partition_concurrency": 2, "worker_concurrency": 2},
        [keyed(3, "a"), keyed(3, "b")],
        starts=3,
        pods=2,
        past=[Past(1, key="b")],
    ),
    Scenario(
        "NULL keys on a partitioned queue",
        {"partition_concurrency": 2, "worker_concurrency": 4},
        [keyed(1, "a"), Rows(5)],
        starts=1,
        pods=1,
    ),
    Scenario("keys on an unpartitioned queue", {"worker_concurrency": 4}, [keyed(3, "a"), Rows(2)], starts=5, pods=2),
    Scenario(
        "DELAYED, due and not",
        {"worker_concurrency": 2},
        [Rows(3, {"delay_seconds": 0.001}), Rows(5, {"delay_seconds": HOUR})],
        starts=3,
        pods=2,
    ),
    Scenario(
        "DELAYED and due in partitions",
        {"partition_concurrency": 1, "worker_concurrency": 1},
        [keyed(2, "a", delay_seconds=0.001), keyed(1, "b"), keyed(3, "c", delay_seconds=HOUR)],
        starts=2,
        pods=2,
    ),
    Scenario(
        "rows of another application",
        {"worker_concurrency": 1, "global_concurrency": 2},
        [Rows(2), Rows(5, {"application_name": "bank"})],
        starts=2,
        pods=2,
        past=[Past(2, application="bank")],
    ),
    Scenario(
        "rows of another application in partitions",
        {"partition_concurrency": 2, "partition_limiter": rate(3), "worker_concurrency": 2},
        [keyed(5, "a"), keyed(2, "b", application_name="bank")],
        starts=2,
        pods=1,
        past=[Past(2, key="a", application="bank"), Past(3, "SUCCESS", "a", application="bank")],
    ),
    Scenario(
        "PC of one is blocked by a row of any application",
        {"partition_concurrency": 1, "worker_concurrency": 1},
        [keyed(2, "a"), keyed(2, "blocked")],
        starts=1,
        pods=1,
        past=[Past(1, key="blocked", application="bank")],
    ),
    Scenario(
        "PC of one beside G is not",
        {"partition_concurrency": 1, "global_concurrency": 9, "worker_concurrency": 1},
        [keyed(2, "a"), keyed(2, "b")],
        starts=2,
        pods=2,
        past=[Past(1, key="b", application="bank")],
    ),
    Scenario(
        "rows of the latest, an older, and no version",
        {"worker_concurrency": 2},
        [Rows(2, {"app_version": LATEST}), Rows(7, {"app_version": OLDER}), Rows(2)],
        starts=4,
        pods=2,
    ),
    Scenario(
        "priorities",
        {"worker_concurrency": 1, "global_concurrency": 2},
        [Rows(3, {"priority": 9}), Rows(1, {"priority": 1})],
        starts=2,
        pods=2,
    ),
    Scenario(
        "every partition limit",
        {
            "partition_concurrency": 2,
            "partition_worker_concurrency": 1,
            "partition_limiter": rate(3),
            "global_concurrency": 8,
            "worker_concurrency": 3,
        },
        [keyed(3, "a"), keyed(3, "b"), keyed(3, "spent"), keyed(3, "blocked"), Rows(1)],
        starts=2 + 2 + 1,
        pods=2,
        past=[Past(2, "SUCCESS", "spent"), Past(2, key="blocked"), Past(1)],
    ),
    Scenario("W of zero", {"worker_concurrency": 0}, [Rows(4)], starts=0, pods=0),
    Scenario("an unregistered queue", None, [Rows(4)], starts=0, pods=0),
]

LEGACY = "the partition flag alone, to Python 3"
RESUMED = 3
DUE = 5

EXPECTED = {
    **{scenario.name: (scenario.starts, scenario.pods) for scenario in SCENARIOS},
    LEGACY: (1, 1),
    INTERNAL_QUEUE: (RESUMED, 1),
}
"""Rows that start and pods that it takes, by queue."""


def test_runnable_and_wanted_are_what_real_workers_start_and_need(dbos_database: str) -> None:
    fill(dbos_database)
    wait_until(lambda: rows_due(dbos_database) == DUE, message="the delays passed")

    snapshots = [read_snapshot(dbos_database)]
    started: list[dict[str, int]] = [{}]
    with running_workers(dbos_database, LATEST) as add_worker:
        for _ in range(MOST_WORKERS):
            add_worker()
            started.append(started_rows(dbos_database))
            snapshots.append(read_snapshot(dbos_database))

    served = {name: [known(snapshot.queue(name)) for snapshot in snapshots] for name in [*EXPECTED, CANARY]}
    assert served[CANARY][-1].runnable > 0, "the canaries were not enough"
    assert {name: (depths[0].runnable, depths[0].wanted_replicas) for name, depths in served.items()} == {
        **EXPECTED,
        CANARY: (CANARIES, CANARIES),
    }
    found = [text for name in EXPECTED for text in disagreements(served[name], [rows.get(name, 0) for rows in started])]
    assert found == []


def test_workers_of_an_older_version_start_what_the_pool_of_that_version_counts(dbos_database: str) -> None:
    insert_versions(dbos_database)
    with client_of(dbos_database) as client:
        client.register_queue("q", worker_concurrency=9, polling_interval_sec=POLL_SECONDS)
        client.register_queue(CANARY, worker_concurrency=1, polling_interval_sec=POLL_SECONDS)
        enqueue(client, CANARY, Rows(2, {"app_version": OLDER}))
        enqueue(client, "q", Rows(3, {"app_version": OLDER}))
        enqueue(client, "q", Rows(2, {"app_version": LATEST}))
        enqueue(client, "q", Rows(4))
    pools = {
        version: Pool(version, queues=frozenset({"q"}), application=APPLICATION, version=version)
        for version in (OLDER, LATEST)
    }
    before = read_snapshot(dbos_database, pools)
    assert known(before.pool(LATEST)).runnable == 2 + 4

    with running_workers(dbos_database, OLDER) as add_worker:
        add_worker()
        started = started_rows(dbos_database)["q"]
        # While the old version runs, its rows are nobody's loss: seen from the queue they can run.
        while_running = known(read_snapshot(dbos_database).queue("q"))

    assert started == known(before.pool(OLDER)).runnable == 3
    assert known(before.queue("q")).stranded == 3
    assert (while_running.runnable, while_running.in_flight, while_running.stranded) == (2 + 4, 3, 0)


def disagreements(depths: list[PoolDepth], started: list[int]) -> Iterator[str]:
    """Compare a queue's numbers with what workers did.

    Args:
        depths: The numbers before the first worker, with one worker, with two workers, …
        started: The rows that had been started by then.
    """
    name, runnable, wanted = depths[0].name, depths[0].runnable, depths[0].wanted_replicas
    assert wanted < MOST_WORKERS, "one worker more than wanted must have been tried"
    for workers, (depth, count) in enumerate(zip(depths, started, strict=True)):
        if workers < wanted and count >= runnable:
            yield f"{name}: {workers} workers started all {count}, but {wanted} were wanted"
        if workers >= wanted and count != runnable:
            yield f"{name}: {workers} workers started {count}, but {runnable} were runnable"
        expected = (count, runnable - count, wanted if count < runnable else 0)
        if (depth.in_flight, depth.runnable, depth.wanted_replicas) != expected:
            yield f"{name}: beside {workers} workers in_flight, runnable and wanted should be {expected}: {depth}"


def fill(dsn: str) -> None:
    """Write every scenario into the database."""
    insert_versions(dsn)
    with client_of(dsn) as client:
        client.register_queue(CANARY, worker_concurrency=1, polling_interval_sec=POLL_SECONDS)
        enqueue(client, CANARY, Rows(CANARIES))
        for scenario in SCENARIOS:
            if scenario.limits is not None:
                client.register_queue(scenario.name, polling_interval_sec=POLL_SECONDS, **scenario.limits)
            for rows in scenario.rows:
                enqueue(client, scenario.name, rows)
            for past in scenario.past:
                leave_behind(dsn, scenario.name, past)
        insert_queue(dsn, LEGACY, partition_queue=True, concurrency=1, application_name=APPLICATION)
        enqueue(client, LEGACY, keyed(2, "a"))
        enqueue(client, LEGACY, keyed(2, "b"))
        for workflow in enqueue(client, CANARY, Rows(RESUMED)):
            client.cancel_workflow(workflow)
            client.resume_workflow(workflow)  # onto the internal queue


def insert_versions(dsn: str) -> None:
    insert_application_version(dsn, OLDER, version_timestamp=timedelta(days=-2), application_name=APPLICATION)
    insert_application_version(dsn, LATEST, version_timestamp=timedelta(days=-1), application_name=APPLICATION)


def enqueue(client: DBOSClient, queue: str, rows: Rows) -> list[str]:
    """Enqueue by the real client and return the workflows' ids."""
    options = cast("EnqueueOptions", {"workflow_name": dbos_worker.WORKFLOW, "queue_name": queue, **rows.options})
    return [client.enqueue(options).workflow_id for _ in range(rows.count)]


def leave_behind(dsn: str, queue: str, past: Past) -> None:
    dead = past.status == "PENDING"
    insert_workflows(
        dsn,
        count=past.count,
        status=past.status,
        queue_name=queue,
        executor_id="gone",
        application_version=LATEST,
        application_name=past.application,
        queue_partition_key=past.key,
        started_at=timedelta(hours=-9) if dead else timedelta(seconds=-1),
        rate_limited=not dead,
    )


@contextmanager
def client_of(dsn: str) -> Iterator[DBOSClient]:
    client = DBOSClient(
        system_database_url=dsn.replace("postgresql://", "postgresql+psycopg://", 1), application_name=APPLICATION
    )
    try:
        yield client
    finally:
        client.destroy()


def read_snapshot(dsn: str, pools: dict[str, Pool] | None = None) -> Snapshot:
    """Read with the exporter's own reader."""

    async def once() -> Snapshot:
        reader = PostgresTableReader(
            ConnectionSettings(url=dsn),
            schema="dbos",
            overrides={LEGACY: QueueOverride(partitioned=False)},
            window_seconds=1800,
        )
        try:
            return Snapshot(await reader.read(), pools)
        finally:
            await reader.close()

    return asyncio.run(once())


@contextmanager
def running_workers(dsn: str, version: str) -> Iterator[Callable[[], None]]:
    """Give a function that adds a real worker process and returns once it, and all others, have no more to start."""
    workers: list[subprocess.Popen[bytes]] = []

    def add() -> None:
        executor = f"worker-{len(workers) + 1}"
        command = [sys.executable, dbos_worker.__file__, dsn, "--application", APPLICATION]
        command += ["--version", version, "--executor", executor]
        workers.append(subprocess.Popen(command))
        wait_until(lambda: has_begun(dsn, executor), STARTUP_SECONDS, f"{executor} began to work")
        wait_until_quiet(dsn)

    try:
        yield add
    finally:
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.wait()


def wait_until_quiet(dsn: str) -> None:
    counts = started_rows(dsn)
    since = time.monotonic()

    def quiet() -> bool:
        nonlocal counts, since
        now = started_rows(dsn)
        if now != counts:
            counts, since = now, time.monotonic()
        return time.monotonic() - since > QUIET_SECONDS

    wait_until(quiet, STARTUP_SECONDS, "the workers start nothing more")


def has_begun(dsn: str, executor: str) -> bool:
    counted = query(
        dsn,
        "SELECT count(*) FROM dbos.workflow_status WHERE executor_id = %s AND queue_name = %s AND status = 'PENDING'",
        executor,
        CANARY,
    )
    return counted == [(1,)]


def started_rows(dsn: str) -> dict[str, int]:
    """How many rows of each queue the workers have started."""
    return dict(
        query(
            dsn,
            "SELECT queue_name, count(*) FROM dbos.workflow_status"
            " WHERE executor_id LIKE 'worker-%%' AND status = 'PENDING' GROUP BY 1",
        )
    )


def rows_due(dsn: str) -> int:
    ((count,),) = query(
        dsn,
        "SELECT count(*) FROM dbos.workflow_status"
        " WHERE status = 'DELAYED' AND delay_until_epoch_ms <= extract(epoch FROM clock_timestamp()) * 1000",
    )
    return int(count)


def query(dsn: str, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        return connection.execute(statement.encode(), parameters).fetchall()


def known(depth: PoolDepth | None) -> PoolDepth:
    assert depth is not None
    return depth
