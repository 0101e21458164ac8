"""What holds for every table, whatever is in it."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.reads import OBSERVED_AT_MS, Workflow, latest, read_of
from queue_depth.core.limits import QueueLimits, RateLimit
from queue_depth.core.liveness import Liveness, LivenessView
from queue_depth.core.pool import Pool
from queue_depth.core.snapshot import Snapshot
from queue_depth.core.table import INTERNAL_QUEUE, LatestVersion, Status, TableRead

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

    from queue_depth.core.depth import PoolDepth

T = TypeVar("T")

# The same examples on every machine and every run: these are checks, not a search.
always = settings(
    derandomize=True, database=None, max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)

QUEUES = ("q", "other")
VERSIONS = ("v1", "v2", "v3")
APPLICATIONS = (None, "shop", "bank")
EXECUTORS = ("pod-1", "pod-2", "pod-3", "dead-1", "dead-2", "local", "", None)
WITNESS = LivenessView(
    {
        "pod-1": Liveness.ALIVE,
        "pod-2": Liveness.TERMINATING,
        "dead-1": Liveness.DEAD,
        "dead-2": Liveness.DEAD,
    }
)

limit = st.none() | st.integers(0, 6)
rate_limit = st.none() | st.builds(RateLimit, st.integers(0, 6), st.just(60.0))
unpartitioned = st.builds(
    QueueLimits,
    application=st.sampled_from((None, "shop")),
    concurrency=limit,
    worker_concurrency=limit,
    rate_limit=rate_limit,
)
partitioned = st.builds(
    QueueLimits,
    application=st.sampled_from((None, "shop")),
    concurrency=limit,
    worker_concurrency=limit,
    rate_limit=rate_limit,
    partitioned=st.just(value=True),
    partition_concurrency=limit,
    partition_worker_concurrency=limit,
    partition_rate_limit=rate_limit,
)
any_limits = unpartitioned | partitioned
workflows = st.builds(
    Workflow,
    queue=st.sampled_from((*QUEUES, "q", "q", INTERNAL_QUEUE, None)),
    status=st.sampled_from((Status.ENQUEUED, Status.PENDING, Status.DELAYED, None)),
    application=st.sampled_from(APPLICATIONS),
    version=st.sampled_from((None, *VERSIONS)),
    executor=st.sampled_from(EXECUTORS),
    key=st.sampled_from((None, "a", "b")),
    due=st.booleans(),
    recent=st.booleans(),
    started=st.booleans(),
)
waiting_rows = st.builds(
    Workflow,
    queue=st.just("q"),
    status=st.just(Status.ENQUEUED),
    application=st.sampled_from(APPLICATIONS),
    version=st.sampled_from((None, *VERSIONS)),
    key=st.sampled_from((None, "a", "b", "c")),
)
dead_rows = st.builds(
    Workflow,
    queue=st.just("q"),
    status=st.just(Status.PENDING),
    application=st.sampled_from(APPLICATIONS),
    version=st.sampled_from(VERSIONS),
    executor=st.sampled_from(("dead-1", "dead-2")),
    key=st.sampled_from((None, "a", "b", "c")),
    recent=st.booleans(),
    started=st.booleans(),
)
some_workflows = st.lists(workflows, max_size=25)
limits_of_all = st.fixed_dictionaries({"q": any_limits}, optional={"other": any_limits})
version_rows = st.lists(
    st.builds(latest, st.sampled_from(VERSIONS), st.sampled_from(APPLICATIONS), st.integers(0, OBSERVED_AT_MS)),
    max_size=3,
    unique_by=lambda row: row.application,
)
reads = st.builds(
    lambda rows, limits, versions, in_code: read_of(
        rows, limits, latest_versions=versions, unregistered_may_run=in_code
    ),
    some_workflows,
    limits_of_all,
    version_rows,
    st.booleans(),
)
pools = st.builds(
    Pool,
    st.just("pool"),
    queues=st.none() | st.sampled_from((frozenset({"q"}), frozenset(QUEUES))),
    application=st.sampled_from(APPLICATIONS),
    version=st.sampled_from((None, *VERSIONS)),
    executors=st.sampled_from(((), ("pod-*",), ("*",))),
)


def every_depth(table: TableRead, pool: Pool | None = None) -> list[PoolDepth]:
    """Return the numbers of every queue and pool."""
    snapshot = Snapshot(table, {pool.name: pool} if pool else None, WITNESS)
    found = [snapshot.queue(name) for name in snapshot.queues] + [snapshot.pool(name) for name in snapshot.pools]
    assert None not in found
    return [depth for depth in found if depth is not None]


def depth_of(table: TableRead, pool: Pool | None = None) -> PoolDepth:
    """Return the numbers of a pool, or of the queue `q`."""
    snapshot = Snapshot(table, {pool.name: pool} if pool else None, WITNESS)
    depth = snapshot.pool(pool.name) if pool else snapshot.queue("q")
    assert depth is not None
    return depth


@always
@given(reads, pools)
def test_every_number_is_a_whole_number_and_never_negative(table: TableRead, pool: Pool) -> None:
    for depth in every_depth(table, pool):
        for field in dataclasses.fields(depth):
            value = getattr(depth, field.name)
            if not isinstance(value, str | bool | None):
                assert type(value) is int, field.name
                assert value >= 0, field.name


@always
@given(reads, pools)
def test_wanted_is_zero_exactly_when_nothing_can_start_and_else_at_least_the_floor(
    table: TableRead, pool: Pool
) -> None:
    for depth in every_depth(table, pool):
        assert (depth.wanted_replicas == 0) == (depth.runnable == 0)
        if depth.runnable:
            assert depth.wanted_replicas >= max(depth.floor_replicas, 1)


@always
@given(reads, pools)
def test_a_floor_is_never_above_what_is_in_flight_but_for_one_pod_that_may_recover_dead_work(
    table: TableRead, pool: Pool
) -> None:
    for depth in every_depth(table, pool):
        in_flight = depth.in_flight + depth.other_in_flight
        may_recover = any(WITNESS.of(group.executor) is Liveness.DEAD and group.recent for group in table.groups)
        assert depth.floor_replicas <= max(in_flight, int(may_recover))
        assert depth.busy_workers <= min(in_flight, depth.floor_replicas)


@always
@given(reads, pools)
def test_wanted_is_never_more_than_one_pod_for_each_workflow(table: TableRead, pool: Pool) -> None:
    for depth in every_depth(table, pool):
        workflows_of_pool = depth.runnable + depth.in_flight + depth.other_in_flight
        assert depth.wanted_replicas <= max(workflows_of_pool, depth.floor_replicas)


@always
@given(reads, pools)
def test_what_is_runnable_or_stranded_waits(table: TableRead, pool: Pool) -> None:
    for depth in every_depth(table, pool):
        assert depth.runnable + depth.stranded <= depth.queue_length + depth.delayed_due


@always
@given(reads)
def test_runnable_never_exceeds_what_global_concurrency_leaves(table: TableRead) -> None:
    snapshot = Snapshot(table, liveness=WITNESS)
    for name, limits in table.limits.items():
        if limits.concurrency is not None:
            depth = snapshot.queue_detail(name)
            assert depth.runnable <= max(0, limits.concurrency - depth.in_flight)


@always
@given(some_workflows, any_limits, version_rows, waiting_rows, pools)
def test_more_backlog_never_lowers_runnable_or_wanted(
    rows: list[Workflow], limits: QueueLimits, versions: list[LatestVersion], more: Workflow, pool: Pool
) -> None:
    smaller = read_of(rows, {"q": limits}, latest_versions=versions)
    larger = read_of([*rows, more], {"q": limits}, latest_versions=versions)
    for one in (None, pool):
        before, after = depth_of(smaller, one), depth_of(larger, one)
        assert after.runnable >= before.runnable
        assert after.wanted_replicas >= before.wanted_replicas
        assert after.queue_length >= before.queue_length
        assert (after.in_flight, after.floor_replicas) == (before.in_flight, before.floor_replicas)


@always
@given(some_workflows, any_limits, version_rows, st.lists(dead_rows, min_size=1, max_size=5))
def test_rows_of_dead_executors_never_raise_what_is_runnable_or_in_flight(
    rows: list[Workflow], limits: QueueLimits, versions: list[LatestVersion], dead: list[Workflow]
) -> None:
    before = depth_of(read_of(rows, {"q": limits}, latest_versions=versions))
    after = depth_of(read_of([*rows, *dead], {"q": limits}, latest_versions=versions))
    assert after.runnable <= before.runnable
    assert (after.in_flight, after.busy_workers) == (before.in_flight, before.busy_workers)
    assert after.floor_replicas in {before.floor_replicas, max(before.floor_replicas, 1)}


@always
@given(some_workflows, any_limits, version_rows, st.lists(dead_rows, min_size=1, max_size=5))
def test_rows_of_dead_executors_never_raise_what_is_wanted(
    rows: list[Workflow], limits: QueueLimits, versions: list[LatestVersion], dead: list[Workflow]
) -> None:
    # Under PW the pods that a partition needs depend on its own live rows, which the read does not tell apart.
    limits = replace(limits, partition_worker_concurrency=None)
    before = depth_of(read_of(rows, {"q": limits}, latest_versions=versions))
    after = depth_of(read_of([*rows, *dead], {"q": limits}, latest_versions=versions))
    assert after.wanted_replicas <= before.wanted_replicas


@always
@given(reads, pools, st.randoms())
def test_the_order_of_what_was_read_does_not_matter(table: TableRead, pool: Pool, random: Random) -> None:
    shuffled = replace(
        table,
        groups=tuple(shuffle(table.groups, random)),
        partitions=tuple(shuffle(table.partitions, random)),
        starts=tuple(shuffle(table.starts, random)),
        limits=dict(shuffle(table.limits.items(), random)),
        latest_versions=tuple(shuffle(table.latest_versions, random)),
    )
    assert every_depth(shuffled, pool) == every_depth(table, pool)


@always
@given(reads, pools)
def test_groups_of_one_row_count_as_much_as_one_group_of_many(table: TableRead, pool: Pool) -> None:
    single = replace(
        table,
        groups=tuple(
            replace(group, count=1, keyed=int(n < group.keyed), recent=int(n < group.recent))
            for group in table.groups
            for n in range(group.count)
        ),
        partitions=tuple(replace(group, partitions=1) for group in table.partitions for _ in range(group.partitions)),
        starts=tuple(replace(starts, count=1) for starts in table.starts for _ in range(starts.count)),
    )
    assert every_depth(single, pool) == every_depth(table, pool)


@always
@given(some_workflows, any_limits, version_rows)
def test_a_pool_of_one_queue_has_the_numbers_of_the_queue(
    rows: list[Workflow], limits: QueueLimits, versions: list[LatestVersion]
) -> None:
    outside_the_internal_queue = [row for row in rows if row.queue != INTERNAL_QUEUE]
    table = read_of(outside_the_internal_queue, {"q": limits}, latest_versions=versions)
    alone = depth_of(table)
    pool = depth_of(table, Pool("pool", queues=frozenset({"q"})))
    named = f"q: {alone.reason}" if alone.reason else ""
    assert pool == replace(alone, name="pool", reason=named)


@always
@given(reads, st.sampled_from(APPLICATIONS))
def test_a_pool_sums_the_workflows_of_its_queues_and_takes_the_maximum_of_their_pods(
    table: TableRead, application: str | None
) -> None:
    everything = Pool("all", queues=frozenset({*QUEUES, INTERNAL_QUEUE}), application=application)
    whole = depth_of(table, everything)
    parts = [
        depth_of(table, Pool(name, queues=frozenset({name}), application=application, by_queue=True))
        for name in (*QUEUES, INTERNAL_QUEUE)
    ]
    for field in ("queue_length", "in_flight", "runnable", "stranded", "delayed", "delayed_due"):
        assert getattr(whole, field) == sum(getattr(part, field) for part in parts), field
    assert whole.busy_workers <= whole.floor_replicas
    assert whole.floor_replicas >= max(part.floor_replicas for part in parts)
    if whole.runnable:
        assert whole.wanted_replicas == max(whole.floor_replicas, *(part.wanted_replicas for part in parts))


@always
@given(some_workflows, any_limits, version_rows.filter(bool))
def test_pools_of_all_versions_together_count_every_waiting_row_once(
    rows: list[Workflow], limits: QueueLimits, versions: list[LatestVersion]
) -> None:
    # Of one application: rows of others have other latest versions, and are stranded for every one of its pools.
    rows = [replace(row, application="shop") for row in rows if row.queue == "q"]
    table = read_of(rows, {"q": limits}, latest_versions=[replace(v, application="shop") for v in versions[:1]])
    whole = depth_of(table, Pool("all", queues=frozenset({"q"}), application="shop"))
    parts = [pinned(table, version) for version in VERSIONS]
    assert sum(part.queue_length for part in parts) == whole.queue_length
    assert sum(part.delayed_due for part in parts) == whole.delayed_due
    if all(row.version is not None for row in rows if row.status is Status.PENDING):
        assert sum(part.in_flight for part in parts) == whole.in_flight


@always
@given(some_workflows, any_limits, version_rows.filter(bool))
def test_versions_share_what_the_queue_may_start(
    rows: list[Workflow], limits: QueueLimits, versions: list[LatestVersion]
) -> None:
    # A pool of one version may start as much as the queue if the others stay idle, so the sum may exceed the queue's.
    # A version that is neither running nor the latest is left out: its rows are runnable for its own pool only.
    rows = [replace(row, application="shop") for row in rows if row.queue == "q"]
    newest = replace(versions[0], application="shop")
    table = read_of(rows, {"q": limits}, latest_versions=[newest])
    whole = depth_of(table, Pool("all", queues=frozenset({"q"}), application="shop"))
    running = {
        group.version
        for group in table.groups
        if group.status is Status.PENDING and live(group.executor, group.count, group.recent)
    }
    parts = [pinned(table, v).runnable for v in VERSIONS if v in running or v == newest.version]
    assert max(parts) <= whole.runnable <= sum(parts)


def pinned(table: TableRead, version: str) -> PoolDepth:
    """Return the numbers of the pool of one version."""
    return depth_of(table, Pool(version, queues=frozenset({"q"}), application="shop", version=version))


def live(executor: str | None, count: int, recent: int) -> int:
    """Return how many of these rows run."""
    liveness = WITNESS.of(executor)
    return {Liveness.DEAD: 0, Liveness.UNKNOWN: recent}.get(liveness, count)


def shuffle(items: Iterable[T], random: Random) -> list[T]:
    """Return the items in another order."""
    shuffled = list(items)
    random.shuffle(shuffled)
    return shuffled
