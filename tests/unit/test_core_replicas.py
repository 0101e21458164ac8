"""Pods: who is busy, below which number running work dies, and how many could run what can run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.reads import delayed, enqueued, partition, pending, read
from queue_depth.core.limits import QueueLimits, RateLimit
from queue_depth.core.liveness import SHARED_EXECUTOR_IDS, Liveness, LivenessView
from queue_depth.core.pool import Pool
from queue_depth.core.snapshot import Snapshot
from queue_depth.core.table import INTERNAL_QUEUE, RateLimitedStarts, TableRead, WorkflowGroup

if TYPE_CHECKING:
    from queue_depth.core.depth import PoolDepth

W4 = QueueLimits(worker_concurrency=4)
DEAD = LivenessView({"pod-1": Liveness.DEAD})
ALIVE = LivenessView({"pod-1": Liveness.ALIVE})
TERMINATING = LivenessView({"pod-1": Liveness.TERMINATING})


def numbers(table: TableRead, liveness: LivenessView | None = None) -> PoolDepth:
    depth = (Snapshot(table) if liveness is None else Snapshot(table, liveness=liveness)).queue("q")
    assert depth is not None
    return depth


def pool_numbers(table: TableRead, pool: Pool) -> PoolDepth:
    depth = Snapshot(table, {pool.name: pool}).pool(pool.name)
    assert depth is not None
    return depth


def pods(first: int, last: int, count: int = 1, queue: str | None = "q") -> list[WorkflowGroup]:
    return [pending(count, queue, executor=f"pod-{n}") for n in range(first, last + 1)]


def test_a_fully_busy_fleet_with_one_job_waiting_wants_one_pod_more() -> None:
    depth = numbers(read(enqueued(1), *pods(1, 10, 4), limits=W4))
    assert (depth.in_flight, depth.floor_replicas, depth.wanted_replicas) == (40, 10, 11)


def test_load_spread_over_many_pods_holds_them_all() -> None:
    depth = numbers(read(*pods(1, 10), limits=W4))
    assert (depth.in_flight, depth.busy_workers, depth.floor_replicas, depth.wanted_replicas) == (10, 10, 10, 0)


def test_work_in_flight_alone_wants_nothing() -> None:
    depth = numbers(read(pending(40), delayed(7, due=False), limits=W4))
    assert (depth.floor_replicas, depth.wanted_replicas) == (10, 0)


def test_free_places_on_busy_pods_are_used_before_more_pods_are_wanted() -> None:
    depth = numbers(read(enqueued(30), *pods(1, 10), limits=W4))
    assert depth.wanted_replicas == 10


@pytest.mark.parametrize(("backlog", "wanted"), [(1, 1), (4, 1), (5, 2), (8, 2), (9, 3)])
def test_at_zero_pods_the_backlog_over_worker_concurrency_is_wanted(backlog: int, wanted: int) -> None:
    assert numbers(read(enqueued(backlog), limits=W4)).wanted_replicas == wanted


def test_backlog_that_global_concurrency_holds_back_wants_no_pods() -> None:
    limits = QueueLimits(concurrency=6, worker_concurrency=2)
    assert numbers(read(enqueued(100), limits=limits)).wanted_replicas == 3
    assert numbers(read(enqueued(100), *pods(1, 2, 2), limits=limits)).wanted_replicas == 3
    assert numbers(read(enqueued(100), *pods(1, 3, 2), limits=limits)).wanted_replicas == 0


def test_a_spent_rate_limit_wants_no_pods() -> None:
    limits = QueueLimits(worker_concurrency=1, rate_limit=RateLimit(5, 60.0))
    table = read(enqueued(9), limits=limits, starts=[RateLimitedStarts("q", None, 5)])
    assert numbers(table).wanted_replicas == 0


def test_one_long_partition_wants_one_pod() -> None:
    limits = QueueLimits(worker_concurrency=1, partitioned=True, partition_concurrency=1)
    table = read(enqueued(10_000, keyed=10_000), limits=limits, partitions=[partition(10_000)])
    assert numbers(table).wanted_replicas == 1


def test_a_limit_per_process_and_partition_wants_as_many_pods_as_the_fullest_partition() -> None:
    limits = QueueLimits(worker_concurrency=10, partitioned=True, partition_worker_concurrency=2)
    table = read(enqueued(8, keyed=8), limits=limits, partitions=[partition(7), partition(1)])
    assert numbers(table).wanted_replicas == 4


def test_a_partition_does_not_want_pods_for_rows_that_a_limit_of_the_whole_queue_holds_back() -> None:
    limits = QueueLimits(concurrency=10, worker_concurrency=10, partitioned=True, partition_worker_concurrency=1)
    table = read(enqueued(5, keyed=5), pending(9, keyed=9), limits=limits, partitions=[partition(5)])
    assert (numbers(table).runnable, numbers(table).wanted_replicas) == (1, 1)


def test_rows_that_run_in_a_partition_take_places_of_its_pods() -> None:
    limits = QueueLimits(worker_concurrency=10, partitioned=True, partition_worker_concurrency=1)
    table = read(enqueued(1, keyed=1), *pods(1, 2), limits=limits, partitions=[partition(1, pending=2)])
    assert numbers(table).wanted_replicas == 3


def test_rows_of_another_application_take_no_places() -> None:
    limits = QueueLimits(application="shop", partitioned=True, partition_worker_concurrency=1)
    table = read(
        enqueued(1, keyed=1),
        pending(2, application="shop", keyed=2),
        pending(9, application="bank", keyed=9),
        limits=limits,
        partitions=[partition(1, pending={"bank": 9})],
    )
    assert numbers(table).wanted_replicas == 1


def test_dead_rows_of_a_partition_take_no_places() -> None:
    limits = QueueLimits(worker_concurrency=10, partitioned=True, partition_worker_concurrency=1)
    table = read(
        enqueued(1, keyed=1), pending(9, recent=0, keyed=9), limits=limits, partitions=[partition(1, pending=9)]
    )
    assert numbers(table).wanted_replicas == 1


def test_a_queue_that_can_start_nothing_wants_nothing_of_its_pool() -> None:
    assert Snapshot(read(pending(8), limits=W4)).queue_detail("q").wanted == 0


def test_without_worker_concurrency_the_first_pod_takes_everything_and_more_cannot_help() -> None:
    depth = numbers(read(enqueued(500)))
    assert (depth.runnable, depth.wanted_replicas, depth.scalable) == (500, 1, False)
    assert "worker_concurrency is not set" in depth.reason
    assert depth.worker_concurrency is None


def test_without_worker_concurrency_busy_pods_are_still_held() -> None:
    depth = numbers(read(enqueued(500), *pods(1, 3)))
    assert (depth.floor_replicas, depth.wanted_replicas) == (3, 3)


def test_a_queue_with_worker_concurrency_is_scalable() -> None:
    depth = numbers(read(limits=W4))
    assert (depth.scalable, depth.reason, depth.worker_concurrency) == (True, "", 4)


def test_without_a_witness_rows_dequeued_within_the_window_are_in_flight() -> None:
    depth = numbers(read(pending(5, recent=2), limits=W4))
    assert (depth.in_flight, depth.busy_workers) == (2, 1)


def test_rows_of_a_living_executor_are_in_flight_however_long_they_run() -> None:
    depth = numbers(read(pending(5, recent=0), limits=W4), ALIVE)
    assert (depth.in_flight, depth.busy_workers, depth.floor_replicas) == (5, 1, 2)


def test_rows_of_a_terminating_executor_are_in_flight() -> None:
    assert numbers(read(pending(5, recent=0), limits=W4), TERMINATING).in_flight == 5


def test_rows_of_a_dead_executor_within_the_window_hold_one_pod_that_may_recover_them() -> None:
    depth = numbers(read(pending(40), limits=W4), DEAD)
    assert (depth.in_flight, depth.busy_workers, depth.floor_replicas, depth.wanted_replicas) == (0, 0, 1, 0)


def test_rows_of_a_dead_executor_outside_the_window_hold_nothing() -> None:
    depth = numbers(read(pending(40, recent=0), limits=W4), DEAD)
    assert (depth.in_flight, depth.floor_replicas) == (0, 0)


@pytest.mark.parametrize("executor", sorted(SHARED_EXECUTOR_IDS, key=str))
def test_a_shared_executor_id_counts_as_one_and_worker_concurrency_asks_for_the_rest(executor: str | None) -> None:
    depth = numbers(read(pending(12, executor=executor), limits=W4))
    assert depth.executor_ids_shared
    assert (depth.busy_workers, depth.floor_replicas) == (1, 3)


@pytest.mark.parametrize("executor", ["local", ""])
def test_a_shared_executor_id_is_never_taken_for_dead(executor: str) -> None:
    view = LivenessView({executor: Liveness.DEAD})
    assert numbers(read(pending(3, executor=executor), limits=W4), view).in_flight == 3


def test_null_empty_and_local_together_are_one_busy_worker_beside_named_ones() -> None:
    groups = [pending(1, executor=executor) for executor in (None, "", "local", "pod-1", "pod-2")]
    assert numbers(read(*groups, limits=W4)).busy_workers == 3


def test_an_enqueuer_is_not_a_busy_worker() -> None:
    assert numbers(read(enqueued(3, executor="api-1"), limits=W4)).busy_workers == 0


def test_work_without_a_queue_keeps_its_pod_busy_but_is_no_demand_of_the_queue() -> None:
    depth = numbers(read(pending(3, None), limits=W4))
    assert (depth.in_flight, depth.other_in_flight) == (0, 3)
    assert (depth.busy_workers, depth.floor_replicas, depth.wanted_replicas) == (1, 1, 0)


def test_internal_work_keeps_its_pod_busy() -> None:
    depth = numbers(read(pending(3, INTERNAL_QUEUE), limits=W4))
    assert (depth.in_flight, depth.other_in_flight, depth.floor_replicas) == (0, 3, 1)


def test_a_pod_busy_on_several_queues_is_one_pod() -> None:
    table = read(pending(1), pending(1, None), pending(1, INTERNAL_QUEUE), limits=W4)
    assert numbers(table).busy_workers == 1


def test_work_of_another_application_keeps_no_pod_of_this_one() -> None:
    table = read(pending(3, None, application="bank"), limits=QueueLimits(application="shop", worker_concurrency=4))
    assert numbers(table).floor_replicas == 0


def test_the_internal_queue_asked_for_alone_counts_its_work_once() -> None:
    depth = Snapshot(read(pending(3, INTERNAL_QUEUE), pending(1, None, executor="pod-2"), limits={})).queue(
        INTERNAL_QUEUE
    )
    assert depth is not None
    assert (depth.in_flight, depth.other_in_flight, depth.busy_workers) == (3, 1, 2)


BOTH = frozenset({"a", "b"})
AB = {"a": W4, "b": W4}


def test_a_pool_wants_the_maximum_over_its_queues_never_the_sum() -> None:
    depth = pool_numbers(read(enqueued(40, "a"), enqueued(20, "b"), limits=AB), Pool("workers", queues=BOTH))
    assert (depth.queue_length, depth.runnable, depth.wanted_replicas) == (60, 60, 10)


def test_a_pool_s_floor_counts_distinct_executors_over_all_its_queues() -> None:
    table = read(*pods(1, 5, queue="a"), *pods(6, 10, queue="b"), limits=AB)
    depth = pool_numbers(table, Pool("workers", queues=BOTH))
    assert (depth.in_flight, depth.busy_workers, depth.floor_replicas) == (10, 10, 10)


def test_a_pool_serves_the_internal_queue_too() -> None:
    table = read(enqueued(3, INTERNAL_QUEUE), pending(1, INTERNAL_QUEUE, executor="pod-9"), limits=AB)
    depth = pool_numbers(table, Pool("workers", queues=BOTH))
    assert (depth.queue_length, depth.in_flight, depth.busy_workers, depth.wanted_replicas) == (3, 1, 1, 1)


def test_a_pool_is_not_scalable_if_one_of_its_queues_is_not_and_says_which() -> None:
    limits = {"a": W4, "b": QueueLimits()}
    depth = pool_numbers(read(limits=limits), Pool("workers", queues=BOTH))
    assert not depth.scalable
    assert depth.reason.startswith("b: worker_concurrency is not set")


def test_the_internal_queue_does_not_make_a_pool_unscalable() -> None:
    depth = pool_numbers(read(enqueued(1, INTERNAL_QUEUE), limits=AB), Pool("workers", queues=BOTH))
    assert depth.scalable


def test_a_reason_over_many_queues_stays_short() -> None:
    limits = {f"q{n}": QueueLimits() for n in range(9)}
    depth = pool_numbers(read(limits=limits), Pool("workers"))
    assert depth.reason.count("worker_concurrency is not set") == 3
    assert depth.reason.endswith("and 6 more queues")


def test_a_pool_counts_only_executors_that_match_its_patterns() -> None:
    groups = [
        pending(1, "a", executor="worker-1"),
        pending(2, None, executor="worker-2"),
        pending(3, None, executor="api-1"),
        pending(4, "a", executor="api-2"),
    ]
    depth = pool_numbers(read(*groups, limits=AB), Pool("workers", queues=BOTH, executors=("worker-?", "batch-*")))
    assert (depth.in_flight, depth.other_in_flight, depth.busy_workers) == (1, 2, 2)


@pytest.mark.parametrize("shared", ["local", "", None])
def test_work_under_a_shared_id_counts_for_a_pool_with_patterns_as_any_pod_may_run_it(shared: str | None) -> None:
    table = read(pending(9, executor=shared), limits=QueueLimits(worker_concurrency=4))
    depth = pool_numbers(table, Pool("workers", queues=frozenset({"q"}), executors=("worker-*",)))
    assert (depth.in_flight, depth.floor_replicas, depth.executor_ids_shared) == (9, 3, True)


def test_pods_behind_a_shared_id_are_added_to_those_with_an_id_of_their_own() -> None:
    table = read(
        pending(9, executor="local"), pending(1, executor="worker-1"), limits=QueueLimits(worker_concurrency=4)
    )
    depth = pool_numbers(table, Pool("workers", queues=frozenset({"q"})))
    assert (depth.busy_workers, depth.floor_replicas) == (2, 4)


def test_rows_of_foreign_executors_still_use_up_global_concurrency() -> None:
    table = read(enqueued(9), pending(2, executor="api-1"), limits=QueueLimits(concurrency=3, worker_concurrency=1))
    depth = pool_numbers(table, Pool("workers", queues=frozenset({"q"}), executors=("worker-*",)))
    assert (depth.in_flight, depth.runnable, depth.wanted_replicas) == (0, 1, 1)


def test_a_pool_of_one_version_holds_pods_of_that_version_only() -> None:
    table = read(pending(4, version="v1"), *pods(2, 3, 4), pending(8, version="v2", executor="pod-9"), limits=W4)
    depth = pool_numbers(table, Pool("v1", queues=frozenset({"q"}), version="v1"))
    assert (depth.in_flight, depth.busy_workers) == (12, 3)  # rows without a version may be its own


def test_configured_queues_that_do_not_exist_yet_are_zeros() -> None:
    depth = pool_numbers(read(limits={}), Pool("workers", queues=BOTH))
    assert (depth.queue_length, depth.floor_replicas, depth.wanted_replicas) == (0, 0, 0)


def test_a_pool_without_any_queue_is_zeros() -> None:
    depth = pool_numbers(read(limits={}), Pool("workers"))
    assert (depth.queue_length, depth.floor_replicas, depth.wanted_replicas, depth.scalable) == (0, 0, 0, True)


def test_a_configured_pool_hides_a_queue_of_the_same_name_but_not_the_queue_itself() -> None:
    snapshot = Snapshot(read(enqueued(1, "a"), enqueued(2, "b"), limits=AB), {"a": Pool("a", queues=BOTH)})
    pool, queue = snapshot.pool("a"), snapshot.queue("a")
    assert pool is not None
    assert queue is not None
    assert (pool.queue_length, queue.queue_length) == (3, 1)
    assert snapshot.pools == ("a", "b")


def test_a_queue_that_only_a_pool_names_is_known() -> None:
    snapshot = Snapshot(read(limits={}), {"workers": Pool("workers", queues=BOTH)})
    assert snapshot.queues == ("a", "b")


def test_pools_of_one_snapshot_do_not_take_each_other_s_work_outside_the_queues_for_their_own() -> None:
    table = read(
        pending(1, None, application="shop", version="v1", executor="worker-1"),
        pending(2, None, application="shop", version="v2", executor="worker-2"),
        pending(4, None, application="bank", version="v1", executor="worker-3"),
        pending(8, None, application="shop", version="v1", executor="api-1"),
        pending(16, INTERNAL_QUEUE, application="shop", version="v1", executor="worker-1"),
        limits=AB,
    )
    pools = {
        "shop": (Pool("shop", queues=BOTH, application="shop"), 1 + 2 + 8),
        "bank": (Pool("bank", queues=BOTH, application="bank"), 4),
        "v2": (Pool("v2", queues=BOTH, application="shop", version="v2"), 2),
        "workers": (Pool("workers", queues=BOTH, application="shop", executors=("worker-*",)), 1 + 2),
        "a alone": (Pool("a alone", queues=frozenset({"a"}), application="shop", by_queue=True), 1 + 2 + 8 + 16),
    }
    snapshot = Snapshot(table, {name: pool for name, (pool, _) in pools.items()})
    for name, (_, others) in pools.items():
        depth = snapshot.pool(name)
        assert depth is not None
        assert depth.other_in_flight == others, name


def test_a_dead_executor_s_work_outside_the_queues_holds_one_pod_too() -> None:
    assert numbers(read(pending(3, None), limits=W4), DEAD).floor_replicas == 1


def test_a_pool_of_several_queues_has_no_one_worker_concurrency() -> None:
    assert pool_numbers(read(limits=AB), Pool("workers", queues=BOTH)).worker_concurrency is None


@pytest.mark.parametrize(
    ("busy", "waiting", "tolerance", "wanted"),
    [
        (10, 1, 0.0, 11),
        (10, 1, 0.1, 12),  # 11 of 10 pods is a difference of 10 %, which the HPA ignores
        (9, 1, 0.1, 10),  # 10 of 9 is more
        (10, 9, 0.1, 13),  # what is wanted is beyond it already
        (10, 0, 0.1, 0),  # nothing waits
        (0, 1, 0.1, 1),
        (100, 1, 0.1, 111),
        (100, 1, 0.15, 116),
    ],
)
def test_where_the_hpa_ignores_small_differences_wanted_is_beyond_them(
    busy: int, waiting: int, tolerance: float, wanted: int
) -> None:
    groups = [pending(4, executor=f"worker-{number}") for number in range(busy)]
    groups += [enqueued(waiting)] if waiting else []
    pool = Pool("workers", queues=frozenset({"q"}), hpa_tolerance=tolerance)
    depth = pool_numbers(read(*groups, limits=QueueLimits(worker_concurrency=4)), pool)
    assert depth.wanted_replicas == wanted
    assert depth.floor_replicas == busy
