"""Who would take a waiting row: applications, versions, and whether anybody polls the queue at all."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from harness.reads import enqueued, latest, partition, pending, read, waiting
from queue_depth.core.eligibility import Stranding
from queue_depth.core.limits import QueueLimits, RateLimit
from queue_depth.core.liveness import Liveness, LivenessView
from queue_depth.core.pool import Pool
from queue_depth.core.snapshot import Snapshot
from queue_depth.core.table import INTERNAL_QUEUE, LatestVersion, TableRead

if TYPE_CHECKING:
    from queue_depth.core.depth import PoolDepth

OWNED = QueueLimits(application="shop", worker_concurrency=4)
FREE = QueueLimits(worker_concurrency=4)


def runnable_and_stranded(table: TableRead, pool: Pool | None = None) -> tuple[int, int]:
    depth = depth_of(table, pool)
    assert depth.runnable + depth.stranded == depth.queue_length
    return depth.runnable, depth.stranded


def runnable(table: TableRead, pool: Pool | None = None) -> int:
    return depth_of(table, pool).runnable


def depth_of(table: TableRead, pool: Pool | None) -> PoolDepth:
    snapshot = Snapshot(table, {pool.name: pool} if pool else None)
    depth = snapshot.pool(pool.name) if pool else snapshot.queue("q")
    assert depth is not None
    return depth


def reasons(table: TableRead) -> dict[Stranding, int]:
    return dict(Snapshot(table).queue_detail("q").stranded)


def test_rows_of_the_owner_and_rows_without_an_application_run() -> None:
    table = read(enqueued(2, application="shop"), enqueued(3), limits=OWNED)
    assert runnable_and_stranded(table) == (5, 0)


def test_a_row_that_names_another_application_than_the_queue_s_owner_is_stranded() -> None:
    table = read(enqueued(2, application="shop"), enqueued(3, application="bank"), limits=OWNED)
    assert runnable_and_stranded(table) == (2, 3)
    assert reasons(table) == {Stranding.OTHER_APPLICATION: 3}


def test_on_a_queue_that_nobody_owns_every_application_takes_its_rows() -> None:
    table = read(enqueued(2, application="shop"), enqueued(3, application="bank"), limits=FREE)
    assert runnable_and_stranded(table) == (5, 0)


def test_a_pool_of_an_application_does_not_see_other_applications_rows_on_a_queue_that_nobody_owns() -> None:
    table = read(enqueued(2, application="shop"), enqueued(3, application="bank"), enqueued(1), limits=FREE)
    pool = Pool("shop workers", queues=frozenset({"q"}), application="shop")
    assert runnable_and_stranded(table, pool) == (3, 0)


def test_a_queue_that_another_application_owns_gives_a_pool_nothing() -> None:
    table = read(enqueued(2, application="bank"), enqueued(1), limits=OWNED)
    pool = Pool("bank workers", queues=frozenset({"q"}), application="bank")
    assert runnable_and_stranded(table, pool) == (0, 3)


def test_a_pool_of_all_queues_leaves_out_those_that_another_application_owns() -> None:
    table = read(
        enqueued(2, "shop's"),
        enqueued(3, "bank's"),
        enqueued(4, "anyone's"),
        limits={
            "shop's": QueueLimits(application="shop"),
            "bank's": QueueLimits(application="bank"),
            "anyone's": QueueLimits(),
        },
    )
    assert runnable_and_stranded(table, Pool("shop workers", application="shop")) == (6, 0)


def test_rows_of_another_application_do_not_use_up_global_concurrency() -> None:
    limits = QueueLimits(application="shop", concurrency=3)
    table = read(enqueued(2), pending(2, application="bank"), pending(1, application="shop"), limits=limits)
    assert runnable_and_stranded(table) == (2, 0)


def test_rows_of_another_application_do_not_count_in_a_partition() -> None:
    limits = QueueLimits(application="shop", partitioned=True, partition_concurrency=3)
    table = read(
        enqueued(1, application="shop", keyed=1),
        enqueued(2, application="bank", keyed=2),
        partitions=[partition((waiting(1, application="shop"), waiting(2, application="bank")))],
        limits=limits,
    )
    assert runnable_and_stranded(table) == (1, 2)


def test_rows_of_another_application_use_up_no_limit_of_a_partition() -> None:
    shop = Pool("shop workers", application="shop")
    free = partition(5, pending={"bank": 2, "shop": 1}, started={"bank": 9, None: 1})
    for limits in (QueueLimits(), QueueLimits(application="shop")):
        by_partition = replace(
            limits, partitioned=True, partition_concurrency=3, partition_rate_limit=RateLimit(4, 60.0)
        )
        table = read(enqueued(5, keyed=5), partitions=[free], limits=by_partition)
        assert runnable(table, shop) == 2


def test_a_running_row_of_any_application_blocks_a_partition_that_dbos_sweeps() -> None:
    sweeps = QueueLimits(application="shop", partitioned=True, partition_concurrency=1)
    for limits, free in (
        (sweeps, 0),
        (replace(sweeps, worker_concurrency=3, partition_worker_concurrency=1), 0),
        (replace(sweeps, concurrency=9), 1),
        (replace(sweeps, rate_limit=RateLimit(9, 60.0)), 1),
        (replace(sweeps, partition_rate_limit=RateLimit(9, 60.0)), 1),
        (replace(sweeps, partition_concurrency=2), 2),
    ):
        table = read(enqueued(5, keyed=5), partitions=[partition(5, pending={"bank": 1})], limits=limits)
        assert runnable(table) == free, limits


def test_rows_of_the_latest_version_run_though_nobody_runs_it_yet() -> None:
    table = read(enqueued(2, version="v2"), limits=FREE, latest_versions=[latest("v2")])
    assert runnable_and_stranded(table) == (2, 0)


def test_rows_of_an_older_version_that_nobody_runs_are_stranded() -> None:
    table = read(enqueued(2, version="v1"), limits=FREE, latest_versions=[latest("v2")])
    assert runnable_and_stranded(table) == (0, 2)
    assert reasons(table) == {Stranding.VERSION: 2}


def test_rows_of_an_older_version_run_while_an_executor_of_it_holds_running_work_on_any_queue() -> None:
    table = read(enqueued(2, version="v1"), pending(1, None, version="v1"), limits=FREE, latest_versions=[latest("v2")])
    assert runnable_and_stranded(table) == (2, 0)


def test_a_version_whose_running_rows_left_the_window_is_not_running() -> None:
    table = read(
        enqueued(2, version="v1"), pending(1, version="v1", recent=0), limits=FREE, latest_versions=[latest("v2")]
    )
    assert runnable_and_stranded(table) == (0, 2)


def test_a_version_whose_executors_are_known_to_be_dead_is_not_running() -> None:
    table = read(enqueued(2, version="v1"), pending(1, version="v1"), limits=FREE, latest_versions=[latest("v2")])
    depth = Snapshot(table, liveness=LivenessView({"pod-1": Liveness.DEAD})).queue("q")
    assert depth is not None
    assert (depth.runnable, depth.stranded) == (0, 2)


def test_a_version_runs_for_the_application_whose_executors_run_it_only() -> None:
    limits = QueueLimits(application="shop")
    table = read(
        enqueued(2, version="v1", application="shop"),
        pending(1, None, version="v1", application="bank"),
        limits=limits,
        latest_versions=[latest("v2", "shop")],
    )
    assert runnable_and_stranded(table) == (0, 2)


def test_rows_without_a_version_are_taken_by_the_latest_version() -> None:
    table = read(enqueued(2), limits=FREE, latest_versions=[latest("v2")])
    assert runnable_and_stranded(table) == (2, 0)


def test_without_version_rows_every_version_is_the_latest() -> None:
    table = read(enqueued(2, version="v1"), enqueued(3, version="v2"), enqueued(4), limits=FREE)
    assert runnable_and_stranded(table) == (9, 0)


@pytest.mark.parametrize(("version", "runnable"), [("v1", 2), ("v2", 3 + 4)])
def test_a_pool_of_one_version_sees_its_own_rows_and_those_without_a_version_if_it_is_the_latest(
    version: str, runnable: int
) -> None:
    table = read(
        enqueued(2, version="v1"),
        enqueued(3, version="v2"),
        enqueued(4),
        limits=FREE,
        latest_versions=[latest("v2")],
    )
    pool = Pool("workers", queues=frozenset({"q"}), version=version)
    assert runnable_and_stranded(table, pool) == (runnable, 0)


def test_without_version_rows_the_pool_of_any_version_takes_rows_without_a_version() -> None:
    table = read(enqueued(4), enqueued(2, version="v1"), limits=FREE)
    assert runnable_and_stranded(table, Pool("v1", queues=frozenset({"q"}), version="v1")) == (6, 0)


def test_a_rollback_to_an_old_version_does_not_make_it_the_latest() -> None:
    table = read(
        enqueued(4),
        pending(1, version="v1"),  # v1 runs again
        limits=FREE,
        latest_versions=[latest("v2")],  # but its row is older than v2's
    )
    assert runnable_and_stranded(table, Pool("v1", queues=frozenset({"q"}), version="v1")) == (0, 0)


def test_rows_of_an_old_version_run_in_the_pool_of_that_version_at_zero_pods() -> None:
    table = read(enqueued(4, version="v1"), limits=FREE, latest_versions=[latest("v2")])
    assert runnable_and_stranded(table, Pool("v1", queues=frozenset({"q"}), version="v1")) == (4, 0)


@pytest.mark.parametrize(
    "rows",
    [
        (latest("v1", "shop", 1), latest("v2", "bank", 2)),
        (latest("v2", "bank", 2), latest("v1", "shop", 1)),
    ],
)
def test_each_application_has_a_latest_version_of_its_own(rows: tuple[LatestVersion, ...]) -> None:
    table = read(enqueued(4, version="v1"), enqueued(1, version="v2"), limits=OWNED, latest_versions=rows)
    assert runnable_and_stranded(table) == (4, 1)


def test_a_version_row_without_an_application_counts_for_every_application() -> None:
    rows = [latest("v1", "shop", 1), latest("v2", None, 2)]
    table = read(enqueued(4, version="v1"), enqueued(1, version="v2"), limits=OWNED, latest_versions=rows)
    assert runnable_and_stranded(table) == (1, 4)


def test_where_no_application_is_known_the_latest_version_of_any_takes_a_row() -> None:
    rows = [latest("v1", "shop", 1), latest("v2", "bank", 2)]
    table = read(enqueued(4, version="v1"), enqueued(1, version="v0"), limits=FREE, latest_versions=rows)
    assert runnable_and_stranded(table) == (4, 1)


def test_rows_of_an_unregistered_queue_are_stranded() -> None:
    table = read(enqueued(4), limits={})
    assert runnable_and_stranded(table) == (0, 4)
    assert reasons(table) == {Stranding.UNREGISTERED_QUEUE: 4}


def test_rows_of_an_unregistered_queue_run_where_queues_may_live_in_code() -> None:
    table = read(enqueued(4), limits={}, unregistered_may_run=True)
    assert runnable_and_stranded(table) == (4, 0)


def test_rows_of_an_unregistered_queue_run_while_its_work_runs() -> None:
    table = read(enqueued(4), pending(1), limits={})
    assert runnable_and_stranded(table) == (4, 0)


def test_an_unregistered_queue_with_dead_rows_only_is_polled_by_nobody() -> None:
    table = read(enqueued(4), pending(1, recent=0), limits={})
    assert runnable_and_stranded(table) == (0, 4)


def test_an_unregistered_queue_is_not_scalable_and_says_how_to_mend_it() -> None:
    depth = Snapshot(read(enqueued(4), limits={}, unregistered_may_run=True)).queue("q")
    assert depth is not None
    assert (depth.wanted_replicas, depth.scalable) == (1, False)
    assert "register it" in depth.reason


def test_internal_rows_belong_to_the_application_they_name() -> None:
    table = read(
        enqueued(2, INTERNAL_QUEUE, application="shop"), enqueued(5, INTERNAL_QUEUE, application="bank"), limits={}
    )
    assert runnable_and_stranded(table, Pool("shop workers", application="shop")) == (2, 0)


def test_a_row_with_several_faults_is_counted_once() -> None:
    limits = QueueLimits(application="shop", partitioned=True, partition_concurrency=1)
    table = read(enqueued(3, application="bank", version="v0"), limits=limits, latest_versions=[latest("v2")])
    assert reasons(table) == {Stranding.OTHER_APPLICATION: 3}


def test_the_internal_queue_is_always_known_and_listed_only_while_it_holds_rows() -> None:
    empty = Snapshot(read(limits={}))
    assert empty.queues == ()
    numbers = empty.queue(INTERNAL_QUEUE)
    assert numbers is not None
    assert numbers.queue_length == 0
    assert Snapshot(read(enqueued(2, INTERNAL_QUEUE), limits={})).queues == (INTERNAL_QUEUE,)


def test_every_queue_that_an_sdk_made_for_itself_is_polled_and_wakes_a_pool() -> None:
    table = read(enqueued(3, "_dbos_kafka_queue"))
    alone = Snapshot(table).queue("_dbos_kafka_queue")
    assert alone is not None
    assert (alone.runnable, alone.stranded) == (3, 0)
    pool = Snapshot(table, {"p": Pool("p", queues=frozenset({"emails"}))}).pool("p")
    assert pool is not None
    assert (pool.queue_length, pool.wanted_replicas) == (3, 1)


def test_the_latest_version_of_each_of_many_applications_is_found_once_per_snapshot() -> None:
    applications = [f"app-{number}" for number in range(500)]
    rows = [latest("nameless", None, 5), *(latest(f"v-{app}", app, 9 if app > "app-3" else 1) for app in applications)]
    versions = Snapshot(read(latest_versions=rows))._versions
    assert versions.latest("app-9") == {"v-app-9"}
    assert versions.latest("app-10") == {"nameless"}, "a newer row without a name is everybody's latest"
    assert versions.latest("unheard-of") == {"nameless"}
    assert versions.latest(None) >= {"nameless", "v-app-9"}
    assert versions.latest_of["app-9"] is versions.latest("app-9")
