"""Against a model: DBOS's dequeue, poll by poll and worker by worker, on thousands of random tables.

The model knows no formula: it takes rows one by one, and stops at a limit as a worker does.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from harness.reads import OBSERVED_AT_MS, Workflow, latest, read_of
from queue_depth.core.limits import QueueLimits, RateLimit
from queue_depth.core.pool import Pool
from queue_depth.core.snapshot import Snapshot
from queue_depth.core.table import Status
from queue_depth.core.versions import same_application

if TYPE_CHECKING:
    from collections.abc import Iterable

    from queue_depth.core.depth import PoolDepth

APPLICATION = "shop"
VERSIONS = ("v1", "v2", "v3")
LATEST = "v2"
PODS = ("pod-1", "pod-2", "pod-3")
SEEDS = range(0, 2000, 200)
TABLES_PER_SEED = 200


@dataclass(slots=True)
class Worker:
    """A DBOS process: what it is, and what it runs, as it remembers itself."""

    executor: str
    version: str
    running: Counter[str | None] = field(default_factory=Counter)

    def load(self) -> int:
        return sum(self.running.values())


@dataclass(slots=True)
class Model:
    """One queue and DBOS's way to take from it.

    Attributes:
        limits: The queue's limits.
        latest: The latest version; None where no version is registered.
        rows: The table.
    """

    limits: QueueLimits
    latest: str | None
    rows: list[Workflow]

    def started_by(self, workers: list[Worker], chance: random.Random) -> int:
        """Let workers poll until none of them takes anything more; how many rows were started."""
        self.rows = [replace(row, status=Status.ENQUEUED) if row.waits else row for row in self.rows]
        started = 0
        while True:
            chance.shuffle(workers)
            taken = sum(self._poll(worker, chance) for worker in workers)
            if not taken:
                return started
            started += taken

    def _poll(self, worker: Worker, chance: random.Random) -> int:
        if not self.limits.partitioned:
            return self._take(worker, None)
        keys = sorted({row.key for row in self.rows if row.status is Status.ENQUEUED and row.key is not None})
        chance.shuffle(keys)
        return sum(self._take(worker, key) for key in keys)

    def _take(self, worker: Worker, key: str | None) -> int:
        taken = 0
        for position, row in enumerate(self.rows):
            if self._wants(worker, row, key) and self._has_room(worker, key):
                self.rows[position] = replace(
                    row, status=Status.PENDING, executor=worker.executor, application=APPLICATION, started=True
                )
                worker.running[key] += 1
                taken += 1
        return taken

    def _wants(self, worker: Worker, row: Workflow, key: str | None) -> bool:
        return (
            row.status is Status.ENQUEUED
            and row.application in {None, APPLICATION}
            and (row.version == worker.version or (row.version is None and self.latest in {None, worker.version}))
            and (not self.limits.partitioned or row.key == key)
        )

    def _has_room(self, worker: Worker, key: str | None) -> bool:
        mine = [row for row in self.rows if row.application in {None, APPLICATION}]
        here = [row for row in mine if row.key == key]
        limits = self.limits
        used_and_limit = [
            (worker.load(), limits.worker_concurrency),
            (sum(row.status is Status.PENDING for row in mine), limits.concurrency),
            (sum(row.started for row in mine), most_starts(limits.rate_limit)),
        ]
        if limits.partitioned:
            # The sweep that takes one row of each partition at a time looks for a running row of any application.
            sweeps = limits.partition_concurrency == 1 and {
                limits.concurrency,
                limits.rate_limit,
                limits.partition_rate_limit,
            } == {None}
            counted = [row for row in self.rows if row.key == key] if sweeps else here
            used_and_limit += [
                (worker.running[key], limits.partition_worker_concurrency),
                (sum(row.status is Status.PENDING for row in counted), limits.partition_concurrency),
                (sum(row.started for row in here), most_starts(limits.partition_rate_limit)),
            ]
        return all(limit is None or used < limit for used, limit in used_and_limit)


def most_starts(rate: RateLimit | None) -> int | None:
    return None if rate is None else rate.limit


def some(chance: random.Random, most: int) -> int | None:
    """A limit or none."""
    return chance.randint(0, most) if chance.random() < 0.5 else None


def some_rate(chance: random.Random) -> RateLimit | None:
    limit = some(chance, 6)
    return None if limit is None else RateLimit(limit, 60.0)


def some_limits(chance: random.Random) -> QueueLimits:
    limits = QueueLimits(
        application=chance.choice([None, APPLICATION]),
        concurrency=some(chance, 9),
        worker_concurrency=some(chance, 4),
        rate_limit=some_rate(chance),
    )
    if chance.random() < 0.5:
        return limits
    return replace(
        limits,
        partitioned=True,
        partition_concurrency=some(chance, 3),
        partition_worker_concurrency=some(chance, 3),
        partition_rate_limit=some_rate(chance),
    )


def some_rows(chance: random.Random, limits: QueueLimits) -> list[Workflow]:
    limited = limits.rate_limit is not None or limits.partition_rate_limit is not None
    rows = []
    for _ in range(chance.randint(0, 25)):
        status = chance.choice([Status.ENQUEUED, Status.ENQUEUED, Status.DELAYED, Status.PENDING, None])
        running = status is Status.PENDING
        rows.append(
            Workflow(
                status=status,
                application=chance.choice([APPLICATION, None, "bank"]),
                version=chance.choice([None, *VERSIONS]) if not running else chance.choice(VERSIONS),
                executor=chance.choice(PODS) if running else None,
                key=chance.choice([None, "a", "b", "c"]),
                due=status is Status.DELAYED and chance.random() < 0.5,
                recent=running and chance.random() < 0.5,
                started=limited and (running or status is None) and chance.random() < 0.5,
            )
        )
    return rows


def depth_of(rows: Iterable[Workflow], limits: QueueLimits, newest: str | None) -> PoolDepth:
    version_rows = [latest(newest), latest("v1", APPLICATION, OBSERVED_AT_MS - 1)] if newest else []
    pool = Pool("workers", queues=frozenset({"q"}), application=APPLICATION)
    depth = Snapshot(read_of(rows, {"q": limits}, latest_versions=version_rows), {pool.name: pool}).pool(pool.name)
    assert depth is not None
    return depth


@pytest.mark.parametrize("seed", SEEDS)
def test_runnable_is_what_workers_enough_of_every_version_start(seed: int) -> None:
    for table in range(seed, seed + TABLES_PER_SEED):
        chance = random.Random(table)  # noqa: S311 - not a secret
        limits = some_limits(chance)
        rows = some_rows(chance, limits)
        newest = chance.choice([LATEST, None])
        running = {
            row.version
            for row in rows
            if row.status is Status.PENDING and row.recent and same_application(row.application, APPLICATION)
        }
        versions = VERSIONS if newest is None else sorted({newest, *(v for v in running if v)})
        # More than there are rows: neither W nor PW keeps anything waiting.
        workers = [Worker(f"new-{v}-{n}", v) for v in versions for n in range(len(rows) + 1)]
        started = Model(limits, newest, list(rows)).started_by(workers, chance)
        assert depth_of(rows, limits, newest).runnable == started, f"table {table}: {limits}"


@pytest.mark.parametrize("seed", SEEDS)
def test_wanted_pods_start_all_that_is_runnable_and_one_less_does_not(seed: int) -> None:
    for table in range(seed, seed + TABLES_PER_SEED):
        chance = random.Random(table)  # noqa: S311 - not a secret
        # Workers are greedy: where both W and PW are set, a worker may fill up on partitions that had other takers.
        limits = some_limits(chance)
        if limits.worker_concurrency is not None:
            limits = replace(limits, partition_worker_concurrency=None)
        elif limits.partition_worker_concurrency is None:
            limits = replace(limits, worker_concurrency=chance.randint(1, 4))
        rows = [row for row in some_rows(chance, limits) if row.status is not Status.PENDING]
        busy = [Worker(pod, LATEST) for pod in PODS if chance.random() < 0.5]
        for worker in busy:
            for _ in range(chance.randint(1, limits.worker_concurrency or 2)):
                key = chance.choice(["a", "b", "c"])
                if limits.partition_worker_concurrency in {None, 0} or (
                    worker.running[key] < (limits.partition_worker_concurrency or 0)
                ):
                    worker.running[key] += 1
                    rows.append(
                        Workflow(
                            status=Status.PENDING,
                            version=LATEST,
                            application=APPLICATION,
                            executor=worker.executor,
                            key=key,
                            recent=True,
                        )
                    )
        busy = [worker for worker in busy if worker.load()]
        depth = depth_of(rows, limits, LATEST)
        if not depth.runnable:
            assert depth.wanted_replicas == 0
            continue

        def started_with(pods: int) -> int:
            workers = [Worker(worker.executor, LATEST, Counter(worker.running)) for worker in busy]  # noqa: B023
            workers += [Worker(f"new-{n}", LATEST) for n in range(pods - len(busy))]  # noqa: B023
            return Model(limits, LATEST, list(rows)).started_by(workers, chance)  # noqa: B023

        assert started_with(depth.wanted_replicas) == depth.runnable, f"table {table}: {limits}"
        assert started_with(depth.wanted_replicas + 2) == depth.runnable, f"table {table}: {limits}"
        if depth.wanted_replicas > max(1, len(busy)) and limits.partition_worker_concurrency is None:
            assert started_with(depth.wanted_replicas - 1) < depth.runnable, f"table {table}: {limits}"
