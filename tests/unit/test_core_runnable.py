"""What could start now: every limit of DBOS, one by one and together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.reads import delayed, enqueued, group, latest, partition, pending, read, waiting
from queue_depth.core.eligibility import Stranding
from queue_depth.core.limits import QueueLimits, RateLimit
from queue_depth.core.snapshot import Snapshot
from queue_depth.core.table import INTERNAL_QUEUE, RateLimitedStarts, Status, TableRead

if TYPE_CHECKING:
    from queue_depth.core.depth import PoolDepth, QueueDepth

W4 = QueueLimits(worker_concurrency=4)


def depth_of(table: TableRead, queue: str = "q") -> PoolDepth:
    depth = Snapshot(table).queue(queue)
    assert depth is not None
    return depth


def detail_of(table: TableRead, queue: str = "q") -> QueueDepth:
    return Snapshot(table).queue_detail(queue)


def test_without_limits_everything_that_waits_is_runnable() -> None:
    depth = depth_of(read(enqueued(500)))
    assert (depth.queue_length, depth.runnable) == (500, 500)


def test_worker_concurrency_does_not_limit_what_more_pods_could_start() -> None:
    assert depth_of(read(enqueued(9), pending(4), limits=W4)).runnable == 9


@pytest.mark.parametrize(("running", "runnable"), [(0, 3), (1, 2), (3, 0), (7, 0)])
def test_global_concurrency_leaves_what_is_not_running(running: int, runnable: int) -> None:
    table = read(enqueued(10), pending(running), limits=QueueLimits(concurrency=3))
    assert depth_of(table).runnable == runnable


def test_rows_of_dead_executors_use_up_global_concurrency_as_dbos_counts_them() -> None:
    table = read(enqueued(10), pending(2, executor="gone", recent=0), limits=QueueLimits(concurrency=3))
    depth = depth_of(table)
    assert (depth.runnable, depth.in_flight) == (1, 0)


def test_rows_of_other_versions_use_up_global_concurrency_too() -> None:
    table = read(enqueued(10, version="v2"), pending(2, version="v1"), limits=QueueLimits(concurrency=3))
    assert depth_of(table).runnable == 1


def test_a_global_concurrency_of_zero_lets_nothing_start() -> None:
    depth = depth_of(read(enqueued(10), limits=QueueLimits(concurrency=0, worker_concurrency=4)))
    assert (depth.runnable, depth.wanted_replicas) == (0, 0)


@pytest.mark.parametrize(("started", "runnable"), [(0, 5), (3, 2), (5, 0), (8, 0)])
def test_a_rate_limit_leaves_what_was_not_started_within_its_period(started: int, runnable: int) -> None:
    table = read(
        enqueued(10),
        limits=QueueLimits(rate_limit=RateLimit(5, 60.0)),
        starts=[RateLimitedStarts("q", None, started)],
    )
    assert depth_of(table).runnable == runnable


def test_starts_of_another_application_do_not_use_up_a_rate_limit() -> None:
    table = read(
        enqueued(10),
        limits=QueueLimits(application="shop", rate_limit=RateLimit(5, 60.0)),
        starts=[RateLimitedStarts("q", "shop", 1), RateLimitedStarts("q", None, 1), RateLimitedStarts("q", "bank", 3)],
    )
    assert depth_of(table).runnable == 3


def test_the_tightest_limit_decides() -> None:
    limits = QueueLimits(concurrency=6, rate_limit=RateLimit(5, 60.0))
    table = read(enqueued(10), pending(4), limits=limits, starts=[RateLimitedStarts("q", None, 4)])
    assert depth_of(table).runnable == 1


def test_partition_concurrency_lets_one_full_partition_start_one_row_however_long_it_is() -> None:
    table = read(
        enqueued(10_000, keyed=10_000),
        partitions=[partition(10_000)],
        limits=QueueLimits(partitioned=True, partition_concurrency=1),
    )
    assert depth_of(table).runnable == 1


def test_a_dead_row_blocks_its_partition_only() -> None:
    table = read(
        enqueued(6, keyed=6),
        pending(1, executor="gone", keyed=1, recent=0),
        partitions=[partition(3, pending=1), partition(3)],
        limits=QueueLimits(partitioned=True, partition_concurrency=1),
    )
    assert depth_of(table).runnable == 1


def test_partitions_that_look_alike_count_each() -> None:
    table = read(
        enqueued(3000, keyed=3000),
        partitions=[partition(3, partitions=1000)],
        limits=QueueLimits(partitioned=True, partition_concurrency=2),
    )
    assert depth_of(table).runnable == 2000


def test_a_partition_rate_limit_leaves_each_partition_what_it_did_not_start() -> None:
    table = read(
        enqueued(8, keyed=8),
        partitions=[partition(4, started=2), partition(4, started=9)],
        limits=QueueLimits(partitioned=True, partition_rate_limit=RateLimit(3, 60.0)),
    )
    assert depth_of(table).runnable == 1


def test_a_limit_per_process_and_partition_does_not_limit_what_more_pods_could_start() -> None:
    table = read(
        enqueued(8, keyed=8),
        partitions=[partition(8)],
        limits=QueueLimits(partitioned=True, partition_worker_concurrency=1),
    )
    assert depth_of(table).runnable == 8


def test_global_concurrency_holds_over_all_partitions() -> None:
    table = read(
        enqueued(30, keyed=30),
        pending(2, keyed=2),
        partitions=[partition(3, partitions=10)],
        limits=QueueLimits(partitioned=True, partition_concurrency=1, concurrency=5),
    )
    assert depth_of(table).runnable == 3


def test_a_rate_limit_holds_over_all_partitions() -> None:
    table = read(
        enqueued(30, keyed=30),
        partitions=[partition(3, partitions=10)],
        starts=[RateLimitedStarts("q", None, 1)],
        limits=QueueLimits(partitioned=True, partition_concurrency=1, rate_limit=RateLimit(3, 60.0)),
    )
    assert depth_of(table).runnable == 2


def test_a_row_with_a_null_key_on_a_partitioned_queue_is_stranded() -> None:
    table = read(
        enqueued(5, keyed=2),
        partitions=[partition(1, partitions=2)],
        limits=QueueLimits(partitioned=True, partition_concurrency=1),
    )
    depth = depth_of(table)
    assert (depth.queue_length, depth.runnable, depth.stranded) == (5, 2, 3)
    assert detail_of(table).stranded == {Stranding.NO_PARTITION_KEY: 3}


def test_a_row_with_a_key_on_an_unpartitioned_queue_runs() -> None:
    depth = depth_of(read(enqueued(5, keyed=2), limits=W4))
    assert (depth.runnable, depth.stranded) == (5, 0)


def test_rows_of_a_version_that_nobody_runs_do_not_count_in_their_partition() -> None:
    table = read(
        enqueued(2, version="v2", keyed=2),
        enqueued(4, version="v1", keyed=4),
        partitions=[partition((waiting(2, version="v2"), waiting(4, version="v1")))],
        limits=QueueLimits(partitioned=True, partition_concurrency=5),
        latest_versions=[latest("v2")],
    )
    depth = depth_of(table)
    assert (depth.runnable, depth.stranded) == (2, 4)


def test_a_due_delayed_row_is_backlog_that_nobody_promotes_at_zero_pods() -> None:
    depth = depth_of(read(delayed(3, due=True), limits=W4))
    assert (depth.queue_length, depth.delayed_due, depth.runnable, depth.wanted_replicas) == (0, 3, 3, 1)


def test_a_delayed_row_that_is_not_due_is_no_backlog() -> None:
    depth = depth_of(read(delayed(3, due=False), limits=W4))
    assert (depth.queue_length, depth.delayed, depth.runnable, depth.wanted_replicas) == (0, 3, 0, 0)
    assert depth.oldest_ms is None
    assert depth.stranded == 0


def test_a_due_delayed_row_without_a_key_on_a_partitioned_queue_is_stranded() -> None:
    limits = QueueLimits(partitioned=True, partition_concurrency=1)
    depth = depth_of(read(delayed(3, due=True, keyed=0), limits=limits))
    assert (depth.runnable, depth.stranded) == (0, 3)


def test_a_worker_concurrency_of_zero_lets_nothing_start() -> None:
    depth = depth_of(read(enqueued(3), limits=QueueLimits(worker_concurrency=0)))
    assert (depth.runnable, depth.wanted_replicas, depth.scalable) == (0, 0, False)
    assert "worker_concurrency is 0" in depth.reason


def test_a_partition_worker_concurrency_of_zero_lets_nothing_start() -> None:
    limits = QueueLimits(partitioned=True, partition_worker_concurrency=0)
    depth = depth_of(read(enqueued(3, keyed=3), partitions=[partition(3)], limits=limits))
    assert (depth.runnable, depth.wanted_replicas, depth.scalable) == (0, 0, False)


def test_the_internal_queue_has_no_limits_and_is_never_unregistered() -> None:
    depth = depth_of(read(enqueued(7, INTERNAL_QUEUE), limits={}), INTERNAL_QUEUE)
    assert (depth.runnable, depth.stranded, depth.wanted_replicas) == (7, 0, 1)
    assert not depth.scalable
    assert "internal queue" in depth.reason


def test_a_recovered_row_waits_again_whatever_executor_it_names() -> None:
    depth = depth_of(read(enqueued(2, executor="gone"), limits=W4))
    assert (depth.queue_length, depth.runnable, depth.in_flight, depth.busy_workers) == (2, 2, 0, 0)


def test_the_oldest_row_decides_the_age_stranded_rows_included() -> None:
    table = read(enqueued(1, oldest_ms=30), group(due=False, oldest_ms=20, application="x"), limits=W4)
    assert depth_of(table).oldest_ms == 20


def test_a_delayed_row_ages_only_once_it_is_due() -> None:
    later = group(status=Status.DELAYED, oldest_ms=10)
    assert depth_of(read(later, limits=W4)).oldest_ms is None
    assert depth_of(read(later, group(status=Status.DELAYED, due=True, oldest_ms=20), limits=W4)).oldest_ms == 20


def test_an_empty_registered_queue_is_all_zeros() -> None:
    depth = depth_of(read(limits=W4))
    assert (
        depth.queue_length,
        depth.in_flight,
        depth.runnable,
        depth.busy_workers,
        depth.floor_replicas,
        depth.wanted_replicas,
        depth.stranded,
        depth.oldest_ms,
        depth.scalable,
    ) == (0, 0, 0, 0, 0, 0, 0, None, True)


@pytest.mark.parametrize(
    "name", ["", " ", "a/b", "a.b", "'; DROP TABLE queues --", 'q{x="y"}', "ключ", "get", "_other"]
)
def test_odd_queue_names_are_names(name: str) -> None:
    snapshot = Snapshot(read(enqueued(2, name), limits={name: W4}))
    depth = snapshot.queue(name)
    assert depth is not None
    assert (depth.name, depth.runnable) == (name, 2)
    assert snapshot.queues == (name,)


def test_an_unknown_queue_has_no_numbers() -> None:
    snapshot = Snapshot(read(enqueued(2)))
    assert snapshot.queue("other") is None
    assert snapshot.pool("other") is None
